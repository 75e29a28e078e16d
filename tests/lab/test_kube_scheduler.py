"""Kubernetes' own scheduler with gangs and topology constraints: its behaviour, and the cases in which it fails.

Whoever writes its objects has to know each of these.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from lab import Lab, nodes
from tests.eventually import eventually
from tests.lab.gangs import pod as kai_pod
from tests.lab.gangs import snapshot

ZONE, RACK = "example.com/zone", "example.com/rack"
GANGS, TREES = "podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io"
SCHEDULED = "PodGroupInitiallyScheduled"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def native_lab(lab_programs: object) -> Iterator[Lab]:
    """Give a lab with both schedulers, as the last test left it."""
    assert lab_programs
    with Lab(schedulers=("kai", "default"), compute_domain=False) as lab:
        yield lab


@pytest.fixture
def native(native_lab: Lab) -> Lab:
    """Give that lab, empty."""
    native_lab.reset(120)
    return native_lab


def racks(lab: Lab, sizes: Mapping[str, int], zone: str = "z1", gpus: int = 8, labels: str = "") -> None:
    lines = [
        f"- {{name: {rack}-{index}, gpu: {gpus}, labels: {{{ZONE}: {zone}, {RACK}: {rack}{labels}}}}}"
        for rack, size in sizes.items()
        for index in range(size)
    ]
    nodes.add(lab, snapshot("\n".join(["nodes:", *lines])))


def gang(name: str, count: int, level: str | None = RACK, parent: str = "", **spec: Any) -> Json:
    """Return a PodGroup of Kubernetes, of so many pods, that wants one domain at a level."""
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    if parent:
        spec |= {"parentCompositePodGroupName": parent, "workloadRef": {"workloadName": "w", "templateName": name}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec},
    }


def tree(name: str, count: int, level: str = ZONE, parent: str = "") -> Json:
    """Return a CompositePodGroup of so many groups that want one domain at a level together."""
    above = {"parentCompositePodGroupName": parent} if parent else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": name},
            "schedulingPolicy": {"gang": {"minGroupCount": count}},
            "schedulingConstraints": {"topology": [{"key": level}]},
            **above,
        },
    }


def members(group: str, *sizes: int, **spec: Any) -> list[Json]:
    """Return the pods of a group, each with so many GPUs."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{group}-{index}", "namespace": "default", "labels": {"gang": group}},
            "spec": {
                "schedulingGroup": {"podGroupName": group},
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "work", "resources": {"limits": {"nvidia.com/gpu": size}}}],
                **spec,
            },
        }
        for index, size in enumerate(sizes)
    ]


def create(lab: Lab, *objects: Json) -> None:
    """Create objects in this order."""
    for each in objects:
        lab.api.create(each)


def places(lab: Lab, group: str) -> list[str]:
    """Return the nodes under the pods of a group."""
    pods = lab.objects("pods", "default", f"gang={group}")
    return sorted(node for each in pods if (node := each["spec"].get("nodeName")))


def placed(lab: Lab, group: str, count: int) -> set[str]:
    """Wait until so many pods of a group have a node, and return the racks these are in."""
    lab.wait(lambda: _has(lab, group, count), 30, f"{count} pods of {group} are bound")
    return {node.rpartition("-")[0] for node in places(lab, group)}


def _has(lab: Lab, group: str, count: int) -> bool:
    return len(places(lab, group)) == count


def condition(lab: Lab, group: str) -> Json:
    """Return what the scheduler says about a group, if anything."""
    found = (lab.get(GANGS, group) or {}).get("status", {}).get("conditions") or ()
    return next((dict(each) for each in found if each["type"] == SCHEDULED), {})


def refused(lab: Lab, group: str) -> str:
    """Wait until the scheduler says that a group cannot be placed, and return what it says."""
    lab.wait(lambda: condition(lab, group).get("status") == "False", 30, f"{group} is refused")
    assert places(lab, group) == []
    return str(condition(lab, group)["message"])


_marks = itertools.count()


def after_another_gang(lab: Lab) -> None:
    """Wait until the scheduler has placed a gang that comes after all others, so that it has looked at those."""
    name = f"mark{next(_marks)}"
    racks(lab, {name: 1})
    create(lab, gang(name, 1), *members(name, 1, nodeSelector={RACK: name}))
    placed(lab, name, 1)


def test_a_gang_is_placed_in_one_domain_or_not_at_all(native: Lab) -> None:
    racks(native, {"r1": 4, "r2": 4})
    create(native, gang("fits", 4), *members("fits", 8, 8, 8, 8))
    assert len(placed(native, "fits", 4)) == 1
    create(native, gang("large", 5), *members("large", 8, 8, 8, 8, 8))
    assert "minCount (5) cannot be satisfied" in refused(native, "large")


