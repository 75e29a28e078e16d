"""Levels and pools compared with the existing nodes: guessed levels, a pool's nodes, and label findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.config.configuration import NO_PLATFORM, Config, Pool, Selector
from coterie.errors import Notice, nearest
from coterie.gang.tree import Shape
from coterie.inspection.fleet import Fleet, short_of_gpus
from coterie.placement.eligibility import eligible
from coterie.topology.check import LabelFinding, check
from coterie.topology.cluster import Bools, Cluster, Column, is_gpu
from coterie.topology.domains import is_null
from coterie.topology.levels import HOSTNAME, Topology
from coterie.topology.ranges import fold

VERSION = 1

Json = dict[str, Any]

# Labels that clouds, NVIDIA's tools and common conventions use for levels, coarsest first. Of several with one name,
# the first that nodes carry is taken.
_WELL_KNOWN = (
    ("region", "topology.kubernetes.io/region"),
    ("region", "failure-domain.beta.kubernetes.io/region"),
    ("zone", "topology.kubernetes.io/zone"),
    ("zone", "failure-domain.beta.kubernetes.io/zone"),
    ("datacenter", "topology.kubernetes.io/datacenter"),
    ("datacenter", "network.topology.nvidia.com/datacenter"),
    ("block", "topology.kubernetes.io/block"),
    ("block", "cloud.provider.com/topology-block"),
    ("block", "cloud.google.com/gce-topology-block"),
    ("network-1", "topology.k8s.aws/network-node-layer-1"),
    ("network-2", "topology.k8s.aws/network-node-layer-2"),
    ("network-3", "topology.k8s.aws/network-node-layer-3"),
    ("spine", "topology.kubernetes.io/spine"),
    ("spine", "network.topology.nvidia.com/spine"),
    ("block", "network.topology.nvidia.com/block"),
    ("subblock", "cloud.google.com/gce-topology-subblock"),
    ("gce-host", "cloud.google.com/gce-topology-host"),
    ("leaf", "network.topology.nvidia.com/leaf"),
    ("rack", "topology.kubernetes.io/rack"),
    ("rack", "cloud.provider.com/topology-rack"),
    ("accelerator", "network.topology.nvidia.com/accelerator"),
    ("gpu-clique", "nvidia.com/gpu.clique"),
    ("host", HOSTNAME),
)


def well_known_name(label: str) -> str:
    """Return the level that a well-known label stands for, empty for any other label."""
    return next((name for name, known in _WELL_KNOWN if known == label), "")


def guess_levels(cluster: Cluster) -> Topology:
    """Return levels made of the well-known labels that nodes carry; none where they carry only their hostname."""
    found: dict[str, str] = {}
    for name, label in _WELL_KNOWN:
        column = cluster.column(label)
        if name not in found and any(not is_null(label, value) for value in column.values):
            found[name] = label
    return Topology.of(*found.items()) if set(found) - {"host"} else Topology()


def with_guessed_levels(pool: Pool, cluster: Cluster) -> Pool:
    """Return a pool without levels with those guessed from the labels of its nodes."""
    levels = guess_levels(pool_nodes(cluster, pool))
    return replace(pool, topology=levels, guessed=True) if levels.levels else pool


def guessed_notices(pool: Pool) -> tuple[Notice, ...]:
    """Return the notice about the guessed levels of a pool, if they were guessed."""
    return (Notice("LevelsGuessed", _guessed_message(pool.topology)),) if pool.guessed else ()


def _guessed_message(topology: Topology) -> str:
    option = ",".join(f"{level.name}={level.label}" for level in topology.levels)
    return f"no levels were given, so they were guessed from well-known labels; to pin them: --levels {option}"


def pool_nodes(cluster: Cluster, pool: Pool) -> Cluster:
    """Return the part of a cluster that a pool's node selector matches."""
    mask = _selected(cluster, pool.node_selector)
    return part_of(cluster, mask)


def pool_size(cluster: Cluster, pool: Pool) -> int:
    """Return how many nodes of a cluster a pool's node selector matches."""
    return int(_selected(cluster, pool.node_selector).sum())


