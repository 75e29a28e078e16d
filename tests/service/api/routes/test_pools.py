"""The routes of pools: creation, changes, conflicts, dry runs, deletion and faults."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from coterie.service.service import Service
from tests.service.api.requests import error_of, post

AT = "/api/v1/pools"
WIDE = {"backend": "lab", "topology_keys": [{"key": "zone", "label": "topology.kubernetes.io/zone"}]}
YAML = {"content-type": "application/yaml"}


def test_pools_are_made_changed_and_deleted(client: TestClient) -> None:
    made = client.put(f"{AT}/wide", json=WIDE)
    assert made.status_code == 200, made.text
    assert (made.json()["created"], made.json()["changed"]) == (True, True)
    assert client.put(f"{AT}/wide", json=WIDE).json()["changed"] is False
    names = [pool["name"] for pool in client.get(AT).json()["items"]]
    assert names == ["main", "wide"]
    shown = client.get(f"{AT}/wide").json()
    assert (shown["nodes"], shown["gpus"]["total"], shown["managed"]) == (8, 32, False)
    assert client.delete(f"{AT}/wide").status_code == 204
    assert client.get(f"{AT}/wide").status_code == 404


def test_a_pool_is_sent_as_yaml_with_places_in_its_faults(client: TestClient) -> None:
    good = "backend: lab\ntopology_keys:\n- {key: rack, label: topology.kubernetes.io/rack}\n"
    assert client.put(f"{AT}/y", content=good, headers=YAML).status_code == 200
    bad = "backend: lba\ntopology_kees: []\n"
    answer = client.put(f"{AT}/y", content=bad, headers=YAML, params={"file": "y.yaml"})
    assert answer.status_code == 422
    error = error_of(answer)
    assert 2 in {fault["line"] for fault in error["errors"]}
    assert error["location"]["file"] == "y.yaml"


def test_a_dry_run_of_a_pool_changes_nothing(client: TestClient) -> None:
    answer = client.put(f"{AT}/wide", json=WIDE, params={"dry_run": "true"})
    assert (answer.json()["dry_run"], answer.json()["created"]) == (True, True)
    assert client.get(f"{AT}/wide").status_code == 404


def test_a_pool_that_somebody_else_changed_is_not_overwritten(client: TestClient) -> None:
    version = client.put(f"{AT}/wide", json=WIDE, params={"version": 0}).json()["pool"]["version"]
    other = {**WIDE, "description": "other"}
    assert client.put(f"{AT}/wide", json=other, params={"version": version}).status_code == 200
    assert client.put(f"{AT}/wide", json=WIDE, params={"version": version}).status_code == 409


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"gpus": {"weight": NaN}}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"- x", "application/yaml", 422),
        (b"backend: lab\ngpus: {weight: .nan}", "application/yaml", 422),
        (b"\xff", "application/yaml", 422),
        (b"backend: lab", "text/html", 415),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(client: TestClient, content: bytes, kind: str, status: int) -> None:
    answer = client.put(f"{AT}/x", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    error_of(answer)


def test_a_pool_of_the_file_is_not_changed_and_one_in_use_is_not_deleted(client: TestClient, service: Service) -> None:
    assert client.put(f"{AT}/main", json=WIDE).status_code == 409
    assert client.delete(f"{AT}/main").status_code == 409
    client.put(f"{AT}/wide", json=WIDE)
    held = [post(client, "held", "sleep 600", pool="wide", gpu=0) for _ in range(21)]
    answer = client.delete(f"{AT}/wide")
    assert answer.status_code == 409
    error = error_of(answer)
    assert error["message"] == f'pool "wide" is in use by {", ".join(held[:20])} and 1 more'
    assert error["details"] == {"workflows": held}
    for ident in held:
        client.post(f"/api/v1/workflows/{ident}/cancel", json={"force": True})
    for ident in held:
        service.wait(ident, timeout_s=60)


def test_levels_domains_and_the_map_are_shown(client: TestClient) -> None:
    topology = client.get("/api/v1/topologies/main").json()
    assert [(level["key"], level["domains"]) for level in topology["levels"]] == [("zone", 1), ("rack", 2)]
    assert [domain["path"] for domain in topology["domains"]] == [["a"], ["a", "r1"], ["a", "r2"]]
    assert client.get("/api/v1/topologies").json()["items"] == [topology]
    drawn = client.get(f"{AT}/main/map").json()
    assert (drawn["node_count"], [area["value"] for area in drawn["domains"][0]["domains"]]) == (8, ["r1", "r2"])
    for path in ("/api/v1/topologies/mian", f"{AT}/mian", f"{AT}/mian/map"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert 'Did you mean "main"?' in error_of(answer)["hint"]
