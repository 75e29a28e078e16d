"""Drivers of backends, each on its own thread."""
