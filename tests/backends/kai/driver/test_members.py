"""The members that a PodGroup waits for, once some of its tasks have ended."""

from __future__ import annotations

import msgspec

from coterie.backends.kai.driver.members import member_changes
from coterie.backends.kai.driver.objects import GangPodGroup

NESTED = {
    "metadata": {"name": "g"},
    "spec": {
        "minMember": 5,
        "subGroups": [
            {"name": "zone"},
            {"name": "one", "parent": "zone", "minMember": 2},
            {"name": "two", "parent": "zone", "minMember": 2},
            {"name": "other"},
            {"name": "rest", "parent": "other", "minMember": 1},
        ],
    },
}


def _changed(unfinished: dict[str, int]) -> list[tuple[str, str, object]]:
    group = msgspec.convert(NESTED, GangPodGroup)
    changes = member_changes(group, unfinished)
    return [(each["op"], each["path"], each.get("value")) for each in changes if each["op"] != "test"]


def test_a_group_whose_tasks_all_run_is_left_as_it_is() -> None:
    assert _changed({"one": 2, "two": 2, "rest": 1}) == []


def test_ended_tasks_are_no_longer_asked_for() -> None:
    assert _changed({"one": 2, "two": 1, "rest": 1}) == [
        ("replace", "/spec/minMember", 4),
        ("replace", "/spec/subGroups/2/minMember", 1),
    ]


def test_subgroups_without_unfinished_tasks_are_removed_from_the_last_to_the_first() -> None:
    assert _changed({"two": 2}) == [
        ("replace", "/spec/minMember", 2),
        ("remove", "/spec/subGroups/4", None),
        ("remove", "/spec/subGroups/3", None),
        ("remove", "/spec/subGroups/1", None),
    ]
