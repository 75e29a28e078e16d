"""Whatever is done to a graph deployment, what comes out is a PodCliqueSet or faults with places."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.errors import Fault, SpecErrors
from coterie.frontends.dynamo.lower import Lowered, lower_graph
from coterie.frontends.dynamo.names import BUDGET
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.dynamo.rules import create_faults, planning_faults, update_faults, warnings
from coterie.frontends.grove.podcliqueset import rules
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.kubernetes import read_resources, resource_of
from tests.frontends.dynamo_objects import TOPOLOGIES, Data, alpha, beta, changed, pod, put, read

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

junk: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["main", "rack", "t", "9" * 40, 10**400, -1, "1Gi", [], {}, [None], {"": None}, [{}], [[]]]),
)
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


def places(data: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    front = [data]
    while front:
        holder = front.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found.extend((holder, key) for key in keys)
        front.extend(holder[key] for key in keys)
    return found


def mutated(data: st.DataObject) -> Data:
    document = copy.deepcopy(data.draw(st.sampled_from(VALID)))
    for _ in range(data.draw(st.integers(1, 3))):
        spots = places(document)
        if not spots:
            break
        holder, key = data.draw(st.sampled_from(spots))
        match data.draw(st.sampled_from(["replace", "remove", "rename", "copy"])):
            case "replace":
                holder[key] = copy.deepcopy(data.draw(junk))
            case "remove":
                del holder[key]
            case "rename" if isinstance(holder, dict):
                holder[data.draw(st.sampled_from(FIELDS))] = holder.pop(key)
            case "copy" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
    return document


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


def judged_by_grove(lowered: Lowered) -> list[Fault]:
    """Return what Grove would say of a generated set, at the places of the graph's own file."""
    try:
        found = rules.create_faults(read_podcliqueset(resource_of(lowered.manifest)), TOPOLOGIES)
    except SpecErrors as errors:
        found = list(errors.faults)
    blamed = [lowered.blamed(fault) for fault in found]
    assert all(fault.place is not None and fault.place.line for fault in blamed)
    return blamed


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_graph_is_lowered_or_refused(data: st.DataObject) -> None:
    assert all(fault.place is not None and fault.message for fault in judged(mutated(data)))


names = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9]{0,40}[A-Za-z0-9])?", fullmatch=True)


@settings(max_examples=200, deadline=None)
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
