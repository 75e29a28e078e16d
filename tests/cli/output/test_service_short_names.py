"""Answers of a service are shown with short forms of long names, and in full with `wide`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import pytest

from coterie.cli.output.plan import plan_lines
from coterie.cli.output.refusals import why_lines
from coterie.cli.output.short_names import short_names
from coterie.cli.output.workflows import audit_lines, list_lines, workflow_lines
from coterie.rendering.text import Style
from coterie.topology.abbreviations import NOTE
from tests.cli.output.test_grid import row as listed

A, B = "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0", "b81d44f0-0c3a-4e8e-8f6b-6a7c2d901f3e.0"
NODES = [f"gb200-prod-rack-01-node-{number:02}" for number in (1, 2)]
STYLE = Style(120)

CONSTRAINT = {
    "tasks": ["t0", "t1"],
    "level": "rack",
    "path": [["rack", "default"]],
    "type": "preferred",
    "satisfied": False,
    "outcome": "missed",
    "domains": [["z", A], ["z", B]],
    "why": f"z/{A}: one; z/{B}: two",
}
CHOICE = {
    "groups": [[["rack", "default"]]],
    "type": "required",
    "level": "rack",
    "wanted": 2,
    "domains": [
        {
            "domain": ["z", name],
            "fits": 1,
            "wanted": 2,
            "free_gpus": 8,
            "left_gpus": 0,
            "nodes": 1,
            "extra_domains": None,
            "chosen": False,
            "lacks": None,
        }
        for name in (A, B)
    ],
    "more": 0,
    "counted": {kind: {"total": 2, "good": 0, "excluded": []} for kind in ("nodes", "domains")},
}
REFUSAL = {
    "reason": "NoDomainFits",
    "message": f"no rack can hold all 2 tasks now: the best, z/{A}, fits 1",
    "sentence": f"no rack can hold all 2 tasks now: the best, z/{A}, fits 1",
    "because": None,
    "together": [],
    "domains": 2,
    "level": "rack",
    "best": [{"domain": ["z", name], "fits": 1, "wanted": 2} for name in (A, B)],
    "holders": [{"owner": "wf-1", "gpus": 8, "domain": ["z", B]}],
    "ways_out": [],
}
REFUSED = {
    "name": "g",
    "size": "2 tasks",
    "optimal": True,
    "verdict": "waiting",
    "waiting": None,
    "refusal": REFUSAL,
    "constraints": [CONSTRAINT],
    "assignments": [],
    "alternatives": [CHOICE],
}
PLACED = {
    **REFUSED,
    "verdict": "placed",
    "refusal": None,
    "assignments": [{"task": f"t{at}", "node": node, "domains": {}} for at, node in enumerate(NODES)],
}
PLAN: dict[str, Any] = {
    "workload": "w",
    "pool": "p",
    "levels": ["zone", "rack"],
    "stats": {"nodes": 2, "pool_nodes": 2},
    "groups": [PLACED, REFUSED],
}
PLACEMENT = {
    "groups": [{"name": "g", "tasks": [{"node": node} for node in NODES], "constraints": [CONSTRAINT]}],
    "summary": {"held": 0, "missed": 1},
}
TASKS = [
    {
        "name": f"t{at}",
        "status": "RUNNING",
        "lead": False,
        "node": node,
        "domains": {"zone": "z", "rack": name},
        "gpus": [0],
        "exit_code": None,
        "attempt": 1,
        "message": "",
        "started": "2026-01-31T12:00:00Z",
        "ended": None,
        "past": [],
    }
    for at, (node, name) in enumerate(zip(NODES, (A, B), strict=True))
]
GROUP = {
    "name": "g",
    "status": "RUNNING",
    "waiting": None,
    "message": "",
    "started": "2026-01-31T12:00:00Z",
    "ended": None,
    "tasks": TASKS,
}
ROW = {**listed("w-1", "RUNNING"), "labels": {}, "owner": "", "nodes": NODES}
VIEW = {**ROW, "groups": [GROUP]}


def why(*, wide: bool) -> Iterable[str]:
    answer = {"id": "w-1", "waiting": 1, "groups": [REFUSED]}
    return why_lines(answer, STYLE, 0.0, verbose=True, wide=wide)


def planned(*, wide: bool) -> Iterable[str]:
    short = short_names(PLAN["groups"], wide=wide)
    return chain(plan_lines([PLAN], short, wide=wide), short.note())


SHOWN: list[tuple[Callable[..., Iterable[str]], tuple[str, ...], tuple[str, ...]]] = [
    (why, ("z/…5c6d.0", "z/…1f3e.0"), (A, B)),
    (planned, ("z/…5c6d.0", "…node-[01-02]"), (A, B)),
    (lambda *, wide: audit_lines(PLACEMENT, STYLE, wide=wide), ("z/…5c6d.0", "…node-[01-02]"), (A, B)),
    (lambda *, wide: workflow_lines(VIEW, STYLE, 2.0, wide=wide), ("z/…5c6d.0", "…node-02"), (A, B, NODES[1])),
    (
        lambda *, wide: list_lines([ROW], STYLE, 2.0, expected={} if wide else None),
        ("…node-[01-02]",),
        ("gb200-prod-rack-01-node-[01-02]",),
    ),
]


@pytest.mark.parametrize(
    ("lines", "forms", "names"), SHOWN, ids=["why", "submit --dry-run", "placement", "show", "list"]
)
def test_long_names_are_shortened_unless_the_output_is_wide(
    lines: Callable[..., Iterable[str]], forms: tuple[str, ...], names: tuple[str, ...]
) -> None:
    short, wide = "\n".join(lines(wide=False)), "\n".join(lines(wide=True))

    assert [form for form in forms if form not in short] == []
    assert [name for name in names if name in short] == []
    assert short.count(NOTE) == 1
    assert [name for name in names if name not in wide] == []
    assert NOTE not in wide
