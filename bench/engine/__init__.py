"""Measurements of the engine and of the reading of clusters, which need no cluster."""
