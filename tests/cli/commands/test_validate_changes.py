"""`coterie validate` on changes of objects, and for differently configured clusters."""

from __future__ import annotations

import pytest

from tests.cli.command import SampleFolder, call
from tests.cli.sample_files import TC, codes, errors, judged, packed, stocked, text, topology
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.dynamo.objects import drop, pod, put
from tests.frontends.grove.objects import Manifest, assigned, changed, constrained, podcliqueset, standard

OLD_FORM = changed(standard(), constrained("set", {"topologyName": "t", "packDomain": "rack"}))
CLAIM = {"name": "c", "templateSpec": {"spec": {"devices": {"requests": [{"name": "d", "exactly": {}}]}}}}


@pytest.fixture
def shelf(desk: SampleFolder) -> SampleFolder:
    return stocked(desk)


GRAPH = dynamo.beta()
UNVERSIONED = dynamo.changed(GRAPH, put("spec.components.0.podTemplate", pod("i")))
UPDATES: dict[str, tuple[Manifest, Manifest, list[tuple[str, str]], list[str]]] = {
    "a level is changed": (packed("zone"), packed("rack"), [("Forbidden", TC)], []),
    "a set is scaled": (packed(), changed(packed(), assigned("spec.replicas", 4)), [], []),
    "another namespace is another object": (
        changed(packed("zone"), assigned("metadata.namespace", "other")),
        packed("rack"),
        [],
        ["Removed"],
    ),
    "no namespace is the default one": (
        changed(packed("zone"), assigned("metadata.namespace", "default")),
        changed(packed("rack"), lambda manifest: manifest["metadata"].pop("namespace")),
        [("Forbidden", TC)],
        [],
    ),
    "engines of another size": (
        GRAPH,
        dynamo.changed(GRAPH, put("spec.components.1.multinode.nodeCount", 2)),
        [("Invalid", "spec.template.cliques[2].spec.minAvailable")],
        [],
    ),
    "another framework changes the order of starting": (
        GRAPH,
        dynamo.changed(GRAPH, put("spec.backendFramework", "trtllm")),
        [
            ("Invalid", "spec.template.cliqueStartupType"),
            ("Invalid", "spec.template.cliques[1].spec.startsAfter"),
        ],
        [],
    ),
    "a component is scaled to nothing": (
        GRAPH,
        dynamo.changed(GRAPH, put("spec.components.1.replicas", 0)),
        [],
        ["NoReplicas"],
    ),
    "a component is scaled up from nothing": (
        dynamo.changed(GRAPH, put("spec.components.1.replicas", 0)),
        GRAPH,
        [],
        [],
    ),
    "all is scaled to nothing": (
        GRAPH,
        dynamo.changed(GRAPH, put("spec.components.0.replicas", 0), put("spec.components.1.replicas", 0)),
        [],
        ["NoReplicas", "NoReplicas"],
    ),
    "the same in another version": (dynamo.alpha(), GRAPH, [], []),
    "Dynamo's rules go before Grove's": (
        GRAPH,
        dynamo.changed(GRAPH, drop("spec.components.1.multinode"), put("spec.backendFramework", "trtllm")),
        [("Invalid", "spec.components[1].multinode")],
        [],
    ),
    "an old form that cannot be read was never admitted": (
        changed(packed("zone"), assigned("spec.replicas", "many")),
        packed("rack"),
        [],
        ["OldNotRead"],
    ),
    "an old file that is no list of objects": (
        dynamo.changed(GRAPH, drop("metadata.name")),
        GRAPH,
        [("Required", "metadata.name")],
        [],
    ),
    "nor was an old topology": ({**topology(), "spec": {}}, topology(), [], ["OldNotRead"]),
    "an old graph with a misspelt field": (
        dynamo.changed(GRAPH, put("spec.componets", [])),
        dynamo.changed(GRAPH, put("spec.components.1.multinode.nodeCount", 2)),
        [],
        ["OldNotRead"],
    ),
}


@pytest.mark.parametrize(("old", "new", "expected", "warnings"), UPDATES.values(), ids=UPDATES)
def test_with_an_old_file_updates_are_judged(
    shelf: SampleFolder, old: Manifest, new: Manifest, expected: list[tuple[str, str]], warnings: list[str]
) -> None:
    shelf.file("new.yaml", text(new))
    done, said = judged(shelf, "new.yaml --topology topology.yaml --old -", stdin=text(old))
    assert (errors(said), codes(said)) == (expected, warnings)
    assert done.code == (3 if expected else 0)
    assert all(each["file"] and each["line"] for each in said["errors"])


