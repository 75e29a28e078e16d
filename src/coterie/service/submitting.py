"""From a submission to the row that is stored: everything that can be checked before there is room is checked here."""

from __future__ import annotations

from coterie.lifecycle import Record, Submitted, initial, step, to_json
from coterie.service import views
from coterie.service.building import build, check_call, fingerprint, labels_of, never_fits, read, rehearse, spec_of
from coterie.service.catalog import Catalog
from coterie.service.life import digest_of, first_digest
from coterie.service.pools import runs_here
from coterie.service.settings import Settings, Submission
from coterie.service.store import NewEvent, NewWorkflow


def new_workflow(submission: Submission, catalog: Catalog, settings: Settings) -> NewWorkflow:
    """Return what to store of a workflow, or raise what is wrong with it."""
    check_call(submission, settings.files_limit)
    workflow = read(submission)
    pool = runs_here(catalog.find(submission.pool, workflow.pool))
    built = build(workflow, pool)
    rehearse(built, submission.local_files)
    now = settings.now()
    spec = spec_of(built, submission.priority, settings)
    state, actions = step(spec, initial(spec), Submitted(), now)
    said = NewEvent(now, "Submitted", f'workflow "{workflow.name}" was submitted to pool "{pool.name}"')
    records = [
        NewEvent(each.at, each.kind, each.message, group=each.group, task=each.task, attempt=each.attempt)
        for each in actions
        if isinstance(each, Record)
    ]
    notices = (*built.notices, *never_fits(built, catalog.cluster(pool)))
    return NewWorkflow(
        name=workflow.name,
        pool=pool.name,
        owner=submission.owner,
        priority=submission.priority,
        submitted_at=now,
        status=state.status.value,
        source=submission.source,
        file=submission.file,
        spec=to_json(spec),
        state=to_json(state),
        labels=labels_of(workflow, submission),
        sets=submission.sets,
        set_strings=submission.set_strings,
        files=submission.local_files,
        client_key=submission.client_key,
        fingerprint=fingerprint(submission, pool.name),
        digest=digest_of(state, first_digest(built, submission.file)),
        notices=[views.notice(each) for each in notices],
        events=[said, *records],
    )
