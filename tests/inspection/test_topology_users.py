"""Users of a topology: who refers to it, at which levels, and the effects of a change."""

from __future__ import annotations

from typing import Any

from coterie.inspection.topology_users import UserReport, level_change, topology_users
from coterie.topology.levels import Topology
from tests.cli.sample_files import packed
from tests.frontends.dynamo.objects import beta
from tests.frontends.grove.objects import LEVELS, changed, constrained, standard

Object = dict[str, Any]


def pod_group(name: str = "train", topology: str = "t", **metadata: Any) -> Object:
    inner = {"topology": topology, "preferredTopologyLevel": "kubernetes.io/hostname"}
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team", **metadata},
        "spec": {
            "topologyConstraint": {"topology": topology, "requiredTopologyLevel": "fabric.example.com/rack"},
            "subGroups": [{"name": "a", "topologyConstraint": inner}, {"name": "b"}],
        },
    }


def rows(report: UserReport) -> list[tuple[str, str, str, bool | None, str]]:
    return [
        (f"{user.kind} {user.namespace}/{user.name}", use.field, use.level, use.required, use.effect)
        for user in report.users
        for use in user.uses
    ]


OBJECTS = [packed(), {**packed("rack", "u"), "metadata": {"name": "other"}}, beta(), pod_group(), standard()]


def test_each_user_is_named_with_its_levels_and_fields() -> None:
    assert rows(topology_users("t", LEVELS, OBJECTS)) == [
        ("DynamoGraphDeployment serving/chat", "spec.topologyConstraint", "zone", True, "none"),
        ("DynamoGraphDeployment serving/chat", "spec.components[1].topologyConstraint", "rack", True, "none"),
        ("PodCliqueSet serving/set", "spec.template.topologyConstraint", "rack", True, "none"),
        ("PodGroup team/train", "spec.topologyConstraint", "rack", True, "none"),
        ("PodGroup team/train", "spec.subGroups[0].topologyConstraint", "host", False, "none"),
    ]


def test_a_change_shows_which_levels_would_be_gone_for_whom() -> None:
    after = Topology.of(("zone", "topology.kubernetes.io/zone"))
    report = topology_users("t", LEVELS, OBJECTS, after, change=True)

    assert [(user.kind, user.effect) for user in report.users] == [
        ("DynamoGraphDeployment", "not-placed"),
        ("PodCliqueSet", "not-placed"),
        ("PodGroup", "not-placed"),
    ]
    assert [row[4] for row in rows(report)] == ["none", "not-placed", "not-placed", "not-placed", "not-preferred"]
    assert report.change is not None
    assert report.change.removed == ("block", "rack", "host")


def test_a_deletion_concerns_every_level_and_levels_that_are_gone_already_do_not_change() -> None:
    assert {row[4] for row in rows(topology_users("t", LEVELS, [packed()], None, change=True))} == {"not-placed"}
    less = Topology.of(("zone", "topology.kubernetes.io/zone"))
    assert {row[4] for row in rows(topology_users("t", less, [packed()], None, change=True))} == {"none"}


def test_names_are_inherited_and_objects_that_only_name_the_topology_are_users() -> None:
    inherits = changed(packed(), constrained("a", {"pack": {"preferred": "host"}}))
    assert [row[2:4] for row in rows(topology_users("t", LEVELS, [inherits]))] == [("rack", True), ("host", False)]
    bare = pod_group()
    bare["spec"] = {"topologyConstraint": {"topology": "t"}}
    [user] = topology_users("t", LEVELS, [bare]).users
    assert user.uses == ()


def test_a_pod_group_that_was_made_for_a_set_is_not_counted_twice() -> None:
    made = pod_group(ownerReferences=[{"kind": "PodGang", "name": "set-0"}])
    assert topology_users("t", LEVELS, [made]).users == ()


def test_differences_of_levels_are_told_apart() -> None:
    before = Topology.of(("zone", "z"), ("rack", "r"))
    found = level_change(before, Topology.of(("rack", "r2"), ("zone", "z"), ("host", "h")))

    assert (found.removed, found.added, found.relabelled, found.reordered) == ((), ("host",), ("rack",), True)
    assert level_change(before, None).deleted


def test_schedulers_know_labels_so_only_a_lost_label_is_a_loss_for_pod_groups() -> None:
    relabelled = Topology.of(("rack", "fabric.example.com/other"), ("host", "kubernetes.io/hostname"))
    report = topology_users("t", LEVELS, [packed(), pod_group()], relabelled, change=True)
    assert [row[4] for row in rows(report)] == ["none", "not-placed", "none"]

    renamed = Topology.of(("cabinet", "fabric.example.com/rack"), ("host", "kubernetes.io/hostname"))
    report = topology_users("t", LEVELS, [packed(), pod_group()], renamed, change=True)
    assert [row[4] for row in rows(report)] == ["not-placed", "none", "none"]


def test_a_routers_level_concerns_no_placement() -> None:
    graph = beta()
    del graph["spec"]["topologyConstraint"]
    del graph["spec"]["components"][1]["topologyConstraint"]
    graph["spec"]["experimental"] = {"kvTransferPolicy": {"clusterTopologyName": "t", "domain": "rack"}}
    [user] = topology_users("t", LEVELS, [graph], None, change=True).users
    assert [(use.level, use.required, use.effect) for use in user.uses] == [("rack", None, "not-routed")]
    assert user.effect == "not-routed"


def test_fields_of_another_form_hide_nothing_else() -> None:
    odd = [pod_group(ownerReferences=["a"]), pod_group("b", ownerReferences="a"), pod_group("c"), pod_group("d")]
    odd[2]["spec"]["topologyConstraint"] = "x"
    odd[3]["spec"]["subGroups"] = ["x", {"topologyConstraint": {"topology": ["t"], "requiredTopologyLevel": "x"}}]
    found = topology_users("t", LEVELS, [*odd, {**pod_group("e"), "spec": "x"}])
    assert [(user.name, len(user.uses)) for user in found.users] == [("b", 2), ("c", 1), ("d", 1), ("train", 2)]
