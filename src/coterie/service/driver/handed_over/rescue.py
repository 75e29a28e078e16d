"""Rescue of a gang that fits and that its scheduler leaves waiting: its tasks are pinned to the domains found.

The scheduler still places the gang, all of it or nothing. Required levels are then kept by node labels instead of its
own constraints, which it would refuse again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.gang.edits import pinned
from coterie.gang.tree import Gang
from coterie.lifecycle import Enqueue, Rescued, by_task
from coterie.placement.engine import Found
from coterie.service.driver.handed_over.engine_question import EngineQuestion
from coterie.topology.domains import Domains
from coterie.topology.levels import HOSTNAME

# How many domains a message names.
_NAMED = 4

Pin = tuple[str, str, str]


def rescued(question: EngineQuestion, found: Found, asked: Enqueue, waited_s: float) -> Rescued | None:
    """Return the rescue of a gang by a placement; None where nothing could be pinned."""
    domains = question.capacity.domains
    pins = tuple(_domain_pins(question.gang, found.nodes, domains))
    nodes = tuple(_node_pins(found.nodes, domains))
    if nodes and (not pins or _would_wait(question, pins)):
        pins = nodes
    if not pins:
        return None
    title = question.pool.traits.title
    said = f"{title} has left the group waiting for {waited_s:.0f} s although it fits; it starts again, pinned to"
    return Rescued(asked.group, asked.attempt, pins, f"{said} {_words(pins, domains)}")


def undone(asked: Enqueue) -> Rescued:
    """Return the end of a rescue whose domains have no room any more."""
    said = (
        "there is no room any more in the domains that the group was pinned to; it starts again, free to go elsewhere"
    )
    return Rescued(asked.group, asked.attempt, (), said)


def _domain_pins(gang: Gang, nodes: Mapping[str, str], domains: Domains) -> Iterator[Pin]:
    """Yield the labels of the domains that tasks have to be in, from the coarsest level down."""
    topology = domains.topology
    finest: dict[str, int] = {}
    for group in gang.walk():
        for task in group.all_tasks() if group.required else ():
            finest[task.name] = max(finest.get(task.name, 0), topology.index(group.level))
    for name, index in finest.items():
        values = domains.values(domains.position[nodes[name]])
        yield from ((name, topology.label(level), values[level]) for level in topology.names[: index + 1])


def _node_pins(nodes: Mapping[str, str], domains: Domains) -> Iterator[Pin]:
    """Yield the host names of all tasks' nodes, none where a node has no such label."""
    cluster = domains.cluster
    hosts = {node: cluster.label(cluster.position[node], HOSTNAME) for node in set(nodes.values())}
    if all(hosts.values()):
        yield from ((task, HOSTNAME, str(hosts[node])) for task, node in nodes.items())


def _would_wait(question: EngineQuestion, pins: tuple[Pin, ...]) -> bool:
    """Return whether the scheduler would leave the gang waiting with these pins, too."""
    make = question.pool.traits.forecast
    if make is None:
        return False
    forecast = make()
    forecast.add(pinned(question.gang, by_task(pins)), question.capacity, {})
    return bool(forecast.notices())


def _words(pins: tuple[Pin, ...], domains: Domains) -> str:
    names = {level.label: level.name for level in domains.topology.levels}
    last = {task: f"{names.get(label, 'node')} {value}" for task, label, value in pins}
    found = sorted(set(last.values()))
    return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
