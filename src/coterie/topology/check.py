"""The label check: findings about node labels that do not form the hierarchy a topology declares."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.topology.cluster import Bools, Cluster
from coterie.topology.display_names import natural
from coterie.topology.domains import Domains, is_null
from coterie.topology.levels import HOSTNAME, Level, Topology
from coterie.topology.ranges import fold

Severity = Literal["error", "warning", "info"]

_SHOWN = 3
_ALIKE = 0.8
# Common names of levels, coarsest first; they break ties where the labels alone allow either order.
_COARSE_FIRST = ("region", "zone", "block", "spine", "rack", "clique", "host")


@dataclass(frozen=True, slots=True)
class LabelFinding:
    """One finding about labels; `level` is empty when it concerns all levels."""

    code: str
    severity: Severity
    level: str
    message: str
    nodes: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, eq=False)
class _LevelColumn:
    """One level as found on the nodes: `codes` index `values`, with -1 for a node in no domain."""

    level: Level
    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]
    absent: Bools
    empty: Bools
    null: Bools

    @property
    def used(self) -> bool:
        return bool((self.codes >= 0).any())


def check(cluster: Cluster, topology: Topology) -> tuple[LabelFinding, ...]:
    """Return the findings about labels, level by level from the coarsest, independent of the order of the nodes."""
    if not len(cluster):
        return ()
    rungs = [_rung(cluster, level) for level in topology.levels]
    findings: list[LabelFinding] = []
    for index, rung in enumerate(rungs):
        findings += _labelling(cluster, topology, rung)
        findings += _gap(cluster, rung, rungs[index + 1 :])
    for coarse, fine in pairwise(rung for rung in rungs if rung.used):
        findings += _nesting(cluster, coarse, fine)
    findings += _singletons(cluster, topology)
    findings += _hidden(cluster, rungs)
    order = {name: index for index, name in enumerate(topology.names)}
    return tuple(sorted(findings, key=lambda finding: order.get(finding.level, len(order))))


def _rung(cluster: Cluster, level: Level) -> _LevelColumn:
    column = cluster.column(level.label)
    # One extra cell at the end, so that code -1 maps to "no value".
    empty = np.array([*(not value for value in column.values), False], dtype=bool)[column.codes]
    null = np.array([*(is_null(level.label, value) for value in column.values), False], dtype=bool)[column.codes]
    codes = np.where(null, -1, column.codes).astype(np.int32)
    return _LevelColumn(level, column.values, codes, column.codes < 0, empty, null & ~empty)


def _labelling(cluster: Cluster, topology: Topology, rung: _LevelColumn) -> Iterator[LabelFinding]:
    name, label = rung.level.name, rung.level.label
    if rung.absent.all():
        guess = _similar(label, [key for key in cluster.columns if key not in _labels(topology)], loose=True)
        hint = f'Did you mean "{guess[0]}"?' if guess else "Label the nodes, or correct the label of this level."
        yield LabelFinding("LabelOnNoNode", "error", name, f'no node has the label "{label}"', hint=hint)
        return
    if rung.absent.any():
        for which, of, severity in _by_gpus(cluster, rung.absent):
            nodes = _names(cluster, which)
            message = f'the label "{label}" is missing on {_share(nodes, of)}'
            hint = f'{"It" if len(nodes) == 1 else "They"} cannot serve work that must share one "{name}".'
            yield LabelFinding("LabelMissing", severity, name, message, nodes, hint)
        yield from _near_misses(cluster, topology, rung)
    worst: Severity = "warning" if rung.used else "error"
    for code, which, what in (
        ("LabelEmpty", rung.empty, "is empty"),
        ("LabelNull", rung.null, "names no fabric"),
    ):
        if which.any():
            nodes = _names(cluster, which)
            message = f'the label "{label}" {what}, and so counts as missing, on {_some(nodes, cluster)}'
            hint = "Is the fabric manager running there?" if code == "LabelNull" else "Set the label, or remove it."
            yield LabelFinding(code, worst, name, message, nodes, hint)
    yield from _case_twins(cluster, rung)
    if label == HOSTNAME:
        yield from _shared_hostnames(cluster, rung)


def _near_misses(cluster: Cluster, topology: Topology, rung: _LevelColumn) -> Iterator[LabelFinding]:
    """Yield labels similar to this level's that occur only on nodes without it, which suggests a misspelt key."""
    other = [
        key
        for key, column in cluster.columns.items()
        if key not in _labels(topology) and not (column.codes[~rung.absent] >= 0).any()
    ]
    for key in _similar(rung.level.label, other, loose=False):
        nodes = _names(cluster, rung.absent & (cluster.column(key).codes >= 0))
        message = f'"{key}" is set instead of "{rung.level.label}" on {_some(nodes, cluster)}'
        yield LabelFinding("NearMissLabel", "warning", rung.level.name, message, nodes, "Relabel them.")


