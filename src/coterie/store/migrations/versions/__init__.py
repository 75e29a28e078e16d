"""The single migrations."""
