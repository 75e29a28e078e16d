"""`coterie topology users`: the objects that refer to a topology, and the effects of a change before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coterie.cli.commands.remote.topology import TopologyUsersOptions
from coterie.cli.inputs.source import LIVE, read_input, shown, warn
from coterie.cli.output.screen import show_as
from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.frontends.grove.topology import KINDS, topology_of
from coterie.frontends.grove.topology_set import known_topologies, read_topologies
from coterie.frontends.kubernetes.objects import is_kubernetes, read_resources
from coterie.inspection.topology_users import NO_EFFECT, NOT_PLACED, NOT_PREFERRED, NOT_ROUTED, topology_users
from coterie.rendering.text import count, table, visible
from coterie.sources.referring_objects import HOW, json_objects, live_objects, named_objects
from coterie.topology.levels import Topology

Json = dict[str, Any]

_EFFECTS = {
    NO_EFFECT: "-",
    NOT_PLACED: "gone: running pods stay, new ones are not placed",
    NOT_PREFERRED: "gone: no longer preferred",
    NOT_ROUTED: "gone: for the router alone, no placement changes",
}

_NO_USE: Json = {"level": "-", "field": "", "effect": NO_EFFECT}


def run(options: TopologyUsersOptions) -> None:
    """Print the users of a topology in a cluster or in a file."""
    source = options.cluster or ""
    if (source, options.new).count("-") > 1:
        raise UsageError("standard input can be read only once", "Use - for --cluster or for --new, not for both.")
    objects = _live(source) if source.startswith(LIVE) else _of_file(source)
    known = known_topologies((each for each in objects if each["kind"] in KINDS), source)
    warn(known.notices)
    found = known.found.get(options.name)
    faults = () if found else known.wrong.get(options.name, ())
    after = new_levels(options)
    report = topology_users(
        options.name,
        topology_of(found) if found else None,
        objects,
        after,
        change=after is not None or options.delete,
    )
    if found is None and not faults and (options.delete or not report.users):
        names = sorted({*known.found, *known.wrong})
        listed = f"Topologies there: {', '.join(names)}." if names else f"There are none. {HOW}"
        also = "" if report.users else ", and nothing refers to it"
        raise NotFound(
            f'{shown(source)} has no topology "{options.name}"{also}',
            f"{did_you_mean(options.name, names)} {listed}".strip(),
        )
    print_users(options, replace(report, faults=tuple(fault.message for fault in faults)).as_json())


def print_users(options: TopologyUsersOptions, report: Json) -> None:
    """Print a report of users, of a cluster or of a service."""
    names = [_title(user) for user in report["users"]]
    show_as(options.output, report, names, lambda: _lines(report))


def new_levels(options: TopologyUsersOptions) -> Topology | None:
    """Return the levels of the file that a topology would be changed to, if one is given."""
    if options.new is None:
        return None
    if options.delete:
        raise UsageError("--new and --delete are two different changes", "Remove one of the two options.")
    file = shown(options.new)
    read = read_topologies(read_input(options.new), file)
    warn(read.notices)
    named = read.found
    if options.name not in named:
        raise NotFound(f'{file} has no topology "{options.name}"', f"Topologies in it: {', '.join(sorted(named))}.")
    return topology_of(named[options.name])


def _live(source: str) -> list[Json]:
    from stamina.instrumentation import set_on_retry_hooks

    from coterie.kube.api import connect

    set_on_retry_hooks(())  # its own message about a retry would go to standard output, among the results
    with connect(source.removeprefix(LIVE)) as api:
        return live_objects(api)


def _of_file(source: str) -> list[Json]:
    data, file = read_input(source), shown(source)
    # Several documents are YAML, whatever their style.
    single = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b"\n---" not in data
    if single or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return json_objects(data, file)
    if not is_kubernetes(data):
        raise UsageError(f"{file} holds no Kubernetes objects that could refer to a topology", HOW)
    bundle = read_resources(data, file)
    return named_objects(dict(each.data) for each in (*bundle.resources, *bundle.others))


def _title(user: Mapping[str, Any]) -> str:
    place = f"{user['namespace']}/" if user["namespace"] else ""
    return f"{user['kind']} {place}{user['name']}"


def _lines(report: Json) -> Iterator[str]:
    yield from _head(report)
    users = report["users"]
    if not users:
        yield "Nothing that is known refers to it." if report["faults"] else "Nothing refers to it."
        return
    changed = report["change"] is not None
    rows: list[tuple[str, ...]] = [("USER", "LEVEL", "", "FIELD", *(("EFFECT",) if changed else ()))]
    for user in users:
        title = visible(_title(user))
        for use in user["uses"] or [_NO_USE]:
            kind = "" if use is _NO_USE else {True: "required", False: "preferred", None: "routing"}[use["required"]]
            effect = (_EFFECTS[use["effect"]],) if changed else ()
            rows.append((title, visible(use["level"]), kind, visible(use["field"]), *effect))
            title = ""
    yield from table(rows)
    if changed:
        stopped = sum(user["effect"] == NOT_PLACED for user in users)
        yield f"{count(stopped, 'object')} of {len(users)} would lose required levels."


def _head(report: Json) -> Iterator[str]:
    name, levels, change = visible(report["topology"]), report["levels"], report["change"]
    faults = [f"  {visible(fault)}" for fault in report["faults"]]
    if levels is not None:
        order = " > ".join(visible(level["domain"]) for level in levels)
        yield f"{name}: {order}"
        yield from ["Not all of its users are known:", *faults] if faults else ()
    elif faults:
        yield f"The topology {name} is invalid, so its levels are not known:"
        yield from faults
    else:
        yield f"There is no topology {name} now, but objects refer to it."
    if change is None:
        return
    if change["deleted"]:
        yield "It would be deleted."
    parts = [
        f"{word}: {', '.join(map(visible, change[field]))}"
        for word, field in (("removed", "removed"), ("added", "added"), ("another label", "relabelled"))
        if change[field] and not change["deleted"]
    ]
    parts += ["another order"] if change["reordered"] else []
    if parts:
        yield f"It would change: {'; '.join(parts)}."
    elif not change["deleted"]:
        yield "Its levels would stay as they are."
