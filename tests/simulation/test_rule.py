"""The rule that gives jobs their topology constraints: groups, levels and sizes."""

from __future__ import annotations

import pytest

from coterie.errors import UsageError
from coterie.simulation.rule import Rule
from tests.simulation.worlds import fabric

# Two spines of two racks of two nodes with eight GPUs.
EVEN = fabric([[8, 8], [8, 8]], [[8, 8], [8, 8]])


@pytest.mark.parametrize(
    ("gpus", "pods", "groups", "preferred"),
    [
        (1, (1,), (1,), False),
        (8, (8,), (1,), False),
        (9, (5, 4), (2,), False),
        (16, (8, 8), (2,), False),
        (17, (6, 6, 5), (2, 1), True),
        (24, (8, 8, 8), (2, 1), True),
        (32, (8,) * 4, (2, 2), True),
        (56, (8,) * 7, (2, 2, 2, 1), True),
    ],
)
def test_a_job_up_to_one_rack_is_one_group_and_a_larger_one_groups_of_a_rack(
    gpus: int, pods: tuple[int, ...], groups: tuple[int, ...], *, preferred: bool
) -> None:
    layout = Rule.of(EVEN, "rack").layout(gpus)

    assert (layout.gpus, layout.groups, layout.preferred) == (pods, groups, 0 if preferred else None)
    tree = [(group.level, group.required) for group in layout.gang.walk()]
    assert tree == ([("spine", False)] if preferred else []) + [("rack", True)] * len(groups)
    assert len(layout.gang.all_tasks()) == len(pods)


def test_without_a_rule_pods_may_go_anywhere() -> None:
    layout = Rule.of(EVEN, None).layout(40)

    assert (layout.groups, layout.level, layout.gang.groups) == ((5,), None, ())


def test_the_coarsest_level_has_none_above_to_prefer() -> None:
    rule = Rule.of(EVEN, "spine")

    assert (rule.domain_gpus, rule.coarser) == (32, None)
    assert (rule.layout(64).groups, rule.layout(64).preferred) == ((4, 4), None)


def test_sizes_are_those_of_the_most_common_node_and_domain() -> None:
    rule = Rule.of(fabric([[8, 8], [8, 8], [4, 4, 4]]), "rack")

    assert (rule.node_gpus, rule.domain_gpus, rule.pods_per_domain) == (8, 16, 2)


def test_the_rule_is_said_in_words() -> None:
    assert Rule.of(EVEN, "rack").words() == (
        "jobs become pods of at most 8 GPUs; up to 16 GPUs: one rack required; "
        "more: groups of one rack each, one spine preferred"
    )
    assert Rule.of(EVEN, None).words() == "jobs become pods of at most 8 GPUs that may go anywhere"


def test_a_cluster_without_gpus_is_refused() -> None:
    with pytest.raises(UsageError, match="no GPUs"):
        Rule.of(fabric([[0, 0]]), "rack")
