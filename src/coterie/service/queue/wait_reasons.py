"""The reasons why gangs wait, a few in each cycle: each costs more than placing a gang."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coterie.config.configuration import GpuQuota
from coterie.errors import Reason
from coterie.placement.explain.decision import decide
from coterie.placement.refusal import Decision, Refusal, Verdict
from coterie.service.queue.cycle import QUEUE_BUDGET, QueuedGang, QueueEntry
from coterie.service.queue.failures import REMEMBERED, PlacementFailures
from coterie.service.queue.holdings import BackendHoldings
from coterie.service.queue.limits import QueueLimits
from coterie.service.queue.ranking import GangRun

# How long a reported reason stays good enough to show, in seconds.
FRESH = 30.0
# How many reasons are computed in one cycle.
EXPLAINED = 4


@dataclass(frozen=True, slots=True)
class WaitReason:
    """The reason why a gang waits, reported when it is new."""

    entry: QueueEntry
    decision: Decision


class WaitReasons:
    """The reasons of the waiting gangs of one backend, shared by those of one kind."""

    def __init__(self, world: BackendHoldings, failures: PlacementFailures, limits: QueueLimits) -> None:
        self._world, self._failures, self._limits = world, failures, limits
        self._of_kind: dict[int, tuple[float, Decision]] = {}

    def new(self, refused: Iterable[GangRun], now: float) -> Iterator[WaitReason]:
        """Yield the new reasons of waiting gangs; those that exceed the number per cycle come later."""
        left = EXPLAINED
        # Kinds whose reason is up to date, for each version of their pool.
        done: dict[tuple[int, GpuQuota], tuple[Decision, tuple[str, str]]] = {}
        for run in refused:
            gang = run.first
            kind = gang.kind, gang.entry.pool.gpus
            if (current := done.get(kind)) is not None:
                yield from _told(run, *current)
                continue
            known = self._of_kind.get(gang.kind)
            if (over := self._limits.over_quota(gang)) is not None:
                known = self._remember(gang.kind, now, over)  # computed at no cost, and so never out of date
            elif known is None or _is_quota(known[1]) or now - known[0] > FRESH or gang.entry.anchors:
                if left:
                    left -= 1
                    known = self._remember(gang.kind, now, self._explained(gang))
                elif known is None:
                    continue
            if known:
                current = known[1], _shown(known[1])
                if not gang.entry.anchors:
                    done[kind] = current
                yield from _told(run, *current)

    def _remember(self, kind: int, now: float, decision: Decision) -> tuple[float, Decision]:
        if len(self._of_kind) > REMEMBERED:
            self._of_kind.clear()
        self._of_kind[kind] = (now, decision)
        return now, decision

    def _explained(self, gang: QueuedGang) -> Decision:
        entry = gang.entry
        failure = self._failures.find(gang.kind, frozenset())
        decision = decide(
            entry.gang,
            self._world.capacity(entry.pool),
            self._world.empty(entry.pool),
            anchors=self._world.present(entry.anchors),
            budget=QUEUE_BUDGET,
            known=failure.answer if failure else None,
        )
        if decision.found is None:
            return decision
        if (refused := self._limits.over_task_limit(gang)) is not None:
            return refused
        # It fits, but the capacity is reserved for a gang that has waited longer.
        refusal = Refusal(Reason.NO_CAPACITY, wanted=gang.size, reserved=True)
        return Decision(Verdict.WAITING, refusal=refusal)


def _told(run: GangRun, decision: Decision, said: tuple[str, str]) -> Iterator[WaitReason]:
    """Yield the reason of those gangs of a run for which it was not reported before."""
    gangs = list((run.unreported if run.reported == said else run.gangs).values())
    run.reported = said
    run.unreported.clear()
    return (WaitReason(gang.entry, decision) for gang in gangs)


def _is_quota(decision: Decision) -> bool:
    return decision.refusal is not None and decision.refusal.reason is Reason.OVER_QUOTA


def _shown(decision: Decision) -> tuple[str, str]:
    return decision.verdict.value, decision.refusal.reason.value if decision.refusal else ""
