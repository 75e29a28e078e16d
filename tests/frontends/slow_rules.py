"""A slow and plain second implementation of the core rules, which an accepted document may never break.

Written independently of the program, one sentence per rule. Null fields count as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Data = Mapping[str, Any]
Topologies = Mapping[str, Sequence[str]] | None

_DOMAIN = re.compile(r"[a-z][a-z0-9-]{0,62}")
_SEGMENT = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def breaches(documents: Sequence[Data], *, strict: bool) -> list[str]:
    """Return every breach of a core rule by documents that were accepted."""
    declared = [each for each in documents if each["kind"] in {"ClusterTopology", "ClusterTopologyBinding"}]
    topologies = {each["metadata"]["name"]: [level["domain"] for level in each["spec"]["levels"]] for each in declared}
    found = [breach for each in declared for breach in _topology(each)]
    for each in documents:
        if each["kind"] == "PodCliqueSet":
            found += _set(each, topologies or None, strict=strict)
        elif each["kind"] == "DynamoGraphDeployment":
            found += _graph(each, topologies or None)
    return found


def _topology(data: Data) -> Iterator[str]:
    domains = [level["domain"] for level in data["spec"]["levels"]]
    keys = [level["key"] for level in data["spec"]["levels"]]
    if not domains or (data["kind"] == "ClusterTopology" and len(domains) > 16):
        yield "a topology has at least one level, and that of the proposal at most 16"
    if len(set(domains)) < len(domains) or len(set(keys)) < len(keys):
        yield "no level twice"
    if not all(_DOMAIN.fullmatch(domain) for domain in domains):
        yield "a domain is lower case"


def _set(data: Data, topologies: Topologies, *, strict: bool) -> Iterator[str]:
    template, name = data["spec"]["template"], data["metadata"]["name"]
    cliques, groups = template["cliques"], template.get("podCliqueScalingGroups") or []
    names = [clique["name"] for clique in cliques]
    roles = [clique["spec"]["roleName"] for clique in cliques]
    members = [member for group in groups for member in group["cliqueNames"]]
    home = {member: group for group in groups for member in group["cliqueNames"]}
    if not names or len(set(names)) < len(names) or len(set(roles)) < len(roles):
        yield "there is a clique, and no name or role twice"
    if len(set(members)) < len(members) or not set(members) <= set(names):
        yield "a clique is in one scaling group at most, and scaling groups have cliques that exist"
    if (data["spec"].get("replicas") or 0) < 0:
        yield "replicas of a set are not negative"
    for clique in cliques:
        written, least = _or(clique["spec"].get("replicas"), 1), clique["spec"].get("minAvailable")
        if not 1 <= _or(least, written) <= (written or 1):
            yield "minAvailable of a clique is between 1 and its replicas"
    for group in groups:
        if not 1 <= _or(group.get("minAvailable"), 1) <= _or(group.get("replicas"), 1):
            yield "minAvailable of a scaling group is between 1 and its replicas"
    if len({clique["spec"]["podSpec"].get("schedulerName") or "kai-scheduler" for clique in cliques}) > 1:
        yield "all cliques have one scheduler"
    if any(len(name) + len(home.get(each, {}).get("name", "")) + len(each) > 45 for each in names):
        yield "names of set, group and clique have 45 characters together"
    above = [(template, [])] + [(group, [template]) for group in groups]
    above += [(each, [home[each["name"]], template] if each["name"] in home else [template]) for each in cliques]
    yield from _constraints(above, topologies, strict=strict)


def _constraints(owners: Sequence[tuple[Data, list[Data]]], topologies: Topologies, *, strict: bool) -> Iterator[str]:
    used: set[str] = set()
    constrained = [(owner["topologyConstraint"], above) for owner, above in owners if owner.get("topologyConstraint")]
    for constraint, above in constrained:
        parents = [each["topologyConstraint"] for each in above if each.get("topologyConstraint")]
        name = next((each["topologyName"] for each in [constraint, *parents] if each.get("topologyName")), None)
        hard, soft = _asked(constraint)
        if not hard and not soft and (strict or above or not any(any(_asked(each)) for each, up in constrained if up)):
            yield "a constraint asks for something"
        if constraint.get("packDomain") and ((constraint.get("pack") or {}).get("required") or strict):
            yield "packDomain is not mixed with pack.required, and not used on new sets today"
        if name is None:
            yield "a constraint has the name of a topology, or inherits it"
            continue
        used.add(name)
        if topologies is None:
            continue
        levels = topologies.get(name, [])
        if any(domain and domain not in levels for domain in (hard, soft)):
            yield "the topology exists and has the domain"
            continue
        for higher_hard, higher_soft in map(_asked, parents):
            for upper, lower in ((higher_hard, hard), (higher_soft, soft)):
                if upper in levels and lower and levels.index(upper) > levels.index(lower):
                    yield "what is below is equal or narrower"
    if len(used) > 1:
        yield "a set uses one topology"


def _asked(constraint: Data) -> tuple[str | None, str | None]:
    pack = constraint.get("pack") or {}
    return pack.get("required") or constraint.get("packDomain"), pack.get("preferred")


def _graph(data: Data, topologies: Topologies) -> Iterator[str]:
    spec = data["spec"]
    older = data["apiVersion"].endswith("v1alpha1")
    parts = spec.get("services") or {} if older else {each["name"]: each for each in spec.get("components") or ()}
    if not 1 <= len(parts) <= 25 or len({name.lower() for name in parts}) < len(parts):
        yield "a graph has 1 to 25 components, whose names do not differ in case only"
    whole = spec.get("topologyConstraint")
    packed = [each["topologyConstraint"] for each in parts.values() if each.get("topologyConstraint")]
    for name, each in parts.items():
        count = _or(each.get("replicas"), 1)
        if count < 0 or _or(each.get("minAvailable"), 1) < 1 or (count and _or(each.get("minAvailable"), 1) > count):
            yield "minAvailable of a component is between 1 and its replicas"
        if each.get("multinode") and _or(each["multinode"].get("nodeCount"), 2) < 2:
            yield "a multinode component has two nodes at least"
        if not _SEGMENT.fullmatch(name.lower()):
            yield "the name of a component is one of a clique"
    if (packed and not whole) or (whole and not packed and not whole.get("packDomain")):
        yield "a topology is named if and only if something is packed"
    if whole and topologies is not None:
        levels = topologies.get(whole["topologyProfile" if older else "clusterTopologyName"], [])
        wanted = [each["packDomain"] for each in (whole, *packed) if each.get("packDomain")]
        if not levels or not set(wanted) <= set(levels):
            yield "the topology of a graph exists and has the domains"
        elif whole.get("packDomain") and any(levels.index(each) < levels.index(wanted[0]) for each in wanted):
            yield "a component is equal or narrower"


def update_breaches(old: Data, new: Data) -> Iterator[str]:
    """Yield what an accepted update of a PodCliqueSet changed though it may not."""
    before, after = old["spec"]["template"], new["spec"]["template"]
    if _meant(before) != _meant(after):
        yield "the constraint of a set stays"
    for part, fixed in (("cliques", ("roleName", "minAvailable")), ("podCliqueScalingGroups", ("minAvailable",))):
        was, now = ({each["name"]: each for each in side.get(part) or ()} for side in (before, after))
        if was.keys() != now.keys():
            yield f"{part} are neither added nor removed"
            continue
        for name, each in now.items():
            if _meant(was[name]) != _meant(each):
                yield "the constraint of a part stays"
            spec, former = (side.get("spec") or side for side in (each, was[name]))
            if any(spec.get(field) is not None and spec[field] != former.get(field) for field in fixed):
                yield f"fixed fields of {part} stay"


def _meant(owner: Data) -> tuple[object, ...]:
    constraint = owner.get("topologyConstraint")
    return (constraint.get("topologyName"), *_asked(constraint)) if constraint else ()


def _or(written: int | None, default: int) -> int:
    return default if written is None else written