def check_pool(cluster: Cluster, pool: Pool, config: Config | None) -> tuple[LabelFinding, ...]:
    """Return the findings about the labels of a pool's nodes, and about the pool on this cluster.

    `cluster` is the whole one. Findings that concern no single level come first.
    """
    own = pool_nodes(cluster, pool)
    findings: list[LabelFinding] = []
    if pool.guessed:
        message = _guessed_message(pool.topology)
        said, _, hint = message.partition("; ")
        findings.append(LabelFinding("LevelsGuessed", "info", "", said, hint=f"{hint[0].upper()}{hint[1:]}"))
    if not len(own):
        findings += _selects_nothing(cluster, pool)
        return tuple(findings)
    findings += short_of_gpus(own, pool.topology)
    if config is not None:
        findings += _platforms(own, pool)
        findings += _taints(own, pool)
        findings += _quota(own, pool)
        findings += _shared(cluster, own, pool, config)
        findings += (
            LabelFinding(notice.code, "info", "", notice.message)
            for notice in config.notices
            if notice.path[:2] == ("pools", pool.name)
        )
    findings += (_for_scheduler(finding, own, pool) for finding in label_findings(own, pool.topology))
    return tuple(findings)


def label_findings(own: Cluster, topology: Topology) -> tuple[LabelFinding, ...]:
    """Return the findings about labels, except for hostnames without a coarser label: every node has a hostname."""
    found = check(own, topology)
    if len(topology.levels) < 2 or topology.levels[-1].label != HOSTNAME:
        return found
    gaps = {finding for finding in check(own, Topology(topology.levels[:-1])) if finding.code == "LabelGap"}
    return tuple(finding for finding in found if finding.code != "LabelGap" or finding in gaps)


def _selected(cluster: Cluster, selector: Selector) -> Bools:
    """Return, for every node, whether it has all labels of a selector."""
    mask = np.ones(len(cluster), dtype=bool)
    for key, value in selector:
        column = cluster.column(key)
        mask &= np.array([*(each == value for each in column.values), False], dtype=bool)[column.codes]
    return mask


def part_of(cluster: Cluster, mask: Bools) -> Cluster:
    """Return the cluster that consists of some of the nodes."""
    if mask.all():
        return cluster
    columns = {
        key: Column(column.values, column.codes[mask])
        for key, column in cluster.columns.items()
        if (column.codes[mask] >= 0).any()
    }
    place = np.cumsum(mask) - 1
    kept = mask[cluster.pod_node] if len(cluster.pods) else np.zeros(0, dtype=bool)
    return replace(
        cluster,
        names=tuple(cluster.names[node] for node in np.flatnonzero(mask)),
        columns=columns,
        allocatable=cluster.allocatable[:, mask],
        taint_set=cluster.taint_set[mask],
        cordoned=cluster.cordoned[mask],
        ready=cluster.ready[mask],
        pods=tuple(pod for pod, keep in zip(cluster.pods, kept, strict=True) if keep),
        pod_node=place[cluster.pod_node[kept]].astype(np.int32),
        pod_requests=cluster.pod_requests[:, kept],
    )


def _selects_nothing(cluster: Cluster, pool: Pool) -> Iterator[LabelFinding]:
    if not len(cluster):
        yield LabelFinding("NoNodes", "error", "", "the cluster has no nodes")
        return
    yield LabelFinding(
        "SelectorMatchesNothing",
        "error",
        "",
        f'no node has all labels of the node_selector of pool "{pool.name}"',
        hint=_selector_hint(cluster, pool.node_selector),
    )


def _selector_hint(cluster: Cluster, selector: Selector) -> str:
    for key, value in selector:
        column = cluster.columns.get(key)
        if column is None:
            guess = nearest(key, cluster.columns)
            return f'No node has the label "{key}".' + (f' Did you mean "{guess}"?' if guess else "")
        if value not in column.values:
            guess = nearest(value, column.values)
            known = ", ".join(sorted(column.values)[:5])
            return f'No node has "{key}" with the value "{value}".' + (
                f' Did you mean "{guess}"?'
                if guess
                else f" Values are: {known}{', …' if len(column.values) > 5 else ''}."
            )
    return "Each of the labels is on some nodes, but no node has them all."


def _platforms(own: Cluster, pool: Pool) -> Iterator[LabelFinding]:
    for name, platform in pool.platforms.items():
        if not _selected(own, platform.node_selector).any():
            message = f'no node of pool "{pool.name}" has all labels of the node_selector of platform "{name}"'
            hint = _selector_hint(own, platform.node_selector)
            yield LabelFinding("PlatformMatchesNothing", "warning", "", message, hint=hint)


