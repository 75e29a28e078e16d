"""Any sequence of calls leaves the store equal to a plain dictionary model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from coterie.errors import Conflict
from coterie.store import Lease, NewEvent, PlacementRecord, Store, WorkflowChange
from tests.store.builders import NOW, new

pytestmark = pytest.mark.slow("runs long random sequences of operations against a model")

_NAMES = st.sampled_from(["a", "a-1", "b"])
_KEYS = st.none() | st.sampled_from(["k1", "k2"])


@dataclass
class ModelWorkflow:
    """A workflow in the model."""

    version: int = 1
    status: str = "PENDING"
    finished: bool = False
    held: set[tuple[str, str, int]] = field(default_factory=set)
    requests: list[int] = field(default_factory=list)


class StoreMachine(RuleBasedStateMachine):
    """The store beside its model. The store is opened anew now and then, as after a crash."""

    flows: Bundle[str] = Bundle("flows")
    leases: Bundle[Lease] = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store.open(str(Path(self.folder.name, "store.db")))
        self.known: dict[str, ModelWorkflow] = {}
        self.counts: dict[str, int] = {}
        self.keys: dict[str, tuple[str, str]] = {}
        self.fence = 0
        self.until = 0.0
        self.now = NOW
        self.messages: list[str] = []

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @initialize(target=leases)
    def lead_first(self) -> Lease:
        return self._acquire("r0")

    @rule(target=leases, holder=st.sampled_from(["r1", "r2"]), passed=st.floats(0, 20))
    def lead(self, holder: str, passed: float) -> Lease:
        self.now += passed
        return self._acquire(holder)

    @rule(lease=leases)
    def give_up(self, lease: Lease) -> None:
        self.store.release(lease)
        if lease.fence == self.fence:
            self.until = 0.0

    @rule(target=flows, name=_NAMES, key=_KEYS, content=st.sampled_from("xy"))
    def submit(self, name: str, key: str | None, content: str) -> str:
        message = f"submitted {len(self.messages)}"
        wanted = new(name, client_key=key, fingerprint=content, events=[NewEvent(self.now, "Submitted", message)])
        if key in self.keys:
            ident, before = self.keys[key]
            if before != content:
                with pytest.raises(Conflict):
                    self.store.submit(wanted)
                return ident
            made, created = self.store.submit(wanted)
            assert (made.id, created) == (ident, False)
            return ident
        self.counts[name] = self.counts.get(name, 0) + 1
        made, created = self.store.submit(wanted)
        assert (made.id, created) == (f"{name}-{self.counts[name]}", True)
        self.known[made.id] = ModelWorkflow()
        self.messages.append(message)
        if key is not None:
            self.keys[key] = (made.id, content)
        return made.id

    @rule(
        idents=st.lists(flows, max_size=3, unique=True),
        lease=leases,
        luck=st.integers(0, 5),
        late=st.integers(0, 8),
        status=st.sampled_from(["RUNNING", "COMPLETED"]),
        place=st.booleans(),
    )
    def save(self, idents: list[str], lease: Lease, luck: int, late: int, status: str, *, place: bool) -> None:
        if luck:  # mostly the leader saves, not somebody who was overtaken
            lease = self._acquire("r0")
        current = [ident for ident in idents if ident in self.known]
        changes = [self._change(ident, late == index + 1, status, place) for index, ident in enumerate(current)]
        stale = late in range(1, len(current) + 1)
        if lease.fence != self.fence or self.until == 0.0 or stale:
            with pytest.raises(Conflict):
                self.store.save(changes, lease.fence)
            return
        self.store.save(changes, lease.fence)
        for one in changes:
            known = self.known[one.id]
            known.version, known.status, known.finished = known.version + 1, status, status == "COMPLETED"
            known.held = (known.held | {(where.group, where.task, where.attempt) for where in one.placed}) - set(
                one.released
            )
            known.requests = []
            self.messages += [event.message for event in one.events]

    @rule(idents=st.lists(flows, min_size=1, max_size=3))
    def request(self, idents: list[str]) -> None:
        for ident in idents:
            if ident in self.known:
                self.known[ident].requests.append(self.store.request(ident, {}, self.now))

    @rule(ident=consumes(flows))
    def delete(self, ident: str) -> None:
        known = self.known.get(ident)
        if known is None:
            return
        if not known.finished:
            with pytest.raises(Conflict):
                self.store.delete(ident, self.now)
            return
        self.store.delete(ident, self.now)
        del self.known[ident]
        self.keys = {key: value for key, value in self.keys.items() if value[0] != ident}
        kept = {event.message for event in self.store.events()}
        self.messages = [message for message in self.messages if message in kept] + [f"{ident} was deleted."]

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = Store.open(str(Path(self.folder.name, "store.db")))

    @invariant()
    def agrees(self) -> None:
        found = {one.id: one for one in self.store.workflows().items}
        assert {ident: (one.version, one.status, one.finished) for ident, one in found.items()} == {
            ident: (one.version, one.status, one.finished) for ident, one in self.known.items()
        }
        assert {
            ident: {(one.group, one.task, one.attempt) for one in held} for ident, held in self.store.held().items()
        } == {ident: one.held for ident, one in self.known.items() if one.held}
        assert [request.seq for request in self.store.pending_requests()] == sorted(
            seq for one in self.known.values() for seq in one.requests
        )
        assert [event.message for event in self.store.events()] == self.messages
        assert {one.id for one in self.store.unfinished()} == {
            ident for ident, one in self.known.items() if not one.finished
        }

    def _acquire(self, holder: str) -> Lease:
        lease = self.store.acquire(holder, self.now, 10)
        current = self.store.leader()
        assert current is not None
        if lease is None:
            assert self.until > self.now
            return current
        assert lease.fence == self.fence + 1
        self.fence, self.until = lease.fence, lease.expires_at
        return lease

    def _change(self, ident: str, stale: bool, status: str, place: bool) -> WorkflowChange:  # noqa: FBT001 - drawn
        known = self.known[ident]
        attempt = known.version
        fields: dict[str, Any] = {
            "finished": status == "COMPLETED",
            "events": [NewEvent(self.now, "Step", f"{ident} {known.version} {len(self.messages)}")],
            "requests": list(known.requests),
            "placed": [PlacementRecord("g", "t", attempt, "n")] if place else [],
            "released": [] if place else sorted(known.held),
        }
        version = known.version - 1 if stale else known.version
        return WorkflowChange(ident, version, status, {"version": 1}, **fields)


StoreMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestModel = StoreMachine.TestCase
