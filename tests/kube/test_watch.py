"""A watch resumes at its version, relists where it must, and backs off where it should."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import CoterieError, Unavailable
from coterie.kube.errors import ApiForbidden, MissingKind
from coterie.kube.kinds import POD, POD_GROUP
from coterie.kube.reads import ObjectQuery
from coterie.kube.watch import Follower, WatchTiming, lines
from coterie.kube.wire import Identified
from tests.kube.faulty_transport import Script, api, event, page, status, status_body, stream, thing

HASTE = WatchTiming(first_wait_s=0, longest_wait_s=0)
RESET = httpx2.ReadError("connection reset")


def followed(
    answers: list[httpx2.Response | Exception], stop_after: int = 1, pace: WatchTiming = HASTE
) -> tuple[list[str], list[str], list[CoterieError | None]]:
    """Play a server; return what was told, what was asked, and the errors on the way.

    The follower is stopped when the last answer was given `stop_after` times.
    """
    asked: list[str] = []
    errors: list[CoterieError | None] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        params = request.url.params
        asked.append(f"watch {params['resourceVersion']}" if "watch" in params else "list")
        if len(asked) >= len(answers) + stop_after:
            stop.set()
        made = answers[min(len(asked), len(answers)) - 1]
        if isinstance(made, Exception):
            raise made
        return made if len(asked) <= len(answers) else page([])

    stop = threading.Event()
    ticks = itertools.count()
    follower = Follower(
        api(handler),
        ObjectQuery(POD),
        Identified,
        pace=pace,
        stop=stop,
        clock=lambda: float(next(ticks)),
        on_error=errors.append,
    )
    told = [f"{change.did} {change.entry.meta.name}" for batch in follower.batches() for change in batch.changes]
    return told, asked[: len(answers)], errors


@pytest.mark.parametrize(
    ("interruption", "then"),
    [
        (stream(event("ADDED", thing("b", 7))), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), end=RESET), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("MODIFIED", thing("b", 8))[:40], end=RESET), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("MODIFIED", thing("b", 8))[:-1]), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})), "watch 9"),
        (stream(event("ADDED", thing("b", 7)), b"\n\n{not json}\n"), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), b"\xff\xfe\n"), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("ADDED", {"metadata": {}})), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("ERROR", status_body(500, "Internal", "no leader"))), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("ERROR", {})), "watch 7"),
        (stream(event("ADDED", thing("b", 7)), event("ERROR", status_body(410, "Expired", "too old"))), "list"),
    ],
)
def test_where_a_watch_goes_on_after_an_interruption(interruption: httpx2.Response, then: str) -> None:
    """At the last version that was read whole; only what the API has forgotten is listed again."""
    told, asked, _ = followed([page([thing("a", 5)], 5), interruption, page([]) if then == "list" else stream()])

    assert told[:2] == ["added a", "added b"]
    assert asked == ["list", "watch 5", then]


@pytest.mark.parametrize(
    "failure", [status(500), status(429), httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow")], ids=str
)
def test_a_server_that_comes_back_is_asked_where_it_was(failure: httpx2.Response | Exception) -> None:
    told, asked, errors = followed(
        [page([thing("a", 5)], 5), failure, failure, stream(event("DELETED", thing("a", 6)))]
    )

    assert asked == ["list", "watch 5", "watch 5", "watch 5"]
    assert told[:2] == ["added a", "deleted a"]
    assert [type(error) for error in errors[:3]] == [Unavailable, Unavailable, type(None)]


def test_everything_is_listed_again_when_resuming_fails_again_and_again() -> None:
    """A server that lost its data does not know our version, and does not say 410 either."""
    broken = status(504, "Timeout", "Too large resource version")
    told, asked, _ = followed([page([thing("a", 50)], 50), broken, broken, broken, page([thing("b", 2)], 3)])

    assert asked == ["list", "watch 50", "watch 50", "watch 50", "list"]
    assert told == ["added a", "deleted a", "added b"]


def test_a_forgotten_version_is_answered_by_a_list_that_tells_what_was_missed() -> None:
    told, asked, _ = followed(
        [
            page([thing("kept", 1), thing("gone", 2), thing("changed", 3), thing("replaced", 4, uid="old")], 4),
            status(410, "Expired", "too old resource version"),
            page([thing("kept", 1), thing("changed", 8), thing("replaced", 9, uid="new"), thing("fresh", 10)], 10),
        ]
    )

    assert asked == ["list", "watch 4", "list"]
    assert told[4:] == ["deleted gone", "modified changed", "deleted replaced", "added replaced", "added fresh"]


def test_everything_is_listed_again_by_period() -> None:
    told, asked, _ = followed(
        [page([thing("a", 5)], 5), stream(event("ADDED", thing("b", 6))), page([thing("b", 6)], 7)],
        pace=WatchTiming(resync_s=2, first_wait_s=0, longest_wait_s=0),
    )

    assert asked == ["list", "watch 5", "list"]
    assert told == ["added a", "added b", "deleted a"]


def test_what_is_told_again_is_no_change() -> None:
    told, _, _ = followed(
        [
            page([thing("a", 5)], 5),
            stream(
                event("ADDED", thing("a", 5)),
                event("MODIFIED", thing("a", 6)),
                event("MODIFIED", thing("a", 6)),
                event("DELETED", thing("a", 7, uid="another")),
                event("DELETED", thing("a", 7)),
                event("DELETED", thing("a", 7)),
                event("MODIFIED", thing("c", 8)),
            ),
        ]
    )

    assert told[:4] == ["added a", "modified a", "deleted a", "added c"]


def test_an_unknown_type_of_event_is_taken_for_the_state_it_shows() -> None:
    told, _, _ = followed([page([], 5), stream(event("RENEWED", thing("a", 6)))])

    assert told[0] == "added a"


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([status(403, "Forbidden", 'User "u" cannot')], ApiForbidden),
        ([page([]), status(403, "Forbidden", 'User "u" cannot')], ApiForbidden),
        ([status(404)], MissingKind),
        ([page([{"metadata": {}}])], Unavailable),
    ],
    ids=["list", "watch", "kind", "shape"],
)
def test_what_will_not_pass_is_raised_before_the_first_watch_stands(
    answers: list[httpx2.Response | Exception], error: type[CoterieError]
) -> None:
    follower = Follower(api(Script(answers)), ObjectQuery(POD_GROUP), Identified, pace=HASTE)

    with pytest.raises(error):
        list(follower.batches())


def test_what_would_not_pass_is_waited_for_once_a_watch_stood() -> None:
    lost = status(403, "Forbidden", 'User "u" cannot watch')
    told, asked, errors = followed(
        [page([], 5), stream(event("ADDED", thing("a", 6))), lost, stream(event("ADDED", thing("b", 7)))]
    )

    assert asked == ["list", "watch 5", "watch 6", "watch 6"]
    assert told[:2] == ["added a", "added b"]
    assert isinstance(errors[0], ApiForbidden)
    assert errors[1] is None


def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    ended: list[httpx2.Response | Exception] = [page([], 5), stream(), stream()]
    stop = threading.Event()
    errors: list[CoterieError | None] = []

    def failed(error: CoterieError | None) -> None:
        errors.append(error)
        if len(errors) == 2:
            stop.set()

    script = iter(ended)
    follower = Follower(
        api(lambda _: next(script)),  # type: ignore[arg-type,return-value]
        ObjectQuery(POD),
        Identified,
        pace=HASTE,
        stop=stop,
        clock=lambda: 0.0,
        on_error=failed,
    )
    list(follower.batches())

    assert "ends watches of pods at once" in str(errors[0])


def test_what_a_watch_asks_for() -> None:
    asked: list[httpx2.Request] = []
    stop = threading.Event()

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if len(asked) == 1:
            return page([], 5)
        stop.set()
        return stream()

    query = ObjectQuery(POD, "team", labels="app=x", fields="spec.nodeName=n")
    list(Follower(api(handler), query, Identified, stop=stop, clock=lambda: 0.0).batches())

    assert asked[1].url.path == "/api/v1/namespaces/team/pods"
    assert dict(asked[1].url.params) == {
        "labelSelector": "app=x",
        "fieldSelector": "spec.nodeName=n",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "120",
        "watch": "true",
    }
    assert asked[1].extensions["timeout"]["read"] == 130


def test_objects_are_read_into_the_shape_that_was_asked_for() -> None:
    class Narrow(msgspec.Struct):
        status: dict[str, str]

    script = Script([page([thing("a", 5, status={"phase": "Running"})], 5), status(404)])
    follower = Follower(api(script), ObjectQuery(POD), Narrow, pace=HASTE)

    assert next(follower.batches()).changes[0].entry.value == Narrow({"phase": "Running"})


@given(st.lists(st.binary(max_size=8)), st.data())
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], data: st.DataObject) -> None:
    text = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))

    def chunks() -> Iterator[bytes]:
        for start, end in itertools.pairwise([0, *cuts, len(text)]):
            yield text[start:end]

    assert list(lines(chunks())) == [line for line in text.split(b"\n")[:-1] if line.strip()]
