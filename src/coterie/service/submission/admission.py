"""The admission of a submission: every check that needs no capacity, and the row to be stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from coterie.config.configuration import Pool
from coterie.document.schema import by_file
from coterie.errors import Fault, Hint, NeverFits, Notice, SpecErrors
from coterie.lifecycle import Record, Spec, State, Submitted, initial, step, to_json
from coterie.planning.changes import parse_changes
from coterie.planning.inputs import collect
from coterie.planning.load import (
    WORKFLOW,
    CompileContext,
    WrittenWorkload,
    draft_documents,
    faults_in,
    lowered,
    workload_of,
)
from coterie.planning.nvlink_channels import nvlink_notices
from coterie.planning.workload import Workload
from coterie.service.driver.workflows.driven_workflow import first_digest
from coterie.service.driver.workflows.state_digest import digest_of
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.pools.changes import runs_here
from coterie.service.pools.usage import PoolUsage
from coterie.service.security import LOCAL
from coterie.service.settings import Settings, Submission
from coterie.service.submission.amendments import amendment_of, sentences
from coterie.service.submission.compilation import (
    CompiledWorkflow,
    build,
    check_call,
    fingerprint,
    is_template,
    labels_of,
    never_fits,
    read,
    rehearse,
    spec_of,
)
from coterie.service.views import workflows
from coterie.store import NewEvent, NewWorkflow

_SHOWN = 3
# How many compilations are cached, and of texts of how many bytes.
_COMPILATIONS = 64
_CACHED_BYTES = 30_000


@dataclass(frozen=True, slots=True)
class CheckedSubmission:
    """A valid submission, and the notices for its user.

    `pool_version` is that of a stored pool, which could change. `never` is the reason why it can never run in its pool
    as it is. `changes` describe the options of the call that change the workflow.
    """

    submission: Submission
    built: CompiledWorkflow
    workload: Workload
    labels: dict[str, str]
    notices: tuple[Notice, ...]
    pool_version: int | None
    never: tuple[Notice, ...] = ()
    changes: tuple[str, ...] = ()


def checked(
    submission: Submission, catalog: PoolCatalog, settings: Settings, *, rehearsed: bool = True
) -> CheckedSubmission:
    """Return a validated submission, or raise its faults; unless it is `rehearsed`, its tasks need not be startable."""
    check_call(submission, settings.files_limit)
    key = _key(submission, settings, rehearsed=rehearsed)
    compiled = _compilations.get(catalog, key) if key else None
    if compiled is None:
        compiled = _compiled(submission, catalog, settings, rehearsed=rehearsed)
        if key:
            _compilations.put(catalog, key, compiled)
    known = catalog.pools[compiled.built.pool.name]
    return CheckedSubmission(
        submission,
        compiled.built,
        compiled.workload,
        labels_of(compiled.built.workflow, submission),
        compiled.notices,
        None if known.managed else known.version,
        compiled.never,
    )


@dataclass(frozen=True, slots=True)
class _Compilation:
    """The part of a valid submission that is the same whoever submits it."""

    built: CompiledWorkflow
    workload: Workload
    notices: tuple[Notice, ...]
    never: tuple[Notice, ...]


class _Compilations:
    """The latest compilations for one catalog: many workflows are submitted again, unchanged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalog: PoolCatalog | None = None
        self._known: OrderedDict[Hashable, _Compilation] = OrderedDict()

    def get(self, catalog: PoolCatalog, key: Hashable) -> _Compilation | None:
        with self._lock:
            if self._catalog is not catalog or key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key]

    def put(self, catalog: PoolCatalog, key: Hashable, found: _Compilation) -> None:
        with self._lock:
            if self._catalog is not catalog:
                self._known.clear()
                self._catalog = catalog
            self._known[key] = found
            while len(self._known) > _COMPILATIONS:
                self._known.popitem(last=False)


_compilations = _Compilations()


def _key(submission: Submission, settings: Settings, *, rehearsed: bool) -> Hashable | None:
    """Return what a compilation depends on besides the catalog; None for one that is not cached.

    A template may be rendered differently each time, files may be large, and so may the text.
    """
    if (
        len(submission.source) > _CACHED_BYTES
        or is_template(submission.source)
        or submission.local_files
        or submission.amendment
    ):
        return None
    return (
        submission.source,
        submission.file,
        submission.pool,
        submission.sets,
        submission.set_strings,
        settings.processes,
        rehearsed,
    )


