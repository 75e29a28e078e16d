"""The domains of a task's node, which its pod waits for and finds in its environment."""

from __future__ import annotations

from coterie.backends.kai.manifests.domain_values import domain_values
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.render import ServiceRun
from tests.backends.kai.builders import PAIR, POOL, of_kind, rendered

RUN = ServiceRun("w-1", "s1", "NORMAL")


def test_pods_of_a_service_name_a_map_that_exists_before_them_and_start_when_it_has_their_task() -> None:
    found = rendered(PAIR, run=RUN)
    (created,) = of_kind(found, "ConfigMap")
    kinds = [one["kind"] for one in found.manifests]
    assert created["data"] == {}
    assert kinds.index("ConfigMap") < kinds.index("Pod")
    for pod in of_kind(found, "Pod"):
        task = pod["metadata"]["labels"]["coterie.dev/task"]
        (volume,) = pod["spec"]["volumes"]
        # Not optional: the kubelet waits until the key is there.
        assert volume["configMap"] == {
            "name": created["metadata"]["name"],
            "items": [{"key": task, "path": "node"}],
        }
        keys = {
            one["name"]: one["valueFrom"]["configMapKeyRef"]["key"]
            for one in pod["spec"]["containers"][0]["env"]
            if "configMapKeyRef" in one.get("valueFrom", {})
        }
        assert keys == {
            f"COTERIE_DOMAIN_{level.name.upper()}": f"{task}.{level.name}" for level in POOL.topology.levels
        }


def test_the_map_has_the_labels_of_the_nodes_and_lacks_what_they_lack() -> None:
    zone, rack, *_ = POOL.topology.levels
    scene = ManifestContext("default", "w-1", POOL, store="s1")
    nodes = {
        "a": ("n1", {zone.label: "z", rack.label: "r", "other": "x"}),
        "b": ("n2", {zone.label: "z", rack.label: ""}),
    }
    found = domain_values(scene, "g", 2, nodes)
    assert found["data"] == {
        "a": "n1",
        f"a.{zone.name}": "z",
        f"a.{rack.name}": "r",
        "b": "n2",
        f"b.{zone.name}": "z",
    }
    (created,) = of_kind(rendered(PAIR, run=RUN, attempt=2), "ConfigMap")
    assert found["metadata"] == created["metadata"]


def test_manifests_for_a_user_wait_for_nobody() -> None:
    assert of_kind(rendered(PAIR), "ConfigMap") == []