def _case_twins(cluster: Cluster, rung: _LevelColumn) -> Iterator[LabelFinding]:
    twins: dict[str, list[int]] = {}
    for code in np.unique(rung.codes[rung.codes >= 0]):
        twins.setdefault(rung.values[code].casefold(), []).append(int(code))
    for codes in sorted((codes for codes in twins.values() if len(codes) > 1), key=lambda codes: rung.values[codes[0]]):
        shown = " and ".join(f'"{value}"' for value in sorted(rung.values[code] for code in codes))
        nodes = _names(cluster, np.isin(rung.codes, codes))
        message = f'{shown} are different domains of "{rung.level.name}" that differ only in case'
        yield LabelFinding(
            "CaseTwins", "warning", rung.level.name, message, nodes, "Use one spelling if they are one place."
        )


def _shared_hostnames(cluster: Cluster, rung: _LevelColumn) -> Iterator[LabelFinding]:
    counts = np.bincount(rung.codes[rung.codes >= 0], minlength=len(rung.values))
    shared = sorted((rung.values[code] for code in np.flatnonzero(counts > 1)), key=natural)
    if shared:
        nodes = _names(cluster, (rung.codes >= 0) & (counts > 1)[rung.codes])
        values = _cut(", ".join(f'"{value}"' for value in shared), 80)
        message = f'nodes share a value of "{rung.level.label}", and count as one "{rung.level.name}": {values} on '
        hint = "Give every node its own name in this label, as the kubelet does."
        yield LabelFinding(
            "HostnameShared", "warning", rung.level.name, f"{message}{_some(nodes, cluster)}", nodes, hint
        )


def _gap(cluster: Cluster, rung: _LevelColumn, finer: Sequence[_LevelColumn]) -> Iterator[LabelFinding]:
    if not rung.used:
        return
    for below in finer:
        which = (rung.codes < 0) & (below.codes >= 0)
        if which.any():
            nodes = _names(cluster, which)
            coarse, fine = rung.level.name, below.level.name
            message = f'nodes with "{fine}" but without "{coarse}" are in no "{fine}" either: {_some(nodes, cluster)}'
            yield LabelFinding("LabelGap", "warning", coarse, message, nodes, f'Set "{rung.level.label}" on them.')
            return


def _nesting(cluster: Cluster, coarse: _LevelColumn, fine: _LevelColumn) -> Iterator[LabelFinding]:
    both = (coarse.codes >= 0) & (fine.codes >= 0)
    width = len(fine.values)
    pairs = np.unique(coarse.codes[both].astype(np.int64) * width + fine.codes[both])
    above, below = pairs // max(1, width), pairs % max(1, width)
    parents = np.bincount(below, minlength=width)
    if not (parents > 1).any():
        return
    children = np.bincount(above, minlength=len(coarse.values))
    upper, lower = coarse.level.name, fine.level.name
    nodes = _names(cluster, both & (parents > 1)[fine.codes])
    if (children <= 1).all() and _reversible(coarse.level, fine.level, int((parents > 0).sum())):
        message = (
            f'"{lower}" looks coarser than "{upper}": each of the {int((children > 0).sum())} values of "{upper}" '
            f'lies in one of the {int((parents > 0).sum())} of "{lower}"'
        )
        yield LabelFinding("OrderReversed", "error", lower, message, nodes, f'List "{lower}" before "{upper}".')
        return
    hint = f'They count as different domains: a "{lower}" never spans two domains of "{upper}".'
    if len(pairs) == int((parents > 0).sum()) * int((children > 0).sum()) and (parents > 0).sum() > 1:
        if _named_backwards(coarse.level, fine.level):
            message = (
                f'"{lower}" is usually coarser than "{upper}", and every "{lower}" has the same values of "{upper}"'
            )
            yield LabelFinding("OrderReversed", "error", lower, message, nodes, f'List "{lower}" before "{upper}".')
            return
        message = f'every "{upper}" has the same values of "{lower}"'
        yield LabelFinding("NotNested", "info", lower, message, nodes, hint)
        return
    spread = sorted(np.flatnonzero(parents > 1), key=lambda code: natural(fine.values[code]))
    shown = [_evidence(cluster, coarse, fine, int(code), above[below == code]) for code in spread[:_SHOWN]]
    rest = f"; and {len(spread) - _SHOWN} more" if len(spread) > _SHOWN else ""
    yield LabelFinding("NotNested", "warning", lower, "; ".join(shown) + rest, nodes, hint)


