"""Tests of the operator."""
# ruff: noqa: A005 - a package of tests is never imported by this name alone
