"""Topology-aware gang placement for GPU workloads."""
