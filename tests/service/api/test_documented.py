"""The examples of docs/api.md, one after the other, on a service in this process."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from coterie.service.service import Service
from tests.service.api.requests import ended

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
BLOCK = re.compile(r"```(console|json|text|yaml)\n(.*?)```", re.DOTALL)
SERVER = "http://127.0.0.1:8720"


def curl(line: str, client: TestClient, files: dict[str, str]) -> Any:
    """Send what a line of curl would send."""
    words = iter(shlex.split(line))
    assert next(words) == "curl"
    method, url, content = "", "", None
    headers: dict[str, str] = {}
    for word in words:
        match word:
            case "-N":
                pass
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                content = next(words)
            case "--data-binary":
                content = files[next(words).removeprefix("@")]
            case _:
                url = word
    assert url.startswith(SERVER), line
    method = method or ("GET" if content is None else "POST")
    return client.request(method, url.removeprefix(SERVER), content=content, headers=headers)


def unlike(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Return where an answer is not as shown; it may hold more."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [fault for key, value in wanted.items() for fault in unlike(value, found.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [fault for one, two in zip(wanted, found, strict=True) for fault in unlike(one, two, f"{path}[]")]
    return [] if wanted == found else [f"{path}: {found!r} instead of {wanted!r}"]


def test_every_example_answers_what_is_shown(client: TestClient, service: Service) -> None:
    files: dict[str, str] = {}
    names = iter(("hello.yaml", "pool.yaml"))
    answer: Any = None
    count = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        match kind:
            case "yaml":
                files[next(names)] = text
            case "console":
                if "/readyz" in text or "DELETE" in text:  # what the reader has waited for
                    ended(service, "hello-1" if "DELETE" in text else "short-1")
                if "placement" in text:
                    ended(service, "hello-1")
                answer = curl(text, client, files)
                assert answer.status_code < 500
                count += 1
            case "json":
                assert unlike(json.loads(text), answer.json()) == [], answer.text
            case "text":
                assert answer.text == text
    assert count >= 14


def test_every_path_is_told(client: TestClient) -> None:
    page = PAGE.read_text(encoding="utf-8")
    last_parts = {
        path.rstrip("/").rpartition("/")[2] for path in client.get("/api/v1/openapi.json").json()["paths"]
    } - {"{workflow}", "{name}", "{pool}"}
    assert {part for part in last_parts if part not in page} == set()
