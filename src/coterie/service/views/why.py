"""The reasons why groups wait, and the audit of running placements, for any replica."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coterie.backends.base.driver import IMAGE_MISSING
from coterie.config.configuration import Pool
from coterie.errors import NotFound, Reason, did_you_mean
from coterie.gang.tree import Gang
from coterie.lifecycle import GroupState, State, Status, TaskState, from_json, requests, unscheduled
from coterie.placement.whatif import options
from coterie.planning.advice.quota import with_quota
from coterie.planning.changes import AS_IT_IS, parse_changes
from coterie.planning.fit import choices_json
from coterie.planning.report import plan_json
from coterie.planning.workload import Workload
from coterie.rendering.command_line import words
from coterie.service.driver.workflows.driven_workflow import levels_of
from coterie.service.driver.workflows.texts import CachedTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.pools.changes import find
from coterie.service.pools.usage import PLAINLY, JoiningGang, PoolUsage, WhyQuery
from coterie.service.queue.positions import QueuePositions
from coterie.service.queue.waiting_gang import Blocked, known_pool, waiting_gang
from coterie.service.views import workflows
from coterie.service.views.wait_cause import start_cause, unreachable_cause, wait_cause
from coterie.store import Store, WorkflowRecord
from coterie.topology.domains import Domains

Json = dict[str, Any]


def why_of(
    store: Store,
    live: PoolUsage,
    positions: QueuePositions,
    ident: str,
    group: str | None,
    question: WhyQuery = PLAINLY,
) -> Json:
    """Return why groups of a workflow wait, all waiting ones or the named one, and their positions.

    With all the evidence, groups have `alternatives` as in a plan; with hypothetical changes, those that would be
    placed have `assignments`.
    """
    stored = store.workflow(ident)
    state = from_json(State, stored.state)
    names = [each.name for each in state.groups]
    if group is not None and group not in names:
        hint = f"Groups are: {', '.join(names)}. {did_you_mean(group, names)}".strip()
        raise NotFound(f'workflow "{ident}" has no group "{group[:80]}"', hint)
    pool = known_pool(live.catalog, stored.pool)
    on_cluster = not isinstance(pool, Blocked) and pool.traits.own_queue
    starting = {each.name for each in state.groups if on_cluster and any(_starting(each))}
    asked = [each for each in state.groups if (each.name == group if group else _waits(each) or each.name in starting)]
    texts = CachedTexts(store)

    def answer(each: GroupState) -> Json:
        if _waits(each):
            return _why(each, stored, live, texts, question)
        cause = _unreachable(stored.pool, live.catalog) or _start_cause(store, ident, each)
        return _not_waiting(each) | ({"cause": cause} if each.name in starting else {})

    return {
        "id": ident,
        "status": stored.status,
        "position": positions.of(stored),
        "waiting": positions.waiting.get(stored.pool, 0),
        "groups": [
            {
                **answer(each),
                "position": positions.positions.get((ident, each.name)),
            }
            for each in asked
        ],
    }


def placement_of(store: Store, live: PoolUsage, ident: str) -> Json:
    """Return the audit of a workflow's placement."""
    stored = store.workflow(ident)
    pool = find(live.catalog, stored.pool).pool
    built = CachedTexts(store).built(ident, pool, levels_of(stored.digest))
    domains = Domains.of(live.catalog.cluster(pool), pool.topology)
    gangs = {gang.name: gang for gang in built.lowered.gangs}
    found = workflows.audit(from_json(State, stored.state), gangs, store.placements(ident), domains)
    return {"id": ident, "pool": stored.pool, **found}


def _waits(group: GroupState) -> bool:
    """Return whether a group waits for nodes, in Coterie's queue or in that of its scheduler."""
    return workflows.waits(group) or (not group.status.final and any(unscheduled(group)))


def _starting(group: GroupState) -> Iterator[TaskState]:
    """Yield the tasks that have nodes, and whose containers do not run yet."""
    return (task for task in group.tasks if task.status is Status.INITIALIZING and not group.status.final)


