"""The topology constraints of a graph deployment in a cluster, in either version and read leniently.

They have the form of Grove's constraints, as fragments of Grove's API in a graph do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.document.located import Path
from coterie.frontends.grove.podcliqueset.model import TEMPLATE, TopologyConstraint
from coterie.frontends.grove.podcliqueset.written_constraints import constraint_at, items_of, mapping_at, text_of

Object = Mapping[str, Any]

_SPEC: Path = ("spec",)


def graph_constraints(data: Object) -> tuple[TopologyConstraint, ...]:
    """Return all constraints that a placement follows: of the graph and of its components; each names its topology."""
    spec = mapping_at(data, "spec")
    own = mapping_at(spec, "topologyConstraint")
    name = text_of(own, "clusterTopologyName") or text_of(own, "topologyProfile")
    found: list[TopologyConstraint | None] = [_typed(own, _SPEC, name) if own else None]
    found += [_fragment(spec, _SPEC, TEMPLATE)]
    for path, component in components_of(data):
        written = mapping_at(component, "topologyConstraint")
        found += [_typed(written, path, name)] if written else []
        found += _fragments(component, path)
    return tuple(each for each in found if each is not None)


def components_of(data: Object) -> Iterator[tuple[Path, Object]]:
    """Yield the components with their paths: a list today, a mapping by name in the older version."""
    spec = mapping_at(data, "spec")
    yield from items_of(spec, "components", _SPEC)
    for name, each in mapping_at(spec, "services").items():
        if isinstance(each, Mapping):
            yield (*_SPEC, "services", name), each


def transfer_policy(data: Object) -> TopologyConstraint | None:
    """Return the level of a router's transfer policy, which concerns no placement, in the form of a constraint."""
    policy = mapping_at(data, "spec", "experimental", "kvTransferPolicy")
    name = text_of(policy, "clusterTopologyName")
    if not name:
        return None
    path = (*_SPEC, "experimental", "kvTransferPolicy")
    return TopologyConstraint(path=path, topology=name, legacy=text_of(policy, "domain"))


def _typed(written: Object, path: Path, topology: str) -> TopologyConstraint:
    return TopologyConstraint(
        path=(*path, "topologyConstraint"), topology=topology, legacy=text_of(written, "packDomain")
    )


def _fragments(component: Object, path: Path) -> Iterator[TopologyConstraint | None]:
    """Yield the constraints in the fragments of Grove's API in a component and in its roles."""
    yield _fragment(component, path, ())
    for name in ("leader", "worker"):
        yield _fragment(mapping_at(component, "multinode", name), (*path, "multinode", name), ())
    for where, role in items_of(component, "roles", path):
        yield _fragment(role, where, ())


def _fragment(owner: Object, path: Path, below: Path) -> TopologyConstraint | None:
    inner: Path = ("providerOverride", "value", *below)
    return constraint_at(mapping_at(owner, *inner), (*path, *inner))
