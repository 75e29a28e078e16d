"""Ports that are reserved for a lab while it runs.

A port that the kernel picks may be handed to anybody between choosing and using it. So ports are taken from below the
range that the kernel picks from, and each is claimed by a name that one process of the machine can have, so that two
labs never choose the same, whoever starts them.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

from lab.errors import LabError

_RANGE = range(20_000, 32_000)


class Ports:
    """The ports of one lab, until they are released."""

    def __init__(self, choices: Sequence[int] = _RANGE) -> None:
        # S311: nothing secret depends on which port it is.
        self._choices = iter(random.sample(choices, len(choices)))
        self._claims: list[socket.socket] = []

    def take(self) -> int:
        """Return a port of 127.0.0.1 that nobody listens on and no other lab has taken."""
        for port in self._choices:
            claim = socket.socket(socket.AF_UNIX)
            if _is_claimed(claim, port) and _is_free(port):
                self._claims.append(claim)
                return port
            claim.close()
        raise LabError("every port between 20000 and 32000 is taken", "End labs that are not needed: scripts/lab down.")

    def release(self) -> None:
        """Give all ports back."""
        for claim in self._claims:
            claim.close()
        self._claims.clear()


def _is_claimed(claim: socket.socket, port: int) -> bool:
    """Whether a socket got the name of a port, which no other has until it is closed; it is no file."""
    try:
        claim.bind(f"\0coterie-lab-port-{port}")
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    for host in ("127.0.0.1", ""):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True
