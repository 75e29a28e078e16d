"""Back ends: a checked workload in, what a scheduler needs out.

`kai` and `grove` write manifests by pure functions: they talk to no cluster, read no file and do not know the time, so
the same workload always gives the same manifests. `local` runs tasks as processes on this machine.
"""
