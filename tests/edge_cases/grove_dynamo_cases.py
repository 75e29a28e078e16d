"""Documents for the numbered cases of Grove's and Dynamo's topology APIs, and their results besides faults.

Gangs are made as `coterie plan` makes them. Conditions and drift are decided by the functions that a controller calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from coterie.config.configuration import Pool
from coterie.frontends.admission import TargetCluster
from coterie.frontends.dynamo.conditions import DynamoCondition, levels_available
from coterie.frontends.dynamo.lower import lower_graph
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.grove.conditions import GroveCondition
from coterie.frontends.grove.drift import drift_of, drift_status, event_of
from coterie.frontends.grove.kai_topology import KaiTopology, Owner
from coterie.frontends.grove.podcliqueset.nvlink import enrolled
from coterie.frontends.grove.topology import KAI, SCHEDULERS, ClusterTopology, read_cluster_topology
from coterie.frontends.kubernetes.objects import resource_of
from coterie.gang.tree import Gang
from coterie.library import plan_workloads
from coterie.operator.workloads.reconcile import graph_outcome
from coterie.placement.refusal import Verdict
from coterie.planning.inputs import all_topologies, read_snapshot
from coterie.planning.load import read_documents, workload_for
from coterie.planning.validation import InputText, Validation, ValidationContext, validate
from coterie.topology.levels import Topology
from tests.backends.kai.sets.builders import names, rendered
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.grove import objects as grove
from tests.frontends.grove.objects import Change, Manifest, standard

Pairs = Sequence[tuple[str, str]]
Faults = tuple[tuple[str, str], ...]

CT, CTB = "ClusterTopology", "ClusterTopologyBinding"
ZONE, BLOCK, RACK, HOST = ((level.name, level.label) for level in grove.LEVELS.levels)
LEVELS = (ZONE, BLOCK, RACK, HOST)
KEYS = tuple(key for _, key in LEVELS)

# Today's API to the letter ([H]), and what Coterie takes besides: the form of the proposal ([D]).
HEAD, EITHER = TargetCluster(strict=True), TargetCluster()
BOTH = (EITHER, HEAD)


def off(feature: str) -> tuple[TargetCluster, ...]:
    return tuple(replace(site, off=frozenset({feature})) for site in BOTH)


def topology(name: str = "t", levels: Pairs = LEVELS, bound: Pairs = (), kind: str = CTB) -> Manifest:
    listed, reference = {
        CT: ("schedulerReferences", "reference"),
        CTB: ("schedulerTopologyBindings", "topologyReference"),
    }[kind]
    bindings = {listed: [{"schedulerName": scheduler, reference: own} for scheduler, own in bound]} if bound else {}
    spec = {"levels": [{"domain": domain, "key": key} for domain, key in levels], **bindings}
    return {"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


T_AND_U = (topology("t"), topology("u"))


def many(count: int) -> Pairs:
    return [(f"level{number}", f"example.com/l{number}") for number in range(count)]


def pcs(*changes: Change) -> Manifest:
    """Return the standard set, changed: cliques a and b alone, lead and work in the scaling group shard."""
    return grove.changed(standard(), *changes)


def dgd(*changes: dynamo.Change) -> Manifest:
    """Return the standard graph, changed: Frontend, and Decode of four nodes in one rack; all in one zone."""
    return dynamo.changed(dynamo.beta(), *changes)


def named(name: str = "t", **pack: str) -> Manifest:
    return {"topologyName": name, "pack": pack}


def pack(**domains: str) -> Manifest:
    return {"pack": domains}


def faults(kind: str, *fields: str) -> Faults:
    return tuple((kind, field) for field in fields)


def invalid(*fields: str) -> Faults:
    return faults("Invalid", *fields)


def required(*fields: str) -> Faults:
    return faults("Required", *fields)


def forbidden(*fields: str) -> Faults:
    return faults("Forbidden", *fields)


def duplicate(*fields: str) -> Faults:
    return faults("Duplicate", *fields)


@dataclass(frozen=True)
class Case:
    """A case by its number, with a letter where it has parts.

    `now` are the documents of a file, `before` those of the old one; `warnings` are all their codes. `needs` says what
    files cannot show. `shows` checks what else can be shown without it.
    """

    id: str
    what: str
    now: tuple[Manifest, ...] = ()
    faults: Faults = ()
    warnings: tuple[str, ...] = ()
    sites: tuple[TargetCluster, ...] = BOTH
    before: tuple[Manifest, ...] | None = None
    needs: str = ""
    shows: Callable[[Case], None] | None = None

    @property
    def number(self) -> int:
        return int(re.sub(r"\D.*", "", self.id))


def text(documents: Sequence[Manifest]) -> bytes:
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents).encode()


def judged(case: Case, site: TargetCluster) -> Validation:
    old = None if case.before is None else [InputText("old.yaml", text(case.before))]
    return validate([InputText("new.yaml", text(case.now))], ValidationContext(site), old)


def gangs(case: Case) -> tuple[Gang, ...]:
    """Return the gangs of the case's workload, as `coterie plan` makes them."""
    found = read_documents(text(case.now), "new.yaml")
    [written] = found.workloads
    known = all_topologies(None, None, found.topologies)
    return workload_for(written, Pool.for_levels(Topology()), known, configured=False).gangs


