"""Any mutation of a graph deployment results in a PodCliqueSet or in faults with places."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.errors import Fault, SpecErrors
from coterie.frontends.dynamo.lower import LoweredGraph, lower_graph
from coterie.frontends.dynamo.names import BUDGET
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.dynamo.rules.admission import create_faults, planning_faults, update_faults, warnings
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules import admission
from coterie.frontends.kubernetes.objects import read_resources, resource_of
from tests.frontends.dynamo.objects import TOPOLOGIES, Data, alpha, beta, changed, pod, put, read
from tests.frontends.mutations import junk, mutated
from tests.random_examples import examples

PIECE = {"apiVersion": "grove.io/v1alpha1", "value": {"topologyConstraint": {"pack": {"preferred": "rack"}}}}
VALID = [
    changed(
        beta(),
        put("spec.env", [{"name": "A", "value": "1"}]),
        put("spec.experimental", {"kvTransferPolicy": {"domain": "rack", "labelKey": "a"}}),
        put("spec.components.1.multinode.worker", {"providerOverride": PIECE}),
        put("spec.components.0.experimental", {"grove": {"forceScalingGroup": True}}),
    ),
    changed(
        alpha(),
        put("spec.services.Decode.volumeMounts", [{"name": "m", "mountPoint": "/m"}]),
        put("spec.services.Decode.envs", [{"name": "A", "value": "1"}]),
        put("spec.services.Decode.sharedMemory", {"size": "1Gi"}),
        put("spec.services.Frontend.extraPodSpec.containers", [{"name": "s", "env": [{"name": "B"}]}]),
        put("spec.services.Frontend.scalingAdapter", {"enabled": True}),
    ),
]

VALUES = junk("main", "rack", "t", [{}], [[]])
FIELDS = [
    "name",
    "spec",
    "containers",
    "services",
    "components",
    "providerOverride",
    "topologyConstraint",
    "value",
    "x",
]


def judged(document: Data) -> list[Fault]:
    try:
        found = read_resources(json.dumps(document, indent=1).encode(), "graph.yaml").of("DynamoGraphDeployment")
        graphs = [read_graph(resource) for resource in found]
    except SpecErrors as errors:
        return list(errors.faults)
    faults: list[Fault] = []
    for graph in graphs:
        before = read(VALID[0])
        faults += create_faults(graph, TOPOLOGIES)
        faults += planning_faults(graph)
        update_faults(before, graph, TOPOLOGIES)
        update_faults(graph, before, TOPOLOGIES)
        warnings(graph, None)
        if not faults:
            first, second = lower_graph(graph), lower_graph(graph)
            assert json.dumps(first.manifest) == json.dumps(second.manifest)
            faults += judged_by_grove(first)
    return faults


def judged_by_grove(lowered: LoweredGraph) -> list[Fault]:
    """Return what Grove would say of a generated set, at the places of the graph's own file."""
    try:
        found = admission.create_faults(read_podcliqueset(resource_of(lowered.manifest)), TOPOLOGIES)
    except SpecErrors as errors:
        found = list(errors.faults)
    blamed = [lowered.blamed(fault) for fault in found]
    assert all(fault.place is not None and fault.place.line for fault in blamed)
    return blamed


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_graph_is_lowered_or_refused(data: st.DataObject) -> None:
    document = mutated(data, data.draw(st.sampled_from(VALID)), FIELDS, VALUES)
    assert all(fault.place is not None and fault.message for fault in judged(document))


names = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9]{0,40}[A-Za-z0-9])?", fullmatch=True)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True),
    st.lists(st.tuples(names, st.integers(1, 4), st.booleans()), min_size=1, max_size=4),
)
def test_names_of_an_admitted_graph_stay_within_groves_budget(
    name: str, components: list[tuple[str, int, bool]]
) -> None:
    listed = [
        {
            "name": each,
            "podTemplate": pod(),
            **({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}),
            **({"experimental": {"grove": {"forceScalingGroup": True}}} if forced else {}),
        }
        for each, nodes, forced in components
    ]
    data = changed(beta(), put("metadata.name", name), put("spec", {"components": listed}))
    graph = read(data)
    if create_faults(graph, None):
        return
    manifest = lower_graph(graph).manifest
    template = manifest["spec"]["template"]
    length = len(manifest["metadata"]["name"])
    groups = {
        member: group["name"] for group in template.get("podCliqueScalingGroups", ()) for member in group["cliqueNames"]
    }
    for clique in template["cliques"]:
        assert length + len(groups.get(clique["name"], "")) + len(clique["name"]) <= BUDGET
    assert name.startswith(manifest["metadata"]["name"][:3])
