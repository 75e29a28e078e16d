"""The OSMO-compatible routes: submission, dry runs, lists, logs and unknown parameters."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coterie.service.api.app import create_app
from coterie.service.security import new_token
from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.service.api.requests import ended, error_of, post
from tests.service.running_service import ServiceFolder, single, task, workflow


def test_a_submission_answers_where_to_look(client: TestClient, service: Service) -> None:
    source = single("hello", "echo hello").source.decode()
    answer = client.post("/api/pool/main/workflow", json={"file": source, "set_variables": []})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "name": "hello-1",
        "overview": "/api/workflow/hello-1",
        "logs": "/api/workflow/hello-1/logs",
        "spec": "/api/workflow/hello-1/spec",
        "dashboard_url": "",
        "warnings": ["image is ignored: commands run on this machine, not in containers"],
    }
    ended(service, "hello-1")
    shown = client.get(answer.json()["overview"]).json()
    assert (shown["status"], shown["user"], shown["pool"]) == ("COMPLETED", "local", "main")
    (one,) = shown["groups"][0]["tasks"]
    assert (one["node_name"], one["retry_id"], one["exit_code"], one["lead"]) == ("r1-n1", 0, 0, True)
    assert client.get(answer.json()["logs"]).text == "[t] hello\n"
    assert client.get(answer.json()["spec"]).text == source
    assert client.get("/api/workflow/hello-1", params={"skip_groups": "true"}).json()["groups"] == []


@pytest.mark.parametrize("query", [{"dry_run": "true"}, {"validation_only": "true"}])
def test_a_rehearsal_stores_nothing(client: TestClient, query: dict[str, str]) -> None:
    answer = client.post("/api/pool/main/workflow", json={"file": single("x", "true").source.decode()}, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "name": "x",
        "overview": "",
        "logs": "",
        "spec": "",
        "dashboard_url": "",
        "warnings": [
            "image is ignored: commands run on this machine, not in containers",
            'placement of group "g": placed',
        ],
    }
    assert client.get("/api/workflow").json() == {"workflows": [], "more_entries": False}


def test_a_rehearsal_says_what_a_submission_would_say_and_why_it_would_wait(client: TestClient) -> None:
    text = workflow("big", {"g": [task("a", "true", "lead: true"), task("b", "true")]}, gpu=5).source.decode()
    dry = client.post("/api/pool/main/workflow", json={"file": text}, params={"dry_run": "true"}).json()
    real = client.post("/api/pool/main/workflow", json={"file": text}).json()
    assert len(real["warnings"]) == 2
    assert dry["warnings"][:2] == real["warnings"]
    assert dry["warnings"][2].startswith('placement of group "g": impossible: ')
    assert dry["warnings"][2].endswith("(NeverFits)")


def test_parameters_that_only_others_know_are_let_pass(client: TestClient) -> None:
    assert client.get("/api/workflow", params={"all_users": "true", "tags": "x"}).status_code == 200


def test_lists_have_offset_limit_and_order(client: TestClient) -> None:
    made = [post(client, name) for name in ("a", "b", "c", "d", "e")]

    def names(**query: object) -> tuple[list[str], bool]:
        page = client.get("/api/workflow", params=query).json()  # type: ignore[arg-type]
        return [row["name"] for row in page["workflows"]], page["more_entries"]

    assert names() == (made, False)
    assert names(order="DESC", limit=2) == (made[::-1][:2], True)
    assert names(order="DESC", offset=2, limit=2) == (made[::-1][2:4], True)
    assert names(order="ASC", offset=3, limit=2) == (made[:2], False)
    assert names(name="c") == (["c-1"], False)
    assert names(users="nobody") == ([], False)
    assert names(users=["nobody", "local"], pools=["main", "other"]) == (made, False)


def test_logs_are_cut_to_their_last_lines(client: TestClient, service: Service, tmp_path: Path) -> None:
    said = tmp_path / "said"
    # The group ends with its lead, which therefore waits for the other.
    lead = task("a", f"echo 1; echo 2; until [ -e {said} ]; do sleep 0.01; done", "lead: true")
    text = workflow("talk", {"g": [lead, task("b", f"echo 3; touch {said}")]})
    client.post("/api/pool/main/workflow", json={"file": text.source.decode()})
    ended(service, "talk-1")
    at = "/api/workflow/talk-1/logs"
    assert client.get(at).text == "[a] 1\n[a] 2\n[b] 3\n"
    assert client.get(at, params={"last_n_lines": 1}).text == "[b] 3\n"
    assert client.get(at, params={"task_name": "a", "retry_id": 0, "last_n_lines": 1}).text == "2\n"
    assert client.get(at, params={"task_name": "a", "retry_id": 1}).status_code == 404


def test_a_workflow_is_cancelled(client: TestClient, service: Service) -> None:
    post(client, "long", "sleep 600")
    answer = client.post("/api/workflow/long-1/cancel", params={"message": "enough", "force": "true"})
    assert (answer.status_code, answer.json()["name"]) == (200, "long-1")
    assert ended(service, "long-1")["status"] == "FAILED_CANCELED"


def test_pools_have_their_numbers_as_text(client: TestClient) -> None:
    for path in ("/api/pool", "/api/pool_quota"):
        found = client.get(path).json()
        (pool,) = found["node_sets"][0]["pools"]
        assert (pool["name"], pool["status"]) == ("main", "ONLINE")
        assert pool["topology_keys"][1] == {"key": "rack", "label": "topology.kubernetes.io/rack"}
        assert pool["resource_usage"] == {
            "quota_used": "0",
            "quota_limit": "32",
            "quota_free": "32",
            "total_usage": "0",
            "total_capacity": "32",
            "total_free": "32",
        }
        assert found["resource_sum"] == pool["resource_usage"]


def test_nodes_that_pools_share_are_counted_once(client: TestClient, service: Service) -> None:
    half = {"backend": "lab", "node_selector": {"topology.kubernetes.io/rack": "r1"}, "gpus": {"limit": 10}}
    client.put("/api/v1/pools/half", json=half)
    post(client, "holds", "sleep 600", pool="half")
    service.wait("holds-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    found = client.get("/api/pool_quota").json()
    by_name = {pool["name"]: pool["resource_usage"] for pool in found["node_sets"][0]["pools"]}
    assert (by_name["main"]["total_capacity"], by_name["half"]["total_capacity"]) == ("32", "16")
    assert found["resource_sum"] == {
        "quota_used": "4",
        "quota_limit": "42",
        "quota_free": "38",
        "total_usage": "4",
        "total_capacity": "32",
        "total_free": "28",
    }
    client.post("/api/v1/workflows/holds-1/cancel", json={"force": True})
    ended(service, "holds-1")


AT = "/api/pool/main/workflow"


def test_the_last_lines_of_long_logs_are_their_last_lines(client: TestClient, service: Service) -> None:
    post(client, "long", "seq 1 400000")
    ended(service, "long-1")
    at = "/api/workflow/long-1/logs"
    assert client.get(at, params={"task_name": "t", "last_n_lines": 2}).text == "399999\n400000\n"
    assert client.get(at, params={"last_n_lines": 2}).text == "[t] 399999\n[t] 400000\n"
    for query in ({"task_name": "t"}, {}):
        whole = client.get(at, params=query).text.splitlines()
        assert whole[-1].endswith("400000")
        assert len({len(line) for line in whole}) == 1  # no line is cut


def test_every_task_has_its_end_in_the_log_of_all(client: TestClient, service: Service) -> None:
    tasks = [task(f"t{n}", f"seq 1 20000; echo end {n}", "" if n else "lead: true") for n in range(20)]
    text = workflow("many", {"g": tasks}, gpu=1).source.decode()
    minds_all = text.replace("  - name: g\n", "  - name: g\n    ignoreNonleadStatus: false\n")
    client.post(AT, json={"file": minds_all})
    ended(service, "many-1")
    text = client.get("/api/workflow/many-1/logs").text
    assert [f"[t{n}] end {n}\n" in text for n in range(20)] == [True] * 20
    assert len(text) < 1 << 21


def test_variables_of_the_environment_are_refused_and_not_dropped(client: TestClient) -> None:
    body = {"file": single("x", "true").source.decode()}
    answer = client.post(AT, json=body, params={"env_vars": "LR=0.1"})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "BadRequest")
    assert "environment" in error_of(answer)["hint"]
    assert client.get("/api/workflow").json()["workflows"] == []


def test_an_earlier_workflow_is_run_once_more(client: TestClient, service: Service) -> None:
    body = {"file": single("again", "echo {{ word }}").source.decode(), "set_variables": ["word=hello"]}
    assert client.post(AT, json=body).status_code == 200
    answer = client.post(AT, params={"workflow_id": "again-1", "priority": "HIGH"})
    assert (answer.status_code, answer.json()["name"]) == (200, "again-2"), answer.text
    assert ended(service, "again-2")["priority"] == "HIGH"
    assert client.get("/api/workflow/again-2/logs").text == "[t] hello\n"
    assert client.post(AT, params={"workflow_id": "no-1"}).status_code == 404


def test_either_a_workflow_or_an_earlier_one_is_sent(client: TestClient) -> None:
    body = {"file": single("x", "true").source.decode()}
    for answer in (client.post(AT), client.post(AT, json=body, params={"workflow_id": "x-1"})):
        assert (answer.status_code, error_of(answer)["code"]) == (400, "BadRequest")
    assert client.get("/api/workflow").json()["workflows"] == []


def test_files_of_somebody_elses_workflow_are_not_run(service: Service) -> None:
    now = service.settings.now()
    bob = {"authorization": f"Bearer {new_token(service.store, 'bob', 'user', now=now)}"}
    text = workflow("files", {"g": [task("t", "cat {{output}}", "files: [{path: /tmp/a, localpath: a}]")]}).source
    service.submit(Submission(text, local_files={"a": b"secret"}, owner="ann"))
    app = create_app(service, open_to_all=False)
    answer = TestClient(app).post(AT, params={"workflow_id": "files-1"}, headers=bob)
    assert (answer.status_code, error_of(answer)["code"]) == (403, "Forbidden")


def test_what_failed_is_restarted_in_its_pool(client: TestClient, service: Service, tmp_path: Path) -> None:
    post(client, "flaky", f"test -e {tmp_path}/fixed")
    ended(service, "flaky-1")
    (tmp_path / "fixed").touch()
    client.put("/api/v1/pools/other", json={"backend": "lab"})
    elsewhere = client.post("/api/pool/other/workflow/flaky-1/restart")
    assert (elsewhere.status_code, error_of(elsewhere)["code"]) == (400, "BadRequest")
    answer = client.post(f"{AT}/flaky-1/restart")
    assert (answer.status_code, answer.json()["name"]) == (200, "flaky-1"), answer.text
    service.wait("flaky-1", lambda view: view["status"] == "COMPLETED" and view["finished"], timeout_s=60)
    assert client.post(f"{AT}/flaky-1/restart").status_code == 409
    assert client.post(f"{AT}/no-1/restart").status_code == 404


def test_events_and_error_logs_are_lines(client: TestClient, service: Service) -> None:
    text = workflow("half", {"g": [task("a", "echo fine", "lead: true")], "h": [task("b", "echo bad; exit 3")]})
    client.post(AT, json={"file": text.source.decode()})
    ended(service, "half-1")
    assert client.get("/api/workflow/half-1/error_logs").text == "[b] bad\n"
    assert client.get("/api/workflow/half-1/error_logs", params={"task_name": "a"}).text == "fine\n"
    lines = client.get("/api/workflow/half-1/events").text.splitlines()
    assert len(lines) == len(service.events(workflow="half-1"))
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[[\w-]+\] \w+: .", line) for line in lines)
    only = client.get("/api/workflow/half-1/events", params={"task_name": "b", "retry_id": 0}).text.splitlines()
    assert only
    assert all(" [b] " in line for line in only)
    assert client.get("/api/workflow/half-1/events", params={"last_n_lines": 1}).text.splitlines() == lines[-1:]
    assert client.get("/api/workflow/half-1/events", params={"task_name": "c"}).status_code == 404


def test_pools_are_chosen_by_name(client: TestClient) -> None:
    half = {"backend": "lab", "node_selector": {"topology.kubernetes.io/rack": "r1"}}
    client.put("/api/v1/pools/half", json=half)
    for path in ("/api/pool", "/api/pool_quota"):
        found = client.get(path, params={"pools": ["half", "half"]}).json()
        assert [pool["name"] for nodes in found["node_sets"] for pool in nodes["pools"]] == ["half"]
        assert (found["resource_sum"]["total_capacity"], found["resource_sum"]["quota_limit"]) == ("16", "16")
        answer = client.get(path, params={"pools": "hlaf"})
        assert (answer.status_code, error_of(answer)["message"]) == (404, 'there is no pool "hlaf"')


def test_a_node_that_takes_no_work_is_not_in_use(tmp_path: Path) -> None:
    cluster = "nodes:\n- {name: a, gpu: 4}\n- {name: b, gpu: 4, cordoned: true}\n"
    config = "backends: {lab: {scheduler: local, cluster: cluster.yaml}}\npools: {main: {backend: lab}}\n"
    service = Service(ServiceFolder(tmp_path / "place", config=config, cluster=cluster).settings())
    try:
        found = TestClient(create_app(service, open_to_all=True)).get("/api/pool_quota").json()["resource_sum"]
        assert (found["total_capacity"], found["total_usage"], found["total_free"]) == ("8", "0", "4")
    finally:
        service.stop()


def test_gpus_of_every_vendor_are_counted(tmp_path: Path) -> None:
    cluster = "nodes:\n- {name: a, gpu: 4}\n- {name: b, allocatable: {amd.com/gpu: 8}}\n"
    cluster += "pods:\n- {owner: other, nodes: [b], requests: {amd.com/gpu: 2}}\n"
    config = "backends: {lab: {scheduler: local, cluster: cluster.yaml}}\npools: {main: {backend: lab}}\n"
    service = Service(ServiceFolder(tmp_path / "place", config=config, cluster=cluster).settings())
    try:
        client = TestClient(create_app(service, open_to_all=True))
        (node,) = client.get("/api/resources/b").json()["resources"]
        assert (node["allocatable_fields"]["gpu"], node["non_workflow_usage_fields"]["gpu"]) == (8, 2)
        total = client.get("/api/pool_quota").json()["resource_sum"]
        assert (total["total_capacity"], total["total_usage"], total["total_free"]) == ("12", "2", "10")
    finally:
        service.stop()


def test_nodes_are_listed_with_what_is_in_use(client: TestClient, service: Service) -> None:
    half = {"backend": "lab", "node_selector": {"topology.kubernetes.io/rack": "r1"}}
    client.put("/api/v1/pools/half", json=half)
    post(client, "holds", "sleep 600", pool="half", gpu=3)
    service.wait("holds-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    (node,) = client.get("/api/resources/r1-n1").json()["resources"]
    assert node == {
        "hostname": "r1-n1",
        "backend": "lab",
        "exposed_fields": {"node": "r1-n1", "pool/platform": ["main/", "half/"]},
        "pool_platform_labels": {"main": [], "half": []},
        "allocatable_fields": {"cpu": 32, "gpu": 4, "memory": 256, "storage": 0},
        "usage_fields": {"cpu": 1, "gpu": 3, "memory": 0, "storage": 0},
        "non_workflow_usage_fields": {"cpu": 0, "gpu": 0, "memory": 0, "storage": 0},
        "label_fields": node["label_fields"],
        "taints": [],
        "conditions": ["Ready"],
        "resource_type": "SHARED",
    }
    assert node["label_fields"]["topology.kubernetes.io/rack"] == "r1"

    def names(**query: object) -> list[str]:
        found = client.get("/api/resources", params=query).json()["resources"]  # type: ignore[arg-type]
        return [one["hostname"] for one in found]

    assert len(names()) == len(names(pools=["main", "half"])) == 8
    assert names(pools="half") == ["r1-n1", "r1-n2", "r1-n3", "r1-n4"]
    assert names(pools="half", platforms="none") == []
    assert client.get("/api/resources", params={"pools": "no"}).status_code == 404
    assert client.get("/api/resources", params={"concise": "true"}).status_code == 400
    missing = client.get("/api/resources/r1-n9")
    assert (missing.status_code, error_of(missing)["message"]) == (404, 'there is no node "r1-n9"')
    client.post("/api/v1/workflows/holds-1/cancel", json={"force": True})
    ended(service, "holds-1")


def test_tasks_of_all_workflows_are_listed(client: TestClient, service: Service) -> None:
    text = workflow("pair", {"g": [task("a", "true")], "h": [task("b", "true")]}, gpu=2)
    client.post(AT, json={"file": text.source.decode()})
    post(client, "fails", "exit 1", gpu=1)
    for ident in ("pair-1", "fails-1"):
        ended(service, ident)

    def names(**query: object) -> list[str]:
        found = client.get("/api/task", params=query).json()["tasks"]  # type: ignore[arg-type]
        return [f"{one['workflow_id']}/{one['task_name']}" for one in found]

    assert names(order="DESC") == ["fails-1/t", "pair-1/a", "pair-1/b"]
    assert names() == names(order="DESC")[::-1]
    assert names(workflow_id="pair-1", limit=1) == ["pair-1/a"]
    assert names(workflow_id="pair-1", offset=1) == ["pair-1/b"]
    assert names(statuses=["FAILED", "RUNNING"]) == ["fails-1/t"]
    assert names(users="nobody") == names(workflow_id="pair-1", users="nobody") == names(pools="other") == []
    assert len(names(users="local", pools="main")) == 3
    assert names(nodes="r9-n9") == names(started_after="2100-01-01") == names(started_before="2000-01-01") == []
    assert len(names(started_after="2000-01-01", started_before="2100-01-01T00:00:00Z")) == 3
    (failed,) = client.get("/api/task", params={"workflow_id": "fails-1"}).json()["tasks"]
    assert (failed["user"], failed["pool"], failed["status"], failed["retry_id"]) == ("local", "main", "FAILED", 0)
    assert (failed["cpu"], failed["gpu"], failed["memory"], failed["storage"]) == (1, 1, 0, 0)
    assert client.get(failed["error_logs"]).status_code == 200
    for query, status in (
        ({"workflow_id": "no-1"}, 404),
        ({"statuses": "BUSY"}, 400),
        ({"summary": "true"}, 400),
        ({"aggregate_by_workflow": "true"}, 400),
    ):
        answer = client.get("/api/task", params=query)
        assert answer.status_code == status
        error_of(answer)


def test_it_says_that_it_is_well_and_which_version_it_is(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    found = client.get("/api/version").json()
    assert set(found) == {"major", "minor", "revision", "hash"}
    assert version("coterie").startswith(f"{found['major']}.{found['minor']}")
