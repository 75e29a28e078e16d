"""The planner's inputs from bytes: a snapshot of a cluster, workloads, and their pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from coterie.config.configuration import Config, Pool, choose_pool
from coterie.document.file_kind import FileKind, expect
from coterie.document.located import decode, load
from coterie.errors import Fault, Notice, Place, SpecErrors, UsageError
from coterie.frontends.grove.drift import drift_findings
from coterie.frontends.grove.kai_topology import read_kai_topologies
from coterie.frontends.grove.topology import KAI, ClusterTopology, topology_of
from coterie.frontends.grove.topology_set import (
    Topologies,
    known_topologies,
    no_topology,
    only_topology,
)
from coterie.inspection.labels import with_guessed_levels
from coterie.planning.snapshot_levels import kai_levels
from coterie.sources import Snapshot
from coterie.sources.cluster_file import read_cluster_file
from coterie.sources.kubectl import read_kubectl
from coterie.sources.limits import STANDARD_INPUT
from coterie.topology.check import LabelFinding
from coterie.topology.levels import Topology

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopologyChoice:
    """The value of `--topology FILE#NAME`: the topologies of a file, and the named one."""

    file: str = ""
    name: str | None = None
    topologies: Topologies = field(default_factory=Topologies)


NO_TOPOLOGIES = Topologies()


def read_snapshot(data: bytes, file: str) -> Snapshot:
    """Return the cluster in kubectl's JSON or YAML or in a cluster file; raise `SpecErrors` for anything else."""
    if not data.strip():
        before = "The command before the pipe may have failed." if file == STANDARD_INPUT else "Check the file name."
        raise SpecErrors([Fault("there is no cluster in it: it is empty", hint=before, place=Place(file))])
    expect(FileKind.CLUSTER, data, file)
    start = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")) or file.endswith(".json"):
        return with_topologies(read_kubectl(data, file), file)
    document = load(decode(data, file), file)
    if isinstance(document.data, dict) and {"apiVersion", "kind"} <= document.data.keys():
        return with_topologies(read_kubectl(json.dumps(document.data).encode(), file), file)
    return read_cluster_file(document.data, document.place)


def collect(faults: list[Fault], read: Callable[[], T]) -> T | None:
    """Return the result of `read`; None, with its faults added, when it raises them."""
    try:
        return read()
    except SpecErrors as error:
        faults.extend(error.faults)
        return None


def with_topologies(snapshot: Snapshot, file: str) -> Snapshot:
    """Return a snapshot with the topologies among its objects; an invalid one becomes a notice."""
    if not snapshot.objects:
        return snapshot
    known = known_topologies(snapshot.objects, file)
    _, odd = read_kai_topologies(snapshot.objects)
    return replace(
        snapshot,
        notices=(*snapshot.notices, *known.notices, *(notice.at(Place(file)) for notice in odd)),
        topologies={name: topology_of(found) for name, found in known.found.items()},
        wrong_topologies=known.wrong,
    )


def snapshot_drift(snapshot: Snapshot) -> tuple[LabelFinding, ...]:
    """Return the differences between the KAI Topologies and the ClusterTopologies of a snapshot."""
    kai, _ = read_kai_topologies(snapshot.objects)
    return tuple(drift_findings(known_topologies(snapshot.objects, "").found, kai))


def pool_for(
    config: Config | None,
    name: str | None,
    workflow_pool: str | None,
    levels: Topology | TopologyChoice | None,
    snapshot: Snapshot | None,
    beside: Topologies = NO_TOPOLOGIES,
) -> Pool:
    """Return the pool of a call: from the configuration, or made from levels or from the cluster's own topology.

    Where none of these gives levels, they are guessed from well-known node labels.

    `beside` are topologies in the files of the call, beside workloads.
    """
    if config is None:
        if name is not None:
            raise UsageError("--pool needs a configuration", "Name it with --config FILE or $COTERIE_CONFIG.")
        return _pool_without_config(workflow_pool or "default", levels, snapshot, beside)
    pool = choose_pool(config, name, workflow_pool)
    if isinstance(levels, Topology):
        return replace(pool, topology=levels, topology_name=None)
    if levels is not None and (levels.name is not None or pool.topology_name is None):
        return _charted(pool, levels, snapshot, beside)
    if pool.topology_name is not None:
        asked = f'pool "{pool.name}" takes its levels from'
        return _named(pool, pool.topology_name, asked, levels, snapshot, beside)
    return pool


def find_topology(
    name: str, asked: str, levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, beside: Topologies
) -> Topology:
    """Return the levels of a ClusterTopology: from `--topology`, the files of the call, or the cluster, in this order.

    Where none has that name, it is a KAI Topology of the cluster. `asked` describes who uses it, in words that follow
    "which". Raises `SpecErrors` for an invalid one, and `NotFound`.
    """
    given = levels.topologies | beside if isinstance(levels, TopologyChoice) else beside
    there, wrong = (snapshot.topologies, snapshot.wrong_topologies) if snapshot else ({}, {})
    if (own := given.found.get(name)) is not None:
        return topology_of(own)
    if (found := there.get(name)) is not None:
        return found
    if name in wrong:
        raise SpecErrors(wrong[name])
    kai = kai_levels(snapshot)
    if name in kai:
        return kai[name]
    raise no_topology(name, {*given.found, *there, *kai}, asked)


