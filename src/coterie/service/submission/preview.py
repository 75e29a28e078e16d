"""The preview of a submission's outcome now, with an id to which a submission can be bound."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from typing import Any

from coterie.errors import PlanStale
from coterie.placement.option import Option
from coterie.placement.whatif import options
from coterie.planning.advice.quota import with_quota
from coterie.planning.changes import AS_IT_IS, parse_changes
from coterie.planning.report import plan_json
from coterie.rendering.command_line import call, words
from coterie.service.pools.usage import PoolUsage
from coterie.service.settings import Submission
from coterie.service.submission.admission import CheckedSubmission
from coterie.service.submission.compilation import fingerprint
from coterie.service.views import workflows

Json = dict[str, Any]


def plan_of(found: CheckedSubmission, live: PoolUsage) -> Json:
    """Return the placement that a submission would get now, or why it would get none, with all its notices."""
    began = time.perf_counter()
    pool = found.built.pool
    changes = parse_changes(found.submission.what_if or AS_IT_IS, [found.workload], live.cluster(pool))
    command = [*plan_call(found.submission, pool.name), *(word for each in changes for word in words(options(each)))]
    plan = live.planner(pool, changes=changes).plan(found.workload)
    shown = with_quota(
        plan_json(plan, command=command, elapsed_ms=0.0), plan, live.quota_question(found.workload, command)
    )
    told = [workflows.notice(each) for each in found.notices if not changes or each not in found.never]
    # The submission's say which field they are about, so they take the place of the plan's.
    said = {(each["code"], each["message"], each["line"]) for each in told}
    told += [each for each in shown["warnings"] if (each["code"], each["message"], each["line"]) not in said]
    shown["warnings"] = told
    shown["stats"]["elapsed_ms"] = round((time.perf_counter() - began) * 1000, 3)
    return {**shown, "id": plan_id(found.submission, pool.name, shown)}


def plan_call(submission: Submission, pool: str) -> list[str]:
    """Return the command line for the plan of a submission."""
    sets = [Option("set", each) for each in submission.sets]
    strings = [Option("set_string", each) for each in submission.set_strings]
    return call("submit", [submission.file], [Option("dry_run"), Option("pool", pool), *sets, *strings])


def plan_id(submission: Submission, pool: str, plan: Json) -> str:
    """Return a short id of a plan: the same for the same content in the same pool with the same answer."""
    # The position in the queue and the name do not change the placement.
    asked = fingerprint(replace(submission, file="", priority="", labels={}), pool)
    places = [
        [group["name"], group["verdict"], sorted((one["task"], one["node"]) for one in group["assignments"])]
        for group in plan["groups"]
    ]
    answer = json.dumps([asked, plan["verdict"], places])
    return hashlib.sha256(answer.encode()).hexdigest()[:8]


def hold_to(wanted: str, plan: Json) -> None:
    """Raise `PlanStale` where a plan is not the expected one."""
    now, verdict = plan["id"], plan["verdict"]
    if now != wanted:
        raise PlanStale(
            f"plan {wanted} is out of date: the use of the nodes, the workflow, its values, its files or its pool "
            f"has changed; nothing was submitted",
            f"The plan is now {now}, with the verdict {verdict}. Review it, then submit with {now}.",
            {"plan": now, "verdict": verdict},
        )
