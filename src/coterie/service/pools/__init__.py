"""Pools: the catalog, its changes, and its usage."""
