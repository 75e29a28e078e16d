"""The condition `TopologyLevelsUnavailable` of a PodCliqueSet, reason by reason."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.frontends.grove.availability import levels_unavailable
from coterie.frontends.grove.conditions import LEVELS_UNAVAILABLE, REASONS
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from coterie.frontends.kubernetes.objects import resource_of
from coterie.topology.levels import Topology
from tests.frontends.grove.objects import clique, group, podcliqueset

KNOWN = {"t": Topology.of(("zone", "example.com/z"), ("rack", "example.com/r"))}
ON, TODAY, OFF = GroveSettings(), GroveSettings(form=Form.GROVE_HEAD), GroveSettings(topology_aware_scheduling=False)
ALL, GONE, MISSING, NAMELESS, DISABLED = REASONS[LEVELS_UNAVAILABLE]


def pack(name: str = "", **domains: str) -> dict[str, Any]:
    return {**({"topologyName": name} if name else {}), "pack": domains}


def made(
    whole: dict[str, Any] | None = None, part: dict[str, Any] | None = None, shard: dict[str, Any] | None = None
) -> PodCliqueSet:
    """Return a set with constraints of its own, of a clique and of a scaling group."""
    one = clique("a") | ({"topologyConstraint": part} if part else {})
    groups = [group("shard", "b") | ({"topologyConstraint": shard} if shard else {})]
    template = {"topologyConstraint": whole} if whole else {}
    return read_podcliqueset(resource_of(podcliqueset(one, clique("b"), groups=groups, **template)))


@pytest.mark.parametrize(
    ("pcs", "settings", "expected"),
    [
        pytest.param(made(pack("t", required="rack")), ON, ("False", ALL), id="all there"),
        pytest.param(made(), ON, ("False", ALL), id="no constraint"),
        pytest.param(made(pack("t", required="row")), ON, ("True", GONE), id="a required level gone"),
        pytest.param(made(pack("t", required="zone", preferred="row")), ON, ("True", GONE), id="a preferred one gone"),
        pytest.param(
            made(pack("t", required="zone"), pack(required="row")), ON, ("True", GONE), id="a clique's level gone"
        ),
        pytest.param(made(shard=pack("t", required="row")), ON, ("True", GONE), id="a scaling group's level gone"),
        pytest.param(made(pack("u", required="rack")), ON, ("True", MISSING), id="topology gone, as proposed"),
        pytest.param(made(pack("u", required="rack")), TODAY, ("Unknown", MISSING), id="topology gone, Grove of today"),
        pytest.param(made(part=pack(required="rack")), ON, ("Unknown", NAMELESS), id="no name"),
        pytest.param(made(pack("t", required="rack")), OFF, ("Unknown", DISABLED), id="off"),
        pytest.param(made(), OFF, None, id="off, and nothing asked"),
    ],
)
def test_the_condition_of_a_set_follows_its_topology(
    pcs: PodCliqueSet, settings: GroveSettings, expected: tuple[str, str] | None
) -> None:
    found = levels_unavailable(pcs, KNOWN, settings)

    assert (found and (found.status, found.reason)) == expected
    assert found is None or found.message


def test_the_message_lists_the_levels_that_are_gone() -> None:
    found = levels_unavailable(made(pack("t", required="hall"), pack(required="row")), KNOWN)

    assert found
    assert found.message.startswith('the ClusterTopology "t" has no level "hall", "row"')
