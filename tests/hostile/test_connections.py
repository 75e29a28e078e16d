"""Connections that send nothing, take every handle, stay for ever or leave early delay and block nobody else."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.hostile.served import PATIENCE_S, Served, served
from tests.service.running_service import task, workflow

pytestmark = pytest.mark.hostile

EVENTS = "/api/v1/events?follow=true"


def answers(server: Served) -> bool:
    return bool(server.client.get("/healthz").status_code == 200)


def test_unfinished_heads_time_out(tmp_path: Path) -> None:
    with served(tmp_path, head_s=1.0) as server, ExitStack() as stack:
        slow = [stack.enter_context(server.connected()) for _ in range(20)]
        for one in slow:
            with suppress(ConnectionError):  # a busy machine may have made it wait for too long already
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost")
        eventually(lambda: _answers_again(server), patience_s=PATIENCE_S)
        for one in slow:
            assert _ended(one.recv)


def _ended(receive: object) -> bool:
    try:
        return receive(100) == b""  # type: ignore[operator,no-any-return]
    except ConnectionResetError:
        return True


def test_running_out_of_handles_is_one_line_a_second_and_no_busy_loop(tmp_path: Path) -> None:
    with served(tmp_path, files=128) as server:
        eventually(lambda: server.client.get("/readyz").status_code == 200, patience_s=PATIENCE_S)
        began, before = time.monotonic(), server.processor_s()
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(server.connected())
            eventually(lambda: len(_lines(server)) >= 3, patience_s=PATIENCE_S)
            lines, used = len(_lines(server)), server.processor_s() - before
            took = time.monotonic() - began
            assert lines <= took + 2
            assert used < took / 2 + 1
        eventually(lambda: _answers_again(server), patience_s=PATIENCE_S)


def _lines(server: Served) -> list[str]:
    return [line for line in server.log.read_text().splitlines() if "accept" in line]


def _answers_again(server: Served) -> bool:
    try:
        with server.connected() as one:
            one.settimeout(10.0)
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return one.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def test_streams_have_their_limit_and_a_place_is_free_again(tmp_path: Path) -> None:
    with served(tmp_path, streams=3) as server:
        with ExitStack() as stack:
            for _ in range(3):
                stream = stack.enter_context(server.client.stream("GET", EVENTS))
                assert stream.status_code == 200
            refused = server.client.get(EVENTS)
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            assert "3 streams are open already" in refused.text
            assert answers(server)

        def opened() -> bool:
            with server.client.stream("GET", EVENTS) as stream:
                return bool(stream.status_code == 200)

        eventually(opened, patience_s=PATIENCE_S)


def test_a_plan_ends_when_its_caller_leaves(tmp_path: Path) -> None:
    groups = {f"g{number}": [task(f"t{number}", "true")] for number in range(9000)}
    body = json.dumps({"source": workflow("plan", groups, gpu=0).source.decode()}).encode()
    head = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
    with served(tmp_path) as server:
        with server.connected() as caller:
            caller.sendall(f"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body)
            eventually(lambda: bool(server.workers()), patience_s=PATIENCE_S)
        # A process that has answered stays for the next request.
        eventually(lambda: not server.workers(), patience_s=PATIENCE_S)
        assert answers(server)


def test_a_plan_of_very_many_groups_is_refused(tmp_path: Path) -> None:
    groups = {f"g{number}": [task(f"t{number}", "true")] for number in range(600)}
    with served(tmp_path) as server:
        refused = server.client.post("/api/v1/plan", json={"source": workflow("plan", groups, gpu=0).source.decode()})
        assert (refused.status_code, server.workers() != set()) == (400, True)
        assert "plans workflows of up to 500 groups" in refused.text
