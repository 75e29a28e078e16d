"""`coterie topology`: the levels of pools, and their domains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.topology import TopologyUsersOptions
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import show_as
from coterie.errors import UsageError
from coterie.rendering.text import table, visible
from coterie.topology.display_names import domain as domain_path
from coterie.topology.display_names import natural

Json = dict[str, Any]

_COUNTS = ("domains", "nodes", "unlabelled")


def list_topologies(client: Client, output: Output) -> None:
    """Print the levels of all pools."""
    found = client.topologies()
    rows = [("POOL", "LEVEL", "LABEL", "DOMAINS")]
    rows += [
        (visible(one["pool"]), visible(level["key"]), visible(level["label"]), _counted(level["domains"]))
        for one in found
        for level in one["levels"]
    ]
    lines = list(table(rows)) if len(rows) > 1 else ["No pool has levels."]
    if uncounted := [one["pool"] for one in found if one["levels"] and not one["counted"]]:
        listed = ", ".join(map(visible, uncounted))
        lines.append(f"-: not counted, because the nodes of {listed} are not known here.")
    show_as(output, found, [one["pool"] for one in found], lambda: lines)


def show_topology(client: Client, pool: str, output: Output) -> None:
    """Print the levels of a pool with their domains and counts."""
    found = client.topology(pool)
    names = [domain_path(domain["path"]) for domain in found["domains"]]
    show_as(output, found, names, lambda: (*level_lines(found), *_domain_lines(found["domains"])))


def show_users(client: Client, options: TopologyUsersOptions) -> None:
    """Print the groups of workflows that require levels of a pool, and the effects of other levels."""
    from coterie.cli.handlers.inspection.topology_users import (  # it reads objects of clusters, and is slow to load
        new_levels,
        print_users,
    )

    if options.delete:
        hint = "A pool that workflows use cannot be deleted: see `coterie pool delete`."
        raise UsageError("--delete is for a topology of a cluster", f"Pass --cluster SRC. {hint}")
    after = new_levels(options)
    print_users(options, client.topology_users(options.name, after))


def _domain_lines(domains: Sequence[Json]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("DOMAIN", "LEVEL", "NODES", "USED", "FREE", "OUT", "TOTAL")]
    rows += [
        (
            visible("  " * (len(one["path"]) - 1) + domain_path(one["path"][-1:])),
            visible(one["level"]),
            str(one["nodes"]),
            *(str(one["gpus"][word]) for word in ("used", "free", "out_of_service", "total")),
        )
        for one in sorted(domains, key=lambda one: [natural(value) for value in one["path"]])
    ]
    if domains:
        yield ""
        yield from table(rows, numbers=frozenset({2, 3, 4, 5, 6}))


def level_lines(topology: Json) -> Iterator[str]:
    """Yield the table of a topology's levels."""
    if not topology["levels"]:
        yield visible(f"pool {topology['pool']} has no levels.")
        return
    rows: list[tuple[str, ...]] = [("LEVEL", "LABEL", "DOMAINS", "NODES WITH IT", "WITHOUT")]
    rows += [
        (visible(one["key"]), visible(one["label"]), *(_counted(one[word]) for word in _COUNTS))
        for one in topology["levels"]
    ]
    yield from table(rows, numbers=frozenset({2, 3, 4}))
    if topology["name"]:
        yield visible(f"They come from the topology {topology['name']}.")
    if not topology["counted"]:
        yield "These levels are configured; domains are not counted, because the pool's nodes are not known here."


def _counted(number: int | None) -> str:
    return "-" if number is None else str(number)
