"""The leader's save is atomic and restricted to the current leader."""

from __future__ import annotations

import pytest

from coterie.errors import Conflict, NotFound
from coterie.store import Lease, NewEvent, PlacementRecord, RequestRecord, Store
from tests.store.builders import NOW, change, leading, submitted


def test_a_save_moves_a_workflow_on(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)

    store.save([change(one, "RUNNING", started_at=NOW + 1, digest={"message": "runs"})], lease.fence)

    now = store.workflow(one.id)
    assert (now.status, now.version, now.started_at, now.ended_at) == ("RUNNING", 2, NOW + 1, None)
    assert (now.state, now.digest, now.spec) == ({"version": 1, "status": "RUNNING"}, {"message": "runs"}, one.spec)


def test_a_save_of_many_writes_all_their_events_in_order(store: Store) -> None:
    lease = leading(store)
    a, b = submitted(store), submitted(store)

    last = store.save(
        [
            change(
                a, events=[NewEvent(NOW, "Queued", "1", group="g"), NewEvent(NOW, "Placed", "2", "", "p", "g", "t", 3)]
            ),
            change(b, events=[NewEvent(NOW, "Queued", "3")]),
        ],
        lease.fence,
    )

    seen = store.events()
    assert [(event.workflow, event.message) for event in seen] == [(a.id, "1"), (a.id, "2"), (b.id, "3")]
    assert (seen[1].pool, seen[1].group, seen[1].task, seen[1].attempt) == ("p", "g", "t", 3)
    assert last == seen[-1].seq == store.last_event()


def test_one_stale_version_keeps_everything_from_being_saved(store: Store) -> None:
    lease = leading(store)
    a, b = submitted(store), submitted(store)
    request = store.request(a.id, {"cancel": True}, NOW)
    store.save([change(b)], lease.fence)

    with pytest.raises(
        Conflict, match=r"^train-2: changed or deleted by someone else in the meantime; nothing was saved$"
    ):
        store.save([change(a, events=[NewEvent(NOW, "Queued", "")], requests=[request]), change(b)], lease.fence)

    assert store.workflow(a.id) == a
    assert store.events() == ()
    assert len(store.pending_requests()) == 1


def test_a_deleted_workflow_cannot_be_saved(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)
    store.save([change(one, "COMPLETED", finished=True)], lease.fence)
    ended = store.workflow(one.id)
    store.delete(one.id, NOW)

    with pytest.raises(Conflict, match="train-1"):
        store.save([change(ended)], lease.fence)


def test_the_same_workflow_cannot_be_saved_twice_at_once(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)

    with pytest.raises(Conflict, match="train-1"):
        store.save([change(one), change(one)], lease.fence)


def test_only_the_newest_leader_can_save(store: Store) -> None:
    one = submitted(store)
    old = leading(store, "old", NOW)
    new = leading(store, "new", NOW + 60)

    with pytest.raises(Conflict, match=r"""^the leader's lease was lost: it is held by "new", nothing was saved$"""):
        store.save([change(one)], old.fence)
    with pytest.raises(Conflict):
        store.save([], old.fence)
    store.save([change(one)], new.fence)

    assert store.workflow(one.id).version == 2


def test_nobody_saves_without_a_lease(store: Store) -> None:
    one = submitted(store)

    for fence in (0, 1):
        with pytest.raises(Conflict, match="nobody holds it"):
            store.save([change(one)], fence)


def test_what_is_held_stays_known_after_it_is_given_back(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)
    first = PlacementRecord("g", "a", 1, "n1", (0, 1), {"rack": "r1"})
    other = PlacementRecord("g", "b", 1, "n2", (), {})
    again = PlacementRecord("g", "a", 2, "n3", (3,), {"rack": "r1"})

    store.save([change(one, placed=[first, other])], lease.fence)
    assert store.held() == {one.id: (first, other)}
    store.save([change(store.workflow(one.id), released=[("g", "a", 1)], placed=[again])], lease.fence)

    gone = PlacementRecord("g", "a", 1, "n1", (0, 1), {"rack": "r1"}, held=False)
    assert store.held() == {one.id: (other, again)}
    assert store.placements(one.id) == (gone, other, again)


def test_placing_and_releasing_again_changes_nothing(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)
    moved = PlacementRecord("g", "a", 1, "n2")

    store.save([change(one, placed=[PlacementRecord("g", "a", 1, "n1")])], lease.fence)
    store.save([change(store.workflow(one.id), placed=[moved])], lease.fence)
    assert store.held() == {one.id: (moved,)}
    for _ in range(2):
        slots = [("g", "a", 1), ("g", "unknown", 7)]
        store.save([change(store.workflow(one.id), released=slots)], lease.fence)

    assert store.held() == {}


