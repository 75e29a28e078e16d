"""`coterie plan --alternatives`: the candidate domains of groups, and the obstacles of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ROOT, SampleFolder, on_terminal
from tests.cli.command_lines import REFUSALS, call

LEVELS = """\
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
"""


def flow(tasks: int, *, topology: str = "{key: rack}", gpus: int = 8) -> str:
    listed = "".join(
        f"    - {{name: t{n}, image: i, command: [run], lead: {str(n == 0).lower()}}}\n" for n in range(tasks)
    )
    resources = f"resources:\n  default: {{gpu: {gpus}, topology: [{topology}]}}\n"
    return f"workflow:\n  name: wf\n  groups:\n  - name: g\n    tasks:\n{listed}{resources}"


def asked(desk: SampleFolder, workflow: str, cluster: str, *options: str) -> Any:
    """Return what the only group had to choose from."""
    file, nodes = desk.file("wf.yaml", workflow), desk.file("nodes.yaml", LEVELS + cluster)
    done = call("plan", str(file), "-c", str(nodes), "--alternatives", "-o", "json", *options)
    (choice,) = json.loads(done.stdout)["groups"][0]["alternatives"]
    return choice


FLEET = "fleet:\n- {domains: {zone: a, rack: [r1, r2, r3]}, nodes: 4, gpu: 8, cpu: 96, memory: 1Ti}\n"


def test_the_tightest_domain_is_chosen_and_the_others_are_shown_with_what_would_be_left(desk: SampleFolder) -> None:
    pods = "pods:\n- {owner: x, nodes: [a-r2-n1, a-r2-n2], gpu: 8}\n- {owner: y, node: a-r3-n1, gpu: 8}\n"
    choice = asked(desk, flow(2), FLEET + pods)

    assert (choice["type"], choice["level"], choice["wanted"]) == ("required", "rack", 2)
    assert [(one["domain"][1], one["fits"], one["left_gpus"], one["chosen"]) for one in choice["domains"]] == [
        ("r2", 2, 0, True),
        ("r3", 2, 8, False),
        ("r1", 2, 16, False),
    ]
    assert {one["nodes"] for one in choice["domains"]} == {2}
    assert choice["counted"]["domains"] == {"total": 3, "good": 3, "excluded": []}


def test_a_refused_group_shows_its_nearest_misses_and_what_each_lacks(desk: SampleFolder) -> None:
    nodes = (
        "nodes:\n"
        + "".join(f"- {{name: f{n}, gpu: 8, cpu: 96, domains: {{zone: a, rack: full}}}}\n" for n in (1, 2))
        + "".join(f"- {{name: p{n}, gpu: 8, cpu: 96, domains: {{zone: a, rack: part}}}}\n" for n in (1, 2))
        + "- {name: c1, gpu: 8, cpu: 96, cordoned: true, domains: {zone: a, rack: shut}}\n"
        + "- {name: c2, gpu: 8, cpu: 96, domains: {zone: a, rack: shut}}\n"
        + "- {name: s1, gpu: 8, cpu: 96, domains: {zone: a, rack: small}}\n"
        + "".join(
            f"- {{name: d{n}, gpu: 8, cpu: 96, ready: false, domains: {{zone: a, rack: down}}}}\n" for n in (1, 2)
        )
        + "pods:\n- {owner: x, nodes: [f1, f2], gpu: 8}\n- {owner: y, nodes: [p1, p2], gpu: 4}\n"
    )
    choice = asked(desk, flow(2), nodes)

    assert {one["domain"][1]: (one["fits"], one["lacks"]) for one in choice["domains"]} == {
        "shut": (1, "cordoned"),
        "small": (1, "too small"),
        "part": (0, "too few GPUs on one node"),
        "full": (0, "full"),
        "down": (0, "not ready"),
    }
    assert [one["fits"] for one in choice["domains"]] == [1, 1, 0, 0, 0]
    assert choice["counted"]["nodes"] == {
        "total": 9,
        "good": 2,
        "excluded": [
            {"why": "full", "count": 2},
            {"why": "not ready", "count": 2},
            {"why": "too few GPUs", "count": 2},
            {"why": "cordoned", "count": 1},
        ],
    }


def test_what_is_preferred_shows_how_many_more_domains_each_would_need(desk: SampleFolder) -> None:
    pods = "pods:\n- {owner: x, nodes: [a-r2-n1, a-r2-n2], gpu: 8}\n- {owner: y, node: a-r3-n1, gpu: 8}\n"
    choice = asked(desk, flow(6, topology="{key: rack, requirementType: preferred}"), FLEET + pods)

    assert choice["type"] == "preferred"
    assert {one["domain"][1]: (one["fits"], one["extra_domains"]) for one in choice["domains"]} == {
        "r1": (4, 1),
        "r2": (2, 1),
        "r3": (3, 1),
    }
    assert sum(one["chosen"] for one in choice["domains"]) == 2


def test_more_than_ten_domains_are_cut_and_the_rest_is_counted(desk: SampleFolder) -> None:
    many = "fleet:\n- {domains: {zone: a, rack: 25}, nodes: 1, gpu: 8, cpu: 96, memory: 1Ti}\n"
    choice = asked(desk, flow(1), many)
    text = call(
        "plan", str(desk.file("w.yaml", flow(1))), "-c", str(desk.file("c.yaml", LEVELS + many)), "--alternatives"
    )

    assert (len(choice["domains"]), choice["more"], choice["counted"]["domains"]["total"]) == (10, 15, 25)
    assert text.stdout.rstrip().endswith("and 15 more racks")


def test_a_group_is_shown_what_was_left_when_its_turn_came(desk: SampleFolder) -> None:
    file, nodes = desk.file("wf.yaml", flow(4)), desk.file("nodes.yaml", LEVELS + FLEET)
    done = call("plan", str(file), str(file), "-c", str(nodes), "--alternatives", "-o", "json")
    first, second = (plan["groups"][0]["alternatives"][0] for plan in json.loads(done.stdout))

    assert [one["fits"] for one in first["domains"]] == [4, 4, 4]
    assert sorted(one["fits"] for one in second["domains"]) == [0, 4, 4]


def test_what_if_options_count_for_the_alternatives_too(desk: SampleFolder) -> None:
    pods = "pods:\n- {owner: x, nodes: [a-r1-n1, a-r2-n1, a-r3-n1], gpu: 8}\n"

    assert {one["fits"] for one in asked(desk, flow(4), FLEET + pods)["domains"]} == {3}
    assert {one["fits"] for one in asked(desk, flow(4), FLEET + pods, "--without", "x")["domains"]} == {4}


def test_a_group_that_may_go_anywhere_counts_nodes(desk: SampleFolder) -> None:
    workflow = desk.file("wf.yaml", flow(2).replace(", topology: [{key: rack}]", ""))
    done = call("plan", str(workflow), "-c", REFUSALS, "--alternatives")

    assert "g: 2 tasks, free to go anywhere; 12 nodes: 3 full, 1 cordoned, 1 too few GPUs, 7 take one" in done.stdout


def test_without_the_option_there_is_nothing_of_it(desk: SampleFolder) -> None:
    file = desk.file("wf.yaml", flow(2))
    plain = call("plan", str(file), "-c", REFUSALS, "-o", "json")

    assert "alternatives" not in json.loads(plain.stdout)["groups"][0]


@pytest.mark.parametrize("example", ["refusals/never-fits", "refusals/groups-conflict", "refusals/no-domain-fits"])
def test_the_same_call_gives_the_same_answer(example: str) -> None:
    answers = {
        call("plan", str(ROOT / f"examples/{example}.yaml"), "-c", REFUSALS, "--alternatives").stdout for _ in range(2)
    }

    assert len(answers) == 1
    assert "LACKS" in answers.pop()


@pytest.mark.slow("starts processes at a terminal")
def test_the_chosen_one_stands_out_on_a_terminal_and_a_plain_one_gets_plain_characters(tmp_path: Path) -> None:
    desk = SampleFolder(tmp_path)
    arguments = ("plan", desk.file("wf.yaml", flow(2)), "-c", REFUSALS, "--alternatives")

    assert "\x1b[32m✔\x1b[0m" in on_terminal(*arguments).out
    plain = on_terminal(*arguments, PYTHONUTF8="0", LC_ALL="C", PYTHONIOENCODING="ascii").out
    assert "✔" not in plain
    assert "\x1b[32m*\x1b[0m" in plain
