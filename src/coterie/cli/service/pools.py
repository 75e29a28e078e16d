"""`coterie pool` and `coterie topology`: where work can go, and how its nodes hang together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from coterie.cli.output import Output, safe
from coterie.cli.screen import screen, show, show_as, show_data
from coterie.cli.service.client import Client
from coterie.cli.service.views import painted, warnings
from coterie.cli.source import read_input, shown
from coterie.errors import UsageError
from coterie.frontends.text import decode, load
from coterie.planning import words
from coterie.rendering.text import Ink, Style, table, visible
from coterie.topology.cluster import natural

Json = dict[str, Any]


def list_pools(client: Client, output: Output) -> None:
    """Print all pools with what they use."""
    pools = client.pools()
    names = [pool["name"] for pool in pools]
    show_as(output, pools, names, lambda: _pool_table(pools, screen(), wide=output is Output.WIDE))


def _pool_table(pools: Sequence[Json], style: Style, *, wide: bool) -> Iterator[str]:
    if not pools:
        yield "There are no pools; an admin makes one with `coterie pool apply`."
        return
    more = ["BACKEND", "SCHEDULER", "GUARANTEE", "LIMIT"] if wide else []
    rows = [[Ink(word) for word in ("NAME", "NODES", "GPUS", "RUNNING", "WAITING", *more, "LEVELS")]]
    for pool in pools:
        gpus = pool["gpus"]
        cells = [
            visible(pool["name"]) + (" (default)" if pool["default"] else ""),
            str(pool["nodes"]),
            f"{gpus['used']}/{gpus['total']}",
            str(pool["workflows"]["running"]),
            str(pool["workflows"]["waiting"]),
        ]
        if wide:
            cells += [visible(pool["backend"]), visible(pool["scheduler"]), _amount(gpus["guarantee"], "none")]
            cells.append(_amount(gpus["limit"], "none"))
        levels = " > ".join(visible(level["key"]) for level in pool["topology_keys"]) or "-"
        rows.append([*map(Ink, cells), Ink(levels)])
    yield from painted(rows, style, whole=wide)


def show_pool(client: Client, name: str, output: Output) -> None:
    """Print a pool in full: its levels with labels and domains, and its GPUs."""
    pool = client.pool(name)
    if output in {Output.JSON, Output.YAML}:
        show_data(pool, output)
        return
    if output is Output.NAME:
        show([safe(pool["name"])])
        return
    show(_pool_lines(pool))
    if pool["topology_keys"]:
        show(["", *_level_lines(client.topology(name))])
    for line in warnings(pool):
        typer.echo(safe(line), err=True)


def _pool_lines(pool: Json) -> Iterator[str]:
    gpus = pool["gpus"]
    others = gpus["total"] - gpus["used"] - gpus["free"]
    beside = f"{others} held by others or out of service, " if others > 0 else ""
    free = f"{gpus['used']} used, {gpus['free']} free, {beside}{gpus['total']} in all"
    least, most = _amount(gpus["guarantee"], "none"), _amount(gpus["limit"], "none")
    quota = f"guarantee {least}, limit {most}, weight {gpus['weight']}"
    selector = ",".join(f"{key}={value}" for key, value in pool["node_selector"].items())
    workflows = pool["workflows"]
    rows = [
        ("pool", pool["name"] + ("   (of the configuration file)" if pool["managed"] else "")),
        ("about", pool["description"] or ""),
        ("backend", f"{pool['backend']}, scheduler {pool['scheduler']}"),
        ("nodes", f"{pool['nodes']}" + (f"   {selector}" if selector else "")),
        ("GPUs", free),
        ("quota", quota),
        ("nvlink", "yes" if pool["nvlink"] else ""),
        ("workflows", f"{workflows['running']} running, {workflows['waiting']} waiting"),
        ("topology", pool["topology"] or ""),
    ]
    yield from table([(word, visible(text)) for word, text in rows if text])


def _amount(value: int | None, none: str) -> str:
    return none if value is None else str(value)


def apply(client: Client, file: str, name: str | None, output: Output, *, dry_run: bool) -> None:
    """Make or change the pools of a file."""
    source = read_input(file)
    document = load(decode(source, shown(file)), shown(file)).data
    answers = [
        client.apply_pool(pool, wanted, dry_run=dry_run, source=source)
        for pool, wanted in _pools(document, name, shown(file)).items()
    ]
    if output in {Output.JSON, Output.YAML}:
        show_data(answers, output)
    elif output is Output.NAME:
        show(safe(answer["pool"]["name"]) for answer in answers)
    else:
        show(line for answer in answers for line in _applied(answer))
    for answer in answers:
        for line in warnings(answer["pool"]):
            typer.echo(safe(line), err=True)


def _pools(document: object, name: str | None, file: str) -> Mapping[str, Json]:
    """Return the pools of a document: those below `pools`, or the document itself where the call names it."""
    if not isinstance(document, dict):
        raise UsageError(f"{file} holds no pool", "Write the fields of a pool, or `pools:` with a name for each.")
    below = document.get("pools")
    if below is None:
        if name is None:
            raise UsageError(f"{file} does not name its pool", "Pass --name NAME, or write `pools:` above its name.")
        return {name: document}
    if not isinstance(below, dict) or not all(isinstance(one, dict) for one in below.values()):
        raise UsageError(f"`pools` of {file} is not a mapping of names to pools", "See `coterie explain pools`.")
    if name is None:
        return below
    if name not in below:
        raise UsageError(f'{file} has no pool "{name}"', f"Pools in it: {', '.join(below)}.")
    return {name: below[name]}


def _applied(answer: Json) -> Iterator[str]:
    name = visible(answer["pool"]["name"])
    if not answer["changed"]:
        yield f"{name}: no changes, it is as the file says."
        return
    word = "created" if answer["created"] else "changed"
    yield f"{name}: would be {word}." if answer["dry_run"] else f"{name}: {word}."
    if answer["lost_levels"]:
        yield f"  it loses {', '.join(map(visible, answer['lost_levels']))}"
    for one in answer["affected"]:
        what = "waits, and cannot be placed any more (LevelLost)" if one["waits"] else "runs, and is left alone"
        yield visible(f"  {one['workflow']}/{one['group']} needs {one['level']}: {what}")


def delete(client: Client, name: str) -> None:
    """Delete a pool."""
    client.delete_pool(name)
    show([safe(f"{name} deleted")])


def list_topologies(client: Client, output: Output) -> None:
    """Print the levels of all pools."""
    found = client.topologies()
    rows = [("POOL", "LEVEL", "LABEL", "DOMAINS")]
    rows += [
        (visible(one["pool"]), visible(level["key"]), visible(level["label"]), str(level["domains"]))
        for one in found
        for level in one["levels"]
    ]
    names = [one["pool"] for one in found]
    show_as(output, found, names, lambda: table(rows) if len(rows) > 1 else ["No pool has levels."])


def show_topology(client: Client, pool: str, output: Output) -> None:
    """Print the levels of a pool with their domains and counts."""
    found = client.topology(pool)
    names = [words.domain(domain["path"]) for domain in found["domains"]]
    show_as(output, found, names, lambda: (*_level_lines(found), *_domain_lines(found["domains"])))


def _domain_lines(domains: Sequence[Json]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("DOMAIN", "LEVEL", "NODES", "USED", "FREE", "TOTAL")]
    rows += [
        (
            visible("  " * (len(one["path"]) - 1) + words.domain(one["path"][-1:])),
            visible(one["level"]),
            str(one["nodes"]),
            *(str(one["gpus"][word]) for word in ("used", "free", "total")),
        )
        for one in sorted(domains, key=lambda one: [natural(value) for value in one["path"]])
    ]
    if domains:
        yield ""
        yield from table(rows, numbers=frozenset({2, 3, 4, 5}))


def _level_lines(topology: Json) -> Iterator[str]:
    if not topology["levels"]:
        yield visible(f"pool {topology['pool']} has no levels.")
        return
    rows = [("LEVEL", "LABEL", "DOMAINS", "NODES WITH IT", "WITHOUT")]
    rows += [
        (visible(one["key"]), visible(one["label"]), str(one["domains"]), str(one["nodes"]), str(one["unlabelled"]))
        for one in topology["levels"]
    ]
    yield from table(rows, numbers=frozenset({2, 3, 4}))
    if topology["name"]:
        yield visible(f"They are those of the ClusterTopology {topology['name']}.")
