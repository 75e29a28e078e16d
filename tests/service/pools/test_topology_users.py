"""The users of a pool's levels: workflows, and objects of the cluster that refer to its ClusterTopology."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coterie.config.configuration import Pool
from coterie.errors import Unavailable
from coterie.service.pools.topology_users import level_users
from coterie.store import Store
from coterie.topology.levels import Topology

LEVELS = Topology.of(("zone", "example.com/zone"), ("rack", "example.com/rack"))
POOL = Pool("main", backend="hall", scheduler="kai", topology=LEVELS, topology_name="fleet")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "store.db")) as opened:
        yield opened


def referring(kind: str, name: str, topology: str, level: str) -> dict[str, Any]:
    constraint = {"topologyName": topology, "pack": {"required": level}}
    spec = {"template": {"topologyConstraint": constraint}}
    return {"kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def test_objects_that_refer_to_the_topology_of_a_pool_are_users_with_the_effects_of_a_change(store: Store) -> None:
    objects = [
        referring("PodCliqueSet", "serve", "fleet", "rack"),
        referring("PodCliqueSet", "wide", "fleet", "zone"),
        referring("PodCliqueSet", "elsewhere", "other", "rack"),
    ]
    report = level_users(POOL, store, ["zone"], lambda backend: objects if backend == "hall" else [])
    assert [(user.kind, user.namespace, user.name, user.effect) for user in report.users] == [
        ("PodCliqueSet", "team", "serve", "not-placed"),
        ("PodCliqueSet", "team", "wide", "none"),
    ]
    assert report.faults == ()


def test_a_cluster_that_cannot_be_read_is_told(store: Store) -> None:
    def unreachable(_backend: str) -> list[dict[str, Any]]:
        raise Unavailable("the cluster does not answer", "Try again later.")

    report = level_users(POOL, store, None, unreachable)
    assert report.faults == (
        'objects of the cluster that refer to topology "fleet" cannot be read: the cluster does not answer',
    )
