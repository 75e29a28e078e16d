"""Edge cases of explanations that broke real systems, T200 to T204."""

from __future__ import annotations

from importlib.resources import files

import pytest

from coterie.cli.exit_codes import Exit
from coterie.cli.handlers import plan as plan_command
from coterie.cli.output.plan import plan_lines
from coterie.errors import Reason
from coterie.placement.refusal import Verdict
from coterie.planning.plan import Plan, Planner
from coterie.planning.report import plan_json
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.domains import abbreviations
from tests.cli.test_surface import COMMANDS
from tests.planning.builders import cluster, drawn, pool, workload
from tests.planning.plan_json import PLAN, breaches, holes
from tests.scenarios.sketch import LABELS, Drawing

# A cluster, a gang and the reason it is refused for, at the edges: nothing free, one task, an exact fit elsewhere.
REFUSED = [
    ("cluster rack of 8\n  rack r1 [. .]", "g: 8gpu required=rack", Reason.NO_CAPACITY),
    ("cluster rack of 8\n  rack r1 [8 .]", "g: 2 x 8gpu", Reason.NO_CAPACITY),
    ("cluster rack of 8\n  rack r1 [8 .:a]  rack r2 [8 .:b]", "g: 2 x 8gpu required=rack", Reason.NO_DOMAIN_FITS),
    ("cluster rack of 8\n  rack r1 [8 8!]  rack r2 [8]", "g: 2 x 8gpu required=rack", Reason.NO_DOMAIN_FITS),
    ("cluster rack\n  rack r1 [8]", "g: 16gpu", Reason.NEVER_FITS),
    ("cluster rack\n  rack r1 [8]  rack r2 [8]", "g: 2 x 8gpu required=rack", Reason.NEVER_FITS),
    ("cluster rack\n  rack - [8 8]", "g: 2 x 8gpu required=rack", Reason.NODES_UNLABELLED),
    ("cluster rack\n  rack r1 [8 8]", "g: 8gpu excluding=r1-1,r1-2", Reason.NODES_EXCLUDED),
    (
        "cluster rack of 8\n  rack r1 [8 8]  rack r2 [8 .:a]  rack r3 [8 .:b]",
        "g:\n  m1: 2 x 8gpu required=rack\n  m2: 2 x 8gpu required=rack",
        Reason.GROUPS_CONFLICT,
    ),
    ("cluster rack\n  rack r1 [8 8]", "g: 2 x 8gpu", Reason.OVER_QUOTA),
]


def planned(rows: str, gang: str, limit: int | None = None) -> Plan:
    drawing = drawn(rows)
    return Planner(cluster(drawing)).plan(workload(drawing, gang, where=pool(drawing, limit=limit)))


def lines(plan: Plan, *, wide: bool = False) -> list[str]:
    return list(plan_lines([plan_json(plan, command=(), elapsed_ms=0)], abbreviations([plan.domains]), wide=wide))


@pytest.mark.parametrize(("rows", "gang", "reason"), REFUSED)
def test_t200_no_message_has_a_hole_or_a_number_below_zero(rows: str, gang: str, reason: Reason) -> None:
    plan = planned(rows, gang, limit=8 if reason is Reason.OVER_QUOTA else None)

    said = plan_json(plan, command=["coterie", "plan", "w.yaml"], elapsed_ms=0)

    assert said["groups"][0]["refusal"]["reason"] == reason.value
    assert list(holes(said)) == []
    assert [line for line in lines(plan) if "None" in line or '""' in line] == []


def test_t201_every_verdict_has_a_mark_an_exit_code_and_a_total() -> None:
    assert set(plan_command._CODES) == set(Verdict)
    assert len({line.split()[0] for line in _heads()} - {"+", "?", "x"}) == 0


def _heads() -> list[str]:
    plan = planned("cluster rack of 8\n  rack r1 [8 8]", "a: 8gpu\nb: 2 x 8gpu\nc: 9 x 8gpu")
    return [line for line in lines(plan) if line.startswith("  ") and not line.startswith("   ")]


def test_t201_every_reason_has_a_page() -> None:
    pages = files("coterie") / "pages"
    assert [reason for reason in Reason if not (pages / f"{reason.value}.md").is_file()] == []


@pytest.mark.parametrize(("rows", "gang", "reason"), REFUSED)
def test_t202_a_refusal_has_the_same_keys_whatever_its_reason(rows: str, gang: str, reason: Reason) -> None:
    plan = planned(rows, gang, limit=8 if reason is Reason.OVER_QUOTA else None)

    assert list(breaches(plan_json(plan, command=["coterie"], elapsed_ms=0), PLAN)) == []


def test_t202_exit_codes_are_in_the_help() -> None:
    told = " ".join(command.epilog or "" for command in COMMANDS.values())
    said = {int(word) for word in told.replace(":", "").replace(",", "").split() if word.isdigit()}
    # Whoever stops reading the output does not look at the code either.
    assert said == {code.value for code in Exit} - {Exit.PIPE.value}


def _large(nodes: int) -> tuple[Drawing, Planner]:
    drawing = drawn("cluster rack\n  rack r0 [8]")
    made = [Node(f"n{number:05}", {LABELS["rack"]: f"r{number // 16}"}, {GPU: 8}) for number in range(nodes)]
    return drawing, Planner(Cluster.of(made))


def test_t203_ten_thousand_nodes_are_said_in_a_few_lines() -> None:
    drawing, planner = _large(10_000)

    refused = planner.plan(workload(drawing, "g: 17 x 8gpu required=rack"), remember=False)
    placed = planner.plan(workload(drawing, "g: 2000 x 8gpu"), remember=False)

    assert refused.verdict is Verdict.IMPOSSIBLE
    assert placed.verdict is Verdict.PLACED
    for plan in (refused, placed):
        assert len(lines(plan)) < 16
        assert max(map(len, lines(plan))) < 200


def test_t203_a_wide_plan_has_a_line_for_each_task_and_no_more() -> None:
    drawing, planner = _large(10_000)
    plan = planner.plan(workload(drawing, "g: 2000 x 8gpu"))

    assert len(lines(plan, wide=True)) < 2000 + 16


def test_t204_a_wish_that_was_not_met_is_not_said_to_be() -> None:
    plan = planned("cluster rack\n  rack r1 [8]  rack r2 [8]", "g: 2 x 8gpu preferred=rack")

    (constraint,) = plan_json(plan, command=["coterie"], elapsed_ms=0)["groups"][0]["constraints"]

    assert plan.verdict is Verdict.PLACED
    assert (constraint["satisfied"], constraint["domains"]) == (False, [["r1"], ["r2"]])
    assert [line for line in lines(plan) if "missed: r1, r2 (+1)" in line]


def test_t204_a_wish_that_was_met_is_not_said_to_be_missed() -> None:
    plan = planned("cluster rack\n  rack r1 [8 8]", "g: 2 x 8gpu preferred=rack")

    assert [line for line in lines(plan) if "missed" in line] == []
