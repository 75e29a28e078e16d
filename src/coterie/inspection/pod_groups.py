"""The constraints of a snapshot's PodGroups, and the pods of their tasks.

A PodGroup that Coterie wrote carries its constraint tree as the user defined it. For any other, including Grove's, the
constraints are those of its own fields: a required and a preferred level for itself and for each subgroup, by node
label. The nesting of such a label is defined by the KAI Topology that it names; short names of levels come from a
ClusterTopology with the same labels, where the snapshot has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.backends.shared.constraint_annotation import ANNOTATION, Recorded, read
from coterie.backends.shared.names import label_value
from coterie.errors import SpecErrors
from coterie.frontends.grove.kai_topology import read_kai_topologies
from coterie.gang.tree import Path
from coterie.sources import GangPod, Snapshot
from coterie.sources.task_labels import WORKFLOW
from coterie.topology.cluster import by_name
from coterie.topology.levels import Topology

Json = Mapping[str, Any]
Tasks = Mapping[str, GangPod | None]

_NO_LEVELS = Topology()
_DEFAULT = "default"
_ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class PodGroupConstraint:
    """Tasks that share one domain, which is identified by the values of `labels`, coarsest first.

    `doubt` is the reason why equal values do not prove one domain, where not all coarser labels are known.
    """

    path: Path
    required: bool
    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The minimum number of these tasks that run together; `part` names them, empty for the whole gang."""

    tasks: tuple[str, ...]
    least: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class AskedGang:
    """A PodGroup: its constraints, parents before children, and each task with its pod, if any.

    `unread` describes the parts that cannot be understood. `levels` are the levels of a topology that the gang names.
    """

    namespace: str
    name: str
    workload: str
    group: str
    tasks: Tasks
    constraints: tuple[PodGroupConstraint, ...] = ()
    quorums: tuple[Quorum, ...] = ()
    levels: Topology = _NO_LEVELS
    follows: str = ""
    unread: tuple[str, ...] = ()
    recorded: bool = False


def is_placed(pod: GangPod | None) -> bool:
    """Return whether a pod holds capacity on a node."""
    return pod is not None and bool(pod.node) and pod.phase not in _ENDED


def has_ended(pod: GangPod | None) -> bool:
    """Return whether a pod has finished, successfully or not."""
    return pod is not None and pod.phase in _ENDED


def asked_gangs(snapshot: Snapshot) -> Iterator[AskedGang]:
    """Yield the gangs of a snapshot by namespace and name."""
    pods: dict[tuple[str, str], list[GangPod]] = {}
    for pod in snapshot.gang_pods:
        pods.setdefault((pod.namespace, pod.pod_group), []).append(pod)
    charts = _charts(snapshot)
    found = sorted(((*_identity(data), data) for data in snapshot.pod_groups or ()), key=lambda entry: entry[:2])
    for namespace, name, data in found:
        if name:
            yield _asked(namespace, name, data, pods.get((namespace, name), []), charts)


def _asked(namespace: str, name: str, data: Json, pods: Sequence[GangPod], charts: Mapping[str, Topology]) -> AskedGang:
    metadata = _mapping(data.get("metadata"))
    written = _mapping(metadata.get("annotations")).get(ANNOTATION)
    workload = _mapping(metadata.get("labels")).get(WORKFLOW)
    unread: tuple[str, ...] = ()
    if isinstance(written, str):
        try:
            return _recorded(namespace, name, str(workload or name), read(written), data, pods)
        except SpecErrors as error:
            unread = (error.faults[0].message,)
    member = next((pod.member for pod in pods if pod.member), None)
    workload = workload or (member.workload if member else name)
    named = {pod.name: pod for pod in sorted(pods, key=lambda pod: by_name(pod.name))}
    fields = _Fields(data, named, charts)
    return AskedGang(
        namespace,
        name,
        str(workload),
        member.group if member else name,
        named,
        tuple(fields.constraints()),
        tuple(fields.quorums()),
        fields.levels,
        unread=(*unread, *fields.unread),
    )


def _recorded(
    namespace: str, name: str, workload: str, record: Recorded, data: Json, pods: Sequence[GangPod]
) -> AskedGang:
    gang, topology = record.gang, record.topology
    labels = [level.label for level in topology.levels]
    known = {label_value(task.name): task.name for task in gang.all_tasks()}
    tasks: dict[str, GangPod | None] = dict.fromkeys(known.values())
    for pod in sorted(pods, key=_precedence):
        if pod.member and (task := known.get(pod.member.task)) is not None:
            tasks[task] = pod
    constraints = tuple(
        PodGroupConstraint(
            group.path,
            group.required,
            tuple(labels[: topology.index(group.level) + 1]),
            tuple(task.name for task in sorted(group.all_tasks(), key=lambda task: task.rank)),
        )
        for group in gang.walk()
    )
    quorums: tuple[Quorum, ...] = (Quorum(tuple(tasks), len(tasks)),)
    if not all(task.needed for task in gang.all_tasks()):
        # Tasks of a clique are interchangeable, and the PodGroup states which.
        quorums = tuple(_Fields(data, {task: pod for task, pod in tasks.items() if pod}, {}).quorums())
    return AskedGang(
        namespace, name, workload, gang.name, tasks, constraints, quorums, topology, gang.follows, recorded=True
    )


