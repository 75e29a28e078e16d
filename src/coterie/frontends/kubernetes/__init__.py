"""Kubernetes objects in files: their outer shape, and the parts of a pod spec that placement needs."""
