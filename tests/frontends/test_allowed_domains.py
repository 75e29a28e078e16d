"""Restricted names of levels: refused on creation by field, and no obstacle for what exists."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.errors import field_path
from coterie.frontends.admission import (
    KnownTopologies,
    ObjectVerdict,
    TargetCluster,
    judge_graph,
    judge_set,
    judge_topology,
)
from coterie.frontends.kubernetes.objects import resource_of
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import alpha, beta
from tests.frontends.grove.objects import LEVELS

SITE = TargetCluster(domains=frozenset({"zone", "host"}))
KNOWN = KnownTopologies({"t": LEVELS}, told=True)
Object = dict[str, Any]


def faults(verdict: ObjectVerdict) -> list[tuple[str, str]]:
    return [(str(each.type), each.field or field_path(each.path)) for each in verdict.faults]


def test_a_topology_declares_allowed_domains_only_and_keeps_those_that_it_has() -> None:
    refused = judge_topology(resource_of(topology()), None, SITE)
    assert faults(refused) == [("NotSupported", "spec.levels[1].domain"), ("NotSupported", "spec.levels[2].domain")]
    assert faults(judge_topology(resource_of(topology()), resource_of(topology()), SITE)) == []
    assert faults(judge_topology(resource_of(topology("t", "zone", "host")), None, SITE)) == []


@pytest.mark.parametrize("domain", ["rack", "unknown"])
def test_a_set_gets_one_error_for_a_domain_that_is_not_allowed(domain: str) -> None:
    refused = judge_set(resource_of(packed(domain)), None, KNOWN, SITE)
    assert faults(refused) == [("NotSupported", "spec.template.topologyConstraint.pack.required")]
    assert "Allowed are: host, zone." in refused.faults[0].hint


def test_an_existing_set_may_be_edited() -> None:
    assert faults(judge_set(resource_of(packed()), resource_of(packed()), KNOWN, SITE)) == []
    assert faults(judge_set(resource_of(packed("zone")), None, KNOWN, SITE)) == []


@pytest.mark.parametrize(("graph", "index"), [(alpha(), 0), (beta(), 1)])
def test_a_graph_of_either_version_is_refused_by_todays_field(graph: Object, index: int) -> None:
    found = judge_graph(resource_of(graph), None, KNOWN, SITE)
    assert faults(found) == [("NotSupported", f"spec.components[{index}].topologyConstraint.packDomain")]
    assert faults(judge_graph(resource_of(graph), None, KNOWN, TargetCluster())) == []


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ({"pack": {"required": "rack"}}, "pack.required"),
        ({"pack": {"preferred": "rack"}}, "pack.preferred"),
        ({"packDomain": "rack"}, "packDomain"),
    ],
)
def test_an_override_is_no_way_around_the_allowed_names(written: Object, steps: str) -> None:
    constraint = {"topologyConstraint": {"topologyName": "t", **written}}
    override = {"apiVersion": "grove.io/v1alpha1", "value": {"spec": {"template": constraint}}}
    graph = beta()
    del graph["spec"]["topologyConstraint"]
    del graph["spec"]["components"][1]["topologyConstraint"]
    graph["spec"]["providerOverride"] = override
    place = "spec.providerOverride.value.spec.template.topologyConstraint"
    found = judge_graph(resource_of(graph), None, KNOWN, SITE)
    assert ("NotSupported", f"{place}.{steps}") in faults(found)
