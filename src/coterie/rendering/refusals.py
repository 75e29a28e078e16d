"""Refusals and remedies as text; the same data always gives the same sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from coterie.errors import Reason, did_you_mean
from coterie.gang.tree import Gang, Shape
from coterie.placement.refusal import Nearest, Refusal, WayOut
from coterie.placement.whatif import AllowExcluded, Coarsen, Keep, Prefer, Release, Tolerate, Uncordon
from coterie.rendering.causes import counted
from coterie.rendering.text import bytes_text, cpu_text
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPU, GPUS, MEMORY, Cluster, is_gpu
from coterie.topology.display_names import domain, group_name
from coterie.topology.levels import Topology
from coterie.topology.pod_affinity import APART, HOST_PORT, NEAR, counts_neighbours
from coterie.topology.ranges import fold

_SHOWN_GROUPS = 4
_NOT_SETTLED = "the search budget ran out before it was known whether each fits alone"

_OBSTACLES = {
    **{f"no {name}": "no GPU" for name in GPUS},
    **{f"too little {name}": "too few GPUs" for name in GPUS},
    "too little cpu": "too little CPU",
    "too little pods": "no room for another pod",
    f"too little {CHANNEL}": "NVLink channel taken",
}
# Words for a whole domain, where the words for a node would mean something else.
_OF_DOMAINS = {f"too little {name}": "too few GPUs on one node" for name in GPUS}
_APART_TOLD = {Reason.NO_CAPACITY, Reason.NEVER_FITS, Reason.NO_DOMAIN_FITS}


def count(number: int, word: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def shape(one: Shape) -> str:
    """Return the request of one task, in the fewest words that identify it."""
    requests = dict(one.requests)
    if gpus := requests.get(GPU):
        return f"{gpus:,} GPU"
    if devices := [f"{amount:,} {name}" for name, amount in one.requests if is_gpu(name)]:
        return " and ".join(devices)
    if cpu := requests.get(CPU):
        return f"{cpu_text(cpu)} CPU"
    if memory := requests.get(MEMORY):
        return bytes_text(memory)
    return "no GPU"


def sizes(gang: Gang) -> str:
    """Return `8 × 8 GPU`, or a sum of such for mixed sizes."""
    counted = Counter(task.shape for task in gang.all_tasks())
    merged: Counter[str] = Counter()
    for one, number in counted.items():
        merged[shape(one)] += number
    return " + ".join(f"{number} × {words}" for words, number in merged.items())


def message(
    refusal: Refusal, gang: Gang, topology: Topology, cluster: Cluster, pool: Collection[tuple[str, str]] = ()
) -> str:
    """Return why a gang is not placed, with the obstacles on the nodes; `pool` is the pool's node selector."""
    said = sentence(refusal, gang, topology, cluster)
    return f"{said} ({counted(refusal.tally, pool)})" if refusal.tally else said


def sentence(refusal: Refusal, gang: Gang, topology: Topology, cluster: Cluster) -> str:
    """Return one sentence with the reason why a gang is not placed."""
    said = _sentence(refusal, gang, topology, cluster)
    if refusal.leader and refusal.reason is not Reason.GANG_INCOMPLETE:
        own = sum(task.needed for task in gang.all_tasks())
        said += f"; its own are {own}, the others belong to {refusal.leader} and what already follows it"
    if refusal.channels and refusal.reason is Reason.NEVER_FITS:
        said += "; of tasks with a claim to a ComputeDomain, a node takes only one"
    if refusal.reason in _APART_TOLD and (why := _apart(gang)):
        said += f"; {why}"
    return said


def _apart(gang: Gang) -> str:
    """Return why tasks of a gang do not share nodes with each other."""
    names = {name for task in gang.all_tasks() for name, _ in task.shape.requests if counts_neighbours(name)}
    own = [
        name for name in names if not name.endswith("/taken") and name.rpartition("/")[0] + "/" in (APART, HOST_PORT)
    ]
    ports = sorted(name.removeprefix(HOST_PORT) for name in own if name.startswith(HOST_PORT))
    if ports:
        return f"of tasks that want host port {ports[0]}, a node takes only one"
    return "tasks that anti-affinity keeps apart do not share a node" if own else ""


