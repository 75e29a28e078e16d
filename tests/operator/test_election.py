"""Decisions of an election: by the candidate's own clock, and never two leaders."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from coterie.errors import Unavailable
from coterie.kube.api import Api
from coterie.kube.kinds import TOPOLOGY
from coterie.operator.election import LeaseTiming, held, seen, takeable
from coterie.operator.writer import NotLeading, Writer

TIMING = LeaseTiming(duration_s=8.0, deadline_s=5.0, renew_s=1.5)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBJECT = {
    "apiVersion": TOPOLOGY.api_version,
    "kind": TOPOLOGY.name,
    "metadata": {"name": "hall", "resourceVersion": "1"},
}


def test_a_lease_of_another_is_taken_only_after_it_stood_still_for_its_duration() -> None:
    theirs = held({}, "a", NOW, TIMING)
    lease = seen(None, theirs, 100.0)

    assert not takeable(lease, "b", 107.9, TIMING)
    assert takeable(lease, "b", 108.0, TIMING)
    # A renewal starts the time again.
    renewed = seen(lease, held(theirs, "a", NOW + timedelta(seconds=1), TIMING), 107.0)
    assert not takeable(renewed, "b", 110.0, TIMING)


def test_a_clock_that_is_years_off_changes_nothing() -> None:
    theirs = held({}, "a", NOW - timedelta(days=4000), TIMING)

    assert not takeable(seen(None, theirs, 5.0), "b", 6.0, TIMING)


def test_a_free_lease_and_ones_own_are_taken_at_once() -> None:
    assert takeable(seen(None, {}, 0.0), "b", 0.0, TIMING)
    assert takeable(seen(None, held({}, "b", NOW, TIMING), 0.0), "b", 0.0, TIMING)


def test_the_duration_that_the_holder_wrote_counts() -> None:
    theirs = {**held({}, "a", NOW, TIMING), "leaseDurationSeconds": 60}

    assert not takeable(seen(None, theirs, 0.0), "b", 59.0, TIMING)


def test_a_change_of_the_holder_is_counted_and_a_renewal_is_not() -> None:
    first = held({}, "a", NOW, TIMING)
    again = held(first, "a", NOW + timedelta(seconds=2), TIMING)
    other = held(again, "b", NOW + timedelta(seconds=20), TIMING)

    assert (first["leaseTransitions"], again["leaseTransitions"], other["leaseTransitions"]) == (1, 1, 2)
    assert again["acquireTime"] == first["acquireTime"]
    assert other["acquireTime"] != first["acquireTime"]


def test_a_leader_stops_writing_before_another_can_lead() -> None:
    timing = LeaseTiming()

    assert timing.renew_s < timing.deadline_s
    assert timing.deadline_s + timing.write_s <= timing.duration_s


@pytest.mark.parametrize(
    "write",
    [
        lambda writer: writer.create(OBJECT),
        lambda writer: writer.replace(OBJECT),
        lambda writer: writer.delete(TOPOLOGY, "hall", "u1"),
        lambda writer: writer.patch(TOPOLOGY, "hall", "", []),
        lambda writer: writer.status(OBJECT, {}),
        lambda writer: writer.event(OBJECT),
    ],
)
def test_a_replica_that_does_not_lead_sends_no_write(api: Api, write: Callable[[Writer], object]) -> None:
    with pytest.raises(NotLeading):
        write(Writer(api, api, lambda: False))
    # The same write of a leader is sent, to a server that is not there.
    with pytest.raises(Unavailable):
        write(Writer(api, api, lambda: True))
