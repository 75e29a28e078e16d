"""Admission rules of graph deployments as pure functions, on create and on update."""
