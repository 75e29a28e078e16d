"""A constraint tree folded to a PodGroup keeps its meaning in KAI's terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from coterie.backends.kai.pod_group import LevelConstraint, PodGroupPart, pod_group_of
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Group, Path
from coterie.topology.levels import Topology
from tests.property.worlds.pieces import shape
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds

LEVELS = Topology.of(("zone", "z"), ("spine", "s"), ("rack", "r"), ("clique", "c"))
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def gang(*tasks: tuple[str, int, str]) -> Gang:
    """Return a gang of tasks, each with its GPUs and its requirements, such as `zone:a rack?:b` (? is preferred)."""
    asked = []
    for name, gpus, words in tasks:
        steps = [word.partition(":") for word in words.split()]
        wants = tuple(TaskRequirement(key.rstrip("?"), group, not key.endswith("?")) for key, _, group in steps)
        asked.append(RequestedTask(name, shape(gpu=gpus), wants))
    return build("g", asked, LEVELS)


def drawn(part: PodGroupPart, depth: int = 0) -> Iterator[str]:
    """Yield a line for each part: its name, its levels, its tasks."""
    said = [part.name or "podgroup", part.constraint.required or "-", part.constraint.preferred or "-"]
    yield " ".join(["  " * depth + said[0], *said[1:], *(task.name for task in part.tasks)])
    for below in part.parts:
        yield from drawn(below, depth + 1)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param([("a", 1, ""), ("b", 1, "")], ["podgroup - - a b"], id="no constraint, no subgroup"),
        pytest.param(
            [("a", 1, "clique:m"), ("b", 1, "clique:m")], ["podgroup clique - a b"], id="one group is the pod group"
        ),
        pytest.param(
            [("a", 1, "zone:x rack:m"), ("b", 1, "zone:x rack:m")],
            ["podgroup rack clique a b"],
            id="the finest required level implies the coarser",
        ),
        pytest.param(
            [("a", 1, "zone:x rack?:m"), ("b", 1, "zone:x rack?:m")],
            ["podgroup zone rack a b"],
            id="a finer preference is kept beside what is required",
        ),
        pytest.param([("a", 1, "zone?:x rack:m")], ["podgroup rack clique a"], id="a coarser preference is implied"),
        pytest.param(
            [("a", 1, "zone?:x rack?:m")], ["podgroup - rack a"], id="of two preferences the finer is tried first"
        ),
        pytest.param(
            [("a", 1, "zone:x spine?:y rack:m clique?:n")],
            ["podgroup rack clique a"],
            id="required and preferred in turns",
        ),
        pytest.param(
            [("a", 1, "zone:x")], ["podgroup zone spine a"], id="a lone requirement prefers the next finer level"
        ),
        pytest.param(
            [("a", 1, "zone:x clique:m"), ("b", 1, "zone:x clique:n")],
            ["podgroup zone spine", "  0-clique-m clique - a", "  1-clique-n clique - b"],
            id="branches become subgroups",
        ),
        pytest.param(
            [("a", 3, "rack:x"), ("b", 3, "rack:y"), ("c", 5, "rack:z")],
            ["podgroup - -", "  0-rack-z rack clique c", "  1-rack-x rack clique a", "  2-rack-y rack clique b"],
            id="the largest sibling has the first name",
        ),
        pytest.param(
            [("a", 8, "rack?:x"), ("b", 1, "rack:y"), ("c", 9, "")],
            ["podgroup - -", "  0-rack-y rack clique b", "  1-rack-x - rack a", "  2-rest - - c"],
            id="what is required goes before what is preferred and what is free",
        ),
        pytest.param(
            [("a", 1, "rack:x"), ("driver", 0, "")],
            ["podgroup - -", "  0-rack-x rack clique a", "  1-rest - - driver"],
            id="tasks without requirements get a subgroup of their own",
        ),
        pytest.param(
            [(name, 1, f"zone:{zone} rack:{rack}") for name, zone, rack in ("axm", "bxn", "cym", "dyn")],
            [
                "podgroup - -",
                "  0-zone-x zone spine",
                "    0-rack-m rack clique a",
                "    1-rack-n rack clique b",
                "  1-zone-y zone spine",
                "    0-rack-m-bdac8241 rack clique c",
                "    1-rack-n-de238163 rack clique d",
            ],
            id="a name that is taken gets a digest",
        ),
        pytest.param(
            [("a", 3, "zone:x rack:m"), ("b", 1, "zone:y rack:m"), ("c", 1, "zone:y rack:n")],
            [
                "podgroup - -",
                "  0-rack-m rack clique",
                "    0-all - - a",
                "  1-zone-y zone spine",
                "    0-rack-m-bdac8241 rack clique b",
                "    1-rack-n rack clique c",
            ],
            id="pods that come before a branch get a subgroup around them",
        ),
        pytest.param(
            [("a", 1, "zone:x rack:m"), ("b", 1, "zone:y rack:m"), ("c", 1, "zone:y rack:n")],
            [
                "podgroup - -",
                "  0-zone-y zone spine",
                "    0-rack-m rack clique b",
                "    1-rack-n rack clique c",
                "  1-rack-m rack clique a",
            ],
            id="pods that come after a branch do not",
        ),
    ],
)
def test_trees_fold_like_this(tasks: list[tuple[str, int, str]], expected: list[str]) -> None:
    assert list(drawn(pod_group_of(gang(*tasks), LEVELS))) == expected


def test_ten_and_more_siblings_sort_by_name_as_they_are_placed() -> None:
    tasks = [(f"t{index}", 20 - index, f"rack:g{index}") for index in range(12)]
    names = [part.name for part in pod_group_of(gang(*tasks), LEVELS).parts]

    assert names == sorted(names)
    assert names[0] == "00-rack-g0"


def test_group_names_without_any_letter_still_make_names() -> None:
    names = [part.name for part in pod_group_of(gang(("a", 1, "rack:___"), ("b", 1, "rack:...")), LEVELS).parts]

    assert names == ["0-rack", "1-rack"]


def test_a_group_with_tasks_and_groups_keeps_its_own_tasks_together() -> None:
    inner = Group((("zone", "x"), ("rack", "m")), required=True, tasks=gang(("a", 1, "")).tasks)
    outer = Group((("zone", "x"),), required=True, groups=(inner,), tasks=gang(("b", 1, "")).tasks)

    assert list(drawn(pod_group_of(Gang("g", (outer,)), LEVELS))) == [
        "podgroup zone spine",
        "  0-rack-m rack clique a",
        "  1-rest - - b",
    ]


def paths(one: Gang) -> Iterator[tuple[str, list[Group]]]:
    """Yield every task with the groups above it, the coarsest first."""

    def below(group: Group, above: list[Group]) -> Iterator[tuple[str, list[Group]]]:
        here = [*above, group]
        for task in group.tasks:
            yield task.name, here
        for child in group.groups:
            yield from below(child, here)

    for task in one.tasks:
        yield task.name, []
    for group in one.groups:
        yield from below(group, [])


def chains(part: PodGroupPart, above: tuple[PodGroupPart, ...] = ()) -> Iterator[tuple[str, tuple[PodGroupPart, ...]]]:
    """Yield every task with the parts above it, the PodGroup first."""
    here = (*above, part)
    for task in part.tasks:
        yield task.name, here
    for below in part.parts:
        yield from chains(below, here)


def tasks_below(one: Gang) -> dict[Path, frozenset[str]]:
    return {group.path: frozenset(task.name for task in group.all_tasks()) for group in one.walk()}


@settings(deadline=None)
@given(small_worlds())
def test_every_task_is_in_one_leaf_and_names_are_valid_and_unique(world: EngineQuestion) -> None:
    root = pod_group_of(world.gang, world.topology)
    parts = [part for part, _ in root.walk() if part is not root]
    names = [part.name for part in parts]

    assert all(NAME.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)
    assert sorted(task.name for task in root.all_tasks()) == sorted(task.name for task in world.gang.all_tasks())
    for part, parent in root.walk():
        assert bool(part.parts) != bool(part.tasks)
        assert parent == "" or parent in names
        assert [below.name for below in part.parts] == sorted(below.name for below in part.parts)
        kinds = [bool(below.parts) for below in part.parts]
        assert kinds == sorted(kinds, reverse=True), "KAI places what has subgroups before what has pods"


@settings(deadline=None)
@given(small_worlds())
def test_folding_keeps_the_meaning(world: EngineQuestion) -> None:
    """Tasks of one part share its domain, so the parts above a task require as much as the groups above it."""
    topology = world.topology
    root = pod_group_of(world.gang, topology)
    above = dict(chains(root))
    members = {id(part): frozenset(task.name for task in part.all_tasks()) for part, _ in root.walk()}
    below = tasks_below(world.gang)
    for task, groups in paths(world.gang):
        for group in groups:
            # The part that keeps this group's promise holds exactly its tasks, and a level at least as fine.
            keeper = [part for part in above[task] if members[id(part)] == below[group.path]]
            assert keeper
            levels = [part.constraint.required for part in keeper if part.constraint.required]
            if group.required:
                assert any(topology.index(level) >= topology.index(group.level) for level in levels)
            else:
                asked = levels + [part.constraint.preferred for part in keeper if part.constraint.preferred]
                assert any(topology.index(level) >= topology.index(group.level) for level in asked)


@settings(deadline=None)
@given(small_worlds())
def test_folding_requires_nothing_that_was_not_required(world: EngineQuestion) -> None:
    root = pod_group_of(world.gang, world.topology)
    asked = {
        (group.level, below)
        for group in world.gang.walk()
        for below in [tasks_below(world.gang)[group.path]]
        if group.required
    }
    for part, _ in root.walk():
        if part.constraint.required:
            assert (part.constraint.required, frozenset(task.name for task in part.all_tasks())) in asked


@settings(deadline=None)
@given(small_worlds())
def test_a_requirement_has_a_finer_preference_wherever_there_is_a_finer_level(world: EngineQuestion) -> None:
    names = world.topology.names
    for part, _ in pod_group_of(world.gang, world.topology).walk():
        required, preferred = part.constraint.required, part.constraint.preferred
        if required and required != names[-1]:
            assert preferred
            assert names.index(preferred) > names.index(required)


@settings(deadline=None)
@given(small_worlds())
def test_the_same_gang_folds_the_same(world: EngineQuestion) -> None:
    assert pod_group_of(world.gang, world.topology) == pod_group_of(world.gang, world.topology)


def test_nothing_asked_is_no_constraint() -> None:
    assert not LevelConstraint()
    assert LevelConstraint(preferred="rack")
