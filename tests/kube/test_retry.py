"""Retries: only where they may help, after the delay the server requests, and within limits."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import CoterieError, Unavailable
from coterie.kube.apply import apply
from coterie.kube.delete import delete
from coterie.kube.kinds import NODE, POD
from coterie.kube.reads import ObjectQuery, list_all
from coterie.kube.retry import RetryLimits, Transient, backoff, with_retries
from coterie.kube.wire import Identified
from tests.kube.faulty_transport import HASTE, Script, answer, api, page, status, thing

BUSY = status(429, "TooManyRequests", "slow down")


@pytest.mark.parametrize(
    "failure",
    [
        BUSY,
        status(429, headers={"Retry-After": "0"}),
        status(500),
        status(503),
        httpx2.Response(504, text="gateway timeout"),
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("cut off"),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again(failure: httpx2.Response | Exception) -> None:
    script = Script([failure, failure, page([thing("a")], 7)])

    listing = list_all(api(script), ObjectQuery(NODE), Identified)

    assert [item.metadata.name for item in listing.items] == ["a"]
    assert len(script.asked) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 422])
def test_what_will_not_pass_is_not_tried_again(code: int) -> None:
    script = Script([status(code)])

    with pytest.raises(CoterieError):
        list_all(api(script), ObjectQuery(NODE), Identified)

    assert len(script.asked) == 1


def test_patience_ends() -> None:
    script = Script([BUSY])

    with pytest.raises(Unavailable, match="slow down"):
        list_all(api(script), ObjectQuery(NODE), Identified)

    assert len(script.asked) == HASTE.attempts


@pytest.mark.parametrize(
    "busy",
    [status(429, headers={"Retry-After": "3600"}), status(429, details={"retryAfterSeconds": 3600})],
    ids=["header", "details"],
)
def test_a_server_that_asks_for_more_time_than_there_is_gets_no_further_call(busy: httpx2.Response) -> None:
    script = Script([busy])

    with pytest.raises(Unavailable):
        list_all(api(script), ObjectQuery(NODE), Identified)

    assert len(script.asked) == 1


def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    times: list[float] = []

    def handler(_: httpx2.Request) -> httpx2.Response:
        times.append(time.monotonic())
        return status(429, headers={"Retry-After": "1"}) if len(times) == 1 else page([])

    list_all(api(handler), ObjectQuery(NODE), Identified)

    assert times[1] - times[0] >= 1.0


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "soon", "-1", "²", ""])
def test_a_retry_after_that_is_not_a_number_of_seconds_is_none(value: str) -> None:
    script = Script([status(429, headers=[(b"retry-after", value.encode())]), page([])])  # type: ignore[arg-type]

    list_all(api(script), ObjectQuery(NODE), Identified)

    assert len(script.asked) == 2


def test_writing_and_deleting_are_tried_again_too() -> None:
    """Both say what should be, so a first try that came through unnoticed does no harm."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    applied, deleted = Script([BUSY, answer(thing("p"))]), Script([BUSY, answer({})])

    apply(api(applied), manifest)
    assert delete(api(deleted), POD, "p", namespace="n")

    assert (len(applied.asked), len(deleted.asked)) == (2, 2)


def test_other_exceptions_go_through() -> None:
    with pytest.raises(ZeroDivisionError):
        with_retries(HASTE, lambda: 1 / 0)


def test_the_error_raised_in_the_end_is_the_last_one() -> None:
    tries = itertools.count(1)

    def call() -> None:
        raise Transient(Unavailable(f"try {next(tries)}"))

    with pytest.raises(Unavailable, match="try 2"):
        with_retries(replace(HASTE, attempts=2), call)


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(0.001, 60))
def test_waits_grow_to_a_limit_and_are_never_nothing(failures: int, first: float, longest: float) -> None:
    wait = backoff(failures, first, longest)

    assert 0 < wait <= longest
    assert wait <= first * 2.0 ** min(failures - 1, 100)


def test_patience_has_room_for_a_restart_of_the_server() -> None:
    assert RetryLimits().total_s >= 10
