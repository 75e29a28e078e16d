"""The end of objects on a real cluster: orphans, stuck ComputeDomains, foreign objects, and two services."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab.api import ApiError

from coterie.backends.kai.driver import own_objects, removal
from coterie.backends.kai.driver import pools as pool_objects
from coterie.backends.kai.driver.creation import create
from coterie.backends.kai.driver.observation import nvlink_channels
from coterie.backends.kai.driver.own_objects import apply_own
from coterie.backends.kai.driver.pools import PoolObjects
from coterie.backends.kai.manifests import objects
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.config.configuration import Pool
from coterie.errors import UsageError
from coterie.kube.api import connect
from coterie.kube.apply import apply
from coterie.kube.delete import delete
from coterie.kube.errors import ApiForbidden
from coterie.kube.reads import find
from coterie.service.driver import board
from coterie.topology.levels import Level, Topology
from lab import Lab
from tests.kai.driver.service_on_kai import OWN, ZONE, KaiService, add_nodes, serving, settings
from tests.service.running_service import task, workflow

PAIR = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
HOLD = "example.com/hold"


@pytest.fixture
def nvl(lab: Lab) -> Lab:
    """Give the shared lab with two racks of two nodes."""
    add_nodes(lab)
    return lab


def test_a_held_compute_domain_or_pod_group_is_reported_as_stuck_and_the_workflow_finishes(
    nvl: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "STUCK_S", 3.0)
    with serving(nvl, settings(tmp_path, nvlink=True)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8))
        here.running(ident, 2)
        before = _claims(here, ident)
        names = {}
        for kind in ("podgroups.scheduling.run.ai", "computedomains"):
            (found,) = nvl.objects(kind, selector=OWN)
            names[kind] = name = found["metadata"]["name"]
            held = [*found["metadata"].get("finalizers", ()), HOLD]
            nvl.api.patch(kind, name, {"metadata": {"finalizers": held}}, "default")
        here.service.cancel(ident)

        def stuck() -> bool:
            words = [f"{name} of workflow {ident} has been stuck for" for name in names.values()]
            return all(each in here.problems() for each in words)

        nvl.wait(stuck, 90, "both are stuck")
        assert HOLD in here.problems()
        assert here.finished(ident) == "FAILED_CANCELED"
        # All else is gone; a retry does not meet the old ones.
        assert set(here.left()) == set(names)
        here.service.retry(ident)
        here.running(ident, 2)
        # The same claims, of a ComputeDomain of its own.
        after = _claims(here, ident)
        assert {task: one.keys() for task, one in after.items()} == {task: one.keys() for task, one in before.items()}
        templates = [{name for one in found.values() for name in one.values()} for found in (before, after)]
        assert [len(each) for each in templates] == [1, 1]
        assert templates[0].isdisjoint(templates[1])
        for kind, name in names.items():
            nvl.api.patch(kind, name, {"metadata": {"finalizers": None}}, "default")
        nvl.wait(lambda: "stuck" not in here.problems(), 60, "nothing is stuck")
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def _claims(here: KaiService, ident: str) -> dict[str, dict[str, str]]:
    """Return the claims of the tasks of a workflow, and the templates of which they are made."""
    return {
        pod["metadata"]["labels"]["coterie.dev/task"]: {
            one["name"]: one["resourceClaimTemplateName"] for one in pod["spec"]["resourceClaims"]
        }
        for pod in here.pods(ident)
    }


def test_a_channel_left_behind_is_named_with_its_node_until_its_claim_is_gone(
    nvl: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvlink_channels, "UNUSED_S", 0.5)
    device = "compute-domain-default-channel.nvidia.com"
    request = {"name": "channel", "exactly": {"deviceClassName": device}}
    result = {"request": "channel", "driver": "compute-domain.nvidia.com", "pool": "r1-n1", "device": "channel-0"}
    with serving(nvl, settings(tmp_path, nvlink=True)) as here:
        nvl.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "left", "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        allocated = {"status": {"allocation": {"devices": {"results": [result]}}}}
        nvl.api.patch("resourceclaims", "left", allocated, "default", status=True)
        words = "the NVLink channel of node r1-n1 is held by ResourceClaim default/left, which no pod uses"
        nvl.wait(lambda: words in here.problems(), 30, "the channel is named")
        nvl.api.delete("resourceclaims", "left", "default")
        nvl.wait(lambda: words not in here.problems(), 30, "the channel is free")


def test_orphans_are_swept_at_the_start_and_later_and_foreign_objects_are_left_alone(
    nvl: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_AGAIN_S", 1.0)
    found = settings(tmp_path)
    with serving(nvl, found) as here:
        ident = here.submit(workflow("train", PAIR, gpu=1))
        here.running(ident, 2)
        store = here.pods(ident)[0]["metadata"]["labels"]["coterie.dev/store"]
        (group,) = nvl.objects("podgroups.scheduling.run.ai", selector=OWN)
    _own(nvl, _renamed(group, "orphan", **{"coterie.dev/workflow": "forgotten-1"}))
    foreign = _config_map("somebodys", store, "forgotten-1")
    nvl.apply(foreign)
    other = _config_map("of-another-store", "0000000000000000", "train-1")
    _own(nvl, other)
    with serving(nvl, found) as here:
        gone = "podgroups.scheduling.run.ai"
        nvl.wait(lambda: nvl.get(gone, "orphan") is None, 60, "the orphan is gone")
        nvl.wait(lambda: "ConfigMap somebodys" in here.problems(), 60, "the foreign object is reported")
        # And from time to time, for as long as the service runs.
        _own(nvl, _renamed(group, "later", **{"coterie.dev/workflow": "forgotten-2"}))
        nvl.wait(lambda: nvl.get(gone, "later") is None, 60, "the later orphan is gone")
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {"configmaps": ["of-another-store", "somebodys"]}


def test_an_object_of_the_same_name_is_adopted_by_its_store_and_content_and_never_somebody_elses(nvl: Lab) -> None:
    ours, theirs = "1111111111111111", "0000000000000000"

    def made(store: str, value: str) -> dict[str, Any]:
        return {**_config_map("same", store, "train-1"), "data": {"key": value}}

    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same", "namespace": "default"}}
    foreign: dict[str, Callable[[], object]] = {
        "another service's": lambda: _own(nvl, made(theirs, "theirs")),
        "another service's, with the same content": lambda: _own(nvl, made(theirs, "ours")),
        "somebody's, without a field in common": lambda: nvl.apply(plain),
        "somebody's copy of ours": lambda: nvl.apply(made(ours, "ours")),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        with connect() as api:
            for whose, write in foreign.items():
                write()
                before = nvl.get("configmaps", "same")
                for _ in range(2):
                    with pytest.raises(UsageError, match='there is a ConfigMap "same" of somebody else'):
                        list(create(api, [made(ours, "ours")], lambda _: ""))
                    with pytest.raises(UsageError, match='there is a ConfigMap "same" of somebody else'):
                        apply_own(api, made(ours, "ours"))
                assert nvl.get("configmaps", "same") == before, whose
                nvl.api.delete("configmaps", "same", "default")

            list(create(api, [made(ours, "ours")], lambda _: ""))
            first = nvl.get("configmaps", "same")
            # A crash may have come before the answer: the object is the same, whether it is created or applied again.
            list(create(api, [made(ours, "ours")], lambda _: ""))
            apply_own(api, made(ours, "ours"))
            again = nvl.get("configmaps", "same")
            assert first
            assert again
            assert first["data"] == again["data"] == {"key": "ours"}
            assert first["metadata"]["uid"] == again["metadata"]["uid"]
            # What somebody changed is taken back, and nothing else of the object is touched.
            nvl.api.patch("configmaps", "same", {"data": {"key": "changed", "more": "theirs"}}, "default")
            list(create(api, [made(ours, "ours")], lambda _: ""))
            taken = nvl.get("configmaps", "same")
            assert taken
            assert taken["data"] == {"key": "ours", "more": "theirs"}


def test_a_priority_class_of_rendered_manifests_serves_all_services(nvl: Lab) -> None:
    made = copy.deepcopy(next(iter(objects.priority_classes())))
    made["metadata"]["name"] = "coterie-rendered"
    nvl.apply(made)
    before = nvl.get("priorityclasses", "coterie-rendered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        with connect() as api:
            apply_own(api, made)
    after = nvl.get("priorityclasses", "coterie-rendered")
    assert before
    assert after
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert before["value"] == after["value"]


def test_a_pool_whose_queue_is_somebody_elses_keeps_no_other_pool_back(nvl: Lab) -> None:
    store = "2222222222222222"
    pools = [Pool(name, "lab", "kai") for name in ("taken", "free")]
    scene = ManifestContext("default", "", pools[0], store=store)
    (queue,) = [each for each in objects.shared(scene) if each["spec"].get("parentQueue")]
    nvl.apply(queue)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        with connect() as api:
            refused = PoolObjects(api, "default", store, "lab").sync(pools)
    assert list(refused) == ["taken"]
    assert "of somebody else" in str(refused["taken"])
    assert any(one["metadata"]["name"].startswith("coterie-default-free") for one in nvl.objects("queues"))


def test_queues_and_topologies_of_an_earlier_version_are_adopted_or_removed_and_those_in_use_stay(nvl: Lab) -> None:
    store, backend = "3333333333333333", "coterie.dev/backend"
    levels = Topology((Level("zone", ZONE),))
    pools = {name: Pool(name, "lab", "kai", topology=levels) for name in ("kept", "former", "used")}
    pools["other"] = Pool("other", "two", "kai", topology=levels)
    names: dict[str, set[tuple[str, str]]] = {}
    for name, pool in pools.items():
        _, *manifests = objects.shared(ManifestContext("default", "", pool, store=store))
        for one in manifests:
            if name != "other":
                # As before objects carried their backend.
                del one["metadata"]["labels"][backend]
            _own(nvl, one)
        names[name] = {(one["kind"].lower(), one["metadata"]["name"]) for one in manifests}
    (queue,) = [name for kind, name in names["used"] if kind == "queue"]
    (topology,) = [name for kind, name in names["used"] if kind == "topology"]
    constraint = {"topology": topology, "requiredTopologyLevel": ZONE}
    group = {**_config_map("in-use", store, "train-1"), "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
    _own(nvl, {**group, "spec": {"queue": queue, "minMember": 1, "topologyConstraint": constraint}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        with connect() as api:
            shared = PoolObjects(api, "default", store, "lab")
            assert shared.sync([pools["kept"]]) == {}
            # The gang is in a namespace of another backend.
            shared.sweep([])
    left = {name for name, some in names.items() if all(nvl.get(kind, one) for kind, one in some)}
    assert left == {"kept", "used", "other"}
    assert not any(nvl.get(kind, one) for kind, one in names["former"])
    adopted = filter(None, (nvl.get(kind, name) for kind, name in names["kept"]))
    assert [one["metadata"]["labels"].get(backend) for one in adopted] == ["lab", "lab"]
    assert {(kind.name.lower(), meta.name) for kind, meta in shared.others} == names["other"]


def test_a_queue_that_another_backend_takes_over_during_a_sweep_stays(
    nvl: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "4444444444444444"
    (_, queue) = objects.queues(ManifestContext("default", "", Pool("former", "lab", "kai"), store=store))
    _own(nvl, queue)
    name = queue["metadata"]["name"]

    def taken_over(*arguments: Any, **options: Any) -> bool:
        nvl.api.patch("queues", name, {"metadata": {"labels": {"coterie.dev/backend": "two"}}})
        return delete(*arguments, **options)

    monkeypatch.setattr(pool_objects, "delete", taken_over)
    monkeypatch.setenv("KUBECONFIG", str(nvl.kubeconfig))
    with connect() as api:
        shared = PoolObjects(api, "default", store, "lab")
        shared.sweep([])
        found = nvl.get("queues", name)
        assert found
        assert found["metadata"]["labels"]["coterie.dev/backend"] == "two"
        monkeypatch.undo()
        monkeypatch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        PoolObjects(api, "default", store, "two").sweep([])
    assert nvl.get("queues", name) is None


def test_a_queue_that_somebody_makes_at_the_same_moment_stays_as_it_is(
    nvl: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, queue) = objects.queues(ManifestContext("default", "", Pool("p", "lab", "kai"), store="5555555555555555"))
    nvl.apply({**queue, "spec": {**queue["spec"], "parentQueue": "theirs"}})
    before = nvl.get("queues", queue["metadata"]["name"])
    looks: list[int] = []

    def first_unseen(*arguments: Any) -> Any:
        looks.append(1)
        return None if len(looks) == 1 else find(*arguments)

    monkeypatch.setattr(own_objects, "find", first_unseen)
    monkeypatch.setenv("KUBECONFIG", str(nvl.kubeconfig))
    with connect() as api, pytest.raises(UsageError, match="of somebody else"):
        apply_own(api, queue)
    assert nvl.get("queues", queue["metadata"]["name"]) == before


def test_a_quota_that_the_lost_answer_of_a_creation_has_used_up_does_not_refuse_the_object(nvl: Lab) -> None:
    pod = _config_map("only", "1111111111111111", "train-1")
    pod |= {"kind": "Pod", "spec": {"containers": [{"name": "task", "image": "i"}], "schedulerName": "nobody"}}
    with pytest.MonkeyPatch.context() as patch, _quota(nvl):
        patch.setenv("KUBECONFIG", str(nvl.kubeconfig))
        with connect() as api:
            list(create(api, [pod], lambda _: ""))
            first = nvl.get("pods", "only")
            list(create(api, [pod], lambda _: ""))
            again = nvl.get("pods", "only")
            assert first
            assert again
            assert first["metadata"]["uid"] == again["metadata"]["uid"]
            other = {**pod, "metadata": {**pod["metadata"], "name": "other"}}
            with pytest.raises(ApiForbidden, match="exceeded quota"):
                list(create(api, [other], lambda _: ""))
            nvl.api.delete("pods", "only", "default", grace=0)


@contextmanager
def _quota(lab: Lab) -> Iterator[None]:
    """Allow one pod in the namespace, for as long as the block lasts."""
    metadata = {"name": "few", "namespace": "default"}
    lab.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "1"}}})
    try:
        # The API server learns of a quota after a moment: by then it would refuse any pod.
        _set_used(lab, 1)
        lab.wait(lambda: _is_full(lab), 60, "the quota counts")
        _set_used(lab, 0)
        yield
    finally:
        lab.api.delete("resourcequotas", "few", "default")


def test_two_services_in_one_namespace_never_touch_each_other(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path / "one")) as one, serving(nvl, settings(tmp_path / "two")) as two:
        first = one.submit(workflow("train", PAIR, gpu=1))
        second = two.submit(workflow("train", PAIR, gpu=1))
        assert first == second
        one.running(first, 2)
        two.running(second, 2)
        assert len(one.pods(first)) == 4
        assert len({each["metadata"]["name"] for each in nvl.objects("queues", selector=OWN)}) == 4
        one.service.cancel(first)
        assert one.finished(first) == "FAILED_CANCELED"
        assert len(two.pods(second)) == 2
        assert two.status(second) == "RUNNING"
        two.service.cancel(second)
        two.finished(second)
        assert two.left() == {}


TWINS = """
backends:
  one: {scheduler: kai, namespace: default}
  two: {scheduler: kai, namespace: default}
