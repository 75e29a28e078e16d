"""Unexpected behaviour of KAI: the outcomes of objects written by hand, and of Coterie's.

The letters are those of docs/kai.md. Each test first shows the trap on the real scheduler, and then the outcome of the
same request as a workflow: Coterie writes it so that it is placed, predicts that it will wait, or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from lab.cluster import Lab

from tests.cli.command import ROOT
from tests.kai.handwritten import pod, pod_group, pods, stage, subgroup, warned

TWO_RACKS = "cluster zone > rack\n  zone a: rack r1 [8 8]  rack r2 [8]"


def test_a_level_with_one_domain_only_is_never_satisfied(lab: Lab, tmp_path: Path) -> None:
    """Trap A: all nodes are in one rack, so KAI does not look at the zone above it."""
    here = stage(lab, tmp_path, "cluster zone > rack\n  zone a: rack r1 [8 8]")
    lab.apply([*pods("g", [8, 8]), pod_group("g", 2, required="zone")])
    assert here.settle() == {}
    here.says("g", "available: 0")

    here.clear()
    here.render(here.workflow({"one": "8 zone=x", "two": "8 zone=x"}))
    assert set(here.placed(2).values()) == {"a-r1-1", "a-r1-2"}


def test_pods_of_different_sizes_are_refused_although_they_fit(lab: Lab, tmp_path: Path) -> None:
    """Trap B: each pod is counted as the largest. A little storage for one of them has KAI compare sums instead."""
    here = stage(lab, tmp_path, TWO_RACKS, storage=True)
    lab.apply([*pods("g", [8, 4, 4]), pod_group("g", 3, required="rack")])
    assert here.settle() == {}
    here.says("g", "can allocate only 2 of 3 required pods")

    here.clear()
    workflow = here.workflow({"small": "4 rack=x", "large": "8 rack=x", "other": "4 rack=x"})
    assert "KaiWouldWait" not in warned(here.plan(workflow))
    said = here.render(workflow).err
    assert here.domains("rack", here.placed(3)) == ["r1"]
    assert 'warning[StorageRequested]: task "large" of group "g" gets a request for 1Ki' in said


def test_pods_of_different_sizes_are_told_beforehand_where_nodes_report_no_storage(lab: Lab, tmp_path: Path) -> None:
    """Trap B, where it cannot be avoided."""
    here = stage(lab, tmp_path, TWO_RACKS)
    workflow = here.workflow({"small": "4 rack=x", "large": "8 rack=x", "other": "4 rack=x"})
    plan = here.plan(workflow)
    assert plan["verdict"] == "placed"
    assert "it finds room for 2 in one rack; to avoid it: rack as preferred" in warned(plan)["KaiWouldWait"]

    assert "warning[MixedSizes]" in here.render(workflow).err
    assert here.settle() == {}
    here.clear()
    here.render(here.workflow({"small": "4 rack~x", "large": "8 rack~x", "other": "4 rack~x"}))
    here.placed(3)


def test_pods_are_taken_in_any_order_unless_a_label_says_which_come_first(lab: Lab, tmp_path: Path) -> None:
    """Trap B, its other half: small pods that come first can take the room of a large one."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [6 3]")
    sizes = {"small": 2, "middle": 3, "large": 4}
    lab.apply([*(pod(name, "g", gpus, priority=9 - gpus) for name, gpus in sizes.items()), pod_group("g", 3)])
    assert here.settle() == {}

    here.clear()
    here.render(here.workflow({name: str(gpus) for name, gpus in sizes.items()}))
    assert here.placed(3) == {"small": "r1-1", "middle": "r1-2", "large": "r1-1"}


