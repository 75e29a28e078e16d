"""The gangs of a PodCliqueSet: names, trees, needed tasks, and followers."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import SpecErrors
from coterie.frontends.grove.podcliqueset.lower import LoweredSet, lower
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.kubernetes.objects import resource_of
from coterie.gang.tree import Gang, Shape
from coterie.topology.levels import Topology

TOPOLOGY = Topology.of(("zone", "t/zone"), ("block", "t/block"), ("rack", "t/rack"), ("host", "kubernetes.io/hostname"))


def clique(name: str, replicas: int = 1, least: int | None = None, **pack: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "roleName": name,
        "replicas": replicas,
        "podSpec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
    }
    if least is not None:
        spec["minAvailable"] = least
    return {"name": name, "spec": spec, **({"topologyConstraint": {"pack": pack}} if pack else {})}


def group(name: str, cliques: list[str], replicas: int = 1, least: int = 1, **pack: str) -> dict[str, Any]:
    found = {"name": name, "cliqueNames": cliques, "replicas": replicas, "minAvailable": least}
    return {**found, **({"topologyConstraint": {"pack": pack}} if pack else {})}


def lowered(
    cliques: list[dict[str, Any]], groups: list[dict[str, Any]] | None = None, replicas: int = 1, **pack: str
) -> LoweredSet:
    template: dict[str, Any] = {"cliques": cliques, "podCliqueScalingGroups": groups or []}
    if pack:
        template["topologyConstraint"] = {"topologyName": "hall", "pack": pack}
    data = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "chat"},
        "spec": {"replicas": replicas, "template": template},
    }
    pcs = read_podcliqueset(resource_of(data))
    return lower(pcs, {clique.name: Shape() for clique in pcs.cliques}, TOPOLOGY)


def tree(gang: Gang) -> list[str]:
    """Return one line per group, indented by depth, then its tasks; tasks in brackets are wanted only."""
    lines = []
    for one in gang.walk():
        kind = "required" if one.required else "preferred"
        tasks = [task.name if task.needed else f"[{task.name}]" for task in one.tasks]
        lines.append(" ".join([f"{'  ' * (len(one.path) - 1)}{one.level} {one.path[-1][1]} {kind}:", *tasks]).rstrip())
    free = [task.name if task.needed else f"[{task.name}]" for task in gang.tasks]
    return [*lines, *([" ".join(["free:", *free])] if free else [])]


def test_a_set_has_a_base_gang_and_one_for_each_group_replica_above_the_minimum() -> None:
    found = lowered(
        [clique("gw", 2, 1), clique("lead", required="host"), clique("work", 3, required="rack", preferred="host")],
        [group("shard", ["lead", "work"], replicas=3, least=2, required="rack")],
        replicas=2,
        required="block",
    )
    assert [(gang.name, gang.follows) for gang in found.gangs] == [
        ("chat-0", ""),
        ("chat-0-shard-0", "chat-0"),
        ("chat-1", ""),
        ("chat-1-shard-0", "chat-1"),
    ]
    assert tree(found.gangs[0]) == [
        "block chat-0 required: chat-0-gw-0 [chat-0-gw-1]",
        "  rack chat-0-shard-0 required:",
        "    host chat-0-shard-0-lead required: chat-0-shard-0-lead-0",
        "    rack chat-0-shard-0-work required:",
        "      host chat-0-shard-0-work preferred: chat-0-shard-0-work-0 chat-0-shard-0-work-1 chat-0-shard-0-work-2",
        "  rack chat-0-shard-1 required:",
        "    host chat-0-shard-1-lead required: chat-0-shard-1-lead-0",
        "    rack chat-0-shard-1-work required:",
        "      host chat-0-shard-1-work preferred: chat-0-shard-1-work-0 chat-0-shard-1-work-1 chat-0-shard-1-work-2",
    ]


def test_a_follower_has_the_sets_own_group_by_the_same_path() -> None:
    base, follower = lowered(
        [clique("work", 2)], [group("shard", ["work"], 2, 1, required="rack")], required="block"
    ).gangs
    assert tree(follower) == [
        "block chat-0 required:",
        "  rack chat-0-shard-1 required: chat-0-shard-1-work-0 chat-0-shard-1-work-1",
    ]
    assert follower.groups[0].path == base.groups[0].path


def test_a_scaled_gang_is_numbered_from_zero_and_its_tasks_by_the_replica() -> None:
    found = lowered([clique("work")], [group("shard", ["work"], replicas=3, least=1)])
    assert [gang.name for gang in found.gangs] == ["chat-0", "chat-0-shard-0", "chat-0-shard-1"]
    assert [task.name for gang in found.gangs for task in gang.all_tasks()] == [
        "chat-0-shard-0-work-0",
        "chat-0-shard-1-work-0",
        "chat-0-shard-2-work-0",
    ]
    seat = found.seats["chat-0-shard-2-work-0"]
    assert (seat.replica, seat.clique.name, seat.index, seat.group_replica) == (0, "work", 0, 2)


def test_a_preference_that_a_requirement_implies_is_no_group() -> None:
    (gang,) = lowered([clique("work", 2, required="rack", preferred="zone")], required="block", preferred="zone").gangs
    assert tree(gang) == [
        "block chat-0 required:",
        "  rack chat-0-work required: chat-0-work-0 chat-0-work-1",
    ]


def test_a_set_that_prefers_less_than_its_parts_require_is_read_where_it_can_be_kept() -> None:
    found = lowered([clique("a", 2, required="zone"), clique("b", required="rack")], preferred="host")
    assert tree(found.gangs[0]) == [
        "zone chat-0 preferred:",
        "  zone chat-0-a required:",
        "    host chat-0-a preferred: chat-0-a-0 chat-0-a-1",
        "  rack chat-0-b required:",
        "    host chat-0-b preferred: chat-0-b-0",
    ]
    (notice,) = found.notices
    assert notice.code == "PreferenceRead"
    assert notice.message == (
        "chat-0 prefers host, but parts of it require zone: read as zone for the whole and host for each part"
    )


def test_without_constraints_nothing_binds() -> None:
    (gang,) = lowered([clique("a"), clique("b", 2, 1)]).gangs
    assert tree(gang) == ["free: chat-0-a-0 chat-0-b-0 [chat-0-b-1]"]


def test_ranks_are_the_order_of_the_document() -> None:
    (gang,) = lowered([clique("a", 2), clique("b", required="rack")]).gangs
    assert [task.name for task in gang.all_tasks()] == ["chat-0-a-0", "chat-0-a-1", "chat-0-b-0"]


def test_a_set_without_replicas_has_no_gangs_and_says_so() -> None:
    found = lowered([clique("a")], replicas=0)
    assert found.gangs == ()
    assert [notice.code for notice in found.notices] == ["NoReplicas"]


def test_more_pods_than_anybody_means_are_refused_before_they_are_made() -> None:
    with pytest.raises(SpecErrors, match="the set has 2,000,000,000 pods"):
        lowered([clique("a", 1_000_000, 1)], replicas=2_000)


def test_two_cliques_that_would_get_one_name_are_refused() -> None:
    with pytest.raises(SpecErrors, match='the PodClique "chat-0-g-0-a" would be made twice'):
        lowered([clique("g-0-a"), clique("a")], [group("g", ["a"])])