def test_groups_of_a_tree_share_a_zone_and_have_a_rack_each(native: Lab) -> None:
    racks(native, {"a1": 4, "a2": 4}, zone="a")
    racks(native, {"b1": 4}, zone="b")
    groups = [gang(name, 4, parent="both") for name in ("one", "two")]
    create(native, tree("both", 2), *groups, *members("one", 8, 8, 8, 8), *members("two", 8, 8, 8, 8))
    assert placed(native, "one", 4) | placed(native, "two", 4) == {"a1", "a2"}


def test_a_plan_made_elsewhere_is_bound_as_a_whole(native: Lab) -> None:
    racks(native, {"r1": 2, "r2": 2})
    wanted = ["r1-1", "r2-0"]
    pods = members("pinned", 8, 8)
    for each, node in zip(pods, wanted, strict=True):
        each["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    create(native, gang("pinned", 2, None), *pods)
    placed(native, "pinned", 2)
    assert places(native, "pinned") == wanted


def test_both_schedulers_count_each_others_pods(native: Lab) -> None:
    racks(native, {"r1": 2, "r2": 2})
    native.queue("default")
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "of-kai"}}
    native.apply(
        [
            {**group, "spec": {"queue": "default", "minMember": 2}},
            *(kai_pod("of-kai", f"kai-{i}", gpus=8) for i in range(2)),
        ]
    )

    def of_kai() -> set[str]:
        return {each["spec"].get("nodeName", "") for each in native.objects("pods", selector="kai.scheduler/queue")}

    native.wait(lambda: "" not in of_kai() and len(of_kai()) == 2, 30, "KAI places its gang")
    create(native, gang("rest", 2, None), *members("rest", 8, 8))
    placed(native, "rest", 2)
    assert not of_kai() & set(places(native, "rest"))


def test_traps_of_kai_that_it_does_not_have(native: Lab) -> None:
    """Traps A, B and E: a single rack under a zone, pods of different sizes, nodes without the label."""
    racks(native, {"r1": 2})
    nodes.add(native, snapshot("nodes: [{name: bare-0, gpu: 8}, {name: bare-1, gpu: 8}]"))
    create(native, gang("zone", 2, ZONE), *members("zone", 8, 8))
    assert placed(native, "zone", 2) == {"r1"}
    for each in native.objects("pods", selector="gang=zone"):
        native.api.delete("pod", each["metadata"]["name"], grace=0)
    native.wait(lambda: not native.objects("pods"), 20, "the pods are gone")
    create(native, gang("mixed", 3), *members("mixed", 8, 4, 4))
    assert placed(native, "mixed", 3) == {"r1"}
    create(native, gang("anywhere", 2, None), *members("anywhere", 8, 8))
    assert placed(native, "anywhere", 2) == {"bare"}


def test_trap_siblings_are_placed_greedily_in_the_order_of_their_creation(native: Lab) -> None:
    """Trap D: three groups fit, but only when the largest comes first."""
    racks(native, {"r1": 6, "r2": 5})
    sizes = {"a": 3, "b": 3, "c": 5}
    pods = [each for name, size in sizes.items() for each in members(name, *[8] * size)]
    create(native, tree("all", 3), *(gang(name, size, parent="all") for name, size in sizes.items()), *pods)
    after_another_gang(native)
    assert not any(places(native, name) for name in sizes)
    native.reset(60)
    racks(native, {"r1": 6, "r2": 5})
    # The time of creation has whole seconds: groups of one second are taken by name.
    named = {"x-large": "c", "y": "a", "z": "b"}
    pods = [each for name, old in named.items() for each in members(name, *[8] * sizes[old])]
    create(native, tree("all", 3), *(gang(name, sizes[old], parent="all") for name, old in named.items()), *pods)
    assert placed(native, "x-large", 5) == {"r2"}
    assert placed(native, "y", 3) == placed(native, "z", 3) == {"r1"}


def test_trap_a_level_that_no_node_has_is_told_without_its_name(native: Lab) -> None:
    """Trap H."""
    racks(native, {"r1": 2})
    create(native, gang("lost", 1, "example.com/no-such-level"), *members("lost", 8))
    said = refused(native, "lost")
    assert "no feasible placements found" in said
    assert "no-such-level" not in said


def test_trap_trees_that_are_not_whole_wait_without_a_word(native: Lab) -> None:
    racks(native, {"r1": 4})
    create(native, gang("orphan", 1, parent="missing"), *members("orphan", 1))
    create(native, *members("no-group", 1))
    after_another_gang(native)
    for name in ("orphan", "no-group"):
        assert places(native, name) == []
        assert condition(native, name) == {}
        (pod,) = native.objects("pods", selector=f"gang={name}")
        assert not pod["status"].get("conditions")
    assert not [
        event
        for event in native.objects("events")
        if event["involvedObject"]["name"].startswith(("orphan", "no-group"))
    ]
    # A part that comes later is all that was missing.
    create(native, tree("missing", 1))
    placed(native, "orphan", 1)


def test_trap_a_tree_of_more_than_four_levels_is_never_placed(native: Lab) -> None:
    racks(native, {"r1": 4})
    for size in (4, 5):
        names = [f"of{size}-level{depth}" for depth in range(size - 1)]
        for above, name in zip(["", *names], names, strict=False):
            create(native, tree(name, 1, parent=above))
        create(native, gang(f"of{size}", 1, parent=names[-1]), *members(f"of{size}", 1))
    placed(native, "of4", 1)
    assert "exceeded maximum hierarchy depth" in refused(native, "of5")


