"""The names of replicas in the lease, by which another replica on the same machine can detect that one is gone."""

from __future__ import annotations

import os
import secrets
import socket

from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.backends.local.shim import ownership


def new_holder() -> str:
    """Return a unique name for this process."""
    host, pid, unique = socket.gethostname(), os.getpid(), secrets.token_hex(3)
    try:
        return f"{host}/{pid}/{ownership.started(pid)}/{ownership.boot()}/{_numbering()}/{unique}"
    except OSError:
        return f"{host}/{pid}/{unique}"  # not Linux: the next leader waits for the lease to expire


def machine() -> str:
    """Return the name of this machine until its next boot, as its processes see it."""
    return f"{socket.gethostname()}/{ownership.boot()}/{_numbering()}"


def is_gone(holder: str) -> bool:
    """Return whether a replica certainly runs no more: it ran on this machine, and its process has ended.

    Replicas elsewhere, or in containers with their own process numbers, count as running.
    """
    parts = holder.split("/")
    if len(parts) != 6 or parts[0] != socket.gethostname() or parts[4] != _numbering():
        return False
    identity = ProcessIdentity.of(parts[1:4])
    return identity is not None and identity.this_boot() and not identity.alive()


def _numbering() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 - a link that leads nowhere
    except OSError:
        return "?"
