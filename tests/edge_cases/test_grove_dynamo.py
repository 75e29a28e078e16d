"""The 69 cases of Grove's and Dynamo's topology APIs, each by its number: the input and its findings.

Every case that a file can show goes through `coterie validate`. A case that needs a controller or an API server says
so; where a pure function makes the controller's decision, the case tests that function.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import field_path
from coterie.frontends.grove.topology import KAI
from coterie.planning.validation import Validation
from tests.cli.command import call
from tests.edge_cases.grove_dynamo_cases import (
    BLOCK,
    CT,
    EITHER,
    HEAD,
    HOST,
    RACK,
    T_AND_U,
    ZONE,
    Case,
    dgd,
    duplicate,
    forbidden,
    invalid,
    judged,
    many,
    named,
    off,
    pack,
    pcs,
    required,
    shows_20_levels,
    shows_a_preference,
    shows_absent,
    shows_compute_domains,
    shows_disabled,
    shows_events,
    shows_following,
    shows_inherited,
    shows_names_on_the_parts,
    shows_not_found,
    shows_not_owned,
    shows_nothing_placed,
    shows_nothing_to_compare,
    shows_other_order,
    shows_owned,
    shows_pending,
    shows_recreated,
    shows_scaled_gangs,
    shows_two_base_gangs,
    shows_unknown,
    text,
    topology,
)
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.dynamo.objects import drop, put
from tests.frontends.grove import objects as grove
from tests.frontends.grove.objects import Change, Manifest, annotated, assigned, constrained

SET, A, B, LEAD, WORK, SHARD = "set", "a", "b", "lead", "work", "shard"
T = "spec.template"
TC = f"{T}.topologyConstraint"
A_TC, B_TC = (f"{T}.cliques[{index}].topologyConstraint" for index in range(2))
SHARD_TC = f"{T}.podCliqueScalingGroups[0].topologyConstraint"
MNNVL = "metadata.annotations.grove.io/mnnvl-group"
BINDINGS = "spec.schedulerTopologyReferences"
G = "spec.topologyConstraint"
DECODE_TC = "spec.components[1].topologyConstraint"
CONTROLLER, SERVER = "needs a controller: ", "needs an API server: "
OLD = {"topologyName": "t", "packDomain": "rack"}
LEGACY = {"packDomain": "host"}
PIECE = {"topologyConstraint": named(preferred="rack")}
ROOT = {"apiVersion": "grove.io/v1alpha1", "value": {"spec": {"template": PIECE}}}
FREE = (drop(G), drop("spec.components.1.topologyConstraint"))
RACK_SET = constrained(SET, named(required="rack"))
VOLCANO = tuple(assigned(f"spec.template.cliques.{index}.spec.podSpec.schedulerName", "volcano") for index in range(4))
NO_QUEUE = assigned("metadata.labels", {})
NO_HOSTS = topology(levels=[ZONE, BLOCK, RACK])
TWO_GROUPS = grove.changed(
    grove.podcliqueset(grove.clique("cpu"), grove.clique("x", 4), grove.clique("y", 4)),
    annotated(SET, "one"),
    annotated("y", "two"),
    assigned("spec.replicas", 2),
)


def new(*changes: Change) -> tuple[Manifest, ...]:
    return (*T_AND_U, pcs(*changes))


def graph(*changes: dynamo.Change) -> tuple[Manifest, ...]:
    return (topology(), dgd(*changes))


# fmt: off
CASES = [
    Case("1", "a domain twice", (topology(levels=[ZONE, ("zone", "k")]),), duplicate("spec.levels[1].domain")),
    Case("2a", "a key twice", (topology(levels=[ZONE, ("x", ZONE[1])]),), duplicate("spec.levels[1].key")),
    Case("2b", "a level twice", (topology(levels=[ZONE, ZONE]),), duplicate("spec.levels[1].domain",
         "spec.levels[1].key")),
    Case("3a", "no levels", (topology(levels=[]),), invalid("spec.levels")),
    Case("3b", "domain Rack", (topology(levels=[ZONE, ("Rack", "k")]),), invalid("spec.levels[1].domain")),
    Case("4", "KAI bound twice", (topology(bound=[(KAI, "a"), (KAI, "b")]),),
         duplicate(f"{BINDINGS}[1].schedulerName")),
    Case("5a", "an unknown scheduler", (topology(bound=[("other", "a")]),), invalid(f"{BINDINGS}[0].schedulerName")),
    Case("5b", "a scheduler without topologies", (topology(bound=[("default-scheduler", "a")]),),
         invalid(f"{BINDINGS}[0].schedulerName")),
    Case("6a", "20 levels, as a binding: admitted, but not by KAI", (topology(levels=many(20)),),
         warnings=("RefusedByKai",), shows=shows_20_levels),
    Case("6b", "20 levels, as a ClusterTopology of the proposal", (topology(levels=many(20), kind=CT),),
         invalid("spec.levels")),
    Case("7", "an update drops a level in use", (topology(levels=[ZONE, BLOCK, HOST]), pcs(RACK_SET)),
         warnings=("LevelsRemoved", "TopologyLevelsUnavailable"), before=(topology(), pcs(RACK_SET)),
         needs=f"{CONTROLLER}it writes the condition True/ClusterTopologyLevelsUnavailable on the set"),
    Case("8", "no bindings", (topology(),),
         needs=f"{CONTROLLER}it makes a KAI Topology of the same name, owned by the binding", shows=shows_owned),
    Case("9", "from 2 levels to 3", (topology(levels=[ZONE, RACK, HOST]),), before=(topology(levels=[ZONE, HOST]),),
         needs=f"{CONTROLLER}it deletes the KAI Topology, whose levels are immutable, and creates it again",
         shows=shows_recreated),
    Case("10", "bound to an absent KAI Topology", (topology(bound=[(KAI, "own")]),),
         needs=f"{CONTROLLER}it looks whether the KAI Topology is there", shows=shows_absent),
    Case("11", "the KAI Topology has another order", (topology(bound=[(KAI, "own")]),),
         needs=f"{CONTROLLER}it reads the KAI Topology", shows=shows_other_order),
    Case("12", "drift is corrected", needs=f"{CONTROLLER}it emits the event", shows=shows_events),
    Case("13", "a KAI Topology of the name is not owned",
         needs=f"{CONTROLLER}it finds the stranger when it synchronizes", shows=shows_not_owned),
    Case("14", "the bound scheduler is disabled later", needs=f"{CONTROLLER}it is restarted with other schedulers",
         shows=shows_disabled),
    Case("15", "no topology-aware scheduler", needs=f"{CONTROLLER}it takes the condition away",
         shows=shows_nothing_to_compare),
    Case("16", "a topology in use is deleted", (pcs(RACK_SET),), warnings=("TopologyLevelsUnavailable", "Removed"),
         before=(topology(), pcs(RACK_SET)),
         needs=f"{CONTROLLER}it writes the condition, Unknown in Grove today and True in the proposal"),
    Case("17a", "then the set is scaled up", (topology("u"), pcs(RACK_SET, assigned("spec.replicas", 3))),
         warnings=("TopologyLevelsUnavailable",), before=(topology("u"), pcs(RACK_SET)),
         needs=f"{CONTROLLER}it makes the new pods without the constraint"),
    Case("17b", "then the topology is created again", (topology(), topology("u"), pcs(RACK_SET)),
         before=(topology("u"), pcs(RACK_SET)),
         needs=f"{CONTROLLER}it sees the topology come back and writes False/AllClusterTopologyLevelsAvailable"),
    Case("18", "a constraint while topology is off", new(RACK_SET), invalid(TC), sites=off("topology")),
    Case("19", "four constraints while topology is off", new(constrained(SET, named(required="zone")), constrained(A,
         pack(required="host")), constrained(B, pack(required="host")), constrained(SHARD, pack(required="rack"))),
         invalid(TC, A_TC, B_TC, SHARD_TC), sites=off("topology")),
    Case("20a", "packDomain on a new set", new(constrained(SET, OLD)), forbidden(f"{TC}.packDomain"), sites=(HEAD,)),
    Case("20b", "packDomain on a clique", new(constrained(A, OLD)), forbidden(f"{T}.cliques"), sites=(HEAD,)),
    Case("20c", "packDomain on a scaling group", new(constrained(SHARD, OLD)),
         forbidden(f"{T}.podCliqueScalingGroups"), sites=(HEAD,)),
    Case("20d", "packDomain everywhere, in the form of the proposal", new(constrained(SET, OLD), constrained(A,
         LEGACY), constrained(SHARD, LEGACY)), warnings=("Deprecated",), sites=(EITHER,)),
    Case("21a", "only a name", new(constrained(SET, {"topologyName": "t"})), required(f"{TC}.pack")),
    Case("21b", "an empty pack", new(constrained(SET, pack())), required(f"{TC}.pack")),
    Case("21c", "only a name, for a clique below, in the form of the proposal", new(constrained(SET,
         {"topologyName": "t"}), constrained(A, pack(required="host"))), warnings=("Deprecated",), sites=(EITHER,)),
    Case("21d", "only a name, for a clique below, today", new(constrained(SET, {"topologyName": "t"}), constrained(A,
         pack(required="host"))), required(f"{TC}.pack"), sites=(HEAD,)),
    Case("22", "packDomain and pack.required on update", new(constrained(SET, {**OLD, "pack": {"required": "rack"}})),
         invalid(f"{TC}.pack.required"), warnings=("Deprecated",), before=new(constrained(SET, OLD))),
    Case("23", "only a preference", new(constrained(SET, named(preferred="host"))), shows=shows_a_preference),
    Case("24", "no name on the set", new(constrained(SET, pack(required="rack"))), required(f"{TC}.topologyName")),
    Case("25", "no name on a clique, though a scaling group beside it has one", new(constrained(A,
         pack(required="rack")), constrained(SHARD, named(required="rack"))), required(f"{A_TC}.topologyName")),
    Case("26a", "the scaling group names it for its member", new(constrained(SHARD, named(required="rack")),
         constrained(LEAD, pack(required="host")))),
    Case("26b", "a clique alone has a name", new(constrained(A, named(required="rack")))),
    Case("27", "another name below", new(constrained(SET, named(required="zone")), constrained(A, named("u",
         required="rack"))), invalid(f"{A_TC}.topologyName")),
    Case("28", "two names beside one another", new(constrained(A, named(required="rack")), constrained(B, named("u",
         required="rack"))), invalid(f"{A_TC}.topologyName", f"{B_TC}.topologyName")),
    Case("29a", "a missing topology", new(constrained(SET, named("missing", required="rack"))),
         invalid(f"{TC}.topologyName")),
    Case("29b", "a topology that cannot be read", needs=f"{SERVER}it answers the question for the topology with 500"),
    Case("30", "an unknown domain", new(constrained(SET, named(required="pod"))), invalid(f"{TC}.pack.required")),
    Case("31", "an unknown preference of a clique", new(constrained(A, named(preferred="pod"))),
         invalid(f"{A_TC}.pack.preferred")),
    Case("32", "an unknown domain hides the hierarchy", new(constrained(SET, named(required="host")), constrained(A,
         pack(required="zone")), constrained(B, pack(required="pod"))), invalid(f"{B_TC}.pack.required")),
    Case("33a", "a clique broader than the set", new(RACK_SET, constrained(A, pack(required="zone"))), invalid(TC)),
    Case("33b", "a scaling group broader than the set", new(constrained(SET, named(required="host")),
         constrained(SHARD, pack(required="rack"))), invalid(TC)),
    Case("34", "a member broader than its scaling group", new(constrained(SHARD, named(required="host")),
         constrained(LEAD, pack(required="rack"))), invalid(SHARD_TC)),
    Case("35", "everything broader than what is above", new(constrained(SET, named(required="host")),
         constrained(SHARD, pack(required="rack")), constrained(LEAD, pack(required="zone")), constrained(WORK,
         pack(required="block"))), invalid(TC, TC, TC, SHARD_TC, SHARD_TC)),
    Case("36", "the same domain everywhere", new(*(constrained(each, named(required="rack")) for each in (SET, A, B,
         SHARD, LEAD, WORK)))),
    Case("37", "a broader preference below", new(constrained(SET, named(preferred="host")), constrained(A,
         pack(preferred="rack"))), invalid(f"{TC}.pack.preferred")),
    Case("38", "a preference broader than the requirement beside it", new(constrained(SET, named(required="rack",
         preferred="zone"))), warnings=("PreferredBroader",)),
    Case("39", "the order of the list decides, not what levels are called", (topology(levels=[("datacenter",
         "example.com/datacenter"), HOST]), pcs(constrained(SET, named(required="host")), constrained(A,
         pack(required="datacenter")))), invalid(TC)),
    Case("40a", "volcano", new(RACK_SET, *VOLCANO), invalid("spec")),
    Case("40b", "KAI without a queue, today", new(NO_QUEUE), invalid("spec"), sites=(HEAD,)),
    Case("40c", "KAI without a queue, planned by Coterie", new(NO_QUEUE), warnings=("NoQueue",), sites=(EITHER,)),
    Case("41a", "another topology", new(constrained(SET, named("u", required="rack"))),
         forbidden(f"{TC}.topologyName"), before=new(RACK_SET)),
    Case("41b", "a block added", new(RACK_SET), forbidden(f"{TC}.topologyName"), before=new()),
    Case("41c", "a block removed", new(), forbidden(f"{TC}.topologyName"), before=new(RACK_SET)),
    Case("42", "another domain", new(RACK_SET), forbidden(TC), before=new(constrained(SET, named(required="zone")))),
    Case("43a", "added to a clique", new(constrained(A, named(required="rack"))), forbidden(A_TC), before=new()),
    Case("43b", "changed on a clique", new(constrained(A, named(required="host"))), forbidden(A_TC),
         before=new(constrained(A, named(required="rack")))),
    Case("43c", "removed from a scaling group", new(), forbidden(SHARD_TC), before=new(constrained(SHARD,
         named(required="rack")))),
    Case("44", "packDomain becomes pack.required", new(RACK_SET), before=new(constrained(SET, OLD))),
    Case("45a", "packDomain becomes another pack.required", new(constrained(SET, named(required="host"))),
         forbidden(TC), before=new(constrained(SET, OLD))),
    Case("45b", "packDomain becomes pack.required, and a preference comes", new(constrained(SET, named(required="rack",
         preferred="host"))), forbidden(TC), before=new(constrained(SET, OLD))),
    Case("46", "an unrelated update keeps packDomain", new(constrained(SET, OLD), assigned("spec.replicas", 3)),
         warnings=("Deprecated",), before=new(constrained(SET, OLD))),
    Case("47a", "a packDomain without a name gets one", new(constrained(A, {**LEGACY, "topologyName": "t"})),
         warnings=("Deprecated",), before=new(constrained(A, LEGACY))),
    Case("47b", "the topology of that name does not have the domain", (NO_HOSTS, pcs(constrained(A, {**LEGACY,
         "topologyName": "t"}))), invalid(f"{A_TC}.packDomain"), warnings=("Deprecated",), before=(NO_HOSTS,
         pcs(constrained(A, LEGACY)))),
    Case("48", "a name comes and the domain changes", new(constrained(A, OLD)), forbidden(A_TC),
         warnings=("Deprecated",), before=new(constrained(A, LEGACY))),
    Case("49", "two replicas of a set in a zone each", new(constrained(SET, named(required="zone")), constrained(A,
         pack(required="host")), assigned("spec.replicas", 2)), shows=shows_two_base_gangs),
    Case("50", "a scaling group of 3 in racks, in a set in a block", new(constrained(SET, named(required="block")),
         constrained(SHARD, pack(required="rack"))), shows=shows_scaled_gangs),
    Case("51", "a scaling group without a constraint", new(RACK_SET), shows=shows_inherited),
    Case("52", "the required level goes, the preferred stays", (topology(levels=[ZONE, BLOCK, HOST]),
         pcs(constrained(SET, named(required="rack", preferred="host")))), warnings=("LevelsRemoved",
         "TopologyLevelsUnavailable"), before=(topology(), pcs(constrained(SET, named(required="rack",
         preferred="host")))), needs=f"{CONTROLLER}it rewrites the running gang with the preference alone"),
    Case("53", "a rack that no rack can hold", new(RACK_SET),
         needs=f"{CONTROLLER}the pods stay pending in a cluster; without one a plan answers",
         shows=shows_nothing_placed),
    Case("54", "a scaled gang before its base gang", new(),
         needs=f"{CONTROLLER}it keeps the gate of the pods; the gangs say which one they follow",
         shows=shows_following),
    Case("55a", "an NVLink group while NVLink is off", new(annotated(SET, "f")), invalid(MNNVL), sites=off("mnnvl")),
    Case("55b", "an NVLink group INVALID", new(annotated(SET, "INVALID")), invalid(MNNVL)),
    Case("55c", "an empty NVLink group", new(annotated(SET, "")), invalid(MNNVL)),
    Case("55d", "no NVLink group while NVLink is off", new(annotated(SET, "none")), sites=off("mnnvl")),
    Case("56a", "an NVLink group added", new(annotated(SET, "f")), forbidden(MNNVL), before=new()),
    Case("56b", "an NVLink group removed", new(), forbidden(MNNVL), before=new(annotated(SET, "f"))),
    Case("56c", "another NVLink group", new(annotated(SET, "g")), invalid(MNNVL), before=new(annotated(SET, "f"))),
    Case("57", "two NVLink groups, two replicas, a CPU clique", (TWO_GROUPS,), shows=shows_compute_domains),
    Case("58", "a component alone", graph(drop(G)), required(G)),
    Case("59a", "nothing is packed", graph(drop(f"{G}.packDomain"), drop("spec.components.1.topologyConstraint")),
         required(f"{G}.packDomain")),
    Case("59b", "nothing is packed, and the topology is missing", graph(put(G, {"clusterTopologyName": "u"}),
         drop("spec.components.1.topologyConstraint")), (*required(f"{G}.packDomain"),
         *invalid(f"{G}.clusterTopologyName"))),
    Case("60", "one component of two is packed", graph(drop(f"{G}.packDomain")), shows=shows_names_on_the_parts),
    Case("61a", "an unknown level", graph(put(f"{G}.packDomain", "pod")), invalid(f"{G}.packDomain")),
    Case("61b", "a level that is none", graph(put(f"{G}.packDomain", "Bad_Domain")), invalid(f"{G}.packDomain")),
    Case("62", "a component broader than the graph", graph(put(f"{G}.packDomain", "rack"),
         put("spec.components.1.topologyConstraint.packDomain", "zone")), invalid(f"{DECODE_TC}.packDomain")),
    Case("63a", "the graph's constraint changed", graph(put(f"{G}.packDomain", "block")), invalid(G), before=graph()),
    Case("63b", "constraints added", graph(), invalid(G, DECODE_TC), before=graph(*FREE)),
    Case("63c", "a component's constraint removed", graph(drop("spec.components.1.topologyConstraint")),
         invalid(DECODE_TC), before=graph()),
    Case("64a", "a component added", graph(lambda data: data["spec"]["components"].append({"name": "New",
         "podTemplate": dynamo.pod()})), forbidden("spec.components"), before=graph()),
    Case("64b", "one node becomes several", graph(), invalid("spec.components[1].multinode"),
         before=graph(drop("spec.components.1.multinode"))),
    Case("65", "constraints of both APIs", graph(put("spec.providerOverride", ROOT)),
         forbidden("spec.providerOverride.value")),
    Case("66a", "an override of a wrong target", graph(*FREE, put("spec.providerOverride", {**ROOT,
         "target": "PodCliqueTemplateSpec"})), invalid("spec.providerOverride.target")),
    Case("66b", "an override of another field", graph(*FREE, put("spec.providerOverride", {**ROOT,
         "value": {"spec": {"replicas": 2, "template": PIECE}}})),
         forbidden("spec.providerOverride.value.spec.replicas")),
    Case("67", "Grove says nothing yet", needs=f"{CONTROLLER}it mirrors the condition", shows=shows_pending),
    Case("68", "Grove does not find it", needs=f"{CONTROLLER}it mirrors the condition", shows=shows_not_found),
    Case("69", "Grove does not know", needs=f"{CONTROLLER}it mirrors the condition", shows=shows_unknown),
]
# fmt: on
WRITTEN = [case for case in CASES if case.now]


def said(found: Validation) -> list[tuple[str, str]]:
    return sorted((str(each.type), each.field or field_path(each.path)) for each in found.faults)


def test_every_number_is_there_once() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert sorted({case.number for case in CASES}) == list(range(1, 70))
    for case in CASES:
        parts = [other for other in CASES if other.number == case.number]
        letters = "".join(other.id.removeprefix(str(case.number)) for other in parts)
        assert letters == ("" if len(parts) == 1 else "abcdefg"[: len(parts)])


def test_a_case_that_no_file_shows_says_what_it_needs() -> None:
    for case in CASES:
        assert case.now or (case.needs and (case.shows or case.needs.startswith(SERVER)))
        assert not case.needs or case.needs.startswith((CONTROLLER, SERVER))


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: f"{case.id} {case.what}")
def test_a_case_is_judged_as_by_its_api(case: Case) -> None:
    for site in case.sites:
        found = judged(case, site)
        assert said(found) == sorted(case.faults)
        assert sorted(each.code for each in found.notices) == sorted(case.warnings)
        assert all(each.place and each.place.line and each.message and each.hint for each in found.faults)
        assert all(each.place and each.place.line and each.message for each in found.notices)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.id)
def test_the_command_line_says_the_same(case: Case, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_bytes(text(case.now))
    words = ["validate", "new.yaml", "-o", "json"]
    if case.before is not None:
        (tmp_path / "old.yaml").write_bytes(text(case.before))
        words += ["--old", "old.yaml"]
    site = case.sites[-1]
    words += ["--strict"] if site.strict else []
    words += [word for feature in site.off for word in ("--off", feature)]
    done = call(*words, cwd=tmp_path)
    found: dict[str, Any] = json.loads(done.out)
    assert done.code == (3 if case.faults else 0)
    assert found["valid"] is not bool(case.faults)
    assert sorted((each["type"], each["field"]) for each in found["errors"]) == sorted(case.faults)
    assert sorted(each["code"] for each in found["warnings"]) == sorted(case.warnings)


@pytest.mark.parametrize("case", [case for case in CASES if case.shows], ids=lambda case: f"{case.id} {case.what}")
def test_what_a_case_shows_besides(case: Case) -> None:
    assert case.shows is not None
    case.shows(case)
