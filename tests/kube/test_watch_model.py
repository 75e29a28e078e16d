"""For any behaviour of a server, a follower arrives at the result of a list and reports only real changes."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kube.cache import ChangeType
from coterie.kube.kinds import POD
from coterie.kube.reads import ObjectQuery
from coterie.kube.watch import Follower, WatchTiming
from coterie.kube.wire import Identified, Meta
from tests.kube.faulty_transport import api
from tests.kube.simulated_server import Happening, Simulated, Step, Write
from tests.random_examples import examples

NAMES = ("a", "b", "c")
writes = st.builds(Write, st.sampled_from(NAMES), delete=st.booleans())
forgetful = st.sampled_from([Step.COMPACT, Step.END, Step.CUT])
scripts = st.lists(st.one_of(writes, writes, st.sampled_from(Step), forgetful), max_size=40)


def state(meta: Meta) -> tuple[str, str, str]:
    return meta.name, meta.uid, meta.resource_version


@settings(max_examples=examples(400), deadline=None)
@given(script=scripts, chunk=st.sampled_from([3, 64, 10_000]), limit=st.integers(1, 5), resync=st.floats(1, 60))
def test_a_follower_ends_where_a_list_would(script: list[Happening], chunk: int, limit: int, resync: float) -> None:
    server = Simulated(list(script), chunk)
    ticks = itertools.count(step=0.25)
    pace = WatchTiming(resync_s=resync, first_wait_s=0, longest_wait_s=0, page=limit)
    follower = Follower(api(server), ObjectQuery(POD), Identified, pace=pace, clock=lambda: float(next(ticks)))
    server.calm = follower.stop

    seen: dict[str, Meta] = {}
    newest = dict.fromkeys(NAMES, 0)
    for batch in follower.batches():
        for change in batch.changes:
            meta = change.entry.meta
            before = seen.get(meta.name)
            if change.did is ChangeType.DELETED:
                assert before is not None
                assert before.uid == meta.uid
                assert meta.uid in server.deleted
                del seen[meta.name]
                continue
            assert state(meta) in server.states
            assert int(meta.resource_version) > newest[meta.name]
            newest[meta.name] = int(meta.resource_version)
            if change.did is ChangeType.ADDED:
                assert before is None
            else:
                assert before is not None
                assert before.uid == meta.uid
                assert before.resource_version != meta.resource_version
            seen[meta.name] = meta

    assert {state(meta) for meta in seen.values()} == {
        (name, found["metadata"]["uid"], found["metadata"]["resourceVersion"]) for name, found in server.objects.items()
    }