def tree(gang: Gang) -> list[str]:
    """Return a line per constraint of a gang, indented by depth."""
    return [
        f"{'  ' * (len(one.path) - 1)}{'required' if one.required else 'preferred'} {one.level} {one.path[-1][1]}"
        for one in gang.walk()
    ]


# What drift decides: a checked topology, the KAI Topologies that there are, and the condition that follows.
def declared(levels: Pairs = LEVELS, bound: Pairs = (), generation: int = 7) -> ClusterTopology:
    data = topology(levels=levels, bound=bound)
    data["metadata"] |= {"generation": generation, "uid": "u1"}
    return read_cluster_topology(resource_of(data), None)


OWNED = Owner(CTB, "t", "u1")
IN_SYNC, DRIFT, NOT_FOUND = ("False", "InSync"), ("True", "Drift"), ("Unknown", "TopologyNotFound")


def condition(
    found: ClusterTopology, *kai: KaiTopology, enabled: frozenset[str] = SCHEDULERS
) -> tuple[str, str] | None:
    drift = drift_of(found, {each.name: each for each in kai}, enabled)
    return (drift.condition.status, drift.condition.reason) if drift.condition else None


def shows_20_levels(_: Case) -> None:
    assert condition(declared(many(20))) == DRIFT


def shows_owned(_: Case) -> None:
    assert condition(declared(), KaiTopology("t", KEYS, 1, OWNED)) == IN_SYNC


def shows_recreated(_: Case) -> None:
    assert condition(declared([ZONE, RACK, HOST]), KaiTopology("t", (ZONE[1], HOST[1]), 1, OWNED)) == DRIFT
    assert condition(declared([ZONE, RACK, HOST]), KaiTopology("t", (ZONE[1], RACK[1], HOST[1]), 1, OWNED)) == IN_SYNC


def shows_absent(_: Case) -> None:
    found = declared(bound=[(KAI, "own")])
    status = drift_status(found, drift_of(found, {}), observed=3)
    assert condition(found) == DRIFT
    assert status["observedGeneration"] == 7
    [entry] = status["schedulerTopologyStatuses"]
    assert (entry["inSync"], entry["schedulerBackendTopologyObservedGeneration"]) == (False, 0)


def shows_other_order(_: Case) -> None:
    found = declared(bound=[(KAI, "own")])
    drift = drift_of(found, {"own": KaiTopology("own", KEYS[::-1], 5)})
    assert [(entry.in_sync, entry.generation) for entry in drift.entries] == [(False, 5)]
    assert condition(found, KaiTopology("own", KEYS[::-1], 5)) == DRIFT


def shows_events(_: Case) -> None:
    drifted, synced = GroveCondition("True", "Drift", ""), GroveCondition("False", "InSync", "")
    assert event_of(drifted, synced) == ("Normal", "TopologyInSync")
    assert event_of(drifted, drifted) is None


