"""The placement audit: running pods checked against their constraints, from the objects of a snapshot alone.

Only tasks that hold a node are judged. A constraint is held when they all share one domain. Otherwise a preferred one
is missed and a required one is violated, for example because a node was relabelled under a running task. A constraint
that cannot be judged is reported with its reason, and never counted as held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from coterie.gang.tree import Path
from coterie.inspection.pod_groups import AskedGang, PodGroupConstraint, asked_gangs, has_ended, is_placed
from coterie.rendering import refusals
from coterie.sources import Snapshot
from coterie.topology import display_names
from coterie.topology.cluster import Cluster
from coterie.topology.domains import is_null
from coterie.topology.ranges import fold

Domain = tuple[str | None, ...]

_SHOWN = 4


class AuditOutcome(StrEnum):
    """The outcome of a constraint."""

    HELD = "held"
    MISSED = "missed"
    VIOLATED = "violated"
    UNOBSERVABLE = "unobservable"


class GangProgress(StrEnum):
    """The progress of a gang; incomplete means that some tasks run while other needed ones do not."""

    RUNNING = "running"
    INCOMPLETE = "incomplete"
    WAITING = "waiting"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class ConstraintFinding:
    """One constraint: its outcome, the domains that its tasks use, and an explanation where there is one.

    A domain ends in None where a node lacks the label of the next level. A constraint that could not be read has no
    path.
    """

    path: Path
    required: bool
    outcome: AuditOutcome
    domains: tuple[Domain, ...] = ()
    why: str = ""

    @property
    def level(self) -> str:
        """The level of the shared domain; empty for a constraint that could not be read."""
        return self.path[-1][0] if self.path else ""


@dataclass(frozen=True, slots=True)
class AuditedTask:
    """A task, its pod if there is one, its node, and its level values as far as they are known."""

    task: str
    pod: str
    node: str
    domains: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditedGang:
    """A gang and the outcomes of all its constraints; `why` explains its state further."""

    asked: AskedGang
    state: GangProgress
    why: str
    findings: tuple[ConstraintFinding, ...]
    seats: tuple[AuditedTask, ...]

    def count(self, outcome: AuditOutcome) -> int:
        """Return how many constraints have this outcome."""
        return sum(finding.outcome is outcome for finding in self.findings)

    @property
    def doubtful(self) -> bool:
        """Whether tasks run whose constraints cannot be judged, or without other needed tasks."""
        runs = self.state in {GangProgress.RUNNING, GangProgress.INCOMPLETE}
        return self.state is GangProgress.INCOMPLETE or (runs and self.count(AuditOutcome.UNOBSERVABLE) > 0)


@dataclass(frozen=True, slots=True)
class Audit:
    """All constrained gangs of a snapshot; `unconstrained` counts PodGroups of others without constraints."""

    gangs: tuple[AuditedGang, ...]
    unconstrained: int = 0

    def count(self, outcome: AuditOutcome) -> int:
        """Return how many constraints of all gangs have this outcome."""
        return sum(gang.count(outcome) for gang in self.gangs)

    def states(self) -> Counter[GangProgress]:
        """Return the number of gangs in each state."""
        return Counter(gang.state for gang in self.gangs)


@dataclass(frozen=True, slots=True)
class ObservedDomain:
    """The domain of a task as far as labels show it; `lacks` says why they show no more."""

    task: str
    node: str
    domain: tuple[str, ...]
    lacks: str = ""

    @property
    def shown(self) -> Domain:
        """The domain, with None for the first unknown value."""
        return (*self.domain, None) if self.lacks else self.domain


def audit(snapshot: Snapshot) -> Audit:
    """Audit every gang of a snapshot."""
    asked = list(asked_gangs(snapshot))
    leaders = {(gang.namespace, gang.workload, gang.group): gang for gang in asked if gang.recorded}
    wanted = [gang for gang in asked if gang.recorded or gang.constraints or gang.unread]
    cluster = snapshot.cluster
    gangs = (_audited(gang, leaders.get((gang.namespace, gang.workload, gang.follows)), cluster) for gang in wanted)
    return Audit(tuple(gangs), len(asked) - len(wanted))


def _audited(gang: AskedGang, leader: AskedGang | None, cluster: Cluster) -> AuditedGang:
    state, why = _state(gang)
    unread = [
        ConstraintFinding((), required=True, outcome=AuditOutcome.UNOBSERVABLE, why=problem) for problem in gang.unread
    ]
    theirs = {one.path: one for one in leader.constraints} if leader else {}
    findings = [_judged(one, gang, theirs.get(one.path), leader, cluster) for one in gang.constraints]
    why = "; ".join(filter(None, (why, _alone(gang, leader, state))))
    return AuditedGang(gang, state, why, (*unread, *findings), tuple(_seats(gang, cluster)))


def _alone(gang: AskedGang, leader: AskedGang | None, state: GangProgress) -> str:
    """Return the problem with the gang that this one follows."""
    if gang.follows and leader is None:
        return f'it follows "{gang.follows}", which is not in the snapshot: judged alone'
    if (
        leader
        and state in {GangProgress.RUNNING, GangProgress.INCOMPLETE}
        and _state(leader)[0] is GangProgress.WAITING
    ):
        return f'it runs although "{gang.follows}", which it follows, does not'
    return ""


def _state(gang: AskedGang) -> tuple[GangProgress, str]:
    """Return the progress of a gang, and the tasks it lacks."""
    if not any(map(is_placed, gang.tasks.values())):
        return (GangProgress.FINISHED if any(map(has_ended, gang.tasks.values())) else GangProgress.WAITING), ""
    problems = []
    for quorum in gang.quorums:
        pods = {task: gang.tasks[task] for task in quorum.tasks}
        missing = [task for task, pod in pods.items() if not (is_placed(pod) or (pod and pod.phase == "Succeeded"))]
        short = quorum.least - (len(pods) - len(missing))
        if short > 0:
            part = f' of "{quorum.part}"' if quorum.part else ""
            names = f": {fold(missing)}" if missing else ""
            runs = "does not run" if short == 1 else "do not run"
            problems.append(f"{short} of {refusals.count(quorum.least, 'needed task')}{part} {runs}{names}")
    return (GangProgress.INCOMPLETE, "; ".join(problems)) if problems else (GangProgress.RUNNING, "")


def _judged(
    one: PodGroupConstraint,
    gang: AskedGang,
    shared: PodGroupConstraint | None,
    leader: AskedGang | None,
    cluster: Cluster,
) -> ConstraintFinding:
    """Judge a constraint; one shared with the followed gang has the tasks of both."""
    spots = _spots(one, gang, one.labels, cluster)
    if spots and shared is not None and leader is not None:
        spots = [*_spots(shared, leader, one.labels, cluster), *spots]
    return judged(one.path, spots, required=one.required, doubt=one.doubt)


def judged(path: Path, spots: Sequence[ObservedDomain], *, required: bool, doubt: str = "") -> ConstraintFinding:
    """Judge a constraint by the domains of its tasks; `doubt` is the reason why the evidence may be incomplete."""
    if not spots:
        return ConstraintFinding(path, required, AuditOutcome.UNOBSERVABLE, why="none of its tasks runs")
    domains = _distinct(spots)
    found = ConstraintFinding(path, required, AuditOutcome.HELD, domains)
    if _apart(spots) and required:
        why = "; ".join(filter(None, (_whereabouts(spots), doubt)))
        return replace(found, outcome=AuditOutcome.VIOLATED, why=why)
    if _apart(spots):
        return replace(
            found, outcome=AuditOutcome.MISSED, why=f"{refusals.count(len(domains), found.level)} instead of 1"
        )
    lacking = list(dict.fromkeys(spot.lacks for spot in spots if spot.lacks))
    if lacking or doubt:
        more = [f"and {len(lacking) - _SHOWN} more like it"] if len(lacking) > _SHOWN else []
        why = "; ".join(filter(None, (doubt, *lacking[:_SHOWN], *more)))
        return replace(found, outcome=AuditOutcome.UNOBSERVABLE, why=why)
    return found


def _spots(one: PodGroupConstraint, gang: AskedGang, labels: Sequence[str], cluster: Cluster) -> list[ObservedDomain]:
    pods = ((task, gang.tasks[task]) for task in one.tasks)
    return [observed_domain(task, pod.node, labels, cluster) for task, pod in pods if pod and is_placed(pod)]


def observed_domain(task: str, node: str, labels: Sequence[str], cluster: Cluster) -> ObservedDomain:
    """Return the domain of a task on a node, by the labels of the levels down to the constrained one."""
    index = cluster.position.get(node)
    if index is None:
        return ObservedDomain(task, node, (), f"node {node} is not in the cluster")
    values: list[str] = []
    for label in labels:
        value = cluster.label(index, label)
        if value is None or is_null(label, value):
            return ObservedDomain(task, node, tuple(values), f"node {node} has no label {label}")
        values.append(value)
    return ObservedDomain(task, node, tuple(values))


def _apart(spots: Iterable[ObservedDomain]) -> bool:
    """Return whether some tasks are certainly in different domains: not all match the best-known domain."""
    domains = {spot.domain for spot in spots}
    longest = max(domains, key=len)
    return any(longest[: len(domain)] != domain for domain in domains)


def _distinct(spots: Iterable[ObservedDomain]) -> tuple[Domain, ...]:
    """Return the domains in use, the completely known ones first."""
    found = dict.fromkeys(spot.shown for spot in spots)
    return tuple(sorted(found, key=lambda domain: None in domain))


def _whereabouts(spots: Sequence[ObservedDomain]) -> str:
    """Return a description of which tasks are in which domain, the domains with most tasks first."""
    there: dict[Domain, list[ObservedDomain]] = {}
    for spot in spots:
        there.setdefault(spot.shown, []).append(spot)
    ordered = sorted(there.items(), key=lambda entry: -len(entry[1]))
    said = [
        f"{display_names.domain(domain)}: {fold(spot.task for spot in found)} on {fold(spot.node for spot in found)}"
        for domain, found in ordered[:_SHOWN]
    ]
    if len(ordered) > _SHOWN:
        said.append(f"and {len(ordered) - _SHOWN} more")
    return "; ".join(said)


def _seats(gang: AskedGang, cluster: Cluster) -> Iterator[AuditedTask]:
    labels = [level.label for level in gang.levels.levels]
    for task, pod in gang.tasks.items():
        node = pod.node if pod and is_placed(pod) else ""
        values = observed_domain(task, node, labels, cluster).domain if node else ()
        yield AuditedTask(task, pod.name if pod else "", node, dict(zip(gang.levels.names, values, strict=False)))
