"""From a submission to the row that is stored: everything that can be checked before there is room is checked here."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.errors import Notice
from coterie.lifecycle import Record, Submitted, initial, step, to_json
from coterie.planning.documents import workload_of
from coterie.planning.workload import Workload
from coterie.service import views
from coterie.service.building import (
    Built,
    build,
    check_call,
    fingerprint,
    labels_of,
    never_fits,
    read,
    rehearse,
    spec_of,
)
from coterie.service.catalog import Catalog
from coterie.service.life import digest_of, first_digest
from coterie.service.pools import runs_here
from coterie.service.settings import Settings, Submission
from coterie.service.store import NewEvent, NewWorkflow


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission with nothing wrong about it, and what its user should know."""

    submission: Submission
    built: Built
    workload: Workload
    labels: dict[str, str]
    notices: tuple[Notice, ...]


def checked(submission: Submission, catalog: Catalog, settings: Settings, *, rehearsed: bool = True) -> Checked:
    """Check a submission, or raise what is wrong with it; unless it is `rehearsed`, its tasks need not be startable."""
    check_call(submission, settings.files_limit)
    workflow = read(submission)
    pool = runs_here(catalog.find(submission.pool, workflow.pool))
    built = build(workflow, pool)
    workload = workload_of(workflow, built.lowered, pool)
    if rehearsed:
        rehearse(built, submission.local_files)
    notices = (*built.notices, *never_fits(built, catalog.cluster(pool)))
    return Checked(submission, built, workload, labels_of(workflow, submission), notices)


def new_workflow(found: Checked, settings: Settings) -> NewWorkflow:
    """Return what to store of a workflow."""
    submission, built = found.submission, found.built
    name, pool = built.workflow.name, built.pool.name
    now = settings.now()
    spec = spec_of(built, submission.priority, settings)
    state, actions = step(spec, initial(spec), Submitted(), now)
    said = NewEvent(now, "Submitted", f'workflow "{name}" was submitted to pool "{pool}"')
    records = [
        NewEvent(each.at, each.kind, each.message, group=each.group, task=each.task, attempt=each.attempt)
        for each in actions
        if isinstance(each, Record)
    ]
    return NewWorkflow(
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
        digest=digest_of(state, first_digest(built, submission.file)),
        notices=[views.notice(each) for each in found.notices],
        events=[said, *records],
    )
