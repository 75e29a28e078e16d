"""`coterie pool`: the pools of a service, and their usage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.pool import PoolApplyOptions
from coterie.cli.handlers.remote.topology import level_lines
from coterie.cli.inputs.prompt import confirm
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.grid import fitted, painted
from coterie.cli.output.screen import screen, show, show_as, show_data
from coterie.cli.output.workflows import warnings
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.rendering.text import Ink, Style, table, visible

if TYPE_CHECKING:
    from coterie.document.page import Page

Json = dict[str, Any]

# What the API says of a cluster before the first try to reach it has ended.
_CONNECTING = "connecting"
# The columns that a narrow screen omits, the first of them first.
_SPARE = ("NODES", "OUT", "OTHERS", "RUNNING", "WAITING", "FREE")


def list_pools(client: Client, output: Output) -> None:
    """Print all pools with their usage."""
    pools = client.pools()
    names = [pool["name"] for pool in pools]
    show_as(output, pools, names, lambda: pool_table(pools, screen(), wide=output is Output.WIDE))


def pool_table(pools: Sequence[Json], style: Style, *, wide: bool) -> Iterator[str]:
    """Yield pools with their usage."""
    if not pools:
        yield "There are no pools; an admin can create one with `coterie pool apply`."
        return
    more = ["BACKEND", "SCHEDULER", "GUARANTEE"] if wide else []
    names = ("NAME", "NODES", "GPUS", "LIMIT", "FREE", "OTHERS", "OUT", "RUNNING", "WAITING", *more, "LEVELS")
    rows = [[Ink(word) for word in names]]
    for pool in pools:
        gpus = pool["gpus"]
        cells = [
            visible(pool["name"]) + (" (default)" if pool["default"] else ""),
            *_counts(pool),
            str(pool["workflows"]["running"]),
            str(pool["workflows"]["waiting"]),
        ]
        if wide:
            cells += [visible(pool["backend"]), visible(pool["scheduler"]), _amount(gpus["guarantee"], "none")]
        levels = " > ".join(visible(level["key"]) for level in pool["topology_keys"]) or "-"
        rows.append([*map(Ink, cells), Ink(levels)])
    yield from painted(rows if wide else fitted(rows, style, _SPARE), style, whole=wide)
    if unknown := [visible(pool["name"]) for pool in pools if not pool["counted"]]:
        yield f"-: the nodes of {', '.join(unknown)} are not known here."
    for backend, problem in {pool["backend"]: pool["unreachable"] for pool in pools}.items():
        if problem == _CONNECTING:
            yield f"The service is connecting to the cluster of backend {visible(backend)}."
        elif problem:
            yield f"The cluster of backend {visible(backend)} cannot be reached: {visible(problem)}"


def _counts(pool: Json) -> Iterator[str]:
    """Yield the cells about the nodes and GPUs of a pool; only its limit is known where its nodes are not."""
    gpus = pool["gpus"]
    limit = _amount(gpus["limit"], "none")
    if not pool["counted"]:
        yield from ("-", "-", limit, "-", "-", "-")
        return
    free = gpus["free"] if gpus["limit"] is None else max(0, min(gpus["free"], gpus["limit"] - gpus["used"]))
    yield from (str(pool["nodes"]), f"{gpus['used']}/{gpus['total']}", limit)
    yield from (str(free), str(_others(gpus)), str(gpus["out_of_service"]))


def _others(gpus: Json) -> int:
    """Return how many GPUs of a pool's nodes are held by others than its own workflows."""
    return max(0, int(gpus["total"]) - int(gpus["used"]) - int(gpus["free"]) - int(gpus["out_of_service"]))


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
        show(["", *level_lines(client.topology(name))])
    for line in warnings(pool, wide=output is Output.WIDE):
        typer.echo(safe(line), err=True)


def _pool_lines(pool: Json) -> Iterator[str]:
    gpus = pool["gpus"]
    parts = [f"{gpus['used']} used", f"{gpus['free']} free"]
    parts += [f"{others} held by others"] if (others := _others(gpus)) else []
    parts += [f"{out} idle and out of service"] if (out := gpus["out_of_service"]) else []
    free = f"{', '.join(parts)}, {gpus['total']} in all"
    nodes = str(pool["nodes"])
    if not pool["counted"]:
        free = nodes = "not known here"
    least, most = _amount(gpus["guarantee"], "none"), _amount(gpus["limit"], "none")
    quota = f"guarantee {least}, limit {most}, weight {gpus['weight']}"
    selector = ",".join(f"{key}={value}" for key, value in pool["node_selector"].items())
    workflows = pool["workflows"]
    rows = [
        ("pool", pool["name"] + ("   (from the configuration file)" if pool["managed"] else "")),
        ("about", pool["description"] or ""),
        ("backend", f"{pool['backend']}, scheduler {pool['scheduler']}"),
        ("cluster" if pool["unreachable"] == _CONNECTING else "unreachable", pool["unreachable"] or ""),
        ("nodes", nodes + (f"   {selector}" if selector else "")),
        ("GPUs", free),
        ("quota", quota),
        ("nvlink", "yes" if pool["nvlink"] else ""),
        ("workflows", f"{workflows['running']} running, {workflows['waiting']} waiting"),
        ("topology", pool["topology"] or ""),
    ]
    yield from table([(word, visible(text)) for word, text in rows if text])