def test_a_fault_of_the_set_behind_a_graph_points_into_the_graph(shelf: SampleFolder) -> None:
    shelf.file("new.yaml", text(dynamo.changed(GRAPH, put("spec.components.1.multinode.nodeCount", 2))))
    shelf.file("old.yaml", text(GRAPH))
    done = call("validate", "new.yaml", "topology.yaml", "--old", "old.yaml", cwd=shelf.folder)
    assert '"nodeCount": 2' in done.err
    assert "The rule is Grove's, for the PodCliqueSet behind the graph." in done.err


def test_a_topology_that_loses_a_level_is_told_of_with_what_it_does(shelf: SampleFolder) -> None:
    shelf.file("new.yaml", text(topology("t", "zone", "host"), packed(), GRAPH))
    shelf.file("old.yaml", text(topology(), packed(), GRAPH))
    done, said = judged(shelf, "new.yaml --old old.yaml")
    assert (done.code, codes(said)) == (0, ["LevelsRemoved", *["TopologyLevelsUnavailable"] * 3])


def test_an_empty_old_file_makes_everything_new(shelf: SampleFolder) -> None:
    done, said = judged(shelf, "good.yaml topology.yaml --old -")
    assert (done.code, codes(said)) == (0, ["NothingBefore"])
    assert [each["change"] for each in said["files"] if each["name"]] == ["created", "created"]
    done, said = judged(shelf, "good.yaml topology.yaml --old -", stdin="<html>")
    assert (done.code, said["errors"][0]["file"]) == (3, "standard input")
    done, said = judged(shelf, "flow.yaml --old flow.yaml --levels rack=r")
    assert (done.code, codes(said)) == (0, [])


SITES: dict[str, tuple[Manifest, str, list[tuple[str, str]], list[str]]] = {
    "packDomain": (OLD_FORM, "", [], ["Deprecated"]),
    "packDomain, strictly": (
        OLD_FORM,
        "--strict",
        [("Forbidden", f"{TC}.packDomain")],
        [],
    ),
    "an image without a version": (UNVERSIONED, "", [], ["RuntimeVersionUnknown"]),
    "an image without a version, strictly": (
        UNVERSIONED,
        "--strict",
        [("Required", "spec.components[0].runtimeVersionOverride")],
        [],
    ),
    "the older kind, strictly": ({**topology("u"), "kind": "ClusterTopology"}, "--strict", [], ["KindRenamed"]),
    "topology off": (packed(), "--off topology", [("Invalid", TC)], []),
    "topology off behind a graph": (
        GRAPH,
        "--off topology",
        [("Invalid", TC), ("Invalid", "spec.template.podCliqueScalingGroups[0].topologyConstraint")],
        [],
    ),
    "no KAI": (packed(), "--off kai", [("Invalid", "spec.template.cliques[0].spec.podSpec.schedulerName")], []),
    "no KAI to bind": (
        topology("u", schedulerTopologyBindings=[{"schedulerName": "kai-scheduler", "topologyReference": "x"}]),
        "--off kai",
        [("Invalid", "spec.schedulerTopologyReferences[0].schedulerName")],
        [],
    ),
    "no Grove": (GRAPH, "--off grove", [], ["NoEffect", "NotPlanned"]),
    "no Grove, nor NVLink": (GRAPH, "--off grove --off mnnvl", [], ["NoEffect", "NotPlanned"]),
    "what cannot be planned": (
        dynamo.changed(GRAPH, put("spec.components.1.experimental", {"gpuMemoryService": {}})),
        "",
        [],
        ["NotPlanned"],
    ),
    "devices that cannot be planned": (
        changed(
            podcliqueset(),
            assigned("spec.template.resourceClaimTemplates", [CLAIM]),
            assigned("spec.template.resourceSharing", [{"name": "c", "scope": "AllReplicas"}]),
        ),
        "",
        [],
        ["NotPlanned"],
    ),
}


@pytest.mark.parametrize(("document", "words", "expected", "warnings"), SITES.values(), ids=SITES)
def test_options_say_what_the_cluster_is_like(
    shelf: SampleFolder, document: Manifest, words: str, expected: list[tuple[str, str]], warnings: list[str]
) -> None:
    shelf.file("one.yaml", text(document))
    done, said = judged(shelf, f"one.yaml --topology topology.yaml {words}")
    assert (errors(said), codes(said)) == (expected, warnings)
    assert done.code == (3 if expected else 0)
