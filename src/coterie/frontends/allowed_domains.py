"""The names that a cluster allows for levels, where its administrator restricts them.

Workloads then use one vocabulary in every cluster of a site, whatever labels its topologies map it to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, did_you_mean
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.rules.overrides import constraint_of
from coterie.frontends.dynamo.rules.topology import CONSTRAINT, POLICY
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.kubernetes.objects import field_fault


def domain_faults(
    named: Iterable[tuple[str, Path]],
    allowed: frozenset[str],
    make: Callable[[FieldError, Path, str, str], Fault] = field_fault,
) -> Iterator[Fault]:
    """Yield a fault for each domain that is not allowed; without allowed ones, every domain is."""
    listed = ", ".join(sorted(allowed))
    for domain, path in named if allowed else ():
        if domain not in allowed:
            message = f"domain {said(domain)} is not allowed in this cluster"
            hint = f"{did_you_mean(domain, allowed)} Allowed are: {listed}.".lstrip()
            yield make(FieldError.NOT_SUPPORTED, path, message, hint)


def set_domains(pcs: PodCliqueSet) -> Iterator[tuple[str, Path]]:
    """Yield the domains that a set names, with their paths."""
    for each in pcs.constraints():
        for domain, path in ((each.domain, each.domain_path), (each.preferred, each.preferred_path)):
            if domain:
                yield domain, path


def graph_domains(graph: GraphDeployment) -> Iterator[tuple[str, Path]]:
    """Yield the domains that a graph names in Dynamo's fields and in overrides, with their paths in today's form."""
    if graph.constraint is not None and graph.constraint.pack_domain:
        yield graph.constraint.pack_domain, (*CONSTRAINT, "packDomain")
    for component in graph.components:
        if component.pack_domain:
            yield component.pack_domain, (*component.path, "topologyConstraint", "packDomain")
    if graph.policy is not None and graph.policy.topology is not None:
        yield graph.policy.domain, (*POLICY, "domain")
    for override in graph.overrides:
        if found := constraint_of(override, of_set=override is graph.override):
            yield from _override_domains(*found)


def _override_domains(constraint: Mapping[str, object], path: Path) -> Iterator[tuple[str, Path]]:
    pack = constraint.get("pack")
    named: list[tuple[Path, object]] = [(("packDomain",), constraint.get("packDomain"))]
    if isinstance(pack, Mapping):
        named += [(("pack", field), pack.get(field)) for field in ("required", "preferred")]
    for steps, domain in named:
        if isinstance(domain, str) and domain:
            yield domain, (*path, *steps)
