"""Stored workflows: insertion, queries, and deletion after their end."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from coterie.errors import Conflict, NotFound, UsageError
from coterie.store import (
    NewEvent,
    PartRecord,
    PlacementRecord,
    QueuedWorkflow,
    RequestRecord,
    Store,
    Upload,
    WorkflowQuery,
    WorkflowRecord,
)
from coterie.store.tables import counters, labels, state_parts
from tests.random_examples import examples
from tests.store.builders import NOW, change, finish, leading, new, submitted


def test_a_workflow_comes_back_as_it_was_stored(store: Store) -> None:
    spec = {"version": 1, "groups": [{"name": "g", "tasks": [{"name": "t", "lead": True}]}]}
    sent = new(
        labels={"team": "vision"},
        spec=spec,
        state={"version": 1, "submitted": 1.5},
        digest={"message": "waits"},
        notices=[{"code": "Ignored"}],
        files={"conf/a.toml": b"\x00\xff"},
        sets=["a=1"],
        set_strings=["b=2"],
        source="workflow: {} # ü".encode(),
    )

    made, created = store.submit(sent)

    assert created
    assert made == store.workflow("train-1")
    assert (made.id, made.name, made.version, made.finished) == ("train-1", "train", 1, False)
    assert (made.spec, made.state) == (spec, {"version": 1, "submitted": 1.5})
    assert (made.labels, made.digest, made.notices) == (
        {"team": "vision"},
        {"message": "waits"},
        [{"code": "Ignored"}],
    )
    assert store.upload("train-1") == Upload(
        "workflow: {} # ü".encode(), "w.yaml", ("a=1",), ("b=2",), {"conf/a.toml": b"\x00\xff"}
    )
    assert store.summary("train-1").id == "train-1"


def test_ids_are_counted_per_name(store: Store) -> None:
    assert [submitted(store, name).id for name in ("a", "b", "a", "a-1", "a")] == ["a-1", "b-1", "a-2", "a-1-1", "a-3"]


def test_the_number_of_a_deleted_workflow_is_not_given_again(store: Store) -> None:
    lease = leading(store)
    finish(store, submitted(store), lease)

    store.delete("train-1", NOW)

    assert submitted(store).id == "train-2"


def test_the_same_key_with_the_same_content_finds_the_same_workflow(store: Store) -> None:
    first, _ = store.submit(new(client_key="k", fingerprint="f"))

    again, created = store.submit(new(client_key="k", fingerprint="f"))

    assert (again, created) == (first, False)
    assert submitted(store).id == "train-2"


def test_the_same_key_with_other_content_is_refused(store: Store) -> None:
    store.submit(new(client_key="k", fingerprint="f"))

    with pytest.raises(Conflict, match=r'the key "k" was used for another submission, train-1'):
        store.submit(new(client_key="k", fingerprint="g"))


def test_a_repetition_is_held_against_the_pool_that_the_first_one_went_to(store: Store) -> None:
    first, _ = store.submit(new(client_key="k", fingerprint="f in gb200"))

    assert store.repeated("ann", "k", lambda pool: f"f in {pool}") == first
    with pytest.raises(Conflict, match=r'the key "k" was used for another submission, train-1'):
        store.repeated("ann", "k", lambda _: "f in other")
    assert store.repeated("ann", "new", lambda pool: f"f in {pool}") is None
    assert store.repeated("bo", "k", lambda pool: f"f in {pool}") is None


def test_nothing_is_stored_into_a_pool_that_was_deleted_or_changed_meanwhile(store: Store) -> None:
    made, _ = store.put_pool("gb200", {"n": 1}, NOW)
    assert store.submit(new(pool_version=made.version))[1]
    now, _ = store.put_pool("gb200", {"n": 2}, NOW)

    with pytest.raises(Conflict, match=r'^pool "gb200" was changed in the meantime; nothing was stored$'):
        store.submit(new(pool_version=made.version))
    with pytest.raises(Conflict, match=r'^pool "other" was deleted in the meantime; nothing was stored$'):
        store.submit(new(pool="other", pool_version=1))

    assert store.submit(new(pool_version=now.version))[0].id == "train-2"
    assert store.submit(new(pool="configured"))[0].id == "train-3"


def test_a_repetition_needs_no_pool_any_more(store: Store) -> None:
    store.put_pool("gb200", {"n": 1}, NOW)
    first, _ = store.submit(new(client_key="k", fingerprint="f", pool_version=1))
    finish(store, first, leading(store))
    store.delete_pool("gb200")

    again, created = store.submit(new(client_key="k", fingerprint="f", pool_version=1))

    assert (again.id, created) == (first.id, False)


def test_a_request_is_left_in_view_of_the_workflow_and_of_what_waits(store: Store) -> None:
    one, other = submitted(store), submitted(store)
    store.request(other.id, {"kind": "retry"}, NOW)
    seen: list[tuple[str, list[Any]]] = []

    def first(workflow: WorkflowRecord, waiting: Sequence[RequestRecord]) -> bool:
        seen.append((workflow.id, [request.observation["kind"] for request in waiting]))
        return not waiting

    assert store.request_if(one.id, {"kind": "cancel"}, NOW, first)
    assert not store.request_if(one.id, {"kind": "cancel"}, NOW, first)

    assert seen == [(one.id, []), (one.id, ["cancel"])]
    assert [(request.workflow, request.observation["kind"]) for request in store.pending_requests()] == [
        (other.id, "retry"),
        (one.id, "cancel"),
    ]


def test_a_request_for_a_workflow_that_is_not_there_is_not_left(store: Store) -> None:
    with pytest.raises(NotFound):
        store.request_if("no-1", {}, NOW, lambda *_: True)


def test_a_key_is_its_owners_own(store: Store) -> None:
    store.submit(new(client_key="k", fingerprint="f", owner="ann"))

    assert store.submit(new(client_key="k", fingerprint="f", owner="bo"))[1]


def test_events_of_a_submission_name_the_workflow_and_its_pool(store: Store) -> None:
    submitted(store, events=[NewEvent(NOW, "Submitted", "by ann", data={"n": 1})])

    (event,) = store.events()

    assert (event.workflow, event.pool, event.kind, event.data) == ("train-1", "gb200", "Submitted", {"n": 1})


_FILTERS = [
    (WorkflowQuery(), "dcba"),
    (WorkflowQuery(statuses=("RUNNING",)), "b"),
    (WorkflowQuery(statuses=("RUNNING", "PENDING")), "dcb"),
    (WorkflowQuery(pools=("small",)), "c"),
    (WorkflowQuery(owners=("bo",)), "d"),
    (WorkflowQuery(name_prefix="Tr"), "b"),
    (WorkflowQuery(name_prefix="tr"), "ca"),
    (WorkflowQuery(name_prefix="t_"), ""),
    (WorkflowQuery(labels={"team": "vision"}), "cb"),
    (WorkflowQuery(labels={"team": ""}), "dcb"),
    (WorkflowQuery(labels={"team": "vision", "stage": "x"}), "c"),
    (WorkflowQuery(submitted_after=NOW + 1), "dcb"),
    (WorkflowQuery(submitted_before=NOW + 1), "a"),
    (WorkflowQuery(submitted_after=NOW + 1, submitted_before=NOW + 3), "cb"),
    (WorkflowQuery(finished=True), "a"),
    (WorkflowQuery(finished=False), "dcb"),
    (WorkflowQuery(owners=("ann",), pools=("small",), statuses=("PENDING",)), "c"),
    (WorkflowQuery(owners=("an",)), ""),
    (WorkflowQuery(owners=("bo", "nobody", "ann"), pools=("small", "gb200")), "dcba"),
    (WorkflowQuery(pools=("small", "large")), "c"),
    (WorkflowQuery(pools=("x\0\ud800",)), ""),
]


def test_a_list_shows_what_meets_every_filter_newest_first(store: Store) -> None:
    lease = leading(store)
    a = submitted(store, "train")
    b = submitted(store, "Train", labels={"team": "vision"}, submitted_at=NOW + 1)
    submitted(store, "trial", labels={"team": "vision", "stage": "x"}, submitted_at=NOW + 2, pool="small")
    submitted(store, "serve", labels={"team": "infra"}, submitted_at=NOW + 3, owner="bo")
    finish(store, a, lease)
    store.save([change(b)], lease.fence)
    letters = {"train-1": "a", "Train-1": "b", "trial-1": "c", "serve-1": "d"}

    found = [(query, "".join(letters[one.id] for one in store.workflows(query).items)) for query, _ in _FILTERS]

    assert found == _FILTERS


def test_pages_go_on_where_the_last_one_ended_although_new_workflows_come(store: Store) -> None:
    for _ in range(5):
        submitted(store)

    first = store.workflows(limit=2)
    submitted(store)
    second = store.workflows(after=first.next, limit=2)
    third = store.workflows(after=second.next, limit=2)

    assert [one.id for page in (first, second, third) for one in page.items] == [f"train-{n}" for n in (5, 4, 3, 2, 1)]
    assert third.next is None


def test_a_last_page_that_is_full_says_that_it_is_the_last(store: Store) -> None:
    for _ in range(2):
        submitted(store)

    assert store.workflows(limit=2).next is None


def test_numbers_that_no_database_holds_find_nothing_and_break_nothing(store: Store) -> None:
    submitted(store, events=[NewEvent(NOW, "Submitted", "")])

    for number in (-1, 0, 2**63, 10**30, -(10**30)):
        assert len(store.workflows(after=number).items) == (1 if number > 0 else 0)
        assert len(store.workflows(limit=number).items) == 1
        assert len(store.events(after=number)) == (0 if number > 0 else 1)
        assert len(store.events(limit=number)) == 1
        assert store.pending_requests(after=number, limit=number) == ()


def test_unfinished_workflows_come_whole_and_oldest_first(store: Store) -> None:
    lease = leading(store)
    a, b, c = (submitted(store) for _ in range(3))

    finish(store, b, lease)

    assert store.unfinished() == (a, c)


def test_a_submission_is_returned_as_a_read_would_return_it(store: Store) -> None:
    odd = "\ud800\0\u00e9"
    one = submitted(
        store, labels={"a": odd}, owner=odd, digest={"queued": [["g", 1.5, 4, False]]}, notices=[{"x": odd}]
    )
    assert one == store.workflow(one.id)


def test_keys_that_are_stored_alike_are_the_same_key_in_one_transaction(store: Store) -> None:
    first, second = store._submit_together(
        [new(owner=owner, client_key=key, fingerprint="f") for owner, key in (("a\0", "k\ud800"), ("a\ufffd", "k\0"))]
    )
    assert not isinstance(first, Exception)
    assert second == (first[0], False)


def test_queued_workflows_and_versions_are_read_without_the_rest(store: Store) -> None:
    lease = leading(store)
    since = 1_763_435_407.1234567
    a = submitted(store, digest={"queued": [["g", since, 4, False]], "file": "w.yaml"})
    b, c = submitted(store, priority="HIGH"), submitted(store)
    finish(store, c, lease)
    assert store.queued() == (
        QueuedWorkflow(b.id, "gb200", "HIGH", b.number, None),
        QueuedWorkflow(a.id, "gb200", "NORMAL", a.number, [["g", since, 4, False]]),
    )
    assert store.versions([a.id, c.id, "none-1"]) == {a.id: 1, c.id: 2}
    assert store.versions([]) == {}


def test_a_state_in_parts_is_read_with_all_of_them_and_a_save_writes_those_that_changed(store: Store) -> None:
    lease = leading(store)
    one, other = submitted(store), submitted(store)
    head = {"version": 2, "parts": 2}
    parts = [
        PartRecord(0, [{"name": "a"}], [["a", NOW, 4, False]]),
        PartRecord(1, [{"name": "b"}], [["b", NOW, 4, False]]),
    ]
    store.save([change(one, state=head, parts=parts, digest={"queued": [], "queued_groups": 2})], lease.fence)

    assert store.workflow(one.id).state == {"version": 2, "parts": [[{"name": "a"}], [{"name": "b"}]]}
    assert [each.state for each in store.unfinished()] == [store.workflow(one.id).state, other.state]
    assert store.queued()[1].queued == [["a", NOW, 4, False], ["b", NOW, 4, False]]

    saved = store.workflow(one.id)
    store.save([change(saved, state=head, parts=[PartRecord(0, [{"name": "c"}])])], lease.fence)
    assert store.workflow(one.id).state["parts"] == [[{"name": "c"}], [{"name": "b"}]]
    assert store.queued()[1].queued == [["b", NOW, 4, False]]

    saved = store.workflow(one.id)
    store.save([change(saved, "COMPLETED", finished=True, ended_at=NOW)], lease.fence)
    assert store.workflow(one.id).state == {"version": 1, "status": "COMPLETED"}
    store.delete(one.id, NOW)
    with store._database.reading() as tx:
        assert tx.execute(select(state_parts)).all() == []


def test_parts_that_a_state_no_longer_has_are_removed_and_not_read(store: Store) -> None:
    fence = leading(store).fence
    ident = submitted(store).id

    def saved(count: int) -> WorkflowRecord:
        parts = [PartRecord(number, [{"name": str(count)}]) for number in range(count)]
        store.save([change(store.workflow(ident), state={"version": 2, "parts": count}, parts=parts)], fence)
        return store.workflow(ident)

    def rows() -> int:
        with store._database.reading() as tx:
            return len(tx.execute(select(state_parts)).all())

    assert len(saved(4).state["parts"]) == 4
    assert saved(2).state["parts"] == [[{"name": "2"}], [{"name": "2"}]]
    assert [each.state for each in store.unfinished()] == [store.workflow(ident).state]
    assert rows() == 2
    store.save([change(store.workflow(ident), state={"version": 1})], fence)
    assert rows() == 0


def test_a_read_beside_saves_never_mixes_two_states(url: str) -> None:
    saves, count = 60, 3
    with Store.open(url) as leader, Store.open(url) as reader:
        fence, ident = leading(leader).fence, submitted(leader).id

        def save(number: int) -> None:
            parts = [PartRecord(index, [{"name": str(number)}]) for index in range(count)]
            state = {"version": 2, "status": str(number), "parts": count}
            leader.save([change(leader.workflow(ident), state=state, parts=parts)], fence)

        save(0)
        with ThreadPoolExecutor(1) as writer:
            written = [writer.submit(save, number) for number in range(1, saves)]
            while not written[-1].done():
                for found in (reader.workflow(ident), *reader.unfinished()):
                    assert {part[0]["name"] for part in found.state["parts"]} == {found.state["status"]}
        for each in written:
            each.result()


def test_a_state_that_lacks_a_part_is_not_put_together(store: Store) -> None:
    one = submitted(store)
    store.save([change(one, state={"version": 2, "parts": 2}, parts=[PartRecord(1, [])])], leading(store).fence)
    assert store.workflow(one.id).state == {"version": 2, "parts": 2}


def test_workflows_are_counted_by_pool_and_status(store: Store) -> None:
    lease = leading(store)
    a = submitted(store)
    submitted(store)
    submitted(store, pool="small")
    store.save([change(a)], lease.fence)

    assert store.tally() == {("gb200", "RUNNING"): 1, ("gb200", "PENDING"): 1, ("small", "PENDING"): 1}


def test_a_workflow_that_has_not_ended_cannot_be_deleted(store: Store) -> None:
    submitted(store)

    with pytest.raises(Conflict, match=r'workflow "train-1" is pending and cannot be deleted yet'):
        store.delete("train-1", NOW)


def test_deleting_removes_all_of_a_workflow_and_leaves_one_event(store: Store) -> None:
    lease = leading(store)
    placed = (PlacementRecord("g", "t", 1, "n1"),)
    one = submitted(store, labels={"a": "b"}, files={"f": b""}, events=[NewEvent(NOW, "Submitted", "")])
    other = submitted(store, events=[NewEvent(NOW, "Submitted", "")])
    store.request(one.id, {"cancel": True}, NOW)
    store.save([change(one, "COMPLETED", finished=True, placed=placed), change(other, placed=placed)], lease.fence)

    store.delete(one.id, NOW + 9)

    assert [(event.workflow, event.kind) for event in store.events()] == [(other.id, "Submitted"), (one.id, "Deleted")]
    assert store.pending_requests() == ()
    assert store.placements(one.id) == ()
    assert len(store.placements(other.id)) == 1
    for ask in (store.workflow, store.summary, store.upload):
        with pytest.raises(NotFound, match=r'there is no workflow "train-1"'):
            ask(one.id)
    assert [found.id for found in store.workflows(WorkflowQuery(labels={"a": ""})).items] == []


def test_whatever_is_asked_for_is_found_or_not(store: Store) -> None:
    submitted(store)

    for ident in ("", "nope", "nope\0", "\ud800", "train-1' OR 1=1 --", "x" * 100_000):
        with pytest.raises(NotFound):
            store.workflow(ident)
        with pytest.raises(NotFound):
            store.request(ident, {}, NOW)
        with pytest.raises(NotFound):
            store.delete(ident, NOW)
        assert store.events(workflow=ident) == ()


_TEXT = st.text(st.characters(codec=None), max_size=8)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


def _scrubbed(value: Any) -> Any:
    """Return JSON with half surrogate pairs as any database gives them back."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_scrubbed(one) for one in value]
    return {_scrubbed(key): _scrubbed(one) for key, one in value.items()} if isinstance(value, dict) else value


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.dictionaries(_TEXT, _JSON, max_size=3), text=_TEXT, source=st.binary(max_size=20))
def test_any_json_any_text_and_any_bytes_can_be_stored(store: Store, data: Any, text: str, source: bytes) -> None:
    one = submitted(store, text, state=data, source=source, labels={text: text}, files={text: source}, client_key=None)

    assert one.state == _scrubbed(data)
    assert store.upload(one.id).source == source
    assert store.workflow(one.id) == one
    assert one.id in [found.id for found in store.workflows(WorkflowQuery(labels={text: text}, name_prefix=text)).items]


def test_a_value_or_a_change_that_the_database_refuses_is_said_in_words_and_nothing_else_fails(store: Store) -> None:
    too_large = {"sqlite": "SELECT zeroblob(2000000001)", "postgresql": "SELECT 99999999999 :: integer"}
    database = store._database
    with pytest.raises(UsageError, match=r"the database refused a value: .+"), database.reading() as connection:
        connection.exec_driver_sql(too_large[connection.dialect.name])
    with pytest.raises(UsageError, match=r"the database refused a value: .+"), database.writing() as connection:
        connection.execute(counters.insert(), {"name": "n", "last": 1 << 80})
    with pytest.raises(Conflict, match=r"contradicts its content: .+") as told, database.writing() as connection:
        connection.execute(labels.insert(), {"workflow": "unknown", "key": "k", "value": "v"})
    assert told.value.hint
    assert submitted(store).id == "train-1"
