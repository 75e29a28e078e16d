"""The live clusters of backends: one that does not answer delays no other, and is reported until it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from coterie.config.configuration import Backend
from coterie.errors import CoterieError, Unavailable
from coterie.service.pools import live_clusters
from coterie.service.pools.live_clusters import LiveClusters
from coterie.sources import Snapshot, watched_cluster
from coterie.topology.cluster import Cluster, Node
from tests.eventually import PATIENCE_S, eventually

BACKEND = Backend("far", "kai", context="far", namespace="n")


class ScriptedCluster:
    """A watched cluster that answers only while its gate is open, and has as many nodes as it has changed."""

    current: ScriptedCluster

    def __init__(self, context: str, on_change: Callable[[], None]) -> None:
        self.source, self._on_change = f"context:{context}", on_change
        self.error: CoterieError | None = None
        self.ended: Exception | None = None
        self.gate, self.asked, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.failure: Exception | None = None
        self.nodes = 1
        self.gate.set()
        ScriptedCluster.current = self

    def change(self) -> None:
        """Get one more node."""
        self.nodes += 1
        self._on_change()

    def snapshot(self) -> Snapshot:
        """Wait for the gate, and fail or answer."""
        self.asked.set()
        assert self.gate.wait(PATIENCE_S)
        if error := self.ended or self.failure:
            raise error
        return Snapshot(Cluster.of([Node(f"n{number}", {}, {}) for number in range(self.nodes)]))

    def close(self) -> None:
        """Note it."""
        self.closed.set()


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveClusters]:
    monkeypatch.setattr(watched_cluster, "WatchedCluster", ScriptedCluster)
    monkeypatch.setattr(live_clusters, "_PACE_S", 0.0)
    monkeypatch.setattr(live_clusters, "_CHECK_S", 0.01)
    monkeypatch.setattr(live_clusters, "_PAUSE_S", 0.01)
    monkeypatch.setattr(live_clusters, "_LONGEST_PAUSE_S", 0.01)
    found = LiveClusters()
    found.follow([BACKEND])
    yield found
    found.close()


def sizes(clusters: LiveClusters) -> dict[str, int]:
    return {name: len(found.cluster) for name, found in clusters.snapshots().items()}


def test_the_last_snapshot_is_given_while_a_cluster_does_not_answer(clusters: LiveClusters) -> None:
    eventually(lambda: sizes(clusters) == {"far": 1})
    eventually(lambda: clusters.problems() == {})
    assert not clusters.changed()
    cluster = ScriptedCluster.current
    cluster.gate.clear()
    cluster.asked.clear()
    cluster.change()
    assert cluster.asked.wait(PATIENCE_S)

    # Whoever asks now does not wait for the cluster.
    assert sizes(clusters) == {"far": 1}
    assert not clusters.changed()

    cluster.gate.set()
    eventually(clusters.changed)
    eventually(lambda: sizes(clusters) == {"far": 2})


def test_what_keeps_a_cluster_from_being_known_is_told_until_it_is_over(clusters: LiveClusters) -> None:
    eventually(lambda: sizes(clusters) == {"far": 1})
    eventually(lambda: clusters.problems() == {})
    cluster = ScriptedCluster.current
    cluster.error = Unavailable("it cannot be reached")
    assert clusters.changed()
    assert clusters.problems() == {"far": "it cannot be reached"}
    assert not clusters.changed()
    cluster.error = None

    for failure, words in ((Unavailable("busy"), "busy"), (ValueError("what?"), "unexpected ValueError: what?")):
        cluster.failure = failure
        cluster.change()
        eventually(lambda words=words: clusters.problems() == {"far": words})  # type: ignore[misc]
        assert sizes(clusters)["far"] < cluster.nodes
        cluster.failure = None
        eventually(lambda: clusters.problems() == {})
        eventually(lambda: sizes(clusters) == {"far": cluster.nodes})


def test_a_backend_that_is_gone_is_closed_and_forgotten(clusters: LiveClusters) -> None:
    eventually(lambda: sizes(clusters) == {"far": 1})
    clusters.follow([])
    assert ScriptedCluster.current.closed.wait(PATIENCE_S)
    assert clusters.changed()
    assert (clusters.snapshots(), clusters.problems()) == ({}, {})


def test_a_cluster_of_which_a_watch_has_ended_is_told_and_opened_again(clusters: LiveClusters) -> None:
    eventually(lambda: sizes(clusters) == {"far": 1} and clusters.problems() == {})
    first = ScriptedCluster.current
    first.nodes = 2
    first.ended = Unavailable("pods may not be watched", "")

    assert first.closed.wait(PATIENCE_S)
    eventually(lambda: ScriptedCluster.current is not first)
    ScriptedCluster.current.change()
    eventually(lambda: sizes(clusters) == {"far": 2} and clusters.problems() == {})


def test_a_cluster_is_being_connected_to_until_the_first_try_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answered = threading.Event(), threading.Event()

    def refused(_context: str, _on_change: Callable[[], None]) -> ScriptedCluster:
        begun.set()
        assert answered.wait(PATIENCE_S)
        raise Unavailable("connection refused")

    monkeypatch.setattr(watched_cluster, "WatchedCluster", refused)
    found = LiveClusters()
    found.follow([BACKEND])
    try:
        assert begun.wait(PATIENCE_S)
        assert found.problems() == {"far": live_clusters.CONNECTING}
        answered.set()
        eventually(lambda: found.problems() == {"far": "connection refused"})
    finally:
        answered.set()
        found.close()


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (live_clusters.CONNECTING, 'the service is connecting to the cluster of backend "far"'),
        ("no route", 'the cluster of backend "far" cannot be reached: no route'),
    ],
)
def test_only_a_cluster_that_was_tried_is_called_unreachable(problem: str, words: str) -> None:
    assert live_clusters.unreached_words("far", problem) == words
