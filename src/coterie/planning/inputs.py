"""From bytes to what the planner takes: a snapshot of a cluster, workloads, and the pool they are for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from coterie.errors import Fault, Place, SpecErrors, UsageError
from coterie.frontends.config import Config, Pool, choose_pool
from coterie.frontends.text import decode, load
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import Workflow, read_workflow
from coterie.planning.workload import Workload
from coterie.sources import Snapshot
from coterie.sources.clusterfile import read_cluster_file
from coterie.sources.kubectl import read_kubectl
from coterie.topology.levels import Topology

_WORKFLOW = re.compile(rb"^workflow:", re.MULTILINE)
_KUBECTL = re.compile(rb'^\s*\{\s*"(apiVersion|kind|items|metadata)"\s*:')


def read_snapshot(data: bytes, file: str) -> Snapshot:
    """Read a cluster: kubectl's JSON, kubectl's YAML, or a cluster file; raise `SpecErrors` for anything else."""
    if not data.strip():
        before = "The command before the pipe may have failed." if file == "standard input" else "Check the file name."
        raise SpecErrors([Fault("there is no cluster in it: it is empty", hint=before, place=Place(file))])
    if _WORKFLOW.search(data[:65536]):
        hint = "Workflows are arguments of their own; --cluster takes nodes: kubectl's JSON or a cluster file."
        raise SpecErrors([Fault("this is a workflow, not a cluster", hint=hint, place=Place(file))])
    start = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")) or file.endswith(".json"):
        return read_kubectl(data, file)
    document = load(decode(data, file), file)
    if isinstance(document.data, dict) and {"apiVersion", "kind"} <= document.data.keys():
        return read_kubectl(json.dumps(document.data).encode(), file)
    return read_cluster_file(document.data, document.place)


def read_workflow_file(
    data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()
) -> Workflow:
    """Read a workflow, rendering its template; raise `SpecErrors` with every fault."""
    if _KUBECTL.search(data[:65536]):
        hint = "Pass it with --cluster, and name a workflow file first."
        raise SpecErrors([Fault("this is a Kubernetes object or list, not a workflow", hint=hint, place=Place(file))])
    return read_workflow(data, file, sets=sets, set_strings=set_strings)


def pool_for(
    config: Config | None, name: str | None, wished: str | None, levels: Topology | None, snapshot: Snapshot | None
) -> Pool:
    """Return the pool of a call: from the configuration, or made from levels or from the cluster file's own."""
    if config is None:
        if name is not None:
            raise UsageError("--pool needs a configuration", "Name it with --config FILE or $COTERIE_CONFIG.")
        own = snapshot.topology if snapshot else None
        return Pool.for_levels(levels or own or Topology(), name=wished or "default")
    pool = choose_pool(config, name, wished)
    if levels is not None:
        return replace(pool, topology=levels, topology_name=None)
    if pool.topology_name is not None:
        raise UsageError(
            f'pool "{pool.name}" takes its levels from the ClusterTopology "{pool.topology_name}", which was not given',
            "Pass the levels with --levels NAME=LABEL,… or write them as the pool's topology_keys.",
        )
    return pool


def workload_for(workflow: Workflow, pool: Pool) -> Workload:
    """Lower a workflow for a pool; raise `SpecErrors` with every fault."""
    lowered = lower(workflow, pool)
    return Workload(
        name=lowered.name,
        kind="Workflow",
        pool=pool,
        gangs=lowered.gangs,
        needs=lowered.needs,
        notices=lowered.notices,
    )
