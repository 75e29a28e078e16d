"""Generators of clusters that tests and examples share."""
