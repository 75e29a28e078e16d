"""Backends: a valid workload in, the inputs of a scheduler out.

`kai` and `grove` write manifests by pure functions: they use no cluster, file or clock, so the same workload always
gives the same manifests. `local` runs tasks as processes on this machine.
"""
