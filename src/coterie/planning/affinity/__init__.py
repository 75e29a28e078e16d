"""Affinity between pods and host ports, as capacity that the engine counts."""
