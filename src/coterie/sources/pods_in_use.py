"""The `pods` of a cluster file: the capacity in use, by node and owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from coterie.errors import nearest
from coterie.sources.assemble import member_of, shortened
from coterie.sources.fields import Fields, Path, named
from coterie.sources.shapes import SHORT_NAMES, read_amounts
from coterie.sources.task_labels import WORKFLOW
from coterie.topology.cluster import Pod

MAX_PODS = 1_000_000

_ASKED = tuple(name for name in SHORT_NAMES if name != "pods")
_POD = ("name", "node", "nodes", "owner", "requests", "daemon", "terminating", "labels", *_ASKED)


def read_pods(fields: Fields, value: object, known: Collection[str]) -> list[Pod]:
    """Return the pods; each must be on a known node, unless no node is known."""
    pods: list[Pod] = []
    names = _PodNames()
    for index, item in enumerate(fields.items(value, ("pods",))):
        path: Path = ("pods", index)
        entry = fields.mapping(item, path, _POD)
        if item is not None and not isinstance(item, Mapping):
            continue
        asked = {name: entry[name] for name in (*_ASKED, "requests") if name in entry}
        requests = read_amounts(fields, asked, path, "requests", offered=False)
        labels = fields.labels(entry.get("labels"), (*path, "labels"))
        daemon = fields.flag(entry.get("daemon"), (*path, "daemon"))
        terminating = fields.flag(entry.get("terminating"), (*path, "terminating"))
        owner = fields.text(entry["owner"], (*path, "owner")) if "owner" in entry else labels.get(WORKFLOW, "")
        places = _places(fields, entry, path, known)
        if len(pods) + len(places) > MAX_PODS:
            fields.fault(path, f"there are too many pods: at most {MAX_PODS:,} are read")
            break
        if not places:
            continue
        if "name" in entry:
            called = fields.text(entry["name"], (*path, "name"))
            given = names.given(called, len(places) if "nodes" in entry else 0)
        else:
            given = names.made(owner, len(places))
        if given is None:
            fields.fault((*path, "name"), f'there is already a pod "{shortened(called, 60)}"')
            continue
        for name, node in zip(given, places, strict=True):
            pods.append(Pod(name, node, requests, owner or name, daemon, terminating, member_of(labels)))
    return pods


def _places(fields: Fields, entry: Mapping[str, object], path: Path, known: Collection[str]) -> list[str]:
    if ("node" in entry) == ("nodes" in entry):
        problem = 'has both "node" and "nodes"' if "node" in entry else "does not say where it is"
        fields.fault(path, f"{named(path)} {problem}", "Write node: NAME, or nodes: [NAME, NAME] for one on each.")
        return []
    if "node" in entry:
        written: list[tuple[object, Path]] = [(entry["node"], (*path, "node"))]
    else:
        where = (*path, "nodes")
        written = [(each, (*where, index)) for index, each in enumerate(fields.items(entry["nodes"], where))]
        if entry["nodes"] in (None, []):
            fields.fault(where, f"{named(where)} is empty", "Name at least one node.")
    places = []
    for value, spot in written:
        name = fields.text(value, spot)
        if name and known and name not in known:
            # A search for similar names among very many takes too long.
            guess = nearest(name, known) if len(known) <= 1000 and len(fields.faults) < 20 else None
            fields.fault(
                spot,
                f'there is no node "{shortened(name, 60)}"',
                f'Did you mean "{guess}"?' if guess else "Pods run on nodes of this file.",
            )
        places.append(name)
    return places


class _PodNames:
    """Pod names, each used once: those in the file, and numbered ones after an owner."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: Counter[str] = Counter()

    def given(self, name: str, count: int) -> list[str] | None:
        """Return the name itself, or `count` numbered ones; None when one is taken."""
        full = name if "/" in name else f"default/{name}"
        names = [f"{full}-{number}" for number in range(1, count + 1)] if count else [full]
        if not self._taken.isdisjoint(names):
            return None
        self._taken.update(names)
        return names

    def made(self, owner: str, count: int) -> list[str]:
        """Return `count` new names after an owner."""
        base = owner if "/" in owner else f"default/{owner or 'pod'}"
        names: list[str] = []
        while len(names) < count:
            self._last[base] += 1
            name = f"{base}-{self._last[base]}"
            if name not in self._taken:
                self._taken.add(name)
                names.append(name)
        return names