def _compiled(submission: Submission, catalog: PoolCatalog, settings: Settings, *, rehearsed: bool) -> _Compilation:
    try:
        workflow = read(submission)
    except SpecErrors as error:
        raise SpecErrors(_with_pool(error.faults, submission, catalog)) from None
    pool = _pool(catalog, submission, workflow.pool)
    faults: list[Fault] = []
    if rehearsed:
        collect(faults, lambda: rehearse(workflow, pool, submission.local_files, settings.processes))
    built = collect(faults, lambda: build(workflow, pool))
    if built is None or faults:
        raise SpecErrors(by_file((*faults, *faults_in(workflow, pool))))
    workload = workload_of(workflow, built.lowered, pool)
    cluster = catalog.cluster(pool)
    never = tuple(never_fits(built, cluster))
    notices = (*built.notices, *never, *(nvlink_notices(workload, cluster) if pool.traits.kubernetes else ()))
    if check := pool.traits.submission:
        notices += tuple(check().size_notices(workflow, settings.processes))
    return _Compilation(built, workload, notices, never)


def with_changes(found: CheckedSubmission, live: PoolUsage, settings: Settings) -> CheckedSubmission:
    """Return a submission as changed by its options, validated again; raise `NotFound` for one that names nothing."""
    submission, workload, pool = found.submission, found.workload, found.built.pool
    if submission.what_if is None:
        return found
    changes = parse_changes(submission.what_if, [workload], live.cluster(pool))
    amendment = amendment_of(changes, workload.gangs, pool.topology)
    rendered = found.built.workflow.rendered
    known = replace(submission, amendment=amendment, rendered=rendered.to_json() if rendered else None)
    again = checked(known, live.catalog, settings)
    notices = (*(rendered.notices if rendered else ()), *again.notices)
    return replace(again, notices=notices, changes=tuple(sentences(changes, workload.gangs, pool.topology)))


def refuse_never(found: CheckedSubmission) -> None:
    """Raise `NeverFits` for a workflow that can never run in its pool as it is."""
    if not found.never:
        return
    said = "; ".join(each.message for each in found.never[:_SHOWN])
    more = f"; and {len(found.never) - _SHOWN} more" if len(found.never) > _SHOWN else ""
    text = "Take one of the ways out, which --dry-run shows too, or queue it with --force until the pool changes."
    hint = Hint(text, "--dry-run", "--force")
    raise NeverFits(f"it can never run in its pool as it is now: {said}{more}", hint)


def _pool(catalog: PoolCatalog, submission: Submission, preferred: str | None) -> Pool:
    return runs_here(catalog.find(submission.pool, preferred))


def _with_pool(own: Sequence[Fault], submission: Submission, catalog: PoolCatalog) -> Sequence[Fault]:
    """Return the faults of a file together with those that depend on its pool."""
    faults = list(own)
    scene = CompileContext(lambda one: _pool(catalog, submission, one.pool), {}, configured=True, pool=submission.pool)
    lowered(faults, drafted(submission), scene)
    return by_file(faults)


def drafted(submission: Submission) -> Sequence[WrittenWorkload]:
    """Return the readable part of a faulty workflow file; None for a file that is not a workflow."""
    found = collect(
        [],
        lambda: draft_documents(
            submission.source, submission.file, sets=submission.sets, set_strings=submission.set_strings
        ),
    )
    return [one for one in found.workloads if one.kind == WORKFLOW] if found else []


@dataclass(frozen=True, slots=True)
class AdmittedWorkflow:
    """A workflow that may be stored: the row, and the parsed values that its driver needs."""

    row: NewWorkflow
    built: CompiledWorkflow
    spec: Spec
    state: State


def new_workflow(found: CheckedSubmission, settings: Settings) -> AdmittedWorkflow:
    """Return the workflow to store."""
    submission, built = found.submission, found.built
    name, pool = built.workflow.name, built.pool.name
    now = settings.now()
    spec = spec_of(built, submission.priority, settings)
    state, actions = step(spec, initial(spec), Submitted(), now)
    changed = f" with changes: {'; '.join(found.changes)}" if found.changes else ""
    by = f" by {submission.owner}" if submission.owner != LOCAL.name else ""
    said = NewEvent(now, "Submitted", f'workflow "{name}" was submitted to pool "{pool}"{by}{changed}')
    records = [
        NewEvent(each.at, each.kind, each.message, group=each.group, task=each.task, attempt=each.attempt)
        for each in actions
        if isinstance(each, Record)
    ]
    row = NewWorkflow(
        name=name,
        pool=pool,
        owner=submission.owner,
        priority=submission.priority,
        submitted_at=now,
        status=state.status.value,
        source=submission.source,
        file=submission.file,
        spec=to_json(spec),
        state=to_json(state),
        labels=found.labels,
        sets=submission.sets,
        set_strings=submission.set_strings,
        files=submission.local_files,
        client_key=submission.client_key,
        fingerprint=fingerprint(submission, pool),
        digest=digest_of(state, {**first_digest(built, submission.file), "changes": list(found.changes)}),
        notices=[workflows.notice(each) for each in found.notices],
        events=[said, *records],
        pool_version=found.pool_version,
        amendment=submission.amendment,
        rendered=built.workflow.rendered.to_json() if built.workflow.rendered else None,
    )
    return AdmittedWorkflow(row, built, spec, state)
