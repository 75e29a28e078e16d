"""The `why` requests: all the evidence, and the outcome of a group under hypothetical changes."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from starlette.testclient import TestClient

from coterie.service.api.models import workflows as models
from coterie.service.service import Service
from tests.service.api.requests import body, error_of, post, team, waiting
from tests.service.running_service import workflow

AT = "/api/v1/workflows"
RACK = "[{key: rack}]"


@pytest.fixture
def crowded(client: TestClient, service: Service) -> TestClient:
    """Return the API of a service in which a task holds a node of each rack, and a gang of four waits for a rack."""
    both = workflow(
        "both",
        {"g": team(8, "sleep 600")},
        gpu=1,
        rest="      nodesExcluded: [r1-n1, r1-n2, r1-n3, r2-n5, r2-n6, r2-n7]\n",
    )
    client.post(AT, json=body(both))
    service.wait("both-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    client.post(AT, json=body(workflow("later", {"g": team(4)}, topology=RACK)))
    waiting(service, "later-1")
    return client


def why(client: TestClient, **params: Any) -> Any:
    answer = client.get(f"{AT}/later-1/why", params=params)
    assert answer.status_code == 200, answer.text
    (group,) = answer.json()["groups"]
    return group


def test_the_evidence_is_there_when_it_is_asked_for_and_only_then(crowded: TestClient) -> None:
    (choice,) = why(crowded, verbose=True)["alternatives"]

    assert "alternatives" not in why(crowded)
    assert choice["counted"] == {
        "nodes": {"total": 8, "good": 6, "excluded": [{"why": "full", "count": 2}]},
        "domains": {"total": 2, "good": 0, "excluded": [{"why": "full", "count": 2}]},
    }
    assert [(one["domain"], one["fits"], one["wanted"]) for one in choice["domains"]] == [
        (["a", "r1"], 3, 4),
        (["a", "r2"], 3, 4),
    ]
    models.WhyInDetail.model_validate(crowded.get(f"{AT}/later-1/why", params={"verbose": True}).json())


@pytest.mark.parametrize(
    ("params", "nodes"),
    [
        ({"without": "both-1"}, 4),
        ({"prefer": "rack"}, 4),
        ({"coarsen": "rack"}, 4),
        ({"tasks": "g=3"}, 3),
    ],
)
def test_what_if_shows_where_it_would_go(crowded: TestClient, params: dict[str, str], nodes: int) -> None:
    group = why(crowded, **params)

    assert (group["verdict"], group["refusal"]) == ("placed", None)
    assert len({one["node"] for one in group["assignments"]}) == nodes
    assert why(crowded)["verdict"] == "waiting"


def test_a_change_that_does_not_help_is_explained_and_ways_out_add_to_it(crowded: TestClient) -> None:
    group = why(crowded, tasks="g=4")

    assert group["verdict"] == "waiting"
    for way in group["refusal"]["ways_out"]:
        words = shlex.split(way["command"])
        assert words[:5] == ["coterie", "why", "later-1/g", "--tasks", "g=4"]


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"tasks": f"g={'9' * 4400}"}, 400, "is not GROUP=N"),
        ({"tasks": "g=²"}, 400, "is not GROUP=N"),
        ({"prefer": "rak"}, 404, 'Did you mean "rack"?'),
        ({"without": "nobody"}, 404, "nobody"),
        ({"uncordon": "n99"}, 404, "n99"),
        ({"tasks": "g"}, 400, "GROUP=N"),
        ({"coarsen": "zone"}, 400, "coarsest"),
        ({"verbos": "true"}, 422, "verbose"),
    ],
)
def test_what_there_is_not_is_said(crowded: TestClient, params: dict[str, str], status: int, words: str) -> None:
    answer = crowded.get(f"{AT}/later-1/why", params=params)
    error = error_of(answer)

    assert answer.status_code == status
    assert words in str(error)


def test_a_workflow_that_does_not_wait_has_nothing_to_ask_about(client: TestClient, service: Service) -> None:
    ident = post(client, "quick")
    service.wait(ident, timeout_s=60)

    assert client.get(f"{AT}/{ident}/why", params={"verbose": True, "prefer": "rack"}).json()["groups"] == []