class _Fields:
    """The constraints in the fields of a PodGroup."""

    def __init__(self, data: Json, pods: Mapping[str, GangPod], charts: Mapping[str, Topology]) -> None:
        self.unread: list[str] = []
        self.levels = _NO_LEVELS
        self._charts = charts
        self._spec = _mapping(data.get("spec"))
        listed = self._spec.get("subGroups") or []
        if not isinstance(listed, list):
            self.unread.append("its subGroups are not a list")
            listed = []
        self._parts: dict[str, Json] = {
            part["name"]: part for part in listed if isinstance(part, dict) and isinstance(part.get("name"), str)
        }
        if len(self._parts) < len(listed):
            self.unread.append("it has subGroups without a name of their own")
        self._under: dict[str, list[str]] = {"": [], **{name: [] for name in self._parts}}
        for task, pod in pods.items():
            for part in ("", *self._chain(pod.subgroup)):
                self._under[part].append(task)

    def constraints(self) -> Iterator[PodGroupConstraint]:
        """Yield the constraints of the PodGroup itself, then of its subgroups."""
        for name, part in {"": self._spec, **self._parts}.items():
            for required, label in self._levels(part, name):
                yield self._constraint(name, part, label, required=required)

    def quorums(self) -> Iterator[Quorum]:
        """Yield the minimum pods of each leaf; the PodGroup's own number counts where it has no subgroups."""
        leaves = self._parts.keys() - {part.get("parent") for part in self._parts.values()}
        for name, part in (self._parts or {"": self._spec}).items():
            least = part.get("minMember")
            if isinstance(least, int) and (not name or name in leaves):
                yield Quorum(tuple(self._under[name]), least, name)

    def _constraint(self, name: str, part: Json, label: str, *, required: bool) -> PodGroupConstraint:
        topology, doubt = self._topology(part, label)
        labels = [level.label for level in topology.levels]
        above = tuple(
            (self._level(found), up or _DEFAULT)
            for up in ("", *reversed(self._chain(name)))
            for above_required, found in self._levels(self._parts.get(up, self._spec), up)
            if up != name or (above_required and not required)
        )
        path = (*above, (self._level(label), name or _DEFAULT))
        down_to = tuple(labels[: labels.index(label) + 1]) if label in labels else (label,)
        return PodGroupConstraint(path, required, down_to, tuple(self._under[name]), doubt)

    def _topology(self, part: Json, label: str) -> tuple[Topology, str]:
        name = _mapping(part.get("topologyConstraint")).get("topology")
        if not isinstance(name, str) or not name:
            return _NO_LEVELS, "it names no topology, so KAI ignores it"
        if (found := self._charts.get(name)) is None:
            return _NO_LEVELS, f'the KAI Topology "{name}" is not in the snapshot, so coarser levels are not known'
        if label not in {level.label for level in found.levels}:
            return _NO_LEVELS, f'the KAI Topology "{name}" has no level {label}'
        if len(found.levels) > len(self.levels.levels):
            self.levels = found
        return found, ""

    def _levels(self, part: Json, name: str) -> Iterator[tuple[bool, str]]:
        asked = part.get("topologyConstraint")
        if asked is not None and not isinstance(asked, dict):
            problem = f"the topologyConstraint of {name or 'the PodGroup'} is not a mapping"
            self.unread += [problem] if problem not in self.unread else []
        chart = self._charts.get(str(_mapping(asked).get("topology")), _NO_LEVELS)
        aliases = {level.name: level.label for level in chart.levels}
        for required, key in ((True, "requiredTopologyLevel"), (False, "preferredTopologyLevel")):
            label = _mapping(asked).get(key)
            if isinstance(label, str) and label:
                yield required, aliases.get(label, label)

    def _level(self, label: str) -> str:
        """Return the short name of a level, or its label where it has none."""
        names = {level.name for chart in self._charts.values() for level in chart.levels if level.label == label}
        short = sorted(names - {label})
        return short[0] if len(short) == 1 else label

    def _chain(self, name: str) -> list[str]:
        """Return a subgroup and its ancestors, bottom up; a cycle ends the chain."""
        found: list[str] = []
        while name in self._parts and name not in found:
            found.append(name)
            name = str(self._parts[name].get("parent") or "")
        return found


def _charts(snapshot: Snapshot) -> dict[str, Topology]:
    """Return KAI's Topologies by name, with levels named as in a ClusterTopology with the same labels.

    Without one, levels are named by their aliases, or else by their labels.
    """
    kai, _ = read_kai_topologies(snapshot.objects)
    names = {tuple(level.label for level in one.levels): one for one in snapshot.topologies.values()}
    return {
        name: names.get(found.keys) or Topology.of(*((alias or label, label) for alias, label in found.named_levels))
        for name, found in kai.items()
    }


def _identity(data: Json) -> tuple[str, str]:
    metadata = _mapping(data.get("metadata"))
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return str(namespace or "default"), name if isinstance(name, str) else ""


def _precedence(pod: GangPod) -> tuple[object, ...]:
    """Return a sort key for the pods of one task: the last one counts, which runs or else was tried last."""
    attempt = int(pod.attempt) if pod.attempt.isdecimal() and len(pod.attempt) < 10 else 0
    return is_placed(pod), not pod.terminating, attempt, pod.name


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
