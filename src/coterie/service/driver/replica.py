"""Names of replicas in the lease, by which another replica on the same machine can tell that one of them is gone."""

from __future__ import annotations

import os
import secrets
import socket

from coterie.backends.local.processes import Identity
from coterie.backends.local.shim import ownership


def new_holder() -> str:
    """Return a name for this process that no other has."""
    host, pid, unique = socket.gethostname(), os.getpid(), secrets.token_hex(3)
    try:
        return f"{host}/{pid}/{ownership.started(pid)}/{ownership.boot()}/{_numbering()}/{unique}"
    except OSError:
        return f"{host}/{pid}/{unique}"  # not Linux: whoever comes next waits for the lease to expire


def is_gone(holder: str) -> bool:
    """Tell whether a replica certainly runs no more: it ran on this machine, and its process has ended.

    Of replicas elsewhere, also in containers that number their processes apart, nothing can be said.
    """
    parts = holder.split("/")
    if len(parts) != 6 or parts[0] != socket.gethostname() or parts[4] != _numbering():
        return False
    identity = Identity.of(parts[1:4])
    return identity is not None and identity.this_boot() and not identity.alive()


def _numbering() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 - a link that leads nowhere
    except OSError:
        return "?"