pools:
  one: {backend: one}
  two: {backend: two}
"""


def test_two_backends_in_one_namespace_leave_each_others_gangs_and_queues_alone(nvl: Lab, tmp_path: Path) -> None:
    found = settings(tmp_path, config=TWINS)
    with serving(nvl, found) as here:
        idents = {name: here.submit(replace(workflow(name, PAIR, gpu=1), pool=name)) for name in ("one", "two")}
        for ident in idents.values():
            here.running(ident, 2)
        queues = [one for one in nvl.objects("queues", selector=OWN) if one["spec"].get("parentQueue")]
    assert len(queues) == 2
    # What the sweep of each backend removes, by which the test knows that it has taken place.
    for queue in queues:
        old = _renamed(queue, f"old-{queue['metadata']['labels']['coterie.dev/backend']}")
        del old["metadata"]["namespace"]
        _own(nvl, old)
    left = _renamed(queues[0], "of-a-former-backend", **{"coterie.dev/backend": "renamed"})
    del left["metadata"]["namespace"]
    _own(nvl, left)
    with serving(nvl, found) as here:
        nvl.wait(lambda: not any(nvl.get("queues", f"old-{name}") for name in idents), 60, "both have swept")
        words = 'Queue of-a-former-backend: left by backend "renamed", which is not in the configuration'
        nvl.wait(lambda: words in here.problems(), 60, "what a former backend has left is named")
        assert 'left by backend "two"' not in here.problems()
        assert {one["metadata"]["uid"] for one in queues} <= {one["metadata"]["uid"] for one in nvl.objects("queues")}
        for ident in idents.values():
            here.end(ident, "a")
            assert here.finished(ident) == "COMPLETED"
            assert {one["attempt"] for one in here.tasks(ident).values()} == {1}
        nvl.wait(lambda: here.left() == {}, 60, "nothing is left")


def test_a_gang_of_which_the_cluster_refuses_a_pod_fails_and_leaves_nothing(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path)) as here, _quota(nvl):
        ident = here.submit(workflow("train", PAIR, gpu=1))
        assert here.finished(ident) == "FAILED_BACKEND_ERROR"
        assert "exceeded quota" in here.tasks(ident)["a"]["message"]
        assert here.left() == {}


def _set_used(lab: Lab, count: int) -> None:
    """Say how many pods of the quota are in use: no controller of quotas runs in the lab."""
    status = {"hard": {"pods": "1"}, "used": {"pods": str(count)}}
    lab.api.patch("resourcequotas", "few", {"status": status}, "default", status=True)


def _is_full(lab: Lab) -> bool:
    """Return whether the API server refuses a pod because of the quota."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    try:
        lab.api.request("POST", "/api/v1/namespaces/default/pods", {**pod, "spec": spec}, params={"dryRun": "All"})
    except ApiError as error:
        return "exceeded quota" in str(error)
    return False


def _own(lab: Lab, manifest: dict[str, Any]) -> None:
    """Write an object as a service does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(lab.kubeconfig))
        with connect() as api:
            apply(api, manifest)


def _renamed(item: dict[str, Any], name: str, **labels: str) -> dict[str, Any]:
    found = copy.deepcopy(item)
    own = {**found["metadata"]["labels"], **labels}
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {"name": name, "namespace": "default", "labels": own},
        "spec": found["spec"],
    }


def _config_map(name: str, store: str, ident: str) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/managed-by": "coterie",
        "coterie.dev/store": store,
        "coterie.dev/workflow": ident,
        "coterie.dev/group": "g",
        "coterie.dev/attempt": "1",
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
    }
