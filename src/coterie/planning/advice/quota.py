"""The explanation of a gang over its pool's quota: the workflows that use it, and verified remedies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from coterie.config.configuration import Pool
from coterie.errors import Reason
from coterie.gang.task_counts import sizes
from coterie.placement.option import Option
from coterie.placement.refusal import Refusal, Verdict
from coterie.placement.whatif import Change, Keep, Release, options
from coterie.planning.concurrency import ancestors
from coterie.planning.plan import GangPlan, Plan, Planner
from coterie.planning.report import way_out_json
from coterie.planning.workload import Workload
from coterie.rendering.text import count
from coterie.topology.display_names import sibling

Json = dict[str, Any]

_HOLDERS = 20


@dataclass(frozen=True, slots=True)
class QuotaQuestion:
    """A question to the planner; `command` is the user's command line.

    `held` are the GPUs in use in the workload's pool, by workflow; `own` is the workflow that asks, if it is among
    them. `planner` returns a planner of the same moment for a pool, with more changes, and without some workflows. With
    `named_release`, the command has an option that leaves out a workflow.
    """

    workload: Workload
    command: Sequence[str]
    held: Mapping[str, int]
    planner: Callable[[Pool, Sequence[Change], Collection[str]], Planner]
    own: str = ""
    named_release: bool = True

    def verdict(
        self, gang: str, *, changes: Sequence[Change] = (), gone: Collection[str] = (), limit: int | None = None
    ) -> Verdict:
        """Return the planner's verdict on a gang with changes, without some workflows, or with another limit."""
        pool = self.workload.pool
        if limit is not None:
            pool = replace(pool, gpus=replace(pool.gpus, limit=limit))
        plan = self.planner(pool, changes, gone).plan(replace(self.workload, pool=pool))
        return next(one.decision.verdict for one in plan.gangs if one.gang.name == gang)


def with_quota(shown: Json, plan: Plan, question: QuotaQuestion) -> Json:
    """Return a plan as JSON with holders and remedies for every gang that is over its pool's limit."""
    return {
        **shown,
        "groups": [
            _explained(group, one, refusal, question, _siblings(one, plan))
            if (refusal := one.decision.refusal) and refusal.reason is Reason.OVER_QUOTA
            else group
            for group, one in zip(shown["groups"], plan.gangs, strict=True)
        ],
    }


def _siblings(one: GangPlan, plan: Plan) -> Iterator[Json]:
    """Yield the other groups of the workload that a plan places, and that may run at the same time."""
    before = ancestors(plan.workload.needs)
    done = before.get(one.gang.name, frozenset())
    for other in plan.gangs:
        if (found := other.decision.found) is None or other.gang.name in done:
            continue
        new = (task for task in other.gang.all_tasks() if task.name in found.nodes and task.name not in other.survivors)
        if gpus := sum(task.shape.gpus for task in new):
            yield {"owner": sibling(other.gang.name), "gpus": gpus, "domain": []}


def _explained(group: Json, one: GangPlan, refusal: Refusal, question: QuotaQuestion, siblings: Iterable[Json]) -> Json:
    held = sorted(((name, gpus) for name, gpus in question.held.items() if gpus), key=lambda item: (-item[1], item[0]))
    others = ({"owner": name, "gpus": gpus, "domain": []} for name, gpus in held)
    holders = list(islice((*siblings, *others), _HOLDERS))
    ways = [
        way_out_json(change, question.command, asked)
        for change, asked in (
            *_waiting(one.gang.name, refusal, dict(held), question),
            *_fewer(one, refusal, question),
            *_raised(one.gang.name, refusal, question),
        )
    ]
    return {**group, "refusal": {**group["refusal"], "holders": holders, "ways_out": ways}}


def _waiting(
    gang: str, refusal: Refusal, held: Mapping[str, int], question: QuotaQuestion
) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the workflows it has to wait for: the smallest that returns enough, else as few of the largest as do."""
    used, limit = refusal.quota
    lacking = used + refusal.wanted - limit
    others = {name: gpus for name, gpus in held.items() if name != question.own}
    enough = [name for name, gpus in others.items() if gpus >= lacking]
    sums = list(accumulate(others.values()))
    few = next((list(others)[: index + 1] for index, total in enumerate(sums) if total >= lacking), [])
    ending = enough[-1:] or few
    if refusal.wanted > limit or not ending:
        return
    when = f"when {' and '.join(ending)} {'ends' if len(ending) == 1 else 'have ended'}"
    match question.verdict(gang, gone=ending):
        case Verdict.PLACED:
            yield f"fits {when}", options(Release(ending[0])) if question.named_release and len(ending) == 1 else ()
        case Verdict.WAITING | Verdict.UNDECIDED:
            yield f"is within the limit {when}, and then waits for room", ()


def _fewer(one: GangPlan, refusal: Refusal, question: QuotaQuestion) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the number of tasks with which it is within the limit now, or would be if nothing else used the pool."""
    _, counts = sizes(one.gang, (), one.survivors)
    used, limit = refusal.quota
    sums = list(accumulate(task.shape.gpus for task in one.gang.all_tasks() if task.needed))
    rooms = (limit - used, limit) if sums[-1] > limit else (limit - used,)
    within = ([count for count in counts if sums[count - 1] <= room] for room in rooms)
    number = next((found[-1] for found in within if found), 0)
    if not number:
        return
    change, fewer = Keep(one.gang.name, (), number), f"with {count(number, 'task')}"
    match question.verdict(one.gang.name, changes=[change]):
        case Verdict.PLACED:
            yield f"fits now {fewer}", options(change)
        case Verdict.WAITING | Verdict.UNDECIDED:
            yield f"is within the limit {fewer}, and then waits for its turn", options(change)


def _raised(gang: str, refusal: Refusal, question: QuotaQuestion) -> Iterator[tuple[str, tuple[Option, ...]]]:
    used, _ = refusal.quota
    least = used + refusal.wanted
    when = f'if an admin raises gpus.limit of pool "{question.workload.pool.name}" to {least}'
    match question.verdict(gang, limit=least):
        case Verdict.PLACED:
            yield f"fits now {when}", ()
        case Verdict.WAITING | Verdict.UNDECIDED:
            yield f"is within the limit {when}, and then waits for room", ()
