"""Remedies as users apply them: each is an option of `coterie plan`, and results in a placement."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from coterie.cli.exit_codes import Exit
from tests.cli.command import call

LEVELS = """\
topology_keys:
- {key: zone, label: z}
- {key: spine, label: s}
- {key: rack, label: r}
"""
# Two racks have room for an instance, in different spines; one of the spines has room for both, but not in two racks.
APART = """\
fleet:
- {domains: {zone: a, spine: s1, rack: r1}, nodes: 2, gpu: 8}
- {domains: {zone: a, spine: s1, rack: [r2, r3]}, nodes: 1, gpu: 8}
- {domains: {zone: a, spine: s2, rack: r4}, nodes: 2, gpu: 8}
"""
# Two racks have room for an instance, in different zones, and no zone has room for both.
ZONES = """\
fleet:
- {domains: {zone: a, spine: s1, rack: r1}, nodes: 2, gpu: 8}
- {domains: {zone: b, spine: s2, rack: r2}, nodes: 2, gpu: 8}
- {domains: {zone: b, spine: s2, rack: r3}, nodes: 1, gpu: 8}
"""


def workflow(*keys: str) -> str:
    """Return two instances of two tasks each, which share every level but the rack."""
    shared = "".join(f"{{key: {key}, requirementType: required}}, " for key in keys)
    resources = "".join(
        f"    {name}: {{gpu: 8, topology: [{shared}{{key: rack, group: {name}, requirementType: required}}]}}\n"
        for name in ("one", "two")
    )
    tasks = "".join(
        f"    - {{name: {name}-{number}, image: i, command: [run], resource: {name}{', lead: true' * lead}}}\n"
        for name, number, lead in (("one", 0, True), ("one", 1, False), ("two", 0, False), ("two", 1, False))
    )
    return f"workflow:\n  name: w\n  resources:\n{resources}  groups:\n  - name: train\n    tasks:\n{tasks}"


@pytest.mark.parametrize(
    ("fleet", "keys", "options"),
    [
        (APART, ("spine",), ["--prefer spine", "--coarsen spine", "--prefer rack", "--coarsen rack"]),
        (APART, ("zone", "spine"), ["--prefer spine", "--coarsen spine", "--prefer rack", "--coarsen rack"]),
        (ZONES, ("zone",), ["--prefer zone"]),
        (ZONES, ("zone", "spine"), []),
    ],
    ids=["two levels", "three levels", "only the coarsest", "no single one"],
)
def test_each_level_that_can_give_way_is_offered_the_coarsest_first(
    tmp_path: Path, fleet: str, keys: tuple[str, ...], options: list[str]
) -> None:
    (tmp_path / "c.yaml").write_text(LEVELS + fleet, encoding="utf-8")
    (tmp_path / "w.yaml").write_text(workflow(*keys), encoding="utf-8")
    done = call("plan", "w.yaml", "--cluster", "c.yaml", "-o", "json", cwd=tmp_path)
    commands = [way["command"] for way in json.loads(done.out)["groups"][0]["refusal"]["ways_out"]]

    offered = [command for command in commands if "--prefer" in command or "--coarsen" in command]

    assert [command.partition("c.yaml ")[2] for command in offered] == options
    for command in offered:
        assert call(*shlex.split(command)[1:], "-o", "name", cwd=tmp_path).code == 0, command


@pytest.mark.parametrize(
    ("spines", "code"),
    [(("s1", "s1", "s2", "s2"), Exit.DONE), (("s1", "s2", "s2", "s2"), Exit.NEVER_FITS)],
    ids=["two racks each", "one rack and three"],
)
def test_a_required_level_stays_required_at_a_coarser_level_that_is_only_preferred(
    tmp_path: Path, spines: tuple[str, ...], code: Exit
) -> None:
    """Each rack has one node: an instance of two tasks shares no rack, and a spine only if that has two racks left."""
    fleet = "".join(
        f"- {{domains: {{zone: a, spine: {spine}, rack: r{number}}}, nodes: 1, gpu: 8}}\n"
        for number, spine in enumerate(spines)
    )
    (tmp_path / "c.yaml").write_text(f"{LEVELS}fleet:\n{fleet}", encoding="utf-8")
    wanted = workflow("spine").replace("spine, requirementType: required", "spine, requirementType: preferred")
    (tmp_path / "w.yaml").write_text(wanted, encoding="utf-8")
    done = call("plan", "w.yaml", "--cluster", "c.yaml", "--coarsen", "rack", cwd=tmp_path)
    assert done.code == code, done
