"""Admission rules of PodCliqueSets as pure functions, on create and on update."""
