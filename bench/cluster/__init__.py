"""Measurements on a real cluster."""
