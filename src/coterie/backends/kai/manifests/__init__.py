"""Manifests for KAI: every object of a workload, in the order in which they are applied."""
