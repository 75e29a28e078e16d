"""Inspection of clusters: label checks, maps, and the audit of placements against their constraints."""
