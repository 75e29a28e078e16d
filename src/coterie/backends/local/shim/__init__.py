"""The process that watches one task. It needs the standard library and little of that, so it starts quickly.

Each attempt at a task has a folder. Whoever makes the file `claim` in it, which only one can, owns the attempt: so it
runs once, however often it is started. The shim outlives whoever started it, and leaves what happened in the folder:

    launch   in: limits, command and environment        claim   which process owns the attempt
    stop     in: stop now, with this many seconds       pid     the command, once it runs
    log      what the command wrote, never too long     exit    how it ended, written last and at once

The command dies with its shim. Whatever it left behind dies with the command, as in a container: the shim is the
parent of all orphans below it, so that not even a process in a session of its own gets away.
"""
