"""The rules of `providerOverride`: fragments of Grove's API that may only set a pack constraint.

It is the only way to a preferred level, since Dynamo's own fields have none. It cannot be combined with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, did_you_mean
from coterie.frontends.dynamo.model import Component, GraphDeployment, Override
from coterie.frontends.dynamo.settings import DynamoSettings

API_VERSION = "grove.io/v1alpha1"
SET, CLIQUE, GROUP = "PodCliqueSet", "PodCliqueTemplateSpec", "PodCliqueScalingGroupConfig"
_IN_SET = ("spec", "template", "topologyConstraint")
_IN_PART = ("topologyConstraint",)


def constraint_of(override: Override | None, *, of_set: bool = False) -> tuple[Mapping[str, object], Path] | None:
    """Return the topologyConstraint that an override holds, and its path in today's form."""
    found: object = override.value if override else None
    steps = _IN_SET if of_set else _IN_PART
    for step in steps:
        found = found.get(step) if isinstance(found, Mapping) else None
    return (found, (*override.path, "value", *steps)) if override and isinstance(found, Mapping) else None


def override_faults(graph: GraphDeployment, settings: DynamoSettings) -> Iterator[Fault]:
    """Yield every fault of the overrides of a graph."""
    grove = graph.on_grove(settings)
    if graph.override is not None:
        yield from _faults(graph, graph.override, SET, _IN_SET, grove=grove)
    for component in graph.components:
        if component.override is not None:
            target = GROUP if component.grouped else CLIQUE
            yield from _faults(graph, component.override, target, _IN_PART, grove=grove)
        for role in (component.leader_override, component.worker_override):
            if role is not None:
                yield from _role_faults(graph, component, role, grove=grove)
    if graph.constrained:
        for override in graph.overrides:
            if constraint_of(override, of_set=override is graph.override) is not None:
                message = "a topologyConstraint in an override does not go together with those of Dynamo's own fields"
                hint = "Use one way for the whole graph: all in overrides, or none."
                yield graph.fault(FieldError.FORBIDDEN, (*override.path, "value"), message, hint)


def _role_faults(graph: GraphDeployment, component: Component, role: Override, *, grove: bool) -> Iterator[Fault]:
    if component.nodes > 1:
        yield from _faults(graph, role, CLIQUE, _IN_PART, grove=grove)
    else:
        message = f'"{component.name}" is not multinode and has neither leader nor workers'
        yield graph.fault(FieldError.FORBIDDEN, role.path, message, "Set the component's own providerOverride.")


def _faults(
    graph: GraphDeployment, override: Override, target: str, allowed: tuple[str, ...], *, grove: bool
) -> Iterator[Fault]:
    """Yield the faults of one override; the first of these checks hides the rest, since it decides their meaning."""
    path = override.path
    if not grove:
        yield graph.fault(FieldError.FORBIDDEN, path, "providerOverride needs Grove", "Remove it.")
    elif override.api_version != API_VERSION:
        message = f"an override is of apiVersion {API_VERSION}, not {said(override.api_version)}"
        yield graph.fault(FieldError.NOT_SUPPORTED, (*path, "apiVersion"), message, f"Write apiVersion: {API_VERSION}")
    elif override.target is not None and override.target != target:
        message = f"here an override changes a {target}, not {said(override.target)}"
        yield graph.fault(
            FieldError.INVALID, (*path, "target"), message, f"Write target: {target}, or remove the line."
        )
    else:
        yield from _value(graph, override.value, (*path, "value"), allowed)


def _value(graph: GraphDeployment, value: object, path: Path, allowed: tuple[str, ...]) -> Iterator[Fault]:
    """Yield fields beside the only allowed path of an override, and overrides that end before it does."""
    if not isinstance(value, Mapping):
        yield graph.fault(FieldError.INVALID, path, f"{path[-1]} must be a mapping, not {said(value)}")
        return
    if not allowed:
        return
    step, *rest = allowed
    for name in sorted(value):
        if name != step:
            message = f"an override may set only topologyConstraint, not {name}"
            hint = did_you_mean(name, [step]) or f"Only {'.'.join(allowed)} is allowed here."
            yield graph.fault(FieldError.FORBIDDEN, (*path, name), message, hint)
    if step not in value:
        message = f"the override is empty: {'.'.join(allowed)} is missing"
        yield graph.fault(FieldError.INVALID, (*path, step), message, "Write it, or remove the override.")
    else:
        yield from _value(graph, value[step], (*path, step), tuple(rest))
