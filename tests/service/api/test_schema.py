"""The published schema: complete, true of the service's answers, and no input makes the service fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from pydantic import BaseModel
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.control import SkipTest
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from coterie.service.api.app import create_app
from coterie.service.api.models import nodes, plans, pools, state, workflows
from coterie.service.api.models.base import ResponseBody
from coterie.service.service import Service
from tests.service.api.requests import body, ended, post, team, waiting
from tests.service.running_service import ServiceFolder, single, workflow

Json = dict[str, Any]


def unlike(model: type[BaseModel], found: Any, path: str = "") -> Iterator[str]:
    """Yield where the fields of an answer are not those that its model names; only optional ones may be missing."""
    fields = model.model_fields
    for name in fields.keys() ^ found.keys():
        if name in found or fields[name].is_required():
            yield f"{path}.{name}"
    for name in fields.keys() & found.keys():
        yield from _unlike_value(fields[name].annotation, found[name], f"{path}.{name}")


def _unlike_value(kind: Any, value: Any, path: str) -> Iterator[str]:
    if get_origin(kind) in {Union, UnionType}:
        kind = next(each for each in get_args(kind) if each is not type(None))
    if value is None:
        return
    if get_origin(kind) is list:
        for each in value:
            yield from _unlike_value(get_args(kind)[0], each, f"{path}[]")
    elif isinstance(kind, type) and issubclass(kind, ResponseBody):
        yield from unlike(kind, value, path)


def test_models_name_exactly_what_the_service_answers(client: TestClient, service: Service) -> None:
    post(client, "fails", "exit 1")
    ended(service, "fails-1")
    client.post("/api/v1/workflows/fails-1/retry")
    service.wait("fails-1", lambda view: view["finished"] and view["groups"][0]["tasks"][0]["past"], timeout_s=60)
    kept = workflow("kept", {"g": team(8, "sleep 600")}, topology="[{key: rack, requirementType: preferred}]")
    client.post("/api/v1/workflows", json=body(kept, pool="main"))
    service.wait("kept-1", lambda view: view["status"] == "RUNNING", timeout_s=60)
    post(client, "later")
    waiting(service, "later-1")
    made = client.put("/api/v1/pools/odd", json={"backend": "lab", "topology_keys": [{"key": "x", "label": "nope/x"}]})
    assert made.json()["pool"]["warnings"]
    big = client.post("/api/v1/plan", json=body(kept, pool="main")).json()
    found: list[tuple[type[ResponseBody], Json]] = [
        (workflows.Workflow, client.get("/api/v1/workflows/fails-1").json()),
        (workflows.Workflow, client.get("/api/v1/workflows/kept-1").json()),
        (workflows.Workflow, client.get("/api/v1/workflows/later-1").json()),
        (workflows.Rows, client.get("/api/v1/workflows").json()),
        (workflows.Why, client.get("/api/v1/workflows/later-1/why").json()),
        (workflows.Placement, client.get("/api/v1/workflows/kept-1/placement").json()),
        (workflows.Source, client.get("/api/v1/workflows/kept-1/spec").json()),
        (plans.Plan, big),
        (plans.Plan, client.post("/api/v1/plan", json=body(single("x", "true", gpu=1), pool="main")).json()),
        (pools.Applied, made.json()),
        (pools.Pools, client.get("/api/v1/pools").json()),
        (pools.PoolHistory, client.get("/api/v1/pools/main/history").json()),
        (pools.Topologies, client.get("/api/v1/topologies").json()),
        (pools.TopologyUsers, client.get("/api/v1/topologies/main/users?levels=zone").json()),
        (pools.Map, client.get("/api/v1/pools/main/map").json()),
        (nodes.NodeMap, client.get("/api/v1/pools/main/nodes").json()),
        (state.Events, client.get("/api/v1/events").json()),
        (state.Health, client.get("/api/v1/health").json()),
    ]
    assert {model.__name__: list(unlike(model, answer)) for model, answer in found if list(unlike(model, answer))} == {}
    client.post("/api/v1/workflows/kept-1/cancel", json={"force": True})
    ended(service, "kept-1")


def test_every_operation_has_words_a_name_and_a_typed_answer(client: TestClient) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    names: list[str] = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            names.append(operation["operationId"])
            assert operation["description"], (path, method)
            good = [code for code in operation["responses"] if code.startswith("2")]
            assert good, (path, method)
            for code in good:
                content = operation["responses"][code].get("content", {})
                assert content or code == "204", (path, method, code)
                assert all(each["schema"] for each in content.values()), (path, method, code)
            assert {"400", "401", "403", "404", "409", "422", "503"} <= set(operation["responses"])
    assert len(names) == len(set(names))


OPERATIONS = [
    (path, method)
    for path, methods in create_app(cast("Service", None), open_to_all=True).openapi()["paths"].items()
    for method in methods
]
KNOWN = {"workflow": "one-1", "name": "two-1", "pool": "main"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One service for all cases: workflows are submitted, and none of them is run."""
    service = Service(ServiceFolder(tmp_path_factory.mktemp("fuzz") / "place").settings())
    for name in ("one", "two"):
        service.submit(single(name, "true"))
    service.store.acquire("somebody", time.time(), 1e6)
    yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(service, open_to_all=True))
    service.stop()


@pytest.mark.slow("sends many inputs to every operation")
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_input_makes_the_service_fail(fuzzed: Any, path: str, method: str, mode: GenerationMode) -> None:
    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=fuzzed[path][method].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        # Half of all cases ask for something that is there.
        for key, value in (case.path_parameters or {}).items():
            if key in KNOWN and len(str(value)) % 2:
                case.path_parameters[key] = KNOWN[key]
        if path.endswith(("/events", "/logs", "/nodes")):
            case.query = {**(case.query or {}), "follow": "false"}
        case.call_and_validate(checks=CHECKS)

    with suppress(SkipTest, Unsatisfiable):  # nothing about some operations can be wrong
        ask()
