"""Labels of levels for one scheduler: used for its resource and for plans, and checked with the topology."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import SpecErrors, field_path
from coterie.frontends.grove.drift import drift_of
from coterie.frontends.grove.kai_topology import KaiTopology, Owner
from coterie.frontends.grove.topology import KAI, ClusterTopology, read_cluster_topology, topology_of
from coterie.frontends.kubernetes.objects import resource_of
from tests.cli.sample_files import topology

FIELD = "metadata.annotations.labels.coterie.dev/kai-scheduler"


def labelled(text: str) -> ClusterTopology:
    data: dict[str, Any] = topology("t", "zone", "rack")
    data["metadata"]["annotations"] = {"labels.coterie.dev/kai-scheduler": text}
    return read_cluster_topology(resource_of(data), None)


def test_a_scheduler_sees_its_own_labels_and_the_keys_of_the_other_levels() -> None:
    found = labelled("rack=example.com/nvl-rack")

    assert found.keys == ("topology.kubernetes.io/zone", "fabric.example.com/rack")
    assert found.for_scheduler(KAI).keys == ("topology.kubernetes.io/zone", "example.com/nvl-rack")
    assert found.for_scheduler("volcano").keys == found.keys
    assert [level.label for level in topology_of(found).levels] == list(found.for_scheduler(KAI).keys)


def test_its_resource_is_compared_with_these_labels() -> None:
    keys = ("topology.kubernetes.io/zone", "example.com/nvl-rack")
    there = {"t": KaiTopology("t", keys, 1, Owner("ClusterTopologyBinding", "t", ""))}
    drift = drift_of(labelled("rack=example.com/nvl-rack"), there)

    assert drift.condition is not None
    assert drift.condition.reason == "InSync"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rack", "is not DOMAIN=LABEL"),
        ("", "is not DOMAIN=LABEL"),
        ("rak=example.com/r", "no level"),
        ("rack=not a label", "cannot be the label"),
        ("rack=example.com/a,rack=example.com/b", "occurs twice"),
        ("rack=example.com/a,zone=example.com/a", "occurs twice"),
        ("rack=topology.kubernetes.io/zone", 'it is the key of "zone"'),
    ],
)
def test_an_annotation_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        labelled(text)

    [fault] = caught.value.faults
    assert words in fault.message
    assert field_path(fault.path) == FIELD


def test_two_levels_may_exchange_their_labels() -> None:
    found = labelled("rack=topology.kubernetes.io/zone,zone=fabric.example.com/rack")
    assert found.for_scheduler(KAI).keys == ("fabric.example.com/rack", "topology.kubernetes.io/zone")


def test_labels_for_a_scheduler_that_does_not_exist_are_refused() -> None:
    data: dict[str, Any] = topology("t", "zone", "rack")
    data["metadata"]["annotations"] = {"labels.coterie.dev/kai-sheduler": "rack=example.com/r"}
    with pytest.raises(SpecErrors) as caught:
        read_cluster_topology(resource_of(data), None)
    [fault] = caught.value.faults
    assert fault.message == 'there is no scheduler "kai-sheduler"'
    assert 'Did you mean "kai-scheduler"?' in (fault.hint or "")


def test_what_kai_refuses_is_decided_by_its_own_labels() -> None:
    [notice] = labelled("zone=kubernetes.io/hostname").notices
    assert notice.code == "RefusedByKai"
    assert field_path(notice.path) == FIELD
    assert labelled("rack=kubernetes.io/hostname").notices == ()
