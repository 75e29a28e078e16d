"""The webhook without a cluster: registered only when it can answer, and able to answer bodies of any size and kind."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from coterie.errors import Unavailable
from coterie.frontends.admission import KnownTopologies
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.operator import Operator
from coterie.operator.settings import OperatorSettings
from coterie.operator.webhook.server import _MOST_BYTES, PATH, Reviewer, Webhook, webhook_app
from tests.eventually import eventually

PIECE = bytes(1 << 20)


def posted(content: bytes | AsyncIterator[bytes], metrics: OperatorMetrics | None = None) -> httpx2.Response:
    app = webhook_app(Reviewer(lambda: KnownTopologies({}, told=True)), metrics or OperatorMetrics())

    async def post() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://webhook") as client:
            return await client.post(PATH, content=content)

    return asyncio.run(post())


def test_a_body_beyond_the_limit_is_not_read_to_its_end() -> None:
    sent: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while len(sent) < 100:
            sent.append(len(PIECE))
            yield PIECE

    assert posted(endless()).status_code == 413
    assert sum(sent) <= _MOST_BYTES + 2 * len(PIECE)


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("text", "other"),
        ([], "other"),
        (None, "other"),
        ({"kind": 3}, "other"),
        ({"kind": "x" * 500}, "other"),
        ({"kind": "PodCliqueSet"}, "PodCliqueSet"),
    ],
)
def test_a_kind_of_any_form_is_answered_and_counted_under_a_known_name(kind: Any, counted: str) -> None:
    metrics = OperatorMetrics()
    review = {"request": {"uid": "1", "operation": "DELETE", "kind": kind}}

    assert posted(json.dumps(review).encode(), metrics).status_code == 200
    assert f'decisions_total{{decision="allowed",kind="{counted}"}} 1.0' in metrics.text().decode()


def test_nothing_is_registered_before_everything_was_read() -> None:
    read = threading.Event()
    told: list[bytes] = []
    app = webhook_app(Reviewer(lambda: None), OperatorMetrics())
    webhook = Webhook(app, "127.0.0.1", 0, told.append, ready=read.is_set, check_s=0.02)
    webhook.start()
    try:
        eventually(lambda: webhook.checks > 2)
        assert (told, webhook.registered) == ([], False)
        read.set()
        eventually(lambda: webhook.registered)
        assert len(told) == 1
    finally:
        webhook.stop()


def test_a_taken_address_ends_the_start_before_the_cluster_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = OperatorSettings(listen=f"127.0.0.1:{taken.getsockname()[1]}", webhook="127.0.0.1:0")
        with pytest.raises(Unavailable, match="cannot listen"), Operator(settings):
            pass