def _taints(own: Cluster, pool: Pool) -> Iterator[LabelFinding]:
    """Return findings about GPU nodes that the pool selects, but whose taints its tasks tolerate on no platform."""
    gpus = own.has_gpus
    task = Shape(tuple((name, 1) for name in own.resources if is_gpu(name)) if gpus.any() else ())
    welcome = np.zeros(len(own), dtype=bool)
    for platform in (NO_PLATFORM, *pool.platforms.values()):
        tolerant = Shape(tolerations=pool.admitted(task, platform).tolerations)
        welcome |= eligible(tolerant, own, lift_transient=True)
    barred = ~welcome & gpus if gpus.any() else ~welcome
    if not barred.any():
        return
    nodes = tuple(own.names[node] for node in np.flatnonzero(barred))
    keys = sorted({taint.key for index in np.flatnonzero(barred) for taint in own.taint_sets[own.taint_set[index]]})
    message = f"tasks do not tolerate the taints ({', '.join(keys)}) of {_some(nodes, own)}"
    hint = f'Add them to the tolerations of pool "{pool.name}", or leave these nodes out by its node_selector.'
    everything = not (welcome & (gpus if gpus.any() else welcome)).any()
    yield LabelFinding("TaintNotTolerated", "error" if everything else "warning", "", message, nodes, hint)


def _quota(own: Cluster, pool: Pool) -> Iterator[LabelFinding]:
    there = int(own.gpus(own.allocatable).sum())
    if (guarantee := pool.gpus.guarantee) is not None and guarantee > there:
        message = f'pool "{pool.name}" guarantees {guarantee} GPUs, but its nodes have {there}'
        yield LabelFinding(
            "QuotaAboveCapacity", "warning", "", message, hint="Lower gpus.guarantee, or widen the pool."
        )
    if (limit := pool.gpus.limit) is not None and limit > there:
        message = f'the limit of pool "{pool.name}" is {limit} GPUs, but its nodes have {there}'
        yield LabelFinding("QuotaAboveCapacity", "info", "", message, hint="It never takes effect.")


def _shared(cluster: Cluster, own: Cluster, pool: Pool, config: Config) -> Iterator[LabelFinding]:
    for other in config.pools.values():
        if other.name == pool.name or other.backend != pool.backend:
            continue
        theirs = set(pool_nodes(cluster, other).names)
        if nodes := tuple(name for name in own.names if name in theirs):
            message = f'pool "{other.name}" has {_some(nodes, own)} of pool "{pool.name}" too'
            hint = "Their quotas together may be more than these nodes have."
            yield LabelFinding("PoolsShareNodes", "info", "", message, nodes, hint)


def _for_scheduler(finding: LabelFinding, own: Cluster, pool: Pool) -> LabelFinding:
    """Return the finding with more weight where nodes with GPUs are really hidden, because they lack a label."""
    if finding.code != "HiddenFromScheduler" or not pool.traits.hides_unlabelled:
        return finding
    gpus = own.gpus(own.allocatable)
    lost = sum(int(gpus[own.position[name]]) for name in finding.nodes)
    return replace(
        finding,
        severity="warning" if lost else "info",
        message=f"{pool.traits.title}, the scheduler of this pool, does not see nodes that lack a level's label: "
        f"{_some(finding.nodes, own)}",
        hint=f"They have {lost} GPUs, which gangs with topology requirements cannot use." if lost else "",
    )


def _some(nodes: tuple[str, ...], cluster: Cluster) -> str:
    text = fold(nodes)
    return f"{len(nodes)} of {len(cluster)} nodes ({text if len(text) <= 80 else text[:79] + '…'})"


def check_json(findings: Sequence[LabelFinding], pool: Pool, cluster: Cluster, notices: Sequence[Notice]) -> Json:
    """Return findings as data, with the checked levels."""
    fleet = Fleet.of(cluster)
    severities = [finding.severity for finding in findings]
    return {
        "version": VERSION,
        "pool": pool.name,
        "nodes": len(cluster),
        "gpu_nodes": fleet.with_gpus,
        "not_ready": list(fleet.not_ready),
        "cordoned": list(fleet.cordoned),
        "levels": [{"name": level.name, "label": level.label} for level in pool.topology.levels],
        "guessed": pool.guessed,
        "worst": next((severity for severity in ("error", "warning", "info") if severity in severities), None),
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "level": finding.level or None,
                "message": finding.message,
                "nodes": list(finding.nodes),
                "ranges": fold(finding.nodes),
                "hint": finding.hint,
            }
            for finding in findings
        ],
        "warnings": [{"code": notice.code, "message": notice.message} for notice in notices],
    }
