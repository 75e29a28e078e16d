"""Gangs that follow others, for KAI: bound to where the leader runs, held back until that is known, or free."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from coterie.backends.kai.manifests.render import RenderedManifests
from coterie.planning.inputs import read_snapshot
from coterie.topology.cluster import Cluster, Node
from tests.backends.kai.sets.builders import codes, following, gangs, names, nodes, of_kind, rendered, running
from tests.frontends.grove.objects import assigned, changed, constrained

FOLLOWERS = ["set-0-shard-0", "set-0-shard-1"]
PLACES = {"": "b2-r1-0", "set-0-shard-0-work": "b2-r2-1"}
BOUND = [
    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]},
    {"key": "fabric.example.com/block", "operator": "In", "values": ["b2"]},
]


def held(found: RenderedManifests) -> str:
    """Return why followers are held back; nothing when they are not."""
    return next((notice.message for notice in found.notices if notice.code == "FollowersHeld"), "")


def terms(found: RenderedManifests, gang: str) -> list[Any]:
    """Return the required node affinity of every pod of a gang, each once."""
    kept: list[Any] = []
    for pod in of_kind(found, "Pod"):
        if pod["metadata"]["labels"]["coterie.dev/group"] == gang:
            node = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
            one = node.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
            if one not in kept:
                kept.append(one)
    return kept


def test_without_a_cluster_followers_that_share_a_required_group_are_held_back() -> None:
    found = rendered(following())

    assert gangs(found) == ["set-0"]
    assert all(name in held(found) for name in (*FOLLOWERS, '"set-0"', "the block of", "--cluster"))
    assert terms(found, "set-0") == [None]


def test_when_the_leader_is_seen_its_followers_are_bound_to_its_domain_by_all_coarser_labels() -> None:
    cluster = running(rendered(following()), PLACES)
    found = rendered(following(), cluster=cluster)

    assert gangs(found) == ["set-0", *FOLLOWERS]
    assert not held(found)
    for gang in FOLLOWERS:
        assert terms(found, gang) == [[{"matchExpressions": BOUND}]]
    assert terms(found, "set-0") == [None]


def test_a_bound_follower_keeps_its_own_constraint_and_says_whom_it_follows() -> None:
    found = rendered(following(), cluster=running(rendered(following()), PLACES))
    follower = of_kind(found, "PodGroup")[1]

    assert follower["spec"]["topologyConstraint"]["requiredTopologyLevel"] == "fabric.example.com/rack"
    assert follower["spec"]["minMember"] == 3
    labels = next(pod["metadata"]["labels"] for pod in of_kind(found, "Pod") if "set-0-shard-1" in str(pod["metadata"]))
    assert labels["grove.io/base-podgang"] == "set-0"
    assert labels["grove.io/podcliquescalinggroup-replica-index"] == "1"
    assert '"follows":"set-0"' in follower["metadata"]["annotations"]["coterie.dev/constraints"]


def test_a_follower_of_some_replica_is_bound_to_its_own_leader() -> None:
    two = changed(following(), assigned("spec.replicas", 2))
    places = {f"set-1-{name}": "b1-r1-0" for name in ("a", "shard-0-lead", "shard-0-work")}
    found = rendered(two, cluster=running(rendered(two), places))

    assert gangs(found) == ["set-0", "set-1", "set-1-shard-0", "set-1-shard-1"]
    assert terms(found, "set-1-shard-0")[0][0]["matchExpressions"][1]["values"] == ["b1"]
    assert "set-0-shard-0" in held(found)


def test_wanted_pods_stand_in_for_needed_ones_of_their_clique() -> None:
    cluster = running(rendered(following()), PLACES)
    kept = [pod for pod in cluster.pods if pod.member and pod.member.task != "set-0-a-0"]

    assert not held(rendered(following(), cluster=Cluster.of(nodes(), kept)))


@pytest.mark.parametrize(
    ("places", "more", "why"),
    [
        ({}, (), "of the 4 pods it needs, none run"),
        ({"set-0-a": "b1-r1-0", "set-0-shard-0-work": "b1-r1-1"}, (), "of the 4 pods it needs, 3 run"),
        ({"": "b1-r1-0", "set-0-a": "b2-r1-0"}, (), "more than one block (z/b1, z/b2)"),
        ({"": "b1-r1-0", "set-0-a": "bare"}, (Node("bare"),), "nodes that are in no block"),
    ],
)
def test_followers_of_a_leader_that_is_nowhere_or_apart_are_held_back(
    places: dict[str, str], more: tuple[Node, ...], why: str
) -> None:
    found = rendered(following(), cluster=running(rendered(following()), places, more))

    assert gangs(found) == ["set-0"]
    assert why in held(found)


def test_pods_of_another_namespace_and_pods_that_end_do_not_count() -> None:
    cluster = running(rendered(following()), PLACES)
    ending = Cluster.of(nodes(), [replace(pod, terminating=True) for pod in cluster.pods])

    assert held(rendered(following(), namespace="other", cluster=cluster))
    assert held(rendered(following(), cluster=ending))


def test_pods_that_grove_made_show_where_the_leader_runs() -> None:
    first = rendered(following())
    kept = [{"kind": "Node", "metadata": {"name": node.name, "labels": dict(node.labels)}} for node in nodes()]
    for pod in of_kind(first, "Pod"):
        metadata = pod["metadata"]
        labels = {key: value for key, value in metadata["labels"].items() if not key.startswith("coterie.dev/")}
        entry = {"name": metadata["name"], "namespace": "serving", "labels": labels}
        kept.append({"kind": "Pod", "metadata": entry, "spec": {"nodeName": "b2-r1-0"}, "status": {"phase": "Running"}})
    listed = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **item} for item in kept]}
    snapshot = read_snapshot(json.dumps(listed).encode(), "snapshot.json")

    assert terms(rendered(following(), cluster=snapshot.cluster), "set-0-shard-0") == [[{"matchExpressions": BOUND}]]


def test_every_alternative_of_a_users_affinity_is_bound_and_one_without_conditions_stays_so() -> None:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}
    hdd = {"key": "disk", "operator": "Exists"}
    asked = {"nodeSelectorTerms": [{"matchExpressions": [zone]}, {}, {"matchExpressions": [hdd]}]}
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": asked}, "podAffinity": {}}
    made = changed(following(), assigned("spec.template.cliques.1.spec.podSpec.affinity", own))
    found = rendered(made, cluster=running(rendered(made), PLACES))

    expected = [{"matchExpressions": [zone, *BOUND]}, {}, {"matchExpressions": [hdd, *BOUND]}]
    assert expected in terms(found, "set-0-shard-0")
    assert terms(found, "set-0") == [None, asked["nodeSelectorTerms"]]


def test_a_shared_preference_is_each_gangs_own_with_a_warning() -> None:
    found = rendered(following(preferred="block"))

    assert gangs(found) == ["set-0", *FOLLOWERS]
    assert codes(found) == ["FollowersFirst", "FollowersApart"]
    assert of_kind(found, "PodGroup")[1]["spec"]["topologyConstraint"] == {
        "topology": "t",
        "requiredTopologyLevel": "fabric.example.com/rack",
        "preferredTopologyLevel": "kubernetes.io/hostname",
    }


def test_what_is_required_is_bound_where_something_is_preferred_too() -> None:
    made = changed(following(required="zone", preferred="block"), constrained("shard", None))
    found = rendered(made, cluster=running(rendered(made), PLACES))

    assert terms(found, "set-0-shard-0") == [[{"matchExpressions": BOUND[:1]}]]
    assert codes(found) == ["FollowersApart"]


def test_followers_that_share_nothing_are_rendered_and_may_start_first() -> None:
    own = {"topologyName": "t", "pack": {"required": "rack"}}
    made = changed(following(), constrained("set", None), constrained("shard", own))
    found = rendered(made)

    assert gangs(found) == ["set-0", *FOLLOWERS]
    assert codes(found) == ["FollowersFirst"]
    assert terms(found, "set-0-shard-0") == [None]
    assert codes(rendered(made, cluster=running(found, PLACES))) == []


def test_only_the_chosen_gangs_are_rendered_with_what_they_need() -> None:
    cluster = running(rendered(following()), PLACES)
    found = rendered(following(), cluster=cluster, groups=("set-0-shard-1",))

    assert gangs(found) == ["set-0-shard-1"]
    assert names(found, "Service") == ["set-0"]
    assert names(found, "Topology") == ["t"]
    assert held(rendered(following(), groups=("set-0",))) == ""
