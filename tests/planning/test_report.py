"""The JSON of a plan: exactly these keys, of these types, with these values."""

from __future__ import annotations

from coterie.errors import Fault, Notice, Place, Reason
from coterie.planning.plan import Planner
from coterie.planning.report import VERSION, errors_json, plan_json
from tests.planning.builders import cluster, drawn, workload
from tests.planning.plan_json import ERRORS, PLAN, breaches

TWO_SPINES = """
    cluster spine > rack
      spine a: rack 1 [8 8]
      spine b: rack 2 [8 8]
"""


def test_a_placed_plan_says_where_every_task_goes_and_what_was_missed() -> None:
    drawing = drawn(TWO_SPINES)
    asked = workload(drawing, "g: preferred=spine\n  m1: 2 x 8gpu required=rack\n  m2: 8gpu required=rack")

    said = plan_json(Planner(cluster(drawing)).plan(asked), command=["coterie", "plan"], elapsed_ms=1.23456)

    assert list(breaches(said, PLAN)) == []
    assert said == {
        "version": VERSION,
        "workload": "wf",
        "kind": "Workflow",
        "pool": "default",
        "levels": ["spine", "rack"],
        "verdict": "placed",
        "groups": [
            {
                "name": "g",
                "size": "3 \u00d7 8 GPU",
                "verdict": "placed",
                "optimal": True,
                "assignments": [
                    {"task": "m1-0", "node": "a-1-1", "gpus": 8, "domains": {"spine": "a", "rack": "1"}},
                    {"task": "m1-1", "node": "a-1-2", "gpus": 8, "domains": {"spine": "a", "rack": "1"}},
                    {"task": "m2-0", "node": "b-2-1", "gpus": 8, "domains": {"spine": "b", "rack": "2"}},
                ],
                "constraints": [
                    {
                        "path": [["spine", "default"]],
                        "level": "spine",
                        "type": "preferred",
                        "satisfied": False,
                        "domains": [["a"], ["b"]],
                        "tasks": [],
                    },
                    {
                        "path": [["spine", "default"], ["rack", "m1"]],
                        "level": "rack",
                        "type": "required",
                        "satisfied": True,
                        "domains": [["a", "1"]],
                        "tasks": ["m1-0", "m1-1"],
                    },
                    {
                        "path": [["spine", "default"], ["rack", "m2"]],
                        "level": "rack",
                        "type": "required",
                        "satisfied": True,
                        "domains": [["b", "2"]],
                        "tasks": ["m2-0"],
                    },
                ],
                "refusal": None,
            }
        ],
        "warnings": [],
        "stats": {"nodes": 4, "pool_nodes": 4, "pods": 3, "elapsed_ms": 1.235},
    }


def test_a_refused_plan_says_why_and_what_would_help() -> None:
    drawing = drawn("""
        cluster rack of 8
          rack r1 [8 .:wf-12]
          rack r2 [8]
    """)
    asked = workload(drawing, "g: 2 x 8gpu required=rack")

    said = plan_json(Planner(cluster(drawing)).plan(asked), command=["coterie", "plan", "my file.yaml"], elapsed_ms=0)

    assert list(breaches(said, PLAN)) == []
    (group,) = said["groups"]
    refusal = group["refusal"]
    assert {key: value for key, value in group.items() if key not in {"refusal", "constraints"}} == {
        "name": "g",
        "size": "2 \u00d7 8 GPU",
        "verdict": "waiting",
        "optimal": False,
        "assignments": [],
    }
    assert group["constraints"] == [
        {
            "path": [["rack", "default"]],
            "level": "rack",
            "type": "required",
            "satisfied": False,
            "domains": [],
            "tasks": ["g-0", "g-1"],
        }
    ]
    assert (refusal["reason"], refusal["path"], refusal["level"]) == ("NoDomainFits", [["rack", "default"]], "rack")
    assert refusal["best"] == [
        {"domain": ["r1"], "fits": 1, "wanted": 2},
        {"domain": ["r2"], "fits": 1, "wanted": 2},
    ]
    assert refusal["holders"] == [{"owner": "wf-12", "gpus": 8, "domain": ["r1"]}]
    assert [way["command"] for way in refusal["ways_out"]] == [
        "coterie plan 'my file.yaml' --without wf-12",
        "coterie plan 'my file.yaml' --prefer rack",
        "coterie plan 'my file.yaml' --tasks g=1",
    ]


def test_a_task_outside_every_domain_has_the_values_it_has() -> None:
    drawing = drawn("cluster spine > rack\n  spine a: rack - [8 8]")
    asked = workload(drawing, "g: 2 x 8gpu preferred=rack")

    said = plan_json(Planner(cluster(drawing)).plan(asked), command=["coterie"], elapsed_ms=0)

    (group,) = said["groups"]
    assert list(breaches(said, PLAN)) == []
    assert [one["domains"] for one in group["assignments"]] == [{"spine": "a"}, {"spine": "a"}]
    assert group["constraints"][0]["domains"] == [["a", None], ["a", None]]
    assert group["constraints"][0]["satisfied"] is False


def test_warnings_have_a_line_where_they_come_from_a_file() -> None:
    drawing = drawn(TWO_SPINES)
    asked = workload(drawing, "g: 8gpu")
    notices = (Notice("FieldIgnored", "so it is", Place("w.yaml", 7, 3)), Notice("Odd", "so it is"))
    plan = Planner(cluster(drawing)).plan(asked)
    noticed = type(plan)(plan.workload, plan.domains, plan.gangs, notices)

    said = plan_json(noticed, command=["coterie"], elapsed_ms=0)

    assert said["warnings"] == [
        {"code": "FieldIgnored", "message": "so it is", "line": 7},
        {"code": "Odd", "message": "so it is", "line": None},
    ]


def test_faults_have_a_place_if_there_is_one() -> None:
    said = errors_json(
        [
            Fault("wrong", hint="Write it right.", place=Place("w.yaml", 2, 5)),
            Fault("worse", code=Reason.UNKNOWN_LEVEL),
        ]
    )

    assert list(breaches(said, ERRORS)) == []
    assert said["errors"] == [
        {
            "code": "InvalidSpec",
            "message": "wrong",
            "file": "w.yaml",
            "line": 2,
            "column": 5,
            "hint": "Write it right.",
        },
        {"code": "UnknownLevel", "message": "worse", "file": None, "line": None, "column": None, "hint": ""},
    ]
