"""Counted causes as text: what nodes offer against what a task requests, the most frequent first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from coterie.placement.explain.obstacles import Cause, Obstacle
from coterie.placement.refusal import Tally
from coterie.rendering.text import bytes_text, cpu_text
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, STORAGE, is_gpu
from coterie.topology.display_names import domain
from coterie.topology.pod_affinity import APART, HOST_PORT

_BYTES = {MEMORY: "memory", STORAGE: "storage"}
_STATES = {
    Obstacle.EXCLUDED: "in nodesExcluded",
    Obstacle.NOT_READY: "not ready",
    Obstacle.DELETED: "being deleted",
    Obstacle.CORDONED: "cordoned",
}


def counted(tally: Tally, pool: Collection[tuple[str, str]] = ()) -> str:
    """Return the causes in one line; `pool` is the node selector of the pool, so that its labels are named as such."""
    labels = {f"{key}={value}" for key, value in pool}
    parts = [_cause(cause, labels) for cause in tally.causes]
    if tally.good:
        task = "such task" if tally.others else "task"
        room = f"1 {task}{' each' if tally.good > 1 else ''}"
        if tally.room != tally.good:
            room = f"{tally.room:,} {task}s{' in all' if tally.good > 1 else ''}"
        parts.append(f"{_nodes(tally.good)} {'takes' if tally.good == 1 else 'take'} {room}")
    told = "; ".join(parts)
    if tally.others:
        more = f" and {tally.alike - 1} like it" if tally.alike > 1 else ""
        told = f"for {tally.task}{more}: {told}"
    return f"in {domain(tally.domain)}, {told}" if tally.domain else told


def causes_json(tally: Tally | None) -> list[dict[str, Any]]:
    """Return the causes as data, an empty list without a tally."""
    return [_json(cause) for cause in tally.causes] if tally else []


def _json(cause: Cause) -> dict[str, Any]:
    resource = cause.about if cause.asked else None
    return {
        "cause": cause.obstacle.value,
        "nodes": cause.nodes,
        "names": list(cause.names),
        "resource": resource,
        "offered": list(cause.offered) if resource else None,
        "asked": cause.asked if resource else None,
        "detail": cause.about if cause.about and not resource else None,
    }


def _cause(cause: Cause, pool: Collection[str]) -> str:
    who = _nodes(cause.nodes) if cause.nodes > 1 else cause.names[0]
    has, lacks, is_ = ("has", "lacks", "is") if cause.nodes == 1 else ("have", "lack", "are")
    about, obstacle = cause.about, cause.obstacle
    match obstacle:
        case Obstacle.NOT_SELECTED if about in pool:
            return f"{who} {is_} not in the pool"
        case Obstacle.NOT_SELECTED | Obstacle.UNLABELLED:
            return f"{who} {lacks} the label {about}"
        case Obstacle.HIDDEN:
            return f"{who} {is_} hidden from the scheduler for lack of the label {about}"
        case Obstacle.AFFINITY:
            return f"{who} {'does' if cause.nodes == 1 else 'do'} not match the node affinity"
        case Obstacle.TAINTED:
            taints = "taints" if ", " in about else "taint"
            return f"{who} {has} the {taints} {about}, not tolerated"
        case Obstacle.OTHER_GPUS:
            return f"{who} {has} other GPUs ({about})"
        case Obstacle.NO_RESOURCE:
            return f"{who} {has} no {'GPU' if is_gpu(about) else about}"
        case Obstacle.NEIGHBOURS:
            return f"{who} {_neighbours(about, has, 'runs' if cause.nodes == 1 else 'run')}"
        case _ if obstacle in _STATES:
            return f"{who} {is_} {_STATES[obstacle]}"
        case _ if about == CHANNEL:
            if obstacle is Obstacle.TOO_SMALL:
                return f"{who} {has} no NVLink channel"
            return f"{who} {has} {'its' if cause.nodes == 1 else 'their'} NVLink channel taken"
        case _ if about == PODS and obstacle in {Obstacle.IN_USE, Obstacle.DAEMON_SETS}:
            return f"{who} {has} no room for another pod"
    return f"{who} {has} {_offer(cause)}"


def _neighbours(about: str, has: str, runs: str) -> str:
    if about.startswith(HOST_PORT):
        return f"{has} host port {about.removeprefix(HOST_PORT).removesuffix('/taken')} taken"
    if about.startswith(APART):
        return f"{runs} a pod that anti-affinity keeps apart"
    return f"{has} no nearby pod that affinity asks for"


def _offer(cause: Cause) -> str:
    """Return the amount that nodes have of a resource against the request: `4 GPUs, 8 asked`."""
    name, (least, most) = cause.about, cause.offered
    when = {Obstacle.FULL: " free", Obstacle.IN_USE: " free", Obstacle.DAEMON_SETS: " beside DaemonSets"}
    digits = 3
    # Never "has 32, 32 asked": as many digits as are needed to distinguish the two.
    while digits < 12 and _amount(name, most, digits) == _amount(name, cause.asked, digits):
        digits += 1
    asked = _amount(name, cause.asked, digits)
    much = _amount(name, most, digits)
    if least != most and (low := _amount(name, least, digits)) != much:
        same = low.partition(" ")[2] == much.partition(" ")[2]
        much = f"{low.partition(' ')[0] if same else low} to {much}"
    elif not most:
        much = "no"
    unit = _unit(name, many=least != most or most > 1)
    return f"{much} {unit}{when.get(cause.obstacle, '')}, {asked} asked"


def _amount(name: str, value: int, digits: int) -> str:
    if name == CPU:
        return cpu_text(value)
    return bytes_text(value, digits) if name in _BYTES else f"{value:,}"


def _unit(name: str, *, many: bool) -> str:
    if name == GPU:
        return "GPUs" if many else "GPU"
    return {CPU: "CPU", PODS: "pods", **_BYTES}.get(name, name)


def _nodes(number: int) -> str:
    return f"{number:,} node" if number == 1 else f"{number:,} nodes"
