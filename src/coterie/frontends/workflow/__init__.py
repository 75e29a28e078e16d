"""OSMO's workflow files: reading, validation, and compilation to gangs."""
