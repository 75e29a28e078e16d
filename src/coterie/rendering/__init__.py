"""Drawings: values in, text or SVG out; callers pass the capabilities of the terminal."""
