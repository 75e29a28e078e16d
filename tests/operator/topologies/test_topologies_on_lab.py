"""ClusterTopologies on a real API server with KAI: followed, repaired, compared, exchanged under waiting work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from lab.api import ApiError

from lab import Lab, nodes
from tests.lab.gangs import CLIQUE, ZONE, phases, places, two_models, two_zones
from tests.operator.conftest import Operate

Object = dict[str, Any]
TOPOLOGY, GROUP = "topologies.kai.scheduler", "podgroups.scheduling.run.ai"


def declared(*keys: str, name: str = "racks", kind: str = "ClusterTopology", **spec: Any) -> Object:
    levels = [{"domain": f"level-{index}", "key": key} for index, key in enumerate(keys)]
    metadata = {"name": name}
    return {"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": {"levels": levels, **spec}}


def kai_topology(name: str, *keys: str) -> Object:
    spec = {"levels": [{"nodeLabel": key} for key in keys]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": name}, "spec": spec}


def labels(lab: Lab, name: str = "racks") -> list[str]:
    found = lab.get(TOPOLOGY, name)
    return [level["nodeLabel"] for level in found["spec"]["levels"]] if found else []


def condition(lab: Lab, name: str = "racks", kind: str = "clustertopologies") -> tuple[str, str, int]:
    """Return status and reason of the drift condition, and the observed generation."""
    found = (lab.get(kind, name) or {}).get("status", {})
    first = (found.get("conditions") or [{}])[0]
    return first.get("status", ""), first.get("reason", ""), found.get("observedGeneration", 0)


def entry(lab: Lab, name: str = "racks", kind: str = "clustertopologies") -> Object:
    found = lab.get(kind, name)
    assert found is not None
    only: Object = found["status"]["schedulerTopologyStatuses"][0]
    return only


def reasons(lab: Lab) -> list[str]:
    events = lab.objects("events", "default")
    ours = [each for each in events if each["source"].get("component") == "coterie-operator"]
    return sorted(each["reason"] for each in ours)


@pytest.mark.parametrize("kind", ["ClusterTopology", "ClusterTopologyBinding"])
def test_the_topology_of_a_scheduler_is_made_repaired_and_deleted_with_its_owner(
    cluster: Lab, operate: Operate, kind: str
) -> None:
    operate(cluster)
    plural = {"ClusterTopology": "clustertopologies", "ClusterTopologyBinding": "clustertopologybindings"}[kind]
    cluster.apply(declared(ZONE, CLIQUE, kind=kind))
    cluster.wait(lambda: condition(cluster, kind=plural) == ("False", "InSync", 1), 60, "it is in sync")
    assert labels(cluster) == [ZONE, CLIQUE]
    reference = "reference" if kind == "ClusterTopology" else "topologyReference"
    assert entry(cluster, kind=plural) == {
        "schedulerName": "kai-scheduler",
        reference: "racks",
        "inSync": True,
        "schedulerBackendTopologyObservedGeneration": 1,
        "message": "",
    }
    assert reasons(cluster) == ["TopologyInSync"]

    version = (cluster.get(plural, "racks") or {})["metadata"]["resourceVersion"]
    cluster.api.patch(TOPOLOGY, "racks", {"metadata": {"labels": None, "ownerReferences": None}})

    def repaired() -> bool:
        metadata = (cluster.get(TOPOLOGY, "racks") or {})["metadata"]
        return bool(metadata.get("ownerReferences") and metadata.get("labels"))

    cluster.wait(repaired, 60, "its metadata is repaired")
    first = (cluster.get(TOPOLOGY, "racks") or {})["metadata"]["uid"]
    cluster.api.delete(TOPOLOGY, "racks")
    cluster.wait(
        lambda: (cluster.get(TOPOLOGY, "racks") or {"metadata": {"uid": first}})["metadata"]["uid"] != first,
        60,
        "it is made again",
    )
    cluster.wait(lambda: condition(cluster, kind=plural) == ("False", "InSync", 1), 60, "it is in sync again")
    # Nothing changed for the user, so neither the status nor an event was written again.
    assert (cluster.get(plural, "racks") or {})["metadata"]["resourceVersion"] == version
    assert reasons(cluster) == ["TopologyInSync"]

    cluster.api.delete(plural, "racks")
    cluster.wait(lambda: cluster.get(TOPOLOGY, "racks") is None, 60, "it is deleted with its owner")


def test_a_topology_of_somebody_else_is_never_overwritten_and_told(cluster: Lab, operate: Operate) -> None:
    cluster.apply(kai_topology("racks", CLIQUE))
    operate(cluster)
    cluster.apply(declared(ZONE))
    cluster.wait(lambda: condition(cluster)[:2] == ("True", "Drift"), 60, "drift is told")

    assert "controlled by nobody" in entry(cluster)["message"]
    assert labels(cluster) == [CLIQUE]
    assert reasons(cluster) == ["TopologyDriftDetected"]
    cluster.api.delete(TOPOLOGY, "racks")
    cluster.wait(lambda: condition(cluster) == ("False", "InSync", 1), 60, "it follows once the name is free")


def test_an_external_topology_is_compared_and_heals_by_itself(cluster: Lab, operate: Operate) -> None:
    operate(cluster)
    reference = [{"schedulerName": "kai-scheduler", "reference": "theirs"}]
    cluster.apply(declared(ZONE, CLIQUE, schedulerReferences=reference))
    cluster.wait(lambda: condition(cluster) == ("True", "Drift", 1), 60, "the missing one is told")
    assert entry(cluster)["schedulerBackendTopologyObservedGeneration"] == 0
    cluster.apply(kai_topology("theirs", CLIQUE, ZONE))
    cluster.wait(lambda: "another order" in entry(cluster)["message"], 60, "the order is told")
    cluster.api.delete(TOPOLOGY, "theirs")
    cluster.apply(kai_topology("theirs", ZONE, CLIQUE))
    cluster.wait(lambda: condition(cluster) == ("False", "InSync", 1), 60, "it heals")

    assert cluster.get(TOPOLOGY, "racks") is None
    theirs = cluster.get(TOPOLOGY, "theirs")
    assert theirs is not None
    assert "ownerReferences" not in theirs["metadata"]
    assert reasons(cluster) == ["TopologyDriftDetected", "TopologyInSync"]


def test_a_scheduler_gets_the_labels_that_an_annotation_gives_it(cluster: Lab, operate: Operate) -> None:
    operate(cluster)
    found = declared(ZONE, "example.com/rack")
    found["metadata"]["annotations"] = {"labels.coterie.dev/kai-scheduler": f"level-1={CLIQUE}"}
    cluster.apply(found)
    cluster.wait(lambda: condition(cluster) == ("False", "InSync", 1), 60, "it is in sync")

    assert labels(cluster) == [ZONE, CLIQUE]


def test_waiting_work_is_placed_across_a_change_of_levels_and_always_sees_a_topology(
    cluster: Lab, operate: Operate
) -> None:
    nodes.add(cluster, two_zones())
    cluster.queue("default")
    operate(cluster)
    cluster.apply(declared(ZONE))
    cluster.wait(lambda: condition(cluster)[0] == "False", 60, "the first levels are there")
    begin = version(cluster)
    cluster.apply(two_models("train"))
    cluster.wait(lambda: waits(cluster), 60, "KAI refuses the level that is not there")
    cluster.apply(declared(ZONE, CLIQUE))
    cluster.wait(lambda: phases(cluster) == {"Running"}, 60, "the gang runs")
    cluster.wait(lambda: settled(cluster), 60, "the exchange has ended")

    found = places(cluster, CLIQUE)
    assert {len(each) for each in found.values()} == {1}
    assert found["model-1"] != found["model-2"]
    # Revisions are of the whole cluster, so the events of both kinds have one order.
    lost = [revision for revision, missing in replayed(cluster, begin) if missing]
    assert lost == []
    told = [each["message"] for each in cluster.objects("events", "default")]
    assert not [message for message in told if "does not exist" in message]


def version(lab: Lab) -> str:
    return str(lab.api.request("GET", lab.api.resource(TOPOLOGY).path())["metadata"]["resourceVersion"])


def waits(lab: Lab) -> bool:
    group = lab.get(GROUP, "train")
    return bool(group and group.get("status", {}).get("schedulingConditions"))


def settled(lab: Lab) -> bool:
    group = lab.get(GROUP, "train")
    names = [each["metadata"]["name"] for each in lab.objects(TOPOLOGY)]
    return names == ["racks"] and group is not None and references(group) == {"racks"}


def references(group: Object) -> set[str]:
    spec = group["spec"]
    constraints = [spec.get("topologyConstraint"), *(each.get("topologyConstraint") for each in spec["subGroups"])]
    return {each["topology"] for each in constraints if each}


def replayed(lab: Lab, begin: str) -> Iterator[tuple[int, set[str]]]:
    """Yield each revision since the beginning, with the topologies that the gang refers to and that do not exist."""
    events = sorted(
        (
            (int(event["object"]["metadata"]["resourceVersion"]), event)
            for kind in (TOPOLOGY, GROUP)
            for event in history(lab, kind, begin)
        ),
        key=lambda entry: entry[0],
    )
    existing = {"racks"}
    wanted: set[str] = set()
    assert any(event["type"] == "DELETED" and event["object"]["kind"] == "Topology" for _, event in events)
    for revision, event in events:
        name = event["object"]["metadata"]["name"]
        if event["object"]["kind"] == "PodGroup":
            wanted = references(event["object"])
        elif event["type"] == "DELETED":
            existing.discard(name)
        else:
            existing.add(name)
        yield revision, wanted - existing


def history(lab: Lab, kind: str, begin: str) -> Iterator[Object]:
    """Yield all events of a kind since the beginning, up to one that is caused here."""
    last = {TOPOLOGY: kai_topology("last", ZONE), GROUP: {**two_models("last")[0]}}[kind]
    lab.api.create(last)
    params = {"watch": "true", "resourceVersion": begin, "timeoutSeconds": "300"}
    with lab.api._client.stream("GET", lab.api.resource(kind).path(), params=params) as answer:
        for line in answer.iter_lines():
            event = json.loads(line)
            if event["object"]["metadata"].get("name") == "last":
                return
            yield event
    raise AssertionError("the history has no end")


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([], "spec.levels"),
        ([{"domain": "Rack", "key": "rack"}], "spec.levels[0].domain"),
        ([{"domain": f"d{n}", "key": f"k{n}"} for n in range(17)], "spec.levels"),
        ([{"domain": "a", "key": "x"}, {"domain": "a", "key": "y"}], "a domain of its own"),
        ([{"domain": "a", "key": "x"}, {"domain": "b", "key": "x"}], "a key of its own"),
        ([{"domain": "a", "key": f"{'p' * 253}/{'n' * 64}"}], "spec.levels[0].key"),
        ([{"domain": "a", "key": "/rack"}], "spec.levels[0].key"),
    ],
)
def test_the_api_server_refuses_by_the_definition_what_the_rules_refuse(
    cluster: Lab, levels: list[Object], words: str
) -> None:
    wrong = {**declared(), "spec": {"levels": levels}}
    with pytest.raises(ApiError) as caught:
        cluster.api.create(wrong)

    assert caught.value.status == 422
    assert words in str(caught.value)


def test_the_definition_admits_sixteen_levels_and_the_longest_key(cluster: Lab) -> None:
    prefix = f"{'p' * 62}." * 4 + "p"
    longest = f"{prefix}/{'n' * 62}"
    cluster.api.create(declared(*(f"k{number}" for number in range(15)), longest))

    assert len(longest) == 316