def test_trap_pods_above_the_minimum_take_the_places_of_a_sibling(native: Lab) -> None:
    racks(native, {"r1": 6})
    pods = [*members("first", *[8] * 5), *members("second", *[8] * 4)]
    create(native, tree("both", 2), gang("first", 2, parent="both"), gang("second", 4, parent="both"), *pods)
    after_another_gang(native)
    assert places(native, "second") == []


def test_trap_a_node_that_is_not_ready_counts_until_it_is_tainted(native: Lab) -> None:
    racks(native, {"r1": 2})
    unready = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    native.api.patch("node", "r1-0", {"status": {"conditions": unready}}, status=True)
    create(native, gang("blind", 2), *members("blind", 8, 8))
    placed(native, "blind", 2)


def test_trap_preemption_breaks_a_gang_that_does_not_forbid_it(native: Lab) -> None:
    racks(native, {"r1": 4})
    for name, value in (("low", 1), ("high", 1000)):
        create(
            native,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"of-{name}"},
                "value": value,
            },
        )
    modes: list[tuple[Json, int]] = [({}, 2), ({"disruptionMode": {"all": {}}}, 0)]
    for mode, left in modes:
        low = members("low", 8, 8, 8, 8, priorityClassName="of-low")
        create(native, gang("low", 4, priorityClassName="of-low", **mode), *low)
        placed(native, "low", 4)
        high = members("high", 8, 8, priorityClassName="of-high")
        create(native, gang("high", 2, priorityClassName="of-high"), *high)
        placed(native, "high", 2)
        native.wait(partial(_has, native, "low", left), 30, f"{left} pods of the low gang are left")
        for name in ("low", "high"):
            for each in native.objects("pods", selector=f"gang={name}"):
                native.api.delete("pod", each["metadata"]["name"], grace=0)
            native.api.delete(GANGS, name)
        native.wait(lambda: not native.objects("pods") and not native.objects(GANGS), 60, "both gangs are gone")


def test_trap_a_node_that_changes_its_rack_keeps_replacements_out(native: Lab) -> None:
    racks(native, {"r1": 3, "r2": 3})
    create(native, gang("torn", 2), *members("torn", 8, 8))
    placed(native, "torn", 2)
    native.kubectl("label", "node", places(native, "torn")[0], "--overwrite", f"{RACK}=elsewhere")
    third = members("torn", 8, 8, 8)[2]
    create(native, third)

    def said() -> str:
        pod = native.get("pod", third["metadata"]["name"]) or {}
        return " ".join(each.get("message", "") for each in pod.get("status", {}).get("conditions") or ())

    native.wait(lambda: "more than 1 domain found" in said(), 30, "the scheduler cannot tell the domain")
    assert len(places(native, "torn")) == 2


def test_trap_a_scheduler_that_is_killed_leaves_a_part_of_a_gang(native: Lab) -> None:
    racks(native, {"r1": 64})
    scheduler = native.programs["kube-scheduler"]
    for attempt in range(10):
        name = f"part{attempt}"
        create(native, gang(name, 64))
        native.api.each(native.api.create, members(name, *[8] * 63))
        create(native, members(name, *[8] * 64)[63])
        # All of them are bound within a moment, in which it has to be killed.
        eventually(partial(places, native, name), "the first pods are not bound", patience_s=180)
        os.kill(scheduler.pid, signal.SIGKILL)
        scheduler.stop()
        bound = len(places(native, name))
        if bound < 64:
            break
        scheduler.start()
        for each in native.objects("pods"):
            native.api.delete("pod", each["metadata"]["name"], grace=0)
        native.wait(lambda: not native.objects("pods"), 60, "the pods are gone")
    else:
        pytest.fail("the scheduler was never caught while it bound a gang")
    # A stranger takes one of the nodes that the rest would need.
    free = sorted({node["metadata"]["name"] for node in native.objects("nodes")} - set(places(native, name)))
    stranger = members("stranger", 8, nodeName=free[0])[0]
    del stranger["spec"]["schedulingGroup"]
    create(native, stranger)
    scheduler.start()
    after_another_gang(native)
    assert 0 < len(places(native, name)) < 64


def test_trap_with_a_gate_off_constraints_are_dropped_silently(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab(schedulers=(), compute_domain=False)
    server = lab.programs["kube-apiserver"]
    server.stop()
    server.command = [
        each.replace("TopologyAwareWorkloadScheduling=true,CompositePodGroup=true,", "") for each in server.command
    ]
    server.start()

    def answers() -> bool:
        return "ok" in lab.kubectl("get", "--raw=/readyz", check=False)

    lab.wait(answers, 60, "the API server answers again")
    made = lab.api.create(gang("flat", 2))
    assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert "schedulingConstraints" not in made["spec"]
