from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from coterie.service.service import Service
from tests.service.api.asking import ended, post
from tests.service.serving import single, task, workflow


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


def test_logs_are_cut_to_their_last_lines(client: TestClient, service: Service) -> None:
    text = workflow("talk", {"g": [task("a", "echo 1; echo 2", "lead: true"), task("b", "echo 3")]})
    client.post("/api/pool/main/workflow", json={"file": text.source.decode()})
    ended(service, "talk-1")
    at = "/api/workflow/talk-1/logs"
    assert client.get(at).text == "[a] 1\n[a] 2\n[b] 3\n"
    assert client.get(at, params={"last_n_lines": 1}).text == "[b] 3\n"
    assert client.get(at, params={"task_name": "a", "retry_id": 0, "last_n_lines": 1}).text == "2\n"
    assert client.get(at, params={"task_name": "a", "retry_id": 1}).status_code == 404


def test_a_workflow_is_cancelled(client: TestClient, service: Service) -> None:
    post(client, "long", "sleep 60")
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
    post(client, "holds", "sleep 60", pool="half")
    service.wait("holds-1", lambda view: view["status"] == "RUNNING", timeout_s=30)
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
