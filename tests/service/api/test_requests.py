"""The accepted fields of a request, and the faults of all others."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from coterie.errors import Hint, Mention
from coterie.inspection.page_files import PageFiles
from coterie.service.api.hints import for_both, for_commands, in_api
from coterie.service.service import Service
from coterie.service.work_limit import WorkLimit
from tests.service.api.requests import body, error_of
from tests.service.running_service import CONFIG, single, task, workflow

AT = "/api/v1/workflows"
YAML = {"content-type": "application/yaml"}


@pytest.mark.parametrize(
    ("method", "path", "query", "hint"),
    [
        ("POST", AT, "dryrun=true", 'Did you mean "dry_run"? Allowed parameters are: '),
        ("GET", AT, "statuz=RUNNING", 'Did you mean "status"? Allowed parameters are: '),
        ("PUT", "/api/v1/pools/x", "dry-run=true", 'Did you mean "dry_run"? Allowed parameters are: file, dry_run'),
        ("GET", "/api/v1/workflows/x/logs", "last=5", "Allowed parameters are: "),
        ("GET", "/api/v1/events", "since=5", "Allowed parameters are: after, limit, follow."),
        ("POST", "/api/v1/workflows/x/cancel", "force=true", "There are no parameters here."),
        ("GET", "/api/v1/whoami", "verbose=1", "There are no parameters here."),
    ],
)
def test_a_parameter_that_does_not_exist_is_refused(
    client: TestClient, method: str, path: str, query: str, hint: str
) -> None:
    answer = client.request(method, f"{path}?{query}", content=single("x", "true").source, headers=YAML)
    assert answer.status_code == 422, answer.text
    error = error_of(answer)
    (fault,) = error["errors"]
    assert (error["code"], fault["code"]) == ("InvalidRequest", "InvalidRequest")
    assert fault["message"] == f"query.{query.partition('=')[0]}: there is no such parameter"
    assert fault["hint"].startswith(hint)
    assert error["hint"] == fault["hint"]
    assert client.get(AT).json()["items"] == []


def test_all_parameters_that_do_not_exist_are_told_at_once(client: TestClient) -> None:
    error = error_of(client.get(AT, params={"statuz": "RUNNING", "limit": "5", "page": "1"}))
    assert [fault["message"].partition(":")[0] for fault in error["errors"]] == ["query.statuz", "query.page"]


@pytest.mark.parametrize(
    ("path", "sent", "hint"),
    [
        (AT, {"json": {"source": "x", "sauce": "y"}}, 'Did you mean "source"? Allowed fields are: source, file, pool'),
        (AT, {"json": {}}, "It is required."),
        (AT, {"json": {"source": "x", "priority": "SOON"}}, "See the schema: /api/v1/openapi.json."),
        (AT, {"content": b"{", "headers": {"content-type": "application/json"}}, "Send a JSON object."),
        (f"{AT}?dry_run=perhaps", {"content": b"x", "headers": YAML}, "Write true or false."),
        (f"{AT}?plan=x", {"content": b"x", "headers": YAML}, "See the schema: /api/v1/openapi.json."),
        (f"{AT}/one/cancel", {"json": {"forse": True}}, 'Did you mean "force"? Allowed fields are: message, force.'),
        (f"{AT}/one/retry", {"json": {"tsk": "t"}}, 'Did you mean "task"? Allowed fields are: task.'),
    ],
)
def test_faults_of_a_request_have_one_code_and_a_hint(
    client: TestClient, path: str, sent: dict[str, Any], hint: str
) -> None:
    answer = client.post(path, **sent)
    assert answer.status_code == 422, answer.text
    error = error_of(answer)
    assert {error["code"], *(fault["code"] for fault in error["errors"])} == {"InvalidRequest"}
    assert error["errors"][0]["hint"].startswith(hint)


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ({"label": ["a=b", "c=d"]}, {"a": "b", "c": "d"}),
        ({"labels": {"a": "b"}}, {"a": "b"}),
        ({"label": ["a=b"], "labels": {"a": "b", "c": "d"}}, {"a": "b", "c": "d"}),
    ],
)
def test_labels_are_written_as_in_a_query_or_as_an_object(
    client: TestClient, more: dict[str, object], labels: dict[str, str]
) -> None:
    answer = client.post(AT, json=body(single("x", "true"), **more))
    assert (answer.status_code, answer.json()["labels"]) == (201, labels)


def test_labels_that_disagree_are_refused(client: TestClient) -> None:
    answer = client.post(AT, json=body(single("x", "true"), label=["a=b"], labels={"a": "c"}))
    assert (answer.status_code, error_of(answer)["message"]) == (400, 'label and labels disagree about "a"')


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Hint("Add --pool with one of: a.", "--pool"), "Add --pool with one of: a. (In the API: ?pool=)"),
        (Hint("Set it.", "--set", "--set-string"), "Set it. (In the API: ?set=, ?set_string=)"),
        (
            Hint("Cancel it first: coterie cancel w-1", Mention("coterie cancel", "w-1")),
            "Cancel it first: coterie cancel w-1 (In the API: POST /api/v1/workflows/w-1/cancel)",
        ),
        ("Give one with --levels.", "Give one with --levels."),
        ("", ""),
    ],
)
def test_hints_about_the_command_line_also_say_what_a_request_holds(hint: str, said: str) -> None:
    words = in_api(hint)
    assert for_both(hint, words) == said
    assert for_commands(said, words) == hint


def test_hints_of_the_api_are_in_its_words(client: TestClient) -> None:
    client.put("/api/v1/pools/wide", json={"backend": "lab"})
    which = error_of(client.post(AT, json=body(single("x", "true"))))
    assert which["hint"] == "Add --pool with one of: main, wide. (In the API: ?pool=)"
    unset = error_of(client.post(AT, json=body(single("x", "echo {{ word }}"), pool="main")))
    assert unset["errors"][0]["hint"].endswith("with --set word=VALUE. (In the API: ?set=)")
    assert unset["hint"] == unset["errors"][0]["hint"]


OTHER = CONFIG.replace("pools:\n", "  far: {scheduler: default}\npools:\n  away: {backend: far}\n")


@pytest.mark.parametrize("service", [OTHER], indirect=True)
def test_a_pool_that_this_service_does_not_drive_is_refused_alike(client: TestClient) -> None:
    wanted = body(single("x", "true"), pool="away")
    answers = [
        client.post(AT, json=wanted),
        client.post(AT, json=wanted, params={"dry_run": "true"}),
        client.post("/api/v1/plan", json=wanted),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 400]
    assert len({answer.text for answer in answers}) == 1
    assert client.get("/api/v1/pools/away/map").status_code == 400
    assert "retry-after" not in client.get("/api/v1/topologies/away").headers


def test_a_dry_run_refuses_and_warns_like_a_submission(client: TestClient) -> None:
    read = workflow("reads", {"g": [task("t", "cat {{input:0}}/x", "inputs: [{url: s3://x}]")]})
    dry, real = (client.post(AT, json=body(read), params=query) for query in ({"dry_run": "true"}, {}))
    assert (dry.status_code, real.status_code, dry.text) == (422, 422, real.text)
    assert "{{input:0}}" in error_of(real)["message"]
    assert error_of(real)["location"]["line"]
    planned = client.post("/api/v1/plan", json=body(read))
    assert planned.status_code == 200, "a plan asks only where it fits"
    big = body(workflow("big", {"g": [task("t", "true", "inputs: [{url: s3://x}]")]}, gpu=5))
    dry, real = (client.post(AT, json=big, params={query: "true"}) for query in ("dry_run", "force"))
    told = real.json()["warnings"]
    assert {one["code"] for one in told} == {"FieldIgnored", "NeverFits"}
    assert [one for one in told if one not in dry.json()["warnings"]] == []


@pytest.mark.parametrize(
    ("path", "name", "most"),
    [
        (AT, "label", 16),
        (AT, "status", 100),
        (AT, "pool", 100),
        (AT, "owner", 100),
        ("/api/workflow", "label", 16),
        ("/api/workflow", "statuses", 100),
        ("/api/workflow", "users", 100),
        ("/api/workflow", "pools", 100),
        ("/api/pool_quota", "pools", 100),
        ("/api/resources", "pools", 100),
    ],
)
def test_no_parameter_is_repeated_without_end(client: TestClient, path: str, name: str, most: int) -> None:
    def asked(count: int) -> Any:
        value = {"label": "k{}=", "status": "RUNNING", "statuses": "RUNNING"}.get(name, "main")
        return client.get(path, params=[(name, value.format(number)) for number in range(count)])

    assert asked(most).status_code == 200, asked(most).text
    refused = asked(most + 1)
    assert refused.status_code == 422, refused.text
    assert error_of(refused)["errors"][0]["hint"] == "Send fewer."


@pytest.mark.parametrize("name", ["label", "set", "set_string"])
def test_no_parameter_of_a_submission_is_repeated_without_end(client: TestClient, name: str) -> None:
    query = {name: [f"k{number}=v" for number in range(1001)]}
    answer = client.post(AT, content=single("x", "true").source, headers=YAML, params=query)
    assert (answer.status_code, error_of(answer)["code"]) == (422, "InvalidRequest")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{AT}/a%2Fb", 'there is no workflow "a/b"'),
        (f"{AT}/a%2Fb/why", 'there is no workflow "a/b"'),
        ("/api/workflow/a%2Fb/logs", 'there is no workflow "a/b"'),
        ("/api/v1/pools/a%2Fb", 'there is no pool "a/b"'),
        ("/api/v1/topologies/a%2F%2Fb", 'there is no pool "a//b"'),
        (f"{AT}/a/b", f'there is no path "{AT}/a/b"'),
        ("/nowhere?x=1", 'there is no path "/nowhere"'),
    ],
)
def test_what_is_not_there_is_named(client: TestClient, path: str, message: str) -> None:
    answer = client.get(path)
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["message"]) == (404, "NotFound", message)
    if "%2F" in path:
        assert 'has a "/" in its name. List them: coterie ' in error["hint"]
        assert "(In the API: GET /api/v1/" in error["hint"]
    else:
        assert error["hint"] == "All paths are listed in /api/v1/openapi.json."


DIGITS = "9" * 4400
PARTS = ".".join("a" * 2000)
TEXT = single("x", "true").source.decode()


@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        ("POST", AT, {"json": {"source": TEXT, "set": [f"{PARTS}=1"]}}),
        ("POST", AT, {"json": {"source": TEXT, "set_string": [f"{PARTS}=1"]}}),
        ("POST", AT, {"json": {"source": TEXT.replace("gpu: 4", f"gpu: {DIGITS}")}}),
        ("POST", AT, {"json": {"source": TEXT.replace("version: 2", f"version: {DIGITS}")}}),
        ("POST", AT, {"json": {"source": f"default-values: {{n: {DIGITS}}}\n{TEXT}"}}),
        ("POST", AT, {"json": {"source": TEXT.replace("gpu: 4", "gpu: {{ n }}"), "set": [f"n={DIGITS}"]}}),
        (
            "POST",
            AT,
            {"content": f'{{"source": "x", "labels": {DIGITS}}}', "headers": {"content-type": "application/json"}},
        ),
        ("POST", "/api/v1/plan", {"json": {"source": TEXT, "set": [f"{PARTS}=1"]}}),
        ("PUT", "/api/v1/pools/new", {"content": f"backend: lab\ngpus: {{limit: {DIGITS}}}\n", "headers": YAML}),
        ("GET", AT, {"params": {"limit": DIGITS}}),
        ("GET", "/api/v1/events", {"params": {"after": DIGITS}}),
        ("GET", "/api/workflow", {"params": {"offset": DIGITS}}),
    ],
)
def test_very_long_numbers_and_names_are_refused_in_words(
    client: TestClient, method: str, path: str, given: dict[str, Any]
) -> None:
    answer = client.request(method, path, **given)
    assert 400 <= answer.status_code < 500, answer.text[:500]
    error = error_of(answer)
    assert error["message"]
    assert len(error["message"]) < 2000


@pytest.mark.parametrize(
    ("path", "limited", "text"),
    [
        ("/api/v1/plan", "_plans", TEXT),
        (AT, "_submissions", TEXT),
        (AT, "_large", f"{TEXT}{{# a template #}}\n"),
        (AT, "_large", TEXT + "# a long text\n" * 3000),
    ],
)
def test_work_for_which_there_is_no_place_is_told_when_to_come_again(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch, path: str, limited: str, text: str
) -> None:
    limit = WorkLimit("texts", running=1, waiting=0, each=9)
    monkeypatch.setattr(service, limited, limit)
    with limit.place("another caller"):
        answer = client.post(path, json={"source": text})
        assert answer.status_code == 503, answer.text
        assert answer.headers["retry-after"] == "5"
        assert "too many texts are already waiting" in error_of(answer)["message"]
    assert client.post(path, json={"source": text}).is_success


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/nowhere", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("/pools/a/b", "text/html", "text/html"),
        ("/nowhere", "*/*", "application/json"),
        ("/assets/none.js", "text/html", "application/json"),
        ("/api/v1/nowhere", "text/html", "application/json"),
        ("/api/nowhere", "text/html", "application/json"),
    ],
)
def test_only_a_browser_gets_the_page_for_an_address_without_one(
    client: TestClient, path: str, accept: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.app.state, "page", PageFiles(b"<!doctype html>", {}))  # type: ignore[attr-defined]
    answer = client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (404, kind)
    posted = client.post(path, headers={"accept": accept})
    assert posted.headers["content-type"] == "application/json"
