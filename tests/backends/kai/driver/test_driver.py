"""The driver of a cluster: the faults that it reports beside its observations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from coterie.backends.base.driver import WorkflowTexts
from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver import driver as kai_driver
from coterie.backends.kai.driver.driver import KaiDriver
from tests.eventually import PATIENCE_S
from tests.kube.faulty_transport import Stream, api, page, thing


def test_leftovers_are_problems_that_keep_the_driver_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    queue = thing("q1")
    queue["metadata"] |= {
        "labels": {"coterie.dev/store": "s1", "coterie.dev/pool": "p", "coterie.dev/backend": "old"},
        "managedFields": [{"manager": "coterie"}],
    }
    objects: dict[str, list[dict[str, Any]]] = {"queues": [queue]}

    def quiet() -> Iterator[bytes]:
        over.wait(PATIENCE_S)
        yield from ()

    def server(request: httpx2.Request) -> httpx2.Response:
        if "watch" in request.url.params:
            return httpx2.Response(200, stream=Stream(quiet()))
        return page(objects.get(request.url.path.rsplit("/", 1)[1], []))

    monkeypatch.setattr(kai_driver, "connect", lambda *_, **__: api(server))
    settings = DriverSettings(tmp_path, namespace="jobs", store="s1", backend="own", backends=["own"])
    driver = KaiDriver(settings, cast("WorkflowTexts", None))
    try:
        driver.end_strays({}, ())
        assert list(driver.news()) == []
        (words,) = driver.problems
        assert words.startswith('Queue q1: left by backend "old"')
        objects.clear()
        driver.end_strays({}, ())
        assert (list(driver.news()), driver.problems) == ([], [])
    finally:
        over.set()
        driver.close()