def shows_not_owned(_: Case) -> None:
    drift = drift_of(declared(), {"t": KaiTopology("t", KEYS, 2)})
    assert drift.entries[0].failed
    assert condition(declared(), KaiTopology("t", KEYS, 2)) == DRIFT


def shows_disabled(_: Case) -> None:
    own = KaiTopology("own", KEYS, 3)
    assert condition(declared(bound=[(KAI, "own")]), own, enabled=SCHEDULERS - {KAI}) == NOT_FOUND


def shows_nothing_to_compare(_: Case) -> None:
    assert condition(declared(), enabled=SCHEDULERS - {KAI}) is None


def shows_a_preference(case: Case) -> None:
    assert tree(gangs(case)[0]) == ["preferred host set-0"]


def shows_two_base_gangs(case: Case) -> None:
    found = [gang for gang in gangs(case) if not gang.follows]
    assert [tree(gang) for gang in found] == [
        [f"required zone set-{number}", f"  required host set-{number}-a"] for number in range(2)
    ]


def shows_scaled_gangs(case: Case) -> None:
    base, *scaled = gangs(case)
    assert tree(base) == ["required block set-0", "  required rack set-0-shard-0"]
    # Grove lets go of the set's block in scaled gangs; Coterie keeps them in that of their base gang.
    assert [(gang.name, gang.follows, tree(gang)) for gang in scaled] == [
        (f"set-0-shard-{number}", "set-0", ["required block set-0", f"  required rack set-0-shard-{number + 1}"])
        for number in range(2)
    ]


def shows_inherited(case: Case) -> None:
    base, *scaled = gangs(case)
    assert tree(base) == ["required rack set-0"]
    assert [tree(gang) for gang in scaled] == [["required rack set-0"]] * 2


def shows_nothing_placed(case: Case) -> None:
    small = b"fleet: [{domains: {zone: z, block: b, rack: [r1, r2]}, nodes: 1, gpu: 4}]\ntopology_keys: "
    cluster = small + json.dumps([{"key": level, "label": label} for level, label in LEVELS]).encode()
    [plan] = plan_workloads(read_documents(text(case.now), "new.yaml"), read_snapshot(cluster, "cluster.yaml"))
    assert plan.verdict is Verdict.IMPOSSIBLE
    assert all(gang.decision.found is None for gang in plan.gangs)


def shows_following(case: Case) -> None:
    base, *scaled = gangs(case)
    assert [gang.follows for gang in scaled] == [base.name] * 2


def shows_compute_domains(case: Case) -> None:
    found = grove.read(case.now[-1])
    assert enrolled(found) == {"x": "one", "y": "two"}
    assert names(rendered(case.now[-1]), "ComputeDomain") == ["set-0-one", "set-0-two", "set-1-one", "set-1-two"]


def shows_names_on_the_parts(case: Case) -> None:
    template = lower_graph(read_graph(resource_of(case.now[-1]))).manifest["spec"]["template"]
    assert "topologyConstraint" not in template
    assert [group["topologyConstraint"] for group in template["podCliqueScalingGroups"]] == [named(required="rack")]
    assert all("topologyConstraint" not in clique for clique in template["cliques"])


def shows_pending(_: Case) -> None:
    assert levels_available(None) == DynamoCondition("Unknown", "TopologyConditionPending")


def shows_not_found(_: Case) -> None:
    after = levels_available(DynamoCondition("True", "ClusterTopologyNotFound"))
    assert after == DynamoCondition("False", "TopologyDefinitionNotFound")
    grove_condition = GroveCondition("True", "ClusterTopologyNotFound", "no topology")
    event = graph_outcome(dynamo.beta(), grove_condition, [], datetime(2026, 1, 1, tzinfo=UTC)).event
    assert event is not None
    assert (event["type"], event["reason"]) == ("Warning", "TopologyDefinitionNotFound")


def shows_unknown(_: Case) -> None:
    unknown = DynamoCondition("Unknown", "ClusterTopologyNotFound")
    assert levels_available(unknown).status == "Unknown"
