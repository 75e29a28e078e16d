"""The submission of `coterie run`: its options as a workflow, and pools with their nodes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from coterie.backends.base.registry import EMBEDDED
from coterie.cli.inputs.companion_files import local_files
from coterie.cli.inputs.options import ClusterOptions, TemplateOptions, WhatIfOptions
from coterie.cli.inputs.source import collect, named_files, read_cluster, read_input, read_pools, shown, warn
from coterie.config.configuration import Backend, Config, Pool
from coterie.document.schema import by_file
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.frontends.workflow.read import Workflow
from coterie.inspection.labels import guessed_notices
from coterie.placement.whatif import Release, Uncordon
from coterie.planning.changes import AS_IT_IS, WhatIf, parse_changes
from coterie.planning.inputs import pool_for, topology_notices
from coterie.planning.load import CompileContext, joined, lowered
from coterie.service.settings import DEFAULT_FILES, GivenPools, Submission
from coterie.service.submission.admission import drafted
from coterie.service.submission.compilation import read
from coterie.sources import Snapshot
from coterie.topology.cluster import Cluster


@dataclass(frozen=True, slots=True)
class WorkflowInput:
    """The options of workload and nodes, as written."""

    file: str
    source: ClusterOptions
    template: TemplateOptions
    priority: str = "NORMAL"
    what_if: WhatIfOptions = field(default_factory=WhatIfOptions)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A workflow ready to be submitted, and its configuration: a file, or the one of the call."""

    submission: Submission
    config: Path | None = None
    given: GivenPools | None = None


def read_text(
    call: WorkflowInput, *, pool: str | None, labels: dict[str, str] | None = None, key: str | None = None
) -> Submission:
    """Return the submission of a call's file, without parsing it."""
    return Submission(
        source=read_input(call.file),
        file=shown(call.file),
        pool=pool,
        sets=call.template.sets,
        set_strings=call.template.set_strings,
        priority=call.priority,
        labels=labels or {},
        client_key=key,
    )


def with_files(call: WorkflowInput, text: Submission) -> tuple[Submission, Workflow]:
    """Return the workflow of a submission, with the files beside it; raise `SpecErrors` with every fault."""
    workflow = read(text)
    return replace(text, local_files=local_files(call.file, workflow, limit=DEFAULT_FILES)), workflow


def prepare(call: WorkflowInput) -> PreparedRun:
    """Return all inputs of a `coterie run` call; faults of all files are reported together."""
    source = call.source
    if (call.file, *named_files(source)).count("-") > 1:
        raise UsageError("standard input can be read only once", "Use - for FILE or for --cluster, not for both.")
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    known = not faults
    text = read_text(call, pool=source.pool)
    found = collect(faults, lambda: with_files(call, text))
    drafts = () if found else drafted(text)
    workflow_pool = found[1].pool if found else next((one.pool for one in drafts), None)
    snapshot = None
    changed = source.levels is not None or source.topology is not None
    changed = changed or bool(call.what_if.without or call.what_if.uncordon)
    with joined(faults, drafts):
        if source.cluster or (config and found and changed):
            snapshot = read_cluster(faults, source, config, workflow_pool)
        elif config and drafts:
            # The levels of the pool may be in the cluster; without a cluster file, it is this machine.
            with suppress(UsageError):
                snapshot = read_cluster(faults, source, config, workflow_pool)
    if known and (snapshot or not source.cluster):
        scene = CompileContext(
            lambda one: pool_for(config, source.pool, one.pool, levels, snapshot),
            {},
            configured=config is not None,
            pool=source.pool,
        )
        lowered(faults, drafts, scene)
    if faults or found is None:
        raise SpecErrors(by_file(faults))
    submission, workflow = found
    what_if = WhatIf(**asdict(call.what_if))
    if snapshot is not None:
        # Other work, and nodes that are out of service, are only a picture here: the picture is changed.
        snapshot = replace(snapshot, cluster=_cleared(snapshot.cluster, what_if))
        what_if = replace(what_if, without=(), uncordon=())
    submission = replace(submission, what_if=None if what_if == AS_IT_IS else what_if)
    if config is not None and snapshot is None:
        warn(config.notices)
        return PreparedRun(submission, config=Path(source.config or ""))
    pool = pool_for(config, source.pool, workflow.pool, levels, snapshot)
    if snapshot is not None:
        warn((*snapshot.notices, *topology_notices(config, levels, snapshot, pool), *guessed_notices(pool)))
    return PreparedRun(replace(submission, pool=pool.name), given=_given(pool, snapshot, source))


def _cleared(cluster: Cluster, what_if: WhatIf) -> Cluster:
    """Return a cluster without the pods of some owners, and with some nodes back in service."""
    for change in parse_changes(WhatIf(without=what_if.without, uncordon=what_if.uncordon), [], cluster):
        match change:
            case Release(owner):
                kept = [at for at, pod in enumerate(cluster.pods) if pod.owner != owner or pod.daemon]
                cluster = replace(
                    cluster,
                    pods=tuple(cluster.pods[at] for at in kept),
                    pod_node=cluster.pod_node[kept],
                    pod_requests=cluster.pod_requests[:, kept],
                )
            case Uncordon(nodes):
                cordoned = cluster.cordoned.copy()
                cordoned[[cluster.position[node] for node in nodes]] = False
                cluster = replace(cluster, cordoned=cordoned)
            case _:
                pass
    return cluster


def _given(pool: Pool, snapshot: Snapshot | None, source: ClusterOptions) -> GivenPools:
    """Return a configuration of this one pool, whose backend simulates the given nodes on this machine."""
    here = replace(pool, backend=EMBEDDED, scheduler=EMBEDDED)
    config = Config({EMBEDDED: Backend(EMBEDDED, EMBEDDED)}, {pool.name: here}, source.config or "the call")
    return GivenPools(config, {} if snapshot is None else {EMBEDDED: snapshot})
