"""Nodes that fail under a gang on a real cluster: what starts again, where, and at whose expense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie.lifecycle import State, from_json
from coterie.service.settings import Settings
from lab import Lab
from tests.kai.driver.service_on_kai import RACK, ZONE, KaiService, add_nodes, serving, settings
from tests.service.running_service import task, workflow

TOGETHER = "[{key: rack}]"
LIMIT_S = 60.0


def _cluster(**racks: int) -> str:
    keys = f"topology_keys: [{{key: zone, label: {ZONE}}}, {{key: rack, label: {RACK}}}]\nnodes:\n"
    line = "- {{name: {rack}-n{n}, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: {rack}}}}}\n"
    return keys + "".join(line.format(rack=rack, n=n) for rack, count in racks.items() for n in range(1, count + 1))


def _gang(*names: str) -> dict[str, list[str]]:
    return {"g": [task(name, "run", "" if number else "lead: true") for number, name in enumerate(names)]}


def _quick(folder: Path) -> Settings:
    return replace(settings(folder), node_grace_s=1.0, force_s=1.0)


def _not_ready(lab: Lab, *names: str, ready: bool = False) -> None:
    """Let nodes say that they are not ready, or are again."""
    reason = "KubeletReady" if ready else "NodeStatusUnknown"
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": reason}
    for name in names:
        lab.api.patch("nodes", name, {"status": {"conditions": [condition]}}, status=True)


def _settled(here: KaiService, ident: str, attempts: dict[str, int]) -> dict[str, str]:
    """Wait until all tasks run in these attempts, and return their nodes."""

    def found() -> dict[str, Any]:
        return {
            name: one["attempt"] if one["status"] == "RUNNING" else one["status"]
            for name, one in here.tasks(ident).items()
        }

    here.lab.wait(lambda: found() == attempts, LIMIT_S, f"{ident} runs as {attempts}, and not as {found()}")
    return {name: one["node"] for name, one in here.tasks(ident).items()}


def _nodes(here: KaiService, ident: str) -> dict[str, str]:
    return {name: one["node"] for name, one in here.tasks(ident).items()}


def _kinds(here: KaiService, ident: str) -> list[str]:
    return [event["kind"] for event in here.events(ident)]


def _end(here: KaiService, ident: str) -> None:
    here.service.cancel(ident)
    here.finished(ident)
    assert here.left() == {}


def test_t130_t137_t138_t139_a_task_of_a_failed_node_starts_again_beside_the_others(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab, _cluster(r1=3, r2=3))
    with serving(lab, _quick(tmp_path)) as here:
        ident = here.submit(workflow("w", _gang("a", "b"), gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        before = _nodes(here, ident)
        shape = _place_in_the_gang(here, ident, "b")
        _not_ready(lab, before["b"])
        after = _settled(here, ident, {"a": 1, "b": 2})
        assert after["a"] == before["a"]
        assert after["b"] != before["b"]
        assert after["b"][:2] == before["a"][:2]
        assert _place_in_the_gang(here, ident, "b") == shape
        # KAI may not choose the failed node, whatever it knows of it, and the user's retries are untouched.
        (pod,) = here.pods(ident, "b")
        (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert {"key": "metadata.name", "operator": "NotIn", "values": [before["b"]]} in term["matchFields"]
        assert _charged(here, ident) == [0, 0]
        assert here.service.placement(ident)["summary"]["violated"] == 0
        (lost,) = [each for each in here.events(ident) if each["kind"] == "TaskRescheduled"]
        assert f"node {before['b']} has not been ready for 1 s" in lost["message"]
        _end(here, ident)


def _charged(here: KaiService, ident: str) -> list[int]:
    """Return the retries of the user that the tasks of the first group have used."""
    state = from_json(State, here.service.store.workflow(ident).state)
    return [one.reschedules for one in state.groups[0].tasks]


def _place_in_the_gang(here: KaiService, ident: str, name: str) -> object:
    (pod,) = here.pods(ident, name)
    labels = {key: value for key, value in pod["metadata"]["labels"].items() if key != "coterie.dev/attempt"}
    (container,) = pod["spec"]["containers"]
    environment = [one for one in container["env"] if one["name"] != "COTERIE_ATTEMPT"]
    for one in environment:
        # The domains of each attempt are in a ConfigMap of their own.
        one.get("valueFrom", {}).get("configMapKeyRef", {}).pop("name", None)
    return labels, pod["spec"].get("resourceClaims"), environment, container["resources"]


def test_t130_t131_without_a_place_beside_the_survivors_the_whole_group_moves(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab, _cluster(r1=4, r2=4))
    with serving(lab, _quick(tmp_path)) as here:
        ident = here.submit(workflow("w", _gang("a", "b", "c"), gpu=8, topology=TOGETHER))
        here.running(ident, 3)
        first = _nodes(here, ident)
        (home,) = {node[:2] for node in first.values()}
        # Two at once, of which the rack replaces only one.
        _not_ready(lab, first["b"], first["c"])
        lab.wait(lambda: all(one["attempt"] > 1 for one in here.tasks(ident).values()), LIMIT_S, "the group moves")
        here.running(ident, 3)
        after = _nodes(here, ident)
        assert len({node[:2] for node in after.values()}) == 1
        assert after["a"][:2] != home
        assert "GroupRescheduled" in _kinds(here, ident)
        assert {one["attempt"] for one in here.tasks(ident).values()} == {3}
        assert _charged(here, ident) == [0, 0, 0]
        _end(here, ident)


def test_t130_without_a_place_beside_the_survivors_of_a_subgroup_only_that_subgroup_moves(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab, _cluster(r1=2, r2=2, r3=2))
    with serving(lab, _quick(tmp_path)) as here:
        groups = {
            "g": [
                task("a", "run", "lead: true"),
                task("b", "run"),
                task("c", "run", "resource: second"),
                task("d", "run", "resource: second"),
            ]
        }
        rest = "    second: {gpu: 8, cpu: 1, topology: [{key: rack, group: two}]}\n"
        ident = here.submit(workflow("w", groups, gpu=8, topology="[{key: rack, group: one}]", rest=rest))
        here.running(ident, 4)
        before = _nodes(here, ident)
        _not_ready(lab, before["d"])
        # Its rack has no other node for d, so that c goes with it to the third one.
        after = _settled(here, ident, {"a": 1, "b": 1, "c": 3, "d": 3})
        assert {name: after[name] for name in "ab"} == {name: before[name] for name in "ab"}
        assert after["c"][:2] == after["d"][:2] != before["c"][:2]
        assert here.service.placement(ident)["summary"]["violated"] == 0
        (moved,) = [each for each in here.events(ident) if each["kind"] == "TasksRescheduled"]
        assert moved["message"].startswith('tasks "c", "d" start again together: no room beside the running tasks')
        assert "GroupRescheduled" not in _kinds(here, ident)
        # Where there is no rack for them alone, the whole group starts again.
        _not_ready(lab, after["d"], after["c"])
        lab.wait(lambda: "GroupRescheduled" in _kinds(here, ident), LIMIT_S, "the whole group starts again")
        _end(here, ident)


def test_t134_t136_a_pod_that_stays_terminating_is_deleted_by_force_and_finished_tasks_stay_finished(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab, _cluster(r1=4))
    with serving(lab, _quick(tmp_path)) as here:
        ident = here.submit(workflow("w", _gang("a", "b", "c"), gpu=8, topology=TOGETHER))
        here.running(ident, 3)
        here.end(ident, "c")
        _status(here, ident, "c", "COMPLETED")
        before = _nodes(here, ident)
        # Nobody plays the kubelet of a node that is gone, so its pods do not go by themselves.
        lab.api.delete("nodes", before["b"])
        lab.api.delete("nodes", before["c"])
        after = _settled_but(here, ident, "b", 2)
        assert after["b"] != before["b"]
        assert here.tasks(ident)["c"]["status"] == "COMPLETED"
        (forced,) = [each for each in here.events(ident) if each["kind"] == "ForceDeleted"]
        assert (forced["task"], forced["attempt"]) == ("b", 1)
        assert f"node {before['b']} did not end its pod" in forced["message"]
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def test_a_replacement_does_not_wait_for_a_subgroup_that_has_ended(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab, _cluster(r1=3, r2=1))
    with serving(lab, _quick(tmp_path)) as here:
        groups = {"g": [task("a", "run", "lead: true"), task("b", "run"), task("c", "run", "resource: alone")]}
        rest = "    alone: {gpu: 8, cpu: 1, topology: [{key: rack, group: other}]}\n"
        ident = here.submit(workflow("w", groups, gpu=8, topology="[{key: rack, group: pair}]", rest=rest))
        here.running(ident, 3)
        here.end(ident, "c")
        _status(here, ident, "c", "COMPLETED")
        before = _nodes(here, ident)
        _not_ready(lab, before["b"])
        after = _settled_but(here, ident, "b", 2)
        assert after["b"][:2] == before["a"][:2]
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def _status(here: KaiService, ident: str, name: str, wanted: str) -> None:
    here.lab.wait(lambda: here.tasks(ident)[name]["status"] == wanted, LIMIT_S, f"{name} is {wanted}")


def _settled_but(here: KaiService, ident: str, name: str, attempt: int) -> dict[str, str]:
    def again() -> bool:
        one = here.tasks(ident)[name]
        return bool(one["status"] == "RUNNING" and one["attempt"] == attempt)

    here.lab.wait(again, LIMIT_S, f"{name} runs again")
    return _nodes(here, ident)


def test_t132_t133_a_node_that_recovers_in_time_costs_nothing(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab, _cluster(r1=2))
    # Far longer than any machine takes for what follows.
    with serving(lab, replace(_quick(tmp_path), node_grace_s=600.0)) as here:
        ident = here.submit(workflow("w", _gang("a", "b"), gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        before = _nodes(here, ident)
        for _ in range(3):
            _not_ready(lab, before["b"])
            _seen(here, lambda: not _ready(here, before["b"]))
            _not_ready(lab, before["b"], ready=True)
            _seen(here, lambda: _ready(here, before["b"]))
        assert _settled(here, ident, {"a": 1, "b": 1}) == before
        assert "TaskRescheduled" not in _kinds(here, ident)
        _end(here, ident)


def _ready(here: KaiService, node: str) -> bool:
    cluster = here.service._catalog().clusters["lab"].cluster
    return bool(cluster.ready[cluster.position[node]])


def _seen(here: KaiService, condition: Callable[[], bool]) -> None:
    here.lab.wait(condition, LIMIT_S, "the service sees it")
