"""The connection of a command to a service; imports little, since every command loads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coterie.cli.inputs.service_options import ServiceOptions
from coterie.cli.output.formats import Output

if TYPE_CHECKING:
    from coterie.cli.client.client import Client


@contextmanager
def service_client(service: ServiceOptions, output: Output, *, debug: bool) -> Iterator[Client]:
    """Yield a client of the service; errors meanwhile are reported as by every command."""
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        from coterie.cli.client.client import Client

        with Client(service.server, service.token) as client:
            yield client