def _amount(value: int | None, none: str) -> str:
    return none if value is None else str(value)


def apply(client: Client, options: PoolApplyOptions) -> None:
    """Create or change the pools of a file."""
    # Only this subcommand reads a file, which needs many imports.
    from coterie.cli.inputs.source import read_input, shown
    from coterie.document.file_kind import FileKind, expect
    from coterie.document.located import decode, load
    from coterie.document.page import Page

    file, output = options.file, options.output
    data = read_input(file)
    expect(FileKind.CONFIGURATION, data, shown(file))
    text = decode(data, shown(file))
    names = _names(load(text, shown(file)).data, options.name, shown(file))
    page = Page.of(text, shown(file))
    # All are validated before the first is changed, so that a fault in one leaves every pool unchanged.
    planned = _planned(client, names, page)
    answers = planned if options.dry_run else [client.apply_pool(pool, page, dry_run=False) for pool in names]
    if output in {Output.JSON, Output.YAML}:
        show_data(answers, output)
    elif output is Output.NAME:
        show(safe(answer["pool"]["name"]) for answer in answers)
    else:
        show(line for answer in answers for line in _applied(answer))
    for answer in answers:
        # Minor findings about a pool are shown only when it is new.
        for line in warnings(answer["pool"], wide=answer["created"] or output is Output.WIDE):
            typer.echo(safe(line), err=True)


def _planned(client: Client, names: Sequence[str], page: Page) -> list[Json]:
    """Return the effects of applying pools; raise `SpecErrors` with the faults of all of them."""
    answers: list[Json] = []
    faults: list[Fault] = []
    for name in names:
        try:
            answers.append(client.apply_pool(name, page, dry_run=True))
        except SpecErrors as error:
            faults += error.faults
    if faults:
        raise SpecErrors(faults)
    return answers


def _names(document: object, name: str | None, file: str) -> list[str]:
    """Return the pools of a document: those below `pools`, or the document itself where the call names it."""
    if not isinstance(document, dict):
        raise UsageError(f"{file} holds no pool", "Write the fields of a pool, or `pools:` with a name for each.")
    below = document.get("pools")
    if below is None:
        if name is None:
            raise UsageError(f"{file} does not name its pool", "Pass --name NAME, or write `pools:` above its name.")
        return [name]
    if not isinstance(below, dict):
        raise UsageError(f"`pools` of {file} is not a mapping of names to pools", "See `coterie explain pools`.")
    if name is None:
        return list(below)
    if name not in below:
        raise UsageError(f'{file} has no pool "{name}"', f"Pools in it: {', '.join(below)}.")
    return [name]


def _applied(answer: Json) -> Iterator[str]:
    name = visible(answer["pool"]["name"])
    if not answer["changed"]:
        yield f"{name}: no changes."
        return
    word = "created" if answer["created"] else "changed"
    yield f"{name}: would be {word}." if answer["dry_run"] else f"{name}: {word}."
    if not answer["created"]:
        yield from (visible(f"  {one['field']}: {_change(one['old'], one['new'])}") for one in answer["changes"])
    if answer["lost_levels"]:
        yield f"  it loses {', '.join(map(visible, answer['lost_levels']))}"
    for one in answer["affected"]:
        what = "waits and can no longer be placed (LevelLost)" if one["waits"] else "keeps running"
        yield visible(f"  {one['workflow']}/{one['group']} needs {one['level']}: {what}")


def _change(old: object, new: object) -> str:
    """Return the old and the new value of a field; levels by their names alone where those differ."""
    short = [_value(value) for value in (old, new)]
    return " → ".join(short if short[0] != short[1] else [json.dumps(value) for value in (old, new)])


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list) and value and all(isinstance(one, dict) and "key" in one for one in value):
        return " > ".join(str(one["key"]) for one in value)
    return value if isinstance(value, str) else json.dumps(value)


def delete(client: Client, name: str, output: Output, *, yes: bool) -> None:
    """Delete a pool."""
    if not yes:
        confirm(f"Delete pool {name}")
    client.delete_pool(name)
    show_as(output, {"name": name, "deleted": True}, [name], lambda: [safe(f"{name} deleted")])
