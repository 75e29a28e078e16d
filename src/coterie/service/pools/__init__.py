"""Pools: the catalog, changes to it, and what is in use."""
