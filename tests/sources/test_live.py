"""A live cluster is read like its snapshot."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from coterie.errors import SpecErrors
from coterie.kube.api import Api
from coterie.sources import live
from coterie.sources.kubectl import read_kubectl
from coterie.sources.live import snapshot_of
from tests.cli.command import call
from tests.kube.faulty_transport import Json, answer, api, status

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"


def node(number: int, **status_: Any) -> Json:
    status_.setdefault("allocatable", {"cpu": "96", "memory": "1Ti", GPU: "8", "pods": "110"})
    return {
        "metadata": {"name": f"n{number}", "uid": f"n{number}", "labels": {ZONE: f"z{number % 3}"}},
        "spec": {"unschedulable": True} if number % 7 == 3 else {},
        "status": {**status_, "conditions": [{"type": "Ready", "status": "True"}], "images": [{"sizeBytes": 1}] * 30},
    }


def pod(number: int, on: str | None, phase: str = "Running") -> Json:
    resources = {"requests": {"cpu": "500m", GPU: "1"}, "limits": {GPU: "1"}}
    fields = [{"manager": "kubelet", "fieldsV1": {f"f:{letter}": {} for letter in "abcdefghijklmnop"}}] * 3
    return {
        "metadata": {"name": f"p{number}", "namespace": "team", "uid": f"p{number}", "managedFields": fields},
        "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i", "resources": resources}] * 2},
        "status": {"phase": phase},
    }


def served(nodes: list[Json], pods: list[Json], **others: list[Json] | httpx2.Response) -> Any:
    """Return a server with these objects; of kinds that are not named it knows nothing."""
    kinds: dict[str, list[Json] | httpx2.Response] = {"nodes": nodes, "pods": pods, **others}

    def handler(request: httpx2.Request) -> httpx2.Response:
        found = kinds.get(request.url.path.rpartition("/")[2], status(404))
        if isinstance(found, httpx2.Response):
            return httpx2.Response(found.status_code, content=found.content)
        if "status.phase!=Succeeded" in request.url.params.get("fieldSelector", ""):
            found = [each for each in found if each["status"]["phase"] not in {"Succeeded", "Failed"}]
        start, limit = int(request.url.params.get("continue", "0")), int(request.url.params["limit"])
        meta = {"resourceVersion": "9", **({"continue": str(start + limit)} if start + limit < len(found) else {})}
        return answer({"items": found[start : start + limit], "metadata": meta})

    return handler


def test_a_live_cluster_is_read_as_kubectl_shows_it() -> None:
    nodes = [node(number) for number in range(40)]
    phases = ("Running", "Succeeded", "Pending", "Failed")
    pods = [pod(number, f"n{number % 41}" if number % 5 else None, phases[number % 4]) for number in range(1203)]
    listed = [{"kind": "Node", **each} for each in nodes] + [{"kind": "Pod", **each} for each in pods]
    shown = read_kubectl(json.dumps({"kind": "List", "items": listed}).encode(), "context:lab")

    found = snapshot_of(api(served(nodes, pods)))

    assert found.cluster.names == shown.cluster.names
    assert found.cluster.pods == shown.cluster.pods
    assert (found.cluster.allocatable == shown.cluster.allocatable).all()
    assert (found.cluster.cordoned == shown.cluster.cordoned).all()
    assert found.cluster.label(4, ZONE) == "z1"
    assert found.notices == shown.notices


def test_objects_that_declare_levels_are_read_where_there_are_any() -> None:
    meta = {"name": "t", "uid": "u"}
    spec = {"levels": [{"domain": "zone", "key": ZONE}]}

    found = snapshot_of(
        api(served([node(1)], [], clustertopologies=[{"kind": "ClusterTopology", "metadata": meta, "spec": spec}]))
    )

    assert found.objects == (
        {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopology", "metadata": meta, "spec": spec},
    )


def test_levels_that_may_not_be_read_are_told_of() -> None:
    forbidden = status(403, "Forbidden", 'User "u" cannot list')
    group = answer({"resources": [{"name": "clustertopologies"}]})

    quiet = snapshot_of(api(served([node(1)], [], clustertopologies=forbidden)))
    told = snapshot_of(api(served([node(1)], [], clustertopologies=forbidden, v1alpha1=group)))

    assert quiet.notices == ()
    (notice,) = told.notices
    assert notice.code == "TopologiesUnread"
    assert 'user "u" may not list clustertopologies' in notice.message


def test_a_cluster_without_nodes_is_refused() -> None:
    with pytest.raises(SpecErrors, match="no node"):
        snapshot_of(api(served([], [])))


def test_an_amount_that_is_none_names_the_object() -> None:
    with pytest.raises(SpecErrors) as caught:
        snapshot_of(api(served([node(1, allocatable={"cpu": "lots"}), node(2, allocatable={"cpu": "many"})], [])))

    assert [fault.message.partition(":")[0] for fault in caught.value.faults] == ['node "n1"', 'node "n2"']


def test_five_thousand_pods_are_read_with_one_request_for_each_page() -> None:
    server = served(
        [node(number) for number in range(500)], [pod(number, f"n{number % 500}") for number in range(5000)]
    )
    requested: Counter[str] = Counter()

    def counted(request: httpx2.Request) -> httpx2.Response:
        requested[str(request.url)] += 1
        found: httpx2.Response = server(request)
        return found

    found = snapshot_of(api(counted))

    assert len(found.cluster.pods) == 5000
    assert set(requested.values()) == {1}
    assert len(requested) < 50


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a kubeconfig whose cluster is played: forty nodes in three zones."""
    document = {
        "current-context": "lab",
        "clusters": [{"name": "c", "cluster": {"server": "https://c", "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    server = served([node(number) for number in range(40)], [pod(number, f"n{number}") for number in range(40)])

    def connect(context: str, **options: Any) -> Api:
        from coterie.kube.kubeconfig import choose  # noqa: PLC0415 - where the environment of the call is looked at

        return Api(choose(context), transport=httpx2.MockTransport(server), **options)

    monkeypatch.setattr(live, "connect", connect)
    return str(path)


@pytest.mark.parametrize("source", ["context:", "context:lab"])
def test_commands_take_a_context_for_a_cluster(kubeconfig: str, source: str, tmp_path: Path) -> None:
    flow = tmp_path / "w.yaml"
    flow.write_text(
        "workflow:\n  name: w\n  tasks:\n  - {name: t, image: i, command: [run]}\n"
        "resources:\n  default: {gpu: 4, topology: [{key: zone}]}\n",
        encoding="utf-8",
    )

    checked = call("check", source, KUBECONFIG=kubeconfig)
    drawn = call("map", source, KUBECONFIG=kubeconfig)
    fitted = call("fit", "--gpus", "6", "--level", "zone", source, KUBECONFIG=kubeconfig)
    planned = call("plan", flow, "--cluster", source, "--levels", f"zone={ZONE}", KUBECONFIG=kubeconfig)

    assert "40 nodes" in checked.out
    assert "40 nodes" in drawn.out
    assert (fitted.code, planned.code) == (0, 0)
    assert "1 placed" in planned.out
    assert "Traceback" not in checked.err + drawn.err + fitted.err + planned.err


def test_the_context_of_a_backend_is_its_cluster(kubeconfig: str, tmp_path: Path) -> None:
    config = tmp_path / "coterie.yaml"
    config.write_text(
        "backends:\n  prod: {scheduler: kai, context: lab}\n"
        f"pools:\n  p: {{backend: prod, topology_keys: [{{key: zone, label: {ZONE}}}]}}\n",
        encoding="utf-8",
    )

    assert "40 nodes" in call("map", "--config", config, KUBECONFIG=kubeconfig).out


def test_a_context_is_no_workflow(kubeconfig: str) -> None:
    done = call("plan", "context:lab", "--cluster", "context:lab", KUBECONFIG=kubeconfig)

    assert done.code == 2
    assert "a file is needed here" in done.err
