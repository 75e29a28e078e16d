"""The catalog of pools while its files are being written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import pytest

from coterie.config.configuration import Backend
from coterie.service.pools import catalog
from coterie.service.pools.catalog import LiveCatalog
from coterie.sources import Snapshot
from coterie.sources.limits import read_bytes
from coterie.store import PoolRecord
from coterie.topology.cluster import Cluster, Node
from tests.service.running_service import CLUSTER, CONFIG, ServiceFolder


@pytest.mark.parametrize("name", ["coterie.yaml", "cluster.yaml"])
def test_a_file_that_is_read_before_it_is_written_whole_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place = ServiceFolder(tmp_path / "place")
    found = LiveCatalog(place.settings())
    assert found.refresh(()).pools["main"].pool.gpus.limit is None
    file = place.folder / name
    whole = {
        "coterie.yaml": f"{CONFIG}    gpus: {{limit: 8}}\n",
        "cluster.yaml": CLUSTER.replace("nodes: 4", "nodes: 3"),
    }

    def half(path: str, stdin: BinaryIO) -> bytes:
        """Read a file that its writer has emptied, and has filled when it has been read."""
        content = read_bytes(path, stdin)
        if path == str(file) and not content:
            file.write_text(whole[name], encoding="utf-8")
        return content

    monkeypatch.setattr(catalog, "read_bytes", half)
    file.write_bytes(b"")
    found.refresh(())
    assert "is empty" in found.problem
    now = found.refresh(())
    assert found.problem == ""
    assert (now.pools["main"].pool.gpus.limit, len(now.clusters["lab"].cluster)) == (
        (8, 8) if "coterie" in name else (None, 6)
    )


def test_a_file_that_a_new_configuration_names_is_read_again_once_it_is_right(tmp_path: Path) -> None:
    place = ServiceFolder(tmp_path / "place")
    found = LiveCatalog(place.settings())
    found.refresh(())
    (place.folder / "other.yaml").write_text("nonsense", encoding="utf-8")
    (place.folder / "coterie.yaml").write_text(CONFIG.replace("cluster.yaml", "other.yaml"), encoding="utf-8")
    assert len(found.refresh(()).clusters["lab"].cluster) == 8
    assert found.problem
    (place.folder / "other.yaml").write_text(CLUSTER.replace("nodes: 4", "nodes: 3"), encoding="utf-8")
    assert len(found.refresh(()).clusters["lab"].cluster) == 6
    assert found.problem == ""


def test_a_known_cluster_that_does_not_answer_is_no_change_for_workflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LiveCatalog(ServiceFolder(tmp_path / "place").settings())
    first = found.refresh(())
    said: dict[str, str] = {}
    monkeypatch.setattr(found.live, "changed", lambda: True)
    monkeypatch.setattr(found.live, "problems", lambda: dict(said))
    for said["lab"] in ("it timed out", "it refused the connection"):
        now = found.refresh(())
        assert (now.unreached, now.number) == (said, first.number)
    said.clear()
    said["never"] = "it was never reached"
    assert found.refresh(()).number == first.number + 1


FAR = CONFIG.replace("pools:", "  far: {scheduler: kai, context: far, namespace: n}\npools:\n  away: {backend: far}")


@pytest.mark.parametrize("broken", ["cluster.yaml", "coterie.yaml"])
def test_a_broken_file_keeps_no_news_of_live_clusters_and_no_stored_pool_from_being_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    place = ServiceFolder(tmp_path / "place", config=FAR)
    found = LiveCatalog(place.settings())
    live = {"far": Snapshot(Cluster.of([Node("n0", {}, {})]))}
    followed: list[str] = []

    def follow(backends: Iterable[Backend]) -> None:
        followed[:] = [backend.name for backend in backends]

    monkeypatch.setattr(found.live, "follow", follow)
    monkeypatch.setattr(found.live, "snapshots", lambda: dict(live))
    monkeypatch.setattr(found.live, "changed", lambda: True)
    first = found.refresh(())
    assert (len(first.clusters["far"].cluster), len(first.clusters["lab"].cluster)) == (1, 8)

    (place.folder / broken).write_text("nonsense", encoding="utf-8")
    live["far"] = Snapshot(Cluster.of([Node(f"n{number}", {}, {}) for number in range(2)]))
    stored = PoolRecord("stored", {"backend": "far"}, 1, 0.0, 0.0)
    now = found.refresh((stored,))
    assert (len(now.clusters["far"].cluster), len(now.clusters["lab"].cluster)) == (2, 8)
    assert set(now.pools) == {"main", "away", "stored"}
    assert now.number > first.number
    assert f"/{broken}:1: " in found.problem
    assert followed == ["far"]

    # The next news come as well, and the problem is named until the file is right.
    live["far"] = Snapshot(Cluster.of([Node(f"n{number}", {}, {}) for number in range(3)]))
    assert len(found.refresh((stored,)).clusters["far"].cluster) == 3
    assert broken in found.problem
    right = {"cluster.yaml": CLUSTER.replace("nodes: 4", "nodes: 3"), "coterie.yaml": FAR}
    (place.folder / broken).write_text(right[broken], encoding="utf-8")
    now = found.refresh((stored,))
    assert len(now.clusters["lab"].cluster) == (6 if broken == "cluster.yaml" else 8)
    assert found.problem == ""
