"""The process that supervises one task; it imports little of the standard library, so it starts quickly.

Each attempt at a task has a folder. The process that atomically creates the file `claim` in it owns the attempt: so it
runs once, however often it is started. The shim outlives its starter, and records the outcome in the folder:

    launch   in: limits, command and environment        claim   which process owns the attempt
    stop     in: stop now, with this many seconds       pid     the command, once it runs
    log      what the command wrote, never too long     exit    how it ended, written last and at once

The command dies with its shim. Its descendants die with the command, as in a container: the shim is the
subreaper of all orphans below it, so that not even a process in its own session escapes.
"""
