"""KAI's events about evictions, and the deletions that they explain."""

from __future__ import annotations

import itertools
from typing import Any, cast

import msgspec
import pytest

from coterie.backends.kai.driver.objects import TaskPod
from coterie.backends.kai.driver.observation import evictions
from coterie.backends.kai.driver.observation.evictions import EvictionEvent, Evictions
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.errors import ApiForbidden, RequestDescription
from coterie.kube.kinds import EVENT
from coterie.kube.reads import Listing, ObjectQuery
from tests.kube.faulty_transport import Script, api, status

MESSAGE = "Pod default/other was preempted by higher priority workload default/high"
# 2026-11-18T10:00:02Z
NOW = 1794996002.0
WORDS = "it was preempted by higher priority workload default/high"


FORBIDDEN = ApiForbidden("may not list events", "Add a rule.", RequestDescription("list", EVENT), "coterie")


def deleted(
    at: str | None = "2026-11-18T10:00:30Z", grace: int = 30, owner: str = "PodGroup", group: str = "low"
) -> TaskPod:
    metadata = {
        "name": "p",
        "namespace": "default",
        "deletionTimestamp": at,
        "deletionGracePeriodSeconds": grace if at else None,
        "ownerReferences": [{"kind": owner, "name": group}],
    }
    return msgspec.convert({"metadata": metadata}, TaskPod)


class Answers:
    """The events of PodGroups, or an error; counts the calls."""

    def __init__(self, *events: EvictionEvent) -> None:
        self.events, self.error, self.queries = list(events), cast("CoterieError | None", None), list[ObjectQuery]()

    def __call__(self, _api: Api, query: ObjectQuery, _shape: type[Any], *, send: Any) -> Listing[EvictionEvent]:
        assert send is not None
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        return Listing(self.events, "1")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    found = Answers(EvictionEvent(MESSAGE, "2026-11-18T10:00:02Z"))
    monkeypatch.setattr(evictions, "list_all", found)
    return found


def of(now: list[float]) -> Evictions:
    return Evictions(cast("Api", None), "default", lambda: now[0], lambda: NOW + now[0])


def test_an_event_about_any_pod_of_a_gang_explains_deletions_at_that_time(answers: Answers) -> None:
    now = [0.0]
    found = of(now)
    assert found.reason(deleted()) == WORDS
    # A node that confirms the deletion takes the rest of the grace period off.
    assert found.reason(deleted("2026-11-18T10:00:01Z", grace=0)) == WORDS
    assert found.reason(deleted("2026-11-18T11:00:30Z")) == ""
    assert found.reason(deleted(owner="Job")) == ""
    (query,) = answers.queries
    assert query.fields == "reason=Evict,involvedObject.kind=PodGroup,involvedObject.name=low"
    now[0] = 1.0
    found.reason(deleted())
    assert len(answers.queries) == 2


def test_events_that_were_combined_are_told_without_that(answers: Answers) -> None:
    answers.events = [EvictionEvent(f"(combined from similar events): {MESSAGE}", None, "2026-11-18T10:00:02.5Z")]
    assert of([0.0]).reason(deleted()) == WORDS


def test_events_that_cannot_be_read_explain_nothing_and_a_missing_permission_is_told(answers: Answers) -> None:
    now = [0.0]
    found = of(now)
    answers.error = Unavailable("busy")
    assert (found.reason(deleted()), found.problem) == ("", "")
    answers.error = FORBIDDEN
    now[0] = 1.0
    assert (found.reason(deleted()), found.problem) == ("", "may not list events Add a rule.")
    answers.error = None
    now[0] = 62.0
    assert (found.reason(deleted()), found.problem) == (WORDS, "")


def test_events_that_cannot_be_read_are_read_once_for_all_pods_and_less_and_less_often(answers: Answers) -> None:
    now = [0.0]
    found = of(now)
    answers.error = Unavailable("busy")
    read = list[float]()
    # A large gang, and the pods of another one, within two minutes.
    for tick in range(1200):
        now[0] = tick / 10
        for group in ["low"] * 64 + ["other"]:
            assert found.reason(deleted(group=group)) == ""
        read += [now[0]] * (len(answers.queries) - len(read))
    waits = [later - sooner for sooner, later in itertools.pairwise(read)]
    assert waits == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    answers.error = None
    now[0] = 240.0
    assert found.reason(deleted()) == WORDS


def test_a_missing_permission_is_forgotten_after_a_minute_without_evictions(answers: Answers) -> None:
    now = [0.0]
    found = of(now)
    answers.error = FORBIDDEN
    found.reason(deleted())
    now[0] = 59.0
    found.reason(deleted())
    assert (bool(found.problem), len(answers.queries)) == (True, 1)
    now[0] = 60.0
    assert found.problem == ""


def test_a_deletion_whose_time_is_unknown_is_explained_by_events_of_the_last_minutes(answers: Answers) -> None:
    now = [0.0]
    found = of(now)
    gone = deleted(at=None)
    assert found.reason(gone) == WORDS
    now[0] = 120.0
    assert found.reason(gone) == WORDS
    now[0] = 3600.0
    assert found.reason(gone) == ""
    assert len(answers.queries) == 3


def test_events_are_requested_once_and_not_for_long() -> None:
    script = Script([status(503, "ServiceUnavailable", "busy")])
    with api(script) as cluster:
        assert Evictions(cluster, "default").reason(deleted()) == ""
    (request,) = script.asked
    assert set(request.extensions["timeout"].values()) == {1.0}