def test_siblings_are_placed_in_the_order_of_their_names(lab: Lab, tmp_path: Path) -> None:
    """Trap D: what the first have chosen is never looked at again. Coterie names the largest first."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [6]  rack r2 [5]")
    sizes = {"a": 3, "b": 3, "c": 5}
    lab.apply([one for name, count in sizes.items() for one in pods("g", [1] * count, subgroup=name)])
    lab.apply(pod_group("g", 11, subgroups=[subgroup(name, count, required="rack") for name, count in sizes.items()]))
    assert here.settle() == {}
    here.says("g", "couldn't be satisfied for job <default/g>, subgroup c")

    here.clear()
    workflow = here.workflow({f"{name}{n}": f"1 rack={name}" for name, count in sizes.items() for n in range(count)})
    assert "KaiWouldWait" not in warned(here.plan(workflow))
    here.render(workflow)
    placed = here.placed(11)
    found = {name: here.domains("rack", {task: placed[task] for task in placed if task[0] == name}) for name in sizes}
    assert found == {"a": ["r1"], "b": ["r1"], "c": ["r2"]}


def test_a_sibling_that_needs_one_rack_comes_before_one_that_may_be_split(lab: Lab, tmp_path: Path) -> None:
    """Trap D with equal siblings, use case 5: two racks of one node are enough for the second, not for the first."""
    zones = "cluster zone > rack\n  zone a: rack a1 [8 8]\n  zone b: rack b1 [8]  rack b2 [8]"
    here = stage(lab, tmp_path, zones)
    lab.apply([*pods("g", [8], subgroup="b-one"), *pods("g", [8], subgroup="b-two"), *pods("g", [8, 8], subgroup="a")])
    tree = [
        subgroup("b", None, required="zone"),
        subgroup("b-one", 1, required="rack", parent="b"),
        subgroup("b-two", 1, required="rack", parent="b"),
        subgroup("a", 2, required="rack"),
    ]
    lab.apply(pod_group("g", 4, subgroups=tree))
    assert here.settle() == {}

    here.clear()
    workflow = ROOT / "examples" / "05-reused-group-names" / "workflow.yaml"
    assert "KaiWouldWait" not in warned(here.plan(workflow))
    here.render(workflow)
    placed = here.placed(4)
    assert here.domains("rack", {task: placed[task] for task in ("task-1", "task-2")}) == ["a1"]
    assert here.domains("zone", {task: placed[task] for task in ("task-3", "task-4")}) == ["b"]


def test_siblings_that_no_order_of_names_helps_are_told_beforehand(lab: Lab, tmp_path: Path) -> None:
    """Trap D, where it cannot be avoided: the largest takes the tightest rack, which the two smallest need."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [9]  rack r2 [6]")
    sizes = {"a": 5, "b": 4, "c": 3, "d": 3}
    workflow = here.workflow({f"{name}{n}": f"1 rack={name}" for name, count in sizes.items() for n in range(count)})
    plan = here.plan(workflow)
    assert plan["verdict"] == "placed"
    assert "after 3 other parts have taken theirs" in warned(plan)["KaiWouldWait"]

    assert "warning[GreedySiblings]" in here.render(workflow).err
    assert here.settle() == {}


def test_nodes_without_a_label_are_not_seen(lab: Lab, tmp_path: Path) -> None:
    """Trap E: a node that lacks one level's label takes no pod of a gang with constraints, not even preferred ones."""
    here = stage(lab, tmp_path, "cluster zone > rack\n  zone a: rack r1 [8]  rack - [8]")
    lab.apply([*pods("g", [8, 8]), pod_group("g", 2, preferred="zone")])
    assert here.settle() == {}
    here.clear()
    lab.apply([*pods("g", [8, 8]), pod_group("g", 2)])
    assert set(here.placed(2).values()) == {"a-1", "a-r1-1"}

    here.clear()
    plan = here.plan(here.workflow({"one": "8 zone~x", "two": "8 zone~x"}))
    assert plan["verdict"] == "impossible"
    assert warned(plan)["HiddenFromScheduler"].endswith("so they were not used: a-1")
    assert here.plan(here.workflow({"one": "8", "two": "8"}))["verdict"] == "placed"


