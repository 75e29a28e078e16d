"""OSMO's workflow files: read, checked, and lowered to gangs."""
