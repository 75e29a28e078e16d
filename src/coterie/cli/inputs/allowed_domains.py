"""The names of `--allowed-domain`, checked against the names that levels can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coterie.document.schema import said
from coterie.errors import UsageError
from coterie.frontends.grove.topology import is_domain

_EXAMPLE = "Give the option once for each name. Example: --allowed-domain zone --allowed-domain rack"


def allowed_domain_problems(names: Iterable[str]) -> Iterator[UsageError]:
    """Yield an error for each name that no level can have."""
    for name in names:
        if not is_domain(name):
            yield UsageError(f"--allowed-domain: {said(name)} cannot be the domain of a level", _EXAMPLE)
