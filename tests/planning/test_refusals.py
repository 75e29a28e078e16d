"""In any world, a refusal is complete sentences, reproducible, and every remedy works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from coterie.config.configuration import Pool
from coterie.errors import Reason
from coterie.placement.refusal import Decision, Nearest, Refusal, Verdict, WayOut
from coterie.placement.whatif import Change, Coarsen, Prefer, Release
from coterie.planning.plan import Planner
from coterie.planning.report import plan_json
from coterie.planning.workload import Workload
from coterie.topology.cluster import Cluster
from tests.planning.applied_manifests import Case, failings
from tests.planning.plan_json import PLAN, breaches, holes
from tests.property.worlds.pieces import SMALL
from tests.property.worlds.random_worlds import EngineQuestion, contended, planted, ruled, scattered, tiny
from tests.random_examples import examples

COMMAND = ("coterie", "plan", "w.yaml", "--cluster", "c.yaml")
# A seed does not shrink to a smaller world, so there is no point in trying.
PHASES = (Phase.explicit, Phase.generate)
thorough = settings(max_examples=examples(300), deadline=None, phases=PHASES)
# From seeds: a thousand worlds drawn this way cost what a hundred cost that hypothesis draws choice by choice.
tiny_worlds = st.integers(0, 2**32).map(lambda seed: tiny(Random(seed)))  # noqa: S311 - worlds are drawn, not secrets
small_worlds = st.integers(0, 2**32).map(
    lambda seed: (planted, scattered, ruled, contended)[seed % 4](Random(seed), SMALL)  # noqa: S311 - the same
)


def told(world: EngineQuestion) -> tuple[Case, Decision, dict[str, Any]]:
    """Plan a world as a workload whose running tasks bear Coterie's labels; return the decision and the JSON."""
    gang = replace(world.gang, name="g")
    workload = Workload("w", "Workflow", Pool.for_levels(world.topology), (gang,))
    plan = Planner(Cluster.of(world.nodes, world.pods)).plan(workload)
    case = Case(gang, world.topology, world.nodes, world.pods, world.anchors)
    return case, plan.gangs[0].decision, plan_json(plan, command=COMMAND, elapsed_ms=0)


def contradictions(refusal: Refusal) -> list[str]:
    """Return what a refusal says that cannot be true beside the rest of it."""
    found = []
    if refusal.reason in {Reason.NO_DOMAIN_FITS, Reason.NO_CAPACITY, Reason.NEVER_FITS} and not refusal.together:
        found += [f"{near} is enough" for near in refusal.best if near.fits >= near.wanted]
    if any(near.fits < 0 or near.fits > near.wanted for near in refusal.best):
        found.append(f"{refusal.best} cannot be")
    if any(holder.gpus <= 0 or not holder.owner for holder in refusal.holders):
        found.append(f"{refusal.holders} hold nothing")
    if len(refusal.together) == 1 and not refusal.beside:
        found.append(f"{refusal.together} conflicts with itself")
    if refusal.reason is Reason.GROUPS_CONFLICT and not refusal.together:
        found.append("nothing conflicts")
    return found


def unoffered(refusal: Refusal, case: Case) -> Iterator[WayOut]:
    """Yield what asks less of one required level and places the gang now, and is no way out of the refusal."""
    required = {group.level for group in case.gang.walk() if group.required}
    names = case.topology.names
    changes: list[Change] = [Prefer(name) for name in names if name in required]
    changes += [Coarsen(name, coarser) for coarser, name in pairwise(names) if name in required]
    for change in changes:
        way = WayOut(change, now=True)
        if way not in refusal.ways_out and not failings(way, case):
            yield way


def mismatches(decision: Decision, said: dict[str, Any]) -> list[str]:
    """Return where the JSON of a plan differs from the decision, or contradicts itself."""
    (group,) = said["groups"]
    found = [] if said["verdict"] == group["verdict"] == decision.verdict.value else ["the verdicts differ"]
    if not (decision.verdict is Verdict.PLACED) == (group["refusal"] is None) == bool(group["assignments"]):
        found.append("neither placed nor refused, or both")
    for one in group["constraints"]:
        if one["satisfied"] != (len(one["domains"]) == 1 and None not in one["domains"][0]):
            found.append(f"{one} is not what its domains say")
        if decision.found and one["type"] == "required" and not one["satisfied"]:
            found.append(f"{one} is broken by a placement")
    return found


def faults(world: EngineQuestion) -> list[str]:
    """Return everything that is wrong with what is said of a world."""
    case, decision, said = told(world)
    found = [*breaches(said, PLAN), *holes(said), *mismatches(decision, said)]
    if said != told(replace(world))[2]:
        found.append("said differently the second time")
    if decision.refusal:
        found += contradictions(decision.refusal)
        found += [f"{way} is not offered" for way in unoffered(decision.refusal, case)]
        for way in decision.refusal.ways_out:
            found += failings(way, case)
            if world.anchors and way.change == Release("gang"):
                found.append(f"{way} ends the gang itself")
    return found


@given(small_worlds)
@settings(thorough, max_examples=examples(60))
def test_a_refusal_is_whole_steady_and_every_way_out_works(world: EngineQuestion) -> None:
    free = replace(world, anchors={}, pods=tuple(pod for pod in world.pods if pod.member is None))
    assert faults(free) == [], f"{world}"


@given(tiny_worlds)
@thorough
def test_beside_tasks_that_run_a_refusal_is_no_less_whole(world: EngineQuestion) -> None:
    assert faults(world) == [], f"{world}"


@pytest.mark.parametrize("reason", [Reason.NO_CAPACITY, Reason.NO_DOMAIN_FITS, Reason.NEVER_FITS])
def test_contradictions_are_noticed(reason: Reason) -> None:
    """The judge is judged: a refusal whose best domain is enough is none."""
    assert contradictions(Refusal(reason, best=(Nearest((), 2, 2),)))
    assert not contradictions(Refusal(reason, best=(Nearest((), 1, 2),)))
