"""The nodes of a pool as the page follows them: changes are small, and a follower that was away misses none."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from coterie.service.api.page.live_map import KEPT, LiveMaps
from coterie.service.service import Service
from tests.service.api.requests import ended, error_of, post, team
from tests.service.running_service import workflow


def held(nodes: list[dict[str, object]]) -> set[str]:
    return {str(each["task"]) for node in nodes for each in node["held"]}  # type: ignore[attr-defined]


def test_a_follower_gets_the_map_once_and_then_only_nodes_that_changed(service: Service) -> None:
    maps = LiveMaps(service)
    first = maps.news("main", None)
    ((number, kind, data),) = first.events
    assert (number, kind, len(json.loads(data)["nodes"])) == (first.number, "map", 8)
    assert first.unreachable is None
    assert maps.news("main", first.number).events == ()
    service.submit(workflow("pair", {"g": team(2, "sleep 600")}, topology="[{key: rack}]"))
    service.wait("pair-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    later = maps.news("main", first.number)
    changed = [node for _, kind, data in later.events for node in json.loads(data)["nodes"] if kind == "change"]
    assert held(changed) == {"t0", "t1"}
    assert {each["group"] for node in changed for each in node["held"]} == {"g"}
    assert len({node["index"] for node in changed}) == 2
    # Resumed from where it was, and from too long ago.
    assert maps.news("main", first.number).events == later.events
    assert [kind for _, kind, _ in maps.news("main", first.number - KEPT).events] == ["map"]
    assert [kind for _, kind, _ in maps.news("main", later.number + 1).events] == ["map"]
    service.cancel("pair-1", force=True)
    ended(service, "pair-1")


def test_another_pool_layout_is_told_as_a_whole(service: Service, client: TestClient) -> None:
    maps = LiveMaps(service)
    zone = {"key": "zone", "label": "topology.kubernetes.io/zone"}
    rack = {"key": "rack", "label": "topology.kubernetes.io/rack"}
    client.put("/api/v1/pools/odd", json={"backend": "lab", "topology_keys": [zone, rack]})
    first = maps.news("odd", None)
    client.put("/api/v1/pools/odd", json={"backend": "lab", "topology_keys": [rack]})
    assert [kind for _, kind, _ in maps.news("odd", first.number).events] == ["map"]


def test_nodes_name_their_domains_and_their_tasks(service: Service, client: TestClient) -> None:
    post(client, "one", "sleep 600")
    service.wait("one-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    found = client.get("/api/v1/pools/main/nodes").json()
    assert [(each["level"], each["parent"], each["value"]) for each in found["domains"]] == [
        (0, -1, "a"),
        (1, 0, "r1"),
        (1, 0, "r2"),
    ]
    assert [found["domains"][node["domain"]]["value"] for node in found["nodes"]] == ["r1"] * 4 + ["r2"] * 4
    (holder,) = [each for node in found["nodes"] for each in node["held"]]
    assert holder == {"owner": "one-1", "group": "g", "task": "t", "gpus": 4}
    service.cancel("one-1", force=True)
    ended(service, "one-1")


def test_a_stream_of_a_pool_that_is_not_there_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/pools/none/nodes", headers={"accept": "text/event-stream"})
    assert (answer.status_code, error_of(answer)["code"]) == (404, "NotFound")


UNSEEN = """
backends:
  filed: {scheduler: kai, cluster: cluster.yaml}
pools:
  unseen: {backend: filed, topology_keys: [{key: rack, label: topology.kubernetes.io/rack}]}
"""


@pytest.mark.parametrize("service", [UNSEEN], indirect=True)
def test_a_stream_of_nodes_that_are_not_known_ends_with_the_error_of_the_list(client: TestClient) -> None:
    listed = client.get("/api/v1/pools/unseen/nodes")
    assert (listed.status_code, error_of(listed)["code"]) == (400, "BadRequest")
    stream = client.get("/api/v1/pools/unseen/nodes", headers={"accept": "text/event-stream"})
    assert stream.status_code == 200
    *_, last = stream.text.strip().split("\n\n")
    kind, _, data = last.partition("\ndata: ")
    assert (kind, json.loads(data)) == ("event: end", {"reason": "refused", "error": error_of(listed)})


def test_a_service_without_the_page_says_how_to_get_it(client: TestClient) -> None:
    app = client.app
    app.state.page = None  # type: ignore[attr-defined]
    answer = client.get("/")
    assert answer.status_code == 404
    assert "Node.js" in answer.text