def _named(
    pool: Pool,
    name: str,
    asked: str,
    levels: Topology | TopologyChoice | None,
    snapshot: Snapshot | None,
    beside: Topologies,
) -> Pool:
    """Return the pool with the levels of a named topology."""
    topology = find_topology(name, asked, levels, snapshot, beside)
    kai_topology = "" if name in all_topologies(levels, snapshot, beside) else name
    return replace(pool, topology=topology, topology_name=name, kai_topology=kai_topology)


def all_topologies(
    levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, beside: Topologies = NO_TOPOLOGIES
) -> dict[str, Topology]:
    """Return every ClusterTopology of a call by name; `--topology` comes first, then files, then the cluster."""
    given = levels.topologies | beside if isinstance(levels, TopologyChoice) else beside
    found = {name: topology_of(one) for name, one in given.found.items()}
    return {**(snapshot.topologies if snapshot else {}), **found}


def cluster_topologies(
    levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, beside: Topologies = NO_TOPOLOGIES
) -> dict[str, ClusterTopology]:
    """Return the objects behind `all_topologies`; cluster files have none."""
    given = levels.topologies | beside if isinstance(levels, TopologyChoice) else beside
    return {**known_topologies(snapshot.objects if snapshot else (), "").found, **given.found}


def drift_notices(
    levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, beside: Topologies, pool: Pool
) -> Iterator[Notice]:
    """Return notices of differences between a snapshot's KAI Topologies and the ClusterTopology of a pool's levels.

    A ClusterTopology of a file is not in the cluster yet, so a missing KAI Topology counts only if it refers to one.
    """
    name = pool.topology_name
    if snapshot is None or not name or pool.kai_topology:
        return
    kai, _ = read_kai_topologies(snapshot.objects)
    declared = cluster_topologies(levels, snapshot, beside).get(name)
    if declared is None or not (name in snapshot.topologies or name in kai or declared.reference(KAI)):
        return
    for finding in drift_findings({name: declared}, kai):
        yield Notice(finding.code, f"{finding.message}; {finding.hint[0].lower()}{finding.hint[1:].removesuffix('.')}")


def topology_notices(
    config: Config | None, levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, pool: Pool
) -> Iterator[Notice]:
    """Return notices about the topology of `--topology`, or about the one taken where none was named."""
    if (
        isinstance(levels, TopologyChoice)
        and (used := levels.topologies.found.get(pool.topology_name or "")) is not None
    ):
        yield from used.notices
    if config is not None or levels is not None or snapshot is None or snapshot.topology is not None:
        return
    if pool.topology_name is not None:
        kind = "KAI Topology" if pool.kai_topology else "ClusterTopology"
        yield Notice("TopologyTaken", f'the levels are those of the {kind} "{pool.topology_name}"')
        return
    kai = kai_levels(snapshot, pooled=False)
    for kind, names in (("ClusterTopologies", snapshot.topologies), ("KAI Topologies", kai)):
        if len(names) > 1:
            listed = sorted(names)
            message = f"the cluster has several {kind} ({', '.join(listed)}), and none was chosen"
            yield Notice("TopologyNotChosen", f"{message}; to choose one: --topology '#{listed[0]}'")
            return


def _pool_without_config(
    name: str, levels: Topology | TopologyChoice | None, snapshot: Snapshot | None, beside: Topologies
) -> Pool:
    own = snapshot.topology if snapshot else None
    if isinstance(levels, TopologyChoice):
        return _charted(Pool.for_levels(Topology(), name=name), levels, snapshot, beside)
    if levels is not None or own is not None:
        return Pool.for_levels(levels or own or Topology(), name=name)
    if (only := beside.only) is not None:
        return replace(Pool.for_levels(topology_of(only), name=name), topology_name=only.name)
    if snapshot is not None and not beside.found and len(snapshot.topologies) == 1:
        ((topology_name, topology),) = snapshot.topologies.items()
        return replace(Pool.for_levels(topology, name=name), topology_name=topology_name)
    if snapshot is not None and not beside.found and not snapshot.topologies:
        kai = kai_levels(snapshot, pooled=False)
        if len(kai) == 1:
            ((kai_name, topology),) = kai.items()
            pool = Pool.for_levels(topology, name=name)
            return replace(pool, topology_name=kai_name, kai_topology=kai_name)
    pool = Pool.for_levels(Topology(), name=name)
    return with_guessed_levels(pool, snapshot.cluster) if snapshot else pool


def _charted(pool: Pool, chart: TopologyChoice, snapshot: Snapshot | None, beside: Topologies) -> Pool:
    """Return the pool with the levels that `--topology` selects."""
    if chart.file and chart.name is None:
        found = only_topology(chart.topologies, chart.file)
        return replace(pool, topology=topology_of(found), topology_name=found.name, kai_topology="")
    name = chart.name or ""
    if chart.file:
        # A call that names a file does not refer to other sources.
        return _named(pool, name, f"--topology looks for in {chart.file}", chart, None, NO_TOPOLOGIES)
    return _named(pool, name, "--topology names", chart, snapshot, beside)
