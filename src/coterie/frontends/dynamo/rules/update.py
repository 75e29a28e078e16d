"""The immutable fields of a graph deployment; fields are numbered as in the new form."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.errors import Fault, FieldError
from coterie.frontends.dynamo.model import Component, GraphDeployment, Override
from coterie.frontends.dynamo.rules.topology import CONSTRAINT, POLICY

_AGAIN = "Delete the graph deployment and create it again to change this."


def change_faults(old: GraphDeployment, new: GraphDeployment) -> Iterator[Fault]:
    """Yield every change that is not allowed."""
    before = {component.name: component for component in old.components}
    names = {component.name for component in new.components}
    added, removed = sorted(names - before.keys()), sorted(before.keys() - names)
    if added or removed:
        changes = [f'"{name}" is new' for name in added] + [f'"{name}" is gone' for name in removed]
        message = f"components cannot be added or removed: {', '.join(changes)}"
        yield new.fault(FieldError.FORBIDDEN, ("spec", "components"), message, _AGAIN)
    if old.constraint != new.constraint:
        yield new.fault(FieldError.INVALID, CONSTRAINT, _changed(old.constraint, new.constraint), _AGAIN)
    for component in new.components:
        if component.name in before:
            yield from _component(new, before[component.name], component)
    if old.policy != new.policy:
        yield new.fault(FieldError.INVALID, POLICY, "kvTransferPolicy cannot change", _AGAIN)
    yield from _override(new, old.override, new.override)


def _changed(old: object, new: object) -> str:
    how = "be added" if old is None else "be removed" if new is None else "change"
    return f"a topologyConstraint cannot {how}"


def _component(graph: GraphDeployment, old: Component, new: Component) -> Iterator[Fault]:
    if old.pack_domain != new.pack_domain:
        message = _changed(old.pack_domain, new.pack_domain)
        yield graph.fault(FieldError.INVALID, (*new.path, "topologyConstraint"), message, _AGAIN)
    if (old.nodes > 1) != (new.nodes > 1):
        message = f'"{new.name}" cannot change between one node and several'
        yield graph.fault(FieldError.INVALID, (*new.path, "multinode"), message, _AGAIN)
    if old.least != new.least:
        message = f"minAvailable cannot change: it was {old.least} and would be {new.least}"
        yield graph.fault(FieldError.INVALID, (*new.path, "minAvailable"), message, _AGAIN)
    yield from _override(graph, old.override, new.override)
    yield from _override(graph, old.leader_override, new.leader_override)
    yield from _override(graph, old.worker_override, new.worker_override)


def _override(graph: GraphDeployment, old: Override | None, new: Override | None) -> Iterator[Fault]:
    if old is None or new is None:
        return
    if old.api_version != new.api_version:
        message = "apiVersion of an override cannot change"
        yield graph.fault(FieldError.INVALID, (*new.path, "apiVersion"), message, _AGAIN)
    if old.target is not None and new.target is not None and old.target != new.target:
        yield graph.fault(FieldError.INVALID, (*new.path, "target"), "target of an override cannot change", _AGAIN)