def test_with_more_than_ten_domains_a_preference_uses_more_of_them_than_needed(lab: Lab, tmp_path: Path) -> None:
    """Trap G: domains are scored in ten buckets, and in one bucket the fullest node comes first, of whatever rack."""
    few = "rack s1 [3 5]  rack s2 [3 5]  rack s3 [9]"
    many = "  ".join(f"rack r{number} [1]" for number in range(17))
    here = stage(lab, tmp_path, f"cluster rack\n  {few}  {many}")
    lab.apply([*pods("g", [1] * 17), pod_group("g", 17, preferred="rack")])
    assert here.domains("rack", here.placed(17)) == ["s1", "s2", "s3"]

    here.clear()
    workflow = here.workflow({f"t{number}": "1 rack~x" for number in range(17)})
    (constraint,) = here.plan(workflow)["groups"][0]["constraints"]
    assert len(constraint["domains"]) == 2
    here.render(workflow)
    assert len(here.domains("rack", here.placed(17))) == 3


def test_an_unknown_level_leaves_a_gang_pending_without_a_word_about_it(lab: Lab, tmp_path: Path) -> None:
    """Trap H."""
    here = stage(lab, tmp_path, TWO_RACKS)
    lab.apply([*pods("g", [8]), pod_group("g", required="example.com/rakc")])
    assert here.settle() == {}
    here.says("g", "Unable to schedule podgroup.")
    assert here.said("g").strip() == "Unable to schedule podgroup."

    here.clear()
    done = here.call("render", here.workflow({"one": "8 rakc=x"}))
    assert done.code == 3
    assert 'error[UnknownLevel]: the pool has no topology key "rakc"' in done.err
    assert 'Did you mean "rack"?' in done.err


def test_levels_without_a_topology_are_ignored(lab: Lab, tmp_path: Path) -> None:
    """Trap I: a required rack is not kept, and nothing says so."""
    here = stage(lab, tmp_path, "cluster zone > rack\n  zone a: rack r1 [8]  rack r2 [8]")
    lab.apply([*pods("g", [8, 8]), pod_group("g", 2, required="rack", topology="")])
    assert here.domains("rack", here.placed(2)) == ["r1", "r2"]

    here.clear()
    here.render(here.workflow({"one": "8 rack=x", "two": "8 rack=x"}))
    assert here.settle() == {}


def test_a_pod_without_a_subgroup_is_never_placed_where_there_are_subgroups(lab: Lab, tmp_path: Path) -> None:
    """Trap J: the gang starts without it, and the pod is not even told why it waits."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [8 8]")
    lab.apply([pod("in", "g", 8, subgroup="a"), pod("out", "g", 8)])
    lab.apply(pod_group("g", 2, subgroups=[subgroup("a", 1, required="rack")]))
    assert set(here.settle()) == {"in"}
    assert "conditions" not in here.pods()["out"]["status"]

    here.clear()
    here.render(here.workflow({"in": "8 rack=x", "out": "8"}))
    assert set(here.placed(2)) == {"in", "out"}


def test_gangs_of_one_name_in_two_namespaces_are_taken_for_one(lab: Lab, tmp_path: Path) -> None:
    """Trap K: two gangs that lack a pod each start together."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [8 8 8 8]")
    for name in ("one", "two"):
        lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        lab.apply([pod(f"of-{name}", "g", 8, namespace=name), pod_group("g", 2, namespace=name)])
    assert set(here.placed(2)) == {"of-one", "of-two"}

    here.clear()
    workflow = here.workflow({"first": "8", "second": "8"})
    for name in ("one", "two"):
        written = list(yaml.safe_load_all(here.call("render", workflow, "--namespace", name).out))
        lab.apply([one for one in written if one["metadata"]["labels"].get("coterie.dev/task") != "second"])
    assert set(here.pods()) == {"first"}
    assert here.settle() == {}


