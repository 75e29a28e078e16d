"""Objects that no workflow has any more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coterie.backends.kai.driver.objects import FieldManager, ObjectMeta
from coterie.backends.kai.driver.orphans import leftovers, sweep
from coterie.backends.kai.driver.removal import RemovalScope
from coterie.kube.kinds import COMPUTE_DOMAIN, CONFIG_MAP, POD, POD_GROUP, QUEUE, TOPOLOGY, ObjectKind
from coterie.lifecycle import GroupRules, GroupState, Presence, Spec, State, TaskRules, TaskState

OWN = [FieldManager("coterie")]
SPEC = Spec((GroupRules("g", (TaskRules("t"),)),))


@dataclass
class Workflow:
    id: str
    state: State
    pool: str = "p"
    owner: str = "local"
    spec: Spec = SPEC


def workflow(presence: Presence, attempt: int = 2, base: int = 2) -> Workflow:
    task = TaskState("t", attempt=attempt, presence=presence)
    return Workflow("w-1", State((GroupState("g", (task,), attempt=attempt, base=base),)))


def found(kind: ObjectKind, attempt: int, task: str = "", workflow: str = "w-1") -> tuple[ObjectKind, ObjectMeta]:
    labels = {"coterie.dev/workflow": workflow, "coterie.dev/group": "g", "coterie.dev/attempt": str(attempt)}
    if task:
        labels["coterie.dev/task"] = task
    return kind, ObjectMeta(f"{kind.name}-{attempt}", labels=labels, managed_fields=OWN)


def test_objects_of_an_unknown_workflow_go_as_a_group_up_to_the_last_placement() -> None:
    objects = [found(POD, 3, "t"), found(POD_GROUP, 1), found(COMPUTE_DOMAIN, 1)]
    assert sweep(objects, {}, (), ()).scopes == (RemovalScope("w-1", "g", last=3),)


def test_objects_of_a_living_placement_stay() -> None:
    known = {"w-1": workflow(Presence.CREATED)}
    objects = [found(POD, 2, "t"), found(POD_GROUP, 2), found(COMPUTE_DOMAIN, 2)]
    assert sweep(objects, known, (), ()).scopes == ()


def test_objects_of_an_earlier_placement_go_and_the_later_one_is_not_covered() -> None:
    known = {"w-1": workflow(Presence.CREATED)}
    (scope,) = sweep([found(COMPUTE_DOMAIN, 1), found(POD_GROUP, 2)], known, (), ()).scopes
    assert scope.covers(found(COMPUTE_DOMAIN, 1)[1])
    assert not scope.covers(found(COMPUTE_DOMAIN, 2)[1])


def test_a_pod_of_an_earlier_attempt_goes_alone() -> None:
    known = {"w-1": workflow(Presence.CREATED, attempt=3, base=2)}
    assert sweep([found(POD, 2, "t"), found(POD, 3, "t")], known, (), ()).scopes == (
        RemovalScope("w-1", "g", "t", 2, 2),
    )


def test_objects_of_a_group_without_a_placement_go() -> None:
    known = {"w-1": workflow(Presence.ABSENT)}
    assert sweep([found(POD_GROUP, 2)], known, (), ()).scopes == (RemovalScope("w-1", "g", last=2),)


def test_spared_workflows_and_scopes_in_use_stay() -> None:
    assert sweep([found(POD, 1, "t")], {}, ["w-1"], ()).scopes == ()
    assert sweep([found(POD, 1, "t")], {}, (), [RemovalScope("w-1", "g", "", 1, 1)]).scopes == ()


def test_a_foreign_object_with_the_label_is_named_and_not_removed() -> None:
    kind, meta = found(POD, 1, "t")
    copied = ObjectMeta("copy", labels=meta.labels, managed_fields=[FieldManager("kubectl")])
    result = sweep([(kind, copied)], {}, (), ())
    words = "Pod copy: labelled as objects of this service, but not its own; they are left alone"
    assert (result.scopes, result.foreign) == ((), (words,))


def test_a_workflow_of_another_name_is_another_one() -> None:
    known = {"w-1": replace(workflow(Presence.CREATED))}
    (scope,) = sweep([found(POD, 2, "t", workflow="w-2")], known, (), ()).scopes
    assert scope.workflow == "w-2"


def test_objects_of_a_backend_that_is_not_configured_are_named_with_what_to_do() -> None:
    others = [left(QUEUE, "q1"), left(QUEUE, "q2", "new"), left(QUEUE, "q3"), left(QUEUE, "q4", manager="kubectl")]
    (words,) = leftovers(others, ["own", "new"])
    assert words.startswith(
        'Queue q1, Queue q3: left by backend "old", which is not in the configuration; add a backend'
    )
    assert words.endswith("kubectl delete queues.scheduling.run.ai -l coterie.dev/store=s1,coterie.dev/backend=old")
    assert leftovers(others, ["old", "new"]) == ()


def test_the_command_for_leftovers_names_their_namespace_and_their_kinds_in_full() -> None:
    kinds = (POD, POD_GROUP, COMPUTE_DOMAIN, CONFIG_MAP, QUEUE, TOPOLOGY)
    (words,) = leftovers([left(kind, f"o{number}") for number, kind in enumerate(kinds)], ["own"])
    listed = "pods,podgroups.scheduling.run.ai,computedomains.resource.nvidia.com,configmaps"
    listed += ",queues.scheduling.run.ai,topologies.kai.scheduler"
    assert f"kubectl delete {listed} -n jobs -l coterie.dev/store=s1,coterie.dev/backend=old" in words


def left(
    kind: ObjectKind, name: str, backend: str = "old", *, manager: str = "coterie"
) -> tuple[ObjectKind, ObjectMeta]:
    labels = {"coterie.dev/store": "s1", "coterie.dev/backend": backend}
    namespace = "jobs" if kind.namespaced else ""
    return kind, ObjectMeta(name, namespace, labels=labels, managed_fields=[FieldManager(manager)])
