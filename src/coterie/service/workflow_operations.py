"""The operations on workflows: submission, plans, views, and the requests of users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from coterie.errors import Conflict, UsageError
from coterie.lifecycle import Spec, State
from coterie.service.core import Json
from coterie.service.driver.workflows.texts import FreshWorkflow
from coterie.service.event_operations import EventOperations
from coterie.service.pools import changes as pool_rules
from coterie.service.pools.usage import PLAINLY, PoolUsage, WhyQuery
from coterie.service.settings import Settings, Submission
from coterie.service.submission.compilation import fingerprint, is_template, rendered, size_of
from coterie.service.submission.computations import admitted, planned
from coterie.service.submission.requests import cancels, check_statuses, deletes, retries
from coterie.service.views import workflows as views
from coterie.service.views.why import placement_of, why_of
from coterie.service.work_limit import WorkLimit
from coterie.service.work_process import WorkProcesses
from coterie.store import EVERYTHING, PlacementRecord, WorkflowQuery, WorkflowRecord

# How many workflows a page has at most.
_MOST = 1000
# How many processes compute for requests: one more than plans at a time, which must not delay large submissions.
_PROCESSES = 3
# The size in bytes from which a submission takes long to read.
_LARGE = 30_000
# How many tasks a workflow may have that a replica without the lead keeps in memory.
_FEW = 32
# The size from which a plan takes long.
_LARGE_PLAN = 8_000

T = TypeVar("T")


class WorkflowOperations(EventOperations):
    """The workflows of a service; only its driver changes their states."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._submissions = WorkLimit("submissions", running=4, waiting=68, each=64)
        self._large = WorkLimit("templates and large submissions", running=2, waiting=24, each=16)
        self._plans = WorkLimit("plans", running=2, waiting=8, each=4)
        self._processes = WorkProcesses(_PROCESSES)

    def submit(self, submission: Submission, plan: str | None = None, *, force: bool = False) -> Json:
        """Store a workflow, validated in every way that needs no capacity; the view shows whether it is new.

        Where the id of a plan is given, nothing is stored unless the plan would be the same now. One that can never run
        in its pool is stored only with `force`.
        """
        known = self._repeated(submission)
        if known is not None:
            return {**self._whole(known), "created": False}
        limit = self._limit(submission)
        with limit.place(submission.owner) as done:
            needs_usage = plan is not None or submission.what_if is not None
            live = self._now() if needs_usage else PoolUsage(self._catalog(), {}, {})
            found = self._computed(_LARGE, "this submission", admitted, submission, live, plan, force)
            if limit is self._submissions:
                done()  # many small ones are stored at a time
            stored, created = self.store.submit(found.row)
        if not created:
            return {**self._whole(stored), "created": False}
        self._keep(FreshWorkflow(stored, found.spec, found.state, found.built, submission.local_files))
        self._driver.poke()
        self._ring()
        return {**self._whole(stored, (), (found.spec, found.state)), "created": True}

    def _keep(self, fresh: FreshWorkflow) -> None:
        """Spare the driver the reading of a new workflow.

        A replica that does not lead may keep it for long, and so keeps it only if it is small.
        """
        small = len(fresh.spec.places) <= _FEW and sum(map(len, fresh.files.values())) < _LARGE
        if self._driver.leading or small:
            self._fresh.append(fresh)

    def plan(self, submission: Submission, *, rehearsed: bool = False) -> Json:
        """Return the placement that a workflow would get now, or with changes, or why none; nothing is stored.

        A `rehearsed` workflow is checked as if it were submitted: the files that it names have to exist, too.
        """
        with self._plans.place(submission.owner):
            return self._computed(_LARGE_PLAN, "this plan", planned, submission, self._now(), rehearsed)

    def _computed(
        self, large: int, what: str, work: Callable[..., T], submission: Submission, live: PoolUsage, *rest: object
    ) -> T:
        """Return the result of work on a submission; from a size on, a process of its own does it.

        A template is rendered first: a short one may stand for very many tasks.
        """
        submission = rendered(submission)
        settings = replace(self.settings, now=partial(float, self.settings.now()))
        arguments = (submission, live, settings, *rest)
        if size_of(submission) < large:
            return work(*arguments)
        return self._processes.run(what, work, *arguments)

    def workflows(self, query: WorkflowQuery = EVERYTHING, after: int | None = None, limit: int = 100) -> Json:
        """Return a page of workflows, newest first; `after` is the `next` of the page before."""
        check_statuses(query.statuses)
        if not 0 < limit <= _MOST:
            raise UsageError(f"a page has 1 to {_MOST} workflows, not {limit}", "Ask for the next page with after.")
        page = self.store.workflows(query, after, limit)
        running = [item.id for item in page.items if item.started_at is not None and item.ended_at is None]
        nodes = self.store.nodes(running) if running else {}
        rows = [
            {**views.row(item), "nodes": nodes.get(item.id, []), "position": position}
            for item, position in zip(page.items, self._positions(page.items), strict=True)
        ]
        return {"items": rows, "next": page.next}

    def workflow(self, ident: str) -> Json:
        """Return a workflow with its groups and tasks."""
        return self._whole(self.store.workflow(ident))

    def owner_of(self, ident: str) -> str:
        """Return the owner of a workflow."""
        return self.store.summary(ident).owner

    def why(self, ident: str, group: str | None = None, question: WhyQuery = PLAINLY) -> Json:
        """Return why groups wait, with evidence and remedies, or their outcomes under hypothetical changes."""
        return why_of(self.store, self._now(), self._queue_positions(exact=True), ident, group, question)

    def placement(self, ident: str) -> Json:
        """Compare the nodes of running tasks with their constraints."""
        return placement_of(self.store, self._now(), ident)

    def spec(self, ident: str) -> Json:
        """Return a workflow as it was submitted."""
        upload = self.store.upload(ident)
        return {
            "source": upload.source.decode("utf-8", "replace"),
            "rendered": upload.rendered["text"] if upload.rendered else None,
            "file": upload.file,
            "sets": list(upload.sets),
            "set_strings": list(upload.set_strings),
            "files": {path: len(data) for path, data in upload.files.items()},
        }

    def cancel(self, ident: str, message: str = "", *, force: bool = False, by: str = "") -> Json:
        """Request the end of a workflow; a repeated cancellation is no fault."""
        request = {"kind": "cancel", "message": message[:1000], "force": force, "by": by}
        wanted = partial(cancels, force=force)
        if self.store.request_if(ident, request, self.settings.now(), wanted):
            self._driver.poke()
        return self.workflow(ident)

    def retry(self, ident: str, task: str | None = None, *, by: str = "") -> Json:
        """Request the retry of an ended workflow."""
        pool_rules.still_runs(self._catalog(), ident, self.store.summary(ident).pool)
        request = {"kind": "retry", "task": task, "by": by}
        self.store.request_if(ident, request, self.settings.now(), partial(retries, task=task))
        self._driver.poke()
        return self.workflow(ident)

    def delete(self, ident: str, *, force: bool = False, by: str = "") -> bool:
        """Delete an ended workflow, with its logs; return whether it is gone.

        With `force`, one in any other state is canceled without a grace period, and deleted once nothing of it is left.
        """
        now = self.settings.now()
        gone = True
        try:
            self.store.delete(ident, now, by)
        except Conflict:
            if not force:
                raise
            gone = False
            self.store.request_if(ident, {"kind": "delete", "by": by}, now, deletes)
        self._driver.poke()
        self._ring()
        return gone

    def wait(self, ident: str, until: Callable[[Json], bool] | None = None, timeout_s: float | None = None) -> Json:
        """Wait until a view of a workflow satisfies a condition, by default its end; return the last view."""
        wanted = until or (lambda view: bool(view["finished"]))
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            seen = self.store.last_event()
            view = self.workflow(ident)
            left = 3600.0 if end is None else end - time.monotonic()
            if wanted(view) or left <= 0 or self._stopped:
                return view
            self.changed(seen, min(left, 3600.0))

    def _repeated(self, submission: Submission) -> WorkflowRecord | None:
        """Return the result of an earlier equal request, even if it would be refused by now."""
        if submission.client_key is None:
            return None
        said = submission.pool
        return self.store.repeated(
            submission.owner, submission.client_key, lambda pool: fingerprint(submission, said or pool)
        )

    def _whole(
        self,
        stored: WorkflowRecord,
        seats: Iterable[PlacementRecord] | None = None,
        decoded: tuple[Spec, State] | None = None,
    ) -> Json:
        known = self.store.placements(stored.id) if seats is None else seats
        view = views.whole(stored, known, self._logs.output(stored).folder, decoded)
        return {**view, "position": self._position(stored)}

    def _limit(self, submission: Submission) -> WorkLimit:
        """Return the limit that a submission counts to: those that take long must not delay the others."""
        takes_long = len(submission.source) > _LARGE or is_template(submission.source)
        return self._large if takes_long else self._submissions