def obstacle(what: str, *, of_domain: bool = False) -> str:
    """Return the obstacle of a task on a node, or on most nodes of a domain, as text."""
    said = (_OF_DOMAINS.get(what) if of_domain else None) or _OBSTACLES.get(what)
    return said or _neighbours(what.removeprefix("too little ")) or what


def _neighbours(resource: str) -> str:
    """Return the obstacle where a resource stands for inter-pod affinity; empty for any other resource."""
    if resource.startswith(HOST_PORT):
        return f"host port {resource.removeprefix(HOST_PORT).removesuffix('/taken')} taken"
    if resource.startswith(APART):
        return "a pod there that anti-affinity keeps apart"
    return "no nearby pod that affinity asks for" if resource.startswith(NEAR) else ""


def _sentence(refusal: Refusal, gang: Gang, topology: Topology, cluster: Cluster) -> str:
    best = refusal.best[0] if refusal.best else None
    fits = best.fits if best else 0
    level = refusal.level
    lone = refusal.wanted == 1
    all_tasks = "the task" if lone else f"all {refusal.wanted} tasks"
    match refusal.reason:
        case _ if refusal.home and refusal.reason in {Reason.NO_DOMAIN_FITS, Reason.NEVER_FITS}:
            ever = "now" if refusal.reason is Reason.NO_DOMAIN_FITS else "even when empty"
            others = "the other task" if lone else f"the other {refusal.wanted} tasks"
            room = f"room for only {fits} of {others}" if fits else f"no room for {others}"
            return f"{domain(refusal.home)}, where {_of(refusal, gang)} already runs, has {room} {ever}"
        case Reason.NO_CAPACITY if refusal.running[1]:
            used, most = refusal.running
            own = "its task starts" if lone else f"its {refusal.wanted} tasks start"
            return f"this machine runs {used} of at most {count(most, 'task')} at a time; {own} when others end"
        case Reason.NO_CAPACITY if refusal.reserved:
            return "it would fit, but the room is kept for a group that has waited longer"
        case Reason.NO_CAPACITY if lone:
            return "its task fits on no node now"
        case Reason.NO_CAPACITY if not fits:
            return f"none of its {refusal.wanted} tasks fits on any node now"
        case Reason.NO_CAPACITY:
            return f"only {fits} of {refusal.wanted} tasks fit now, wherever they are put"
        case Reason.NO_DOMAIN_FITS:
            return f"no {level}{_inside(refusal)} can hold {all_tasks} of {_of(refusal, gang)} now{_best(best)}"
        case Reason.NEVER_FITS if refusal.together:
            if refusal.alone:
                return f"{_groups(refusal)} fit alone, but not together, not even on the empty cluster"
            return f"{_groups(refusal)} do not fit together, not even on the empty cluster; {_NOT_SETTLED}"
        case Reason.NEVER_FITS if level:
            size = "the task" if lone else f"the {refusal.wanted} tasks"
            large = f"no {level}{_inside(refusal)} is large enough for {size} of {_of(refusal, gang)}"
            return f"{large}, not even when empty{_best(best)}"
        case Reason.NEVER_FITS if lone:
            return "its task fits on no node, not even on an empty one"
        case Reason.NEVER_FITS if not fits:
            return f"none of its {refusal.wanted} tasks fits on any node, not even on an empty one"
        case Reason.NEVER_FITS:
            return f"the empty cluster holds only {fits} of {refusal.wanted} tasks"
        case Reason.COMPUTE_DOMAIN_BLOCKED:
            found = f"only {fits} of {refusal.wanted} find" if fits else "none of them finds"
            where = f" in one {level}" if level and not refusal.together else ""
            need = "tasks with a claim to a ComputeDomain need the NVLink channel of a node"
            return f"{need}, and {found} one{where} now"
        case Reason.GROUPS_CONFLICT:
            return f"{_groups(refusal)} fit alone, but not together"
        case Reason.UNDECIDED if refusal.together and not refusal.alone:
            return f"{_groups(refusal)} do not fit together now; {_NOT_SETTLED}"
        case Reason.NODES_UNLABELLED if refusal.hidden:
            return _hidden(refusal, topology, cluster)
        case Reason.NODES_UNLABELLED:
            lacking = _lacking(level or "", topology, cluster)
            label = topology.label(lacking)
            guess = did_you_mean(label, (key for key in cluster.columns if key != label))
            without = f"no node that could run these tasks has the label {label} of level {lacking}"
            if lacking != level:
                without += f", without which it is in no {level} either"
            return f"{without}. {guess}" if guess else without
        case Reason.NODES_EXCLUDED:
            return f"the nodes it needs are in nodesExcluded: {fold(refusal.excluded)}"
        case Reason.OVER_QUOTA:
            used, limit = refusal.quota
            beside = f" beside {count(used, 'GPU')} in use" if used else ""
            return f"it asks for {count(refusal.wanted, 'GPU')}{beside}, but the pool's limit is {limit}"
        case Reason.GANG_INCOMPLETE:
            return f"it starts only beside {refusal.leader}, which is not placed"
        case Reason.LEVEL_LOST:
            return (
                f"its running tasks are no longer in one {level}, so the rest of {_of(refusal, gang)} cannot join them"
            )
        case _:
            return "the search budget ran out before a placement was found or ruled out"