def _evidence(
    cluster: Cluster, coarse: _LevelColumn, fine: _LevelColumn, code: int, above: npt.NDArray[np.int64]
) -> str:
    sides = []
    for parent in sorted(above, key=lambda parent: natural(coarse.values[parent])):
        names = _names(cluster, (fine.codes == code) & (coarse.codes == parent))
        sides.append(f'{coarse.level.name} "{coarse.values[parent]}" ({_cut(fold(names), 60)})')
    more = f" and {len(sides) - _SHOWN} more" if len(sides) > _SHOWN else ""
    return f'{fine.level.name} "{fine.values[code]}" lies in {" and ".join(sides[:_SHOWN])}{more}'


def _named_backwards(coarse: Level, fine: Level) -> bool:
    """Return whether two levels bear common names that usually have the opposite order."""
    upper, lower = _usual_place(coarse), _usual_place(fine)
    return upper is not None and lower is not None and lower < upper


def _reversible(coarse: Level, fine: Level, values: int) -> bool:
    """Return whether two levels are probably reversed, judged by their names, or else by their numbers of values."""
    upper, lower = _usual_place(coarse), _usual_place(fine)
    if upper is not None and lower is not None and upper != lower:
        return upper > lower
    return values > 1


def _usual_place(level: Level) -> int | None:
    for text in (level.name, level.label.rpartition("/")[2]):
        for place, word in enumerate(_COARSE_FIRST):
            if word in text.casefold():
                return place
    return None


def _singletons(cluster: Cluster, topology: Topology) -> Iterator[LabelFinding]:
    domains = Domains.of(cluster, topology)
    for level, tier in zip(topology.levels, domains.tiers, strict=True):
        if level.label == HOSTNAME or len(cluster) == 1 or not len(tier):
            continue
        if len(tier) == 1:
            message = f'"{level.name}" has one domain only, "{tier.values[0][-1]}"'
            yield LabelFinding("SingletonLevel", "info", level.name, message, (), "It separates nothing yet.")
        elif (tier.end - tier.start == 1).all():
            message = f'each of the {len(tier)} domains of "{level.name}" has one node only'
            yield LabelFinding("SingletonLevel", "info", level.name, message, (), "It adds nothing to the node itself.")


def _hidden(cluster: Cluster, rungs: Sequence[_LevelColumn]) -> Iterator[LabelFinding]:
    lacking = np.zeros(len(cluster), dtype=bool)
    for rung in rungs:
        lacking |= rung.codes < 0
    if lacking.any():
        parts = [_share(_names(cluster, which), of) for which, of, _ in _by_gpus(cluster, lacking)]
        message = f"hidden from schedulers that need every level's label, such as KAI: {' and '.join(parts)}"
        yield LabelFinding("HiddenFromScheduler", "info", "", message, _names(cluster, lacking))


def _similar(label: str, others: Sequence[str], *, loose: bool) -> list[str]:
    """Return the labels that `label` was probably meant to be, the likeliest first.

    The prefix and the name are compared separately, since prefixes are long and shared by labels of other meaning. When
    `loose`, the same name under any prefix is accepted.
    """
    prefix, _, name = label.rpartition("/")
    found = []
    for other in others:
        other_prefix, _, other_name = other.rpartition("/")
        by_name, by_prefix = _alike(name, other_name), _alike(prefix, other_prefix)
        if by_name >= _ALIKE and (by_prefix >= _ALIKE or (loose and by_name == 1)):
            found.append((-by_name - by_prefix, natural(other[:300]), other))
    return [other for _, _, other in sorted(found)]


def _alike(one: str, other: str) -> float:
    plain, other_plain = (re.sub(r"[^a-z0-9]", "", text.casefold()) for text in (one, other))
    if plain == other_plain:
        return 1.0
    matcher = difflib.SequenceMatcher(None, plain, other_plain, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE else 0.0


def _by_gpus(cluster: Cluster, which: Bools) -> Iterator[tuple[Bools, str, Severity]]:
    """Yield the given nodes with GPUs, then those without, each with the total of that kind and a severity.

    Control planes and the like need no fabric labels where other nodes have GPUs.
    """
    gpus = cluster.has_gpus
    if not gpus.any():
        yield which, f"{len(cluster)} nodes", "warning"
        return
    if (with_gpus := which & gpus).any():
        yield with_gpus, f"{int(gpus.sum())} nodes{'' if gpus.all() else ' with GPUs'}", "warning"
    if (others := which & ~gpus).any():
        yield others, f"{int((~gpus).sum())} nodes without GPUs", "info"


def _share(nodes: Sequence[str], of: str) -> str:
    return f"{len(nodes)} of {of} ({_cut(fold(nodes), 80)})"


def _labels(topology: Topology) -> frozenset[str]:
    return frozenset(level.label for level in topology.levels)


def _names(cluster: Cluster, which: Bools) -> tuple[str, ...]:
    return tuple(cluster.names[node] for node in np.flatnonzero(which))


def _some(nodes: Sequence[str], cluster: Cluster) -> str:
    return f"{len(nodes)} of {len(cluster)} nodes ({_cut(fold(nodes), 80)})"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