def test_a_request_is_gone_with_the_state_that_answers_it(store: Store) -> None:
    lease = leading(store)
    one = submitted(store)
    first, second = (store.request(one.id, {"n": n}, NOW + n) for n in (1, 2))
    assert [request.seq for request in store.pending_requests(limit=1)] == [first]
    assert [request.seq for request in store.pending_requests(after=first)] == [second]

    store.save([change(one, requests=[first])], lease.fence)

    assert store.pending_requests() == (RequestRecord(second, one.id, {"n": 2}, NOW + 2),)
    store.drop_requests([first, second])
    assert store.pending_requests() == ()


def test_the_number_of_a_request_is_not_given_again(store: Store) -> None:
    one = submitted(store)
    first = store.request(one.id, {}, NOW)
    store.drop_requests([first])

    assert store.request(one.id, {}, NOW) > first


def test_a_request_for_a_workflow_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match=r'there is no workflow "nope-1"'):
        store.request("nope-1", {}, NOW)


def test_events_go_on_after_the_last_one_seen(store: Store) -> None:
    a, b = submitted(store), submitted(store)
    last = store.record([NewEvent(NOW, "K", str(n), workflow=(a if n % 2 else b).id) for n in range(6)])

    first = store.events(limit=4)
    rest = store.events(after=first[-1].seq)

    assert [event.message for event in (*first, *rest)] == list("012345")
    assert rest[-1].seq == last
    assert [event.message for event in store.events(workflow=a.id)] == list("135")
    assert [event.message for event in store.events(workflow=a.id, after=first[1].seq)] == list("35")


def test_the_latest_events_of_a_kind_are_found_behind_any_number_of_others(store: Store) -> None:
    a, b = submitted(store), submitted(store)
    wanted = [NewEvent(NOW, "ImageMissing", str(n), workflow=(b if n == 1 else a).id, attempt=n) for n in range(3)]
    store.record([*wanted, *(NewEvent(NOW, "Other", "", workflow=a.id) for _ in range(1200))])

    found = store.latest_events(a.id, "ImageMissing")

    assert [(event.message, event.attempt) for event in found] == [("2", 2), ("0", 0)]
    assert [event.message for event in store.latest_events(a.id, "ImageMissing", limit=1)] == ["2"]


def test_the_first_event_is_numbered_above_zero(store: Store) -> None:
    assert store.last_event() == 0
    assert store.record([NewEvent(NOW, "K", "")]) > 0


def test_a_lease_is_one_holders_until_it_expires(store: Store) -> None:
    mine = store.acquire("a", NOW, 10)

    assert mine == Lease("leader", "a", 1, NOW + 10) == store.leader()
    assert store.acquire("b", NOW + 9.9, 10) is None
    assert store.acquire("b", NOW + 10, 10) == Lease("leader", "b", 2, NOW + 20)


def test_a_renewed_lease_lasts_longer_under_the_same_fence(store: Store) -> None:
    mine = leading(store, "a", NOW, 10)

    longer = store.renew(mine, NOW + 8, 10)

    assert longer == Lease("leader", "a", 1, NOW + 18)
    assert store.acquire("b", NOW + 12, 10) is None


def test_an_expired_lease_that_nobody_took_can_be_renewed(store: Store) -> None:
    assert store.renew(leading(store, "a", NOW, 10), NOW + 50, 10).fence == 1


def test_a_lease_that_was_taken_can_be_neither_renewed_nor_released(store: Store) -> None:
    old = leading(store, "a", NOW, 10)
    new = leading(store, "b", NOW + 10, 10)

    with pytest.raises(Conflict, match='it is held by "b"'):
        store.renew(old, NOW + 11, 10)
    store.release(old)

    assert store.leader() == new


def test_a_released_lease_is_free_at_once_and_ends_its_holders_rights(store: Store) -> None:
    old = leading(store, "a", NOW, 10)

    store.release(old)

    with pytest.raises(Conflict, match="nobody holds it"):
        store.save([], old.fence)
    assert store.acquire("b", NOW, 10) == Lease("leader", "b", 2, NOW + 10)


def test_a_holder_that_starts_anew_gets_a_new_fence(store: Store) -> None:
    first = leading(store, "a")

    assert leading(store, "a").fence == first.fence + 1


def test_leases_of_other_names_do_not_meet(store: Store) -> None:
    leading(store, "a")

    assert store.acquire("b", NOW, 10, name="sweeper") is not None