def way_out(way: WayOut) -> str:
    """Return a remedy as the end of the sentence `it …`."""
    when = "fits now" if way.now else "would fit the empty cluster"
    match way.change:
        case Prefer(level):
            return f"{when} with {level} preferred instead of required"
        case Coarsen(level, to):
            return f"{when} with {to} required instead of {level}"
        case Keep(_, path, number):
            where = f" in {group_name(path)}" if path else ""
            return f"{when} with {count(number, 'task')}{where}"
        case Release(owner):
            return f"fits when {owner} ends"
        case Uncordon((node,)):
            return f"fits if node {node} is uncordoned"
        case Uncordon(nodes):
            return f"fits if nodes {fold(nodes)} are uncordoned"
        case Tolerate(keys):
            return f"{when} if its tasks tolerate the {'taint' if len(keys) == 1 else 'taints'} {' and '.join(keys)}"
        case AllowExcluded():
            return f"{when} without nodesExcluded"


def _hidden(refusal: Refusal, topology: Topology, cluster: Cluster) -> str:
    """Return the label, of whichever level, for lack of which the scheduler sees no node that could run the tasks."""
    label = topology.label(refusal.level or "")
    unseen = "the scheduler does not see nodes that lack a level's label"
    if refusal.unlabelled < refusal.hidden:
        return f"no node that could run these tasks has the labels of all levels, and {unseen}"
    guess = did_you_mean(label, (key for key in cluster.columns if key != label))
    without = f"no node that could run these tasks has the label {label} of level {refusal.level}, and {unseen}"
    return f"{without}. {guess}" if guess else without


def _lacking(level: str, topology: Topology, cluster: Cluster) -> str:
    """Return the coarsest level, down to this one, whose label no node has; this one if every label occurs."""
    down_to = topology.names[: topology.index(level) + 1]
    return next((name for name in down_to if not cluster.column(topology.label(name)).values), level)


def _of(refusal: Refusal, gang: Gang) -> str:
    return group_name(refusal.path) if refusal.path and refusal.path[-1][1] != "default" else gang.name


def _inside(refusal: Refusal) -> str:
    return f" of {domain(refusal.around)}, where the group around it already runs," if refusal.around else ""


def _best(best: Nearest | None) -> str:
    return f": the best, {domain(best.domain)}, fits {best.fits}" if best else ""


def _groups(refusal: Refusal) -> str:
    shown = refusal.together[:_SHOWN_GROUPS]
    levels = {path[-1][0] for path in refusal.together}
    if len(levels) == 1 and len(refusal.together) > 1:
        names = [f'"{path[-1][1]}"' for path in shown]
        start = f"{levels.pop()} groups "
    else:
        names, start = [group_name(path) for path in shown], ""
    if len(refusal.together) > len(shown):
        names.append(f"{len(refusal.together) - len(shown)} more")
    if refusal.beside:
        if refusal.path and refusal.path not in refusal.together:
            around = group_name(refusal.path)
            names.append(f"the other tasks of {'the ' if around == refusal.path[-1][0] else ''}{around}")
        else:
            names.append("the tasks without a group")
    return f"{start}{', '.join(names[:-1])} and {names[-1]}"
