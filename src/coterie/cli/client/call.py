"""How a command asks a service. Light on purpose: imported whenever any command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coterie.cli.output.formats import Output

if TYPE_CHECKING:
    from coterie.cli.client.client import Client


@contextmanager
def asking(
    server: str | None, token: str | None, output: Output = Output.TABLE, *, debug: bool = False
) -> Iterator[Client]:
    """Yield a client of the service; what goes wrong meanwhile is reported as every command does it."""
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.client.client import Client

        with Client(server, token) as client:
            yield client


def supposing(
    prefer: list[str] | None,
    coarsen: list[str] | None,
    tasks: list[str] | None,
    without: list[str] | None,
    uncordon: list[str] | None,
    tolerate: list[str] | None,
    *,
    allow_excluded: bool,
) -> dict[str, object]:
    """Return the options that ask what if, as a service wants them."""
    return {
        "prefer": prefer,
        "coarsen": coarsen,
        "tasks": tasks,
        "without": without,
        "uncordon": uncordon,
        "tolerate": tolerate,
        "allow_excluded": allow_excluded or None,
    }