def _start_cause(store: Store, ident: str, group: GroupState) -> Json:
    tasks = {(group.name, task.name, task.attempt) for task in _starting(group)}
    told = store.latest_events(ident, IMAGE_MISSING)
    own = (each.message for each in told if (each.group, each.task, each.attempt) in tasks)
    return start_cause(sorted(name for _, name, _ in tasks), next(own, ""))


def _why(group: GroupState, stored: WorkflowRecord, live: PoolUsage, texts: CachedTexts, question: WhyQuery) -> Json:
    told = workflows.waiting_of(group)
    shown: Json = {"name": group.name, "verdict": "waiting", "waiting": told, "refusal": None}
    pool = known_pool(live.catalog, stored.pool)
    unreachable = _unreachable(stored.pool, live.catalog)
    if isinstance(pool, Blocked):
        return {**shown, "refusal": _blocked(pool), **({"cause": unreachable} if unreachable else {})}
    gang = waiting_gang(stored, [*requests(group), *unscheduled(group)], pool, texts)
    if isinstance(gang, Blocked):
        return {**shown, "refusal": _blocked(gang)}
    plan, warnings = _plan(stored, pool, gang, live, question)
    more = {key: plan[key] for key in ("alternatives",) if key in plan}
    if pool.traits.own_queue:
        reason, message = (group.waiting.reason, group.waiting.message) if group.waiting is not None else ("", "")
        shown["cause"] = unreachable or wait_cause(plan["refusal"], reason, message, warnings, pool.traits)
    if question.what_if != AS_IT_IS:
        more["assignments"] = plan["assignments"]
        return {**shown, "verdict": plan["verdict"], "refusal": plan["refusal"], **more}
    if plan["refusal"] is None and group.waiting is not None:
        # It would fit on its nodes, and still has to wait: for the machine, or for a gang before it.
        return {**shown, "refusal": _refusal(Reason(group.waiting.reason), group.waiting.message), **more}
    return {**shown, "verdict": plan["verdict"], "refusal": plan["refusal"], **more}


def _unreachable(pool: str, catalog: PoolCatalog) -> Json | None:
    """Return the cause of a pool whose cluster cannot be reached; None where it can."""
    known = catalog.pools.get(pool)
    problem = catalog.unreached.get(known.pool.backend) if known else None
    return unreachable_cause(known.pool.backend, problem) if known and problem else None


def _plan(
    stored: WorkflowRecord, pool: Pool, gang: Gang, live: PoolUsage, question: WhyQuery
) -> tuple[Json, list[Json]]:
    """Return the gang in a plan for this moment, and the warnings of the plan."""
    workload = Workload(stored.id, "Workflow", pool, (gang,))
    joining = JoiningGang(stored.id, gang)
    changes = parse_changes(question.what_if, [workload], live.cluster(pool))
    planner = live.planner(pool, joining=joining, changes=changes)
    plan, choices = planner.choose(workload) if question.verbose else (planner.plan(workload), None)
    alternatives = None if choices is None else {name: choices_json(each) for name, each in choices.items()}
    command = [
        "coterie",
        "why",
        f"{stored.id}/{gang.name}",
        *(word for each in changes for word in words(options(each))),
    ]
    shown = plan_json(plan, command=command, elapsed_ms=0.0, alternatives=alternatives)
    found = with_quota(shown, plan, live.quota_question(workload, command, joining))
    return found["groups"][0], found["warnings"]


def _not_waiting(group: GroupState) -> Json:
    verdict = "placed" if group.attempt else "waiting"
    return {"name": group.name, "verdict": verdict, "waiting": None, "refusal": None}


def _blocked(why: Blocked) -> Json:
    return {**_refusal(why.reason, why.message), "level": why.level}


def _refusal(reason: Reason, message: str) -> Json:
    return {
        "reason": reason.value,
        "message": message,
        "sentence": message,
        "because": None,
        "path": [],
        "together": [],
        "level": None,
        "domains": 0,
        "best": [],
        "holders": [],
        "ways_out": [],
    }