def test_a_subgroup_without_a_minimum_starts_with_one_pod(lab: Lab, tmp_path: Path) -> None:
    """Trap L: what the PodGroup says of the whole does not count, and the gang is torn."""
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [8 8]")
    lab.apply([*pods("g", [8, 8, 8], subgroup="a"), pod_group("g", 3, subgroups=[subgroup("a", None)])])
    assert len(here.settle()) == 2
    here.clear()
    # None is not allowed either: a subgroup for which there is no pod holds back the others.
    lab.apply([*pods("g", [8], subgroup="a"), pod_group("g", 1, subgroups=[subgroup("a", 1), subgroup("b", None)])])
    assert here.settle() == {}

    here.clear()
    here.render(here.workflow({"one": "8 rack=x", "two": "8 rack=x", "three": "8"}))
    assert here.settle() == {}


def test_kai_with_its_usual_actions_deletes_running_pods(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    """Trap M: pods are moved by deleting them, which nobody undoes for a pod that no controller owns."""
    lab = make_lab(kai_actions="allocate,consolidation,reclaim,preempt,stalegangeviction", compute_domain=False)
    program = lab.programs["kai-scheduler"]
    program.stop()
    # It is a minute by default.
    program.command = [*program.command, "--default-staleness-grace-period=2s"]
    program.start()
    here = stage(lab, tmp_path, "cluster rack\n  rack r1 [8 8]")
    for name in ("one", "two", "three"):
        here.render(here.workflow({name: "4"}, name))
    nodes = here.placed(3)
    first = next(task for task, node in nodes.items() if list(nodes.values()).count(node) == 2)
    here.remove(first)
    here.render(here.workflow({"large": "8"}, "large"))
    lab.wait(lambda: "large" in here.nodes(), 30, "the large one is placed")
    assert len(here.pods()) == 2

    # A gang that has fewer pods than it needs is ended.
    for name in set(here.nodes()):
        here.remove(name)
    here.render(here.workflow({"left": "8", "right": "8"}, "pair"))
    here.placed(2)
    here.remove("left")
    lab.wait(lambda: not here.pods(), 30, "the gang is gone")


@pytest.mark.parametrize("mark", ["!", "*"], ids=["cordoned", "not ready"])
def test_nodes_out_of_service_count_as_room(lab: Lab, tmp_path: Path, mark: str) -> None:
    """Trap N: the rack with most such nodes is taken for the emptiest, and a preference uses one rack too many."""
    out = " ".join([f"8{mark}"] * 4)
    here = stage(lab, tmp_path, f"cluster rack\n  rack r1 [8 {out}]  rack r2 [8 8 8]  rack r3 [8 8 8]")
    lab.apply([*pods("g", [8] * 6), pod_group("g", 6, preferred="rack")])
    assert here.domains("rack", here.placed(6)) == ["r1", "r2", "r3"]

    here.clear()
    (constraint,) = here.plan(here.workflow({f"t{n}": "8 rack~x" for n in range(6)}))["groups"][0]["constraints"]
    assert constraint["domains"] == [["r2"], ["r3"]]


def test_domains_are_told_apart_by_values_joined_with_dots(lab: Lab, tmp_path: Path) -> None:
    """Trap O: rack b.c of zone a and rack c of zone a.b are one for KAI, so that a required rack does not hold."""
    here = stage(lab, tmp_path, "cluster zone > rack\n  zone a: rack b.c [8]\n  zone a.b: rack c [8]")
    lab.apply([*pods("g", [8, 8]), pod_group("g", 2, required="rack")])
    assert here.domains("zone", here.placed(2)) == ["a", "a.b"]

    here.clear()
    workflow = here.workflow({"one": "8 rack=x", "two": "8 rack=x"})
    assert "KAI treats the rack a/b.c and the rack a.b/c as one" in warned(here.plan(workflow))["DomainsMerged"]
    done = here.call("render", workflow)
    assert done.code == 3
    assert 'what group "g" requires might not hold' in done.err
    assert done.out == ""
