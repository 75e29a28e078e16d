"""The public API behind `import coterie`: read a cluster, read a workflow, plan, explain, fit.

Everything else in the package may change without notice; a test compares this list.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from os import PathLike
from typing import Any

from coterie.config.configuration import Config, read_config
from coterie.errors import CoterieError, Fault, NotFound, Notice, Reason, SpecErrors, UsageError, did_you_mean
from coterie.frontends.workflow.read import Workflow
from coterie.frontends.workflow.read import read_workflow as read_one_workflow
from coterie.placement.refusal import Refusal, Verdict
from coterie.placement.whatif import AllowExcluded, Change, Coarsen, Keep, Prefer, Release, Tolerate, Uncordon
from coterie.planning.fit import FitQuery, answer
from coterie.planning.fit import FitReport as Answer
from coterie.planning.inputs import all_topologies, pool_for, read_snapshot
from coterie.planning.load import Documents, documents_of, workload_for
from coterie.planning.load import read_documents as read_any
from coterie.planning.plan import Plan, Planner
from coterie.planning.report import plan_json
from coterie.sources import Snapshot
from coterie.sources.limits import read_bytes
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology, level_faults

__all__ = [
    "AllowExcluded",
    "Answer",
    "Change",
    "Coarsen",
    "Config",
    "CoterieError",
    "Documents",
    "Fault",
    "Keep",
    "NotFound",
    "Notice",
    "Plan",
    "Prefer",
    "Reason",
    "Refusal",
    "Release",
    "Snapshot",
    "SpecErrors",
    "Tolerate",
    "Uncordon",
    "UsageError",
    "Verdict",
    "Workflow",
    "explain",
    "fit",
    "plan",
    "plan_as_json",
    "plan_workloads",
    "read_cluster",
    "read_configuration",
    "read_workflow",
    "read_workloads",
]

Source = str | PathLike[str] | bytes


def read_cluster(source: Source) -> Snapshot:
    """Read a cluster from a file or from bytes: kubectl's JSON or YAML, or a cluster file."""
    data, name = _read(source)
    return read_snapshot(data, name)


def read_configuration(source: Source) -> Config:
    """Read backends and pools from a file or from bytes."""
    data, name = _read(source)
    return read_config(data, name)


def read_workflow(source: Source, values: Mapping[str, object] | None = None) -> Workflow:
    """Read a workflow from a file or from bytes, with values for its template; text stays text."""
    data, name = _read(source)
    texts = [f"{key}={value}" for key, value in (values or {}).items() if isinstance(value, str)]
    others = [f"{key}={value}" for key, value in (values or {}).items() if not isinstance(value, str)]
    return read_one_workflow(data, name, sets=others, set_strings=texts)


def read_workloads(source: Source) -> Documents:
    """Read a file of any kind: a workflow, PodCliqueSets, graph deployments, with the topologies beside them."""
    data, name = _read(source)
    return read_any(data, name)


def plan(
    workflow: Workflow,
    cluster: Snapshot,
    *,
    levels: Mapping[str, str] | None = None,
    config: Config | None = None,
    pool: str | None = None,
    changes: Sequence[Change] = (),
    fresh: bool = False,
) -> Plan:
    """Return the placement that a workflow would get now, or why it would get none.

    Levels, name to node label and coarsest first, may come from `levels`, from a pool of `config`, or from the cluster
    file itself. `changes` are hypothetical changes; every remedy of a refusal holds one.
    """
    (found,) = plan_workloads(
        documents_of(workflow), cluster, levels=levels, config=config, pool=pool, changes=changes, fresh=fresh
    )
    return found


def plan_workloads(
    documents: Documents,
    cluster: Snapshot,
    *,
    levels: Mapping[str, str] | None = None,
    config: Config | None = None,
    pool: str | None = None,
    changes: Sequence[Change] = (),
    fresh: bool = False,
) -> list[Plan]:
    """Return the plans of a file's workloads in sequence, each seeing the capacity that the earlier ones took."""
    topology, beside = _topology(levels), documents.topologies
    known = all_topologies(topology, cluster, beside)
    planner = Planner(cluster.cluster, changes, fresh=fresh)
    plans = []
    for one in documents.workloads:
        chosen = pool_for(config, pool, one.pool, topology, cluster, beside)
        plans.append(planner.plan(workload_for(one, chosen, known, configured=config is not None)))
    return plans


def plan_as_json(found: Plan) -> dict[str, Any]:
    """Return a plan as the object that `coterie plan -o json` prints."""
    return plan_json(found, command=["coterie", "plan"], elapsed_ms=0.0)


def fit(
    cluster: Snapshot,
    *,
    level: str,
    gpus: int = 0,
    cpu: str | None = None,
    memory: str | None = None,
    tasks: int | None = None,
    levels: Mapping[str, str] | None = None,
    config: Config | None = None,
    pool: str | None = None,
) -> Answer:
    """Return how many tasks of one shape each domain of a level holds, now and on the empty cluster."""
    chosen = pool_for(config, pool, None, _topology(levels), cluster)
    domains = Domains.of(cluster.cluster, chosen.topology)
    return answer(FitQuery(gpus, cpu, memory, tasks), level, chosen, domains)


def explain(reason: Reason | str) -> str:
    """Return the documentation page of a reason, in markdown."""
    known = {one.value: one for one in Reason}
    if str(reason) not in known:
        raise NotFound(f'there is no reason "{reason}"', did_you_mean(str(reason), known))
    page = files("coterie") / "pages" / f"{known[str(reason)].value}.md"
    return page.read_text(encoding="utf-8")


def _read(source: Source) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "<bytes>"
    return read_bytes(str(source), sys.stdin.buffer), str(source)


def _topology(levels: Mapping[str, str] | None) -> Topology | None:
    if levels is None:
        return None
    if faults := level_faults(list(levels.items())):
        raise SpecErrors(faults)
    return Topology.of(*levels.items())
