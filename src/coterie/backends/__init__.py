"""Back ends: a checked workload in, the manifests of a scheduler out, by pure functions.

Nothing here talks to a cluster, reads a file or knows the time, so the same workload always gives the same manifests.
"""
