"""KAI's events about evictions, and the deletions that they explain."""

from __future__ import annotations

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

MESSAGE = "Pod default/other was preempted by higher priority workload default/high"
WORDS = "it was preempted by higher priority workload default/high"


def deleted(at: str = "2026-11-18T10:00:30Z", grace: int = 30, owner: str = "PodGroup") -> TaskPod:
    metadata = {
        "name": "p",
        "namespace": "default",
        "deletionTimestamp": at,
        "deletionGracePeriodSeconds": grace,
        "ownerReferences": [{"kind": owner, "name": "low"}],
    }
    return msgspec.convert({"metadata": metadata}, TaskPod)


class Answers:
    """The events of PodGroups, or an error; counts the calls."""

    def __init__(self, *events: EvictionEvent) -> None:
        self.events, self.error, self.queries = list(events), cast("CoterieError | None", None), list[ObjectQuery]()

    def __call__(self, _api: Api, query: ObjectQuery, _shape: type[Any]) -> Listing[EvictionEvent]:
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
    return Evictions(cast("Api", None), "default", lambda: now[0])


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
    found = of([0.0])
    answers.error = Unavailable("busy")
    assert (found.reason(deleted()), found.trouble) == ("", "")
    answers.error = ApiForbidden("may not list events", "Add a rule.", RequestDescription("list", EVENT), "coterie")
    assert (found.reason(deleted()), found.trouble) == ("", "may not list events Add a rule.")
    answers.error = None
    assert (found.reason(deleted()), found.trouble) == (WORDS, "")
