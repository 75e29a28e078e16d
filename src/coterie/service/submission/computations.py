"""The computations of requests, as functions of values, which a process of their own may carry out."""

from __future__ import annotations

from typing import Any

from coterie.errors import UsageError
from coterie.frontends.kubernetes.objects import is_kubernetes
from coterie.service.pools.usage import PoolUsage
from coterie.service.settings import Settings, Submission
from coterie.service.submission.admission import (
    AdmittedWorkflow,
    CheckedSubmission,
    checked,
    new_workflow,
    refuse_never,
    with_changes,
)
from coterie.service.submission.object_preview import object_plan
from coterie.service.submission.preview import hold_to, plan_of

# How many groups a plan of the service may have: the time of a plan grows with their number.
_PLANNED = 500


def planned(submission: Submission, live: PoolUsage, settings: Settings, rehearsed: bool) -> dict[str, Any]:  # noqa: FBT001 - sent by position
    """Return the placement that a workflow would get now, or why none.

    Other workloads are placed as well, but cannot be rehearsed: a service does not run them.
    """
    if not rehearsed and is_kubernetes(submission.source):
        return object_plan(submission, live)
    return plan_of(_plannable(checked(submission, live.catalog, settings, rehearsed=rehearsed)), live)


def admitted(
    submission: Submission,
    live: PoolUsage,
    settings: Settings,
    plan: str | None,
    force: bool,  # noqa: FBT001 - sent by position
) -> AdmittedWorkflow:
    """Return the workflow of a submission; raise what keeps it from being stored.

    It has to get the placement of `plan`, if one is named, and without `force` it must be able to run in its pool.
    """
    found = checked(submission, live.catalog, settings)
    if plan is not None:
        hold_to(plan, plan_of(_plannable(found), live))
    if submission.what_if is not None:
        found = with_changes(found, live, settings)
    if not force:
        refuse_never(found)
    return new_workflow(found, settings)


def _plannable(found: CheckedSubmission) -> CheckedSubmission:
    """Return a submission that is small enough to be planned here; raise `UsageError` for any other."""
    groups = len(found.built.lowered.gangs)
    if groups > _PLANNED:
        raise UsageError(
            f"a service plans workflows of up to {_PLANNED} groups, and this one has {groups:,}",
            "Submit it without a plan, or plan it on your own machine with coterie plan.",
        )
    return found
