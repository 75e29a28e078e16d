"""The numbered cases of Grove's admission: each input with the exact list of (type, field) reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from coterie.errors import Unavailable
from coterie.frontends.grove.podcliqueset.nvlink import enrolled
from coterie.frontends.grove.podcliqueset.rules.admission import create_faults, update_faults, warnings
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from coterie.topology.levels import Topology
from tests.frontends.grove.objects import (
    TOPOLOGIES,
    Change,
    annotated,
    assigned,
    changed,
    clique,
    constrained,
    group,
    podcliqueset,
    read,
    shown,
    standard,
)

HEAD = GroveSettings(form=Form.GROVE_HEAD)
BOTH = (GroveSettings(), HEAD)
TAS_OFF = tuple(replace(each, topology_aware_scheduling=False) for each in BOTH)
MNNVL_OFF = tuple(replace(each, auto_mnnvl=False) for each in BOTH)

T = "spec.template"
TC = f"{T}.topologyConstraint"
CLIQUE0, CLIQUE1 = (f"{T}.cliques[{index}].topologyConstraint" for index in range(2))
GROUP0 = f"{T}.podCliqueScalingGroups[0].topologyConstraint"
MNNVL = "annotations.grove.io/mnnvl-group"


def named(name: str = "t", **pack: str) -> dict[str, object]:
    return {"topologyName": name, "pack": pack}


def pack(**domains: str) -> dict[str, object]:
    return {"pack": domains}


class Failing(Mapping[str, Topology]):
    """Topologies that cannot be read now."""

    def __getitem__(self, key: str) -> Topology:
        raise Unavailable("the API server answered 500")

    def __iter__(self) -> Iterator[str]:
        raise Unavailable("the API server answered 500")

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class Case:
    """A new set: what is changed in a good one, and what comes out."""

    changes: tuple[Change, ...]
    expected: tuple[tuple[str, str], ...] = ()
    settings: tuple[GroveSettings, ...] = BOTH
    topologies: Mapping[str, Topology] | None = None


def invalid(*fields: str) -> tuple[tuple[str, str], ...]:
    return tuple(("Invalid", field) for field in fields)


def required(*fields: str) -> tuple[tuple[str, str], ...]:
    return tuple(("Required", field) for field in fields)


def forbidden(*fields: str) -> tuple[tuple[str, str], ...]:
    return tuple(("Forbidden", field) for field in fields)


SET, A, B, LEAD, WORK, SHARD = "set", "a", "b", "lead", "work", "shard"
DATACENTER = {"t": Topology.of(("datacenter", "example.com/datacenter"), ("host", "kubernetes.io/hostname"))}

CREATE = {
    "G18": Case((constrained(SET, named(required="rack")),), invalid(TC), TAS_OFF),
    "G19": Case(
        (
            constrained(SET, named(required="zone")),
            constrained(A, pack(required="host")),
            constrained(B, pack(required="host")),
            constrained(SHARD, pack(required="rack")),
        ),
        invalid(TC, CLIQUE0, CLIQUE1, GROUP0),
        TAS_OFF,
    ),
    "G20-set": Case(
        (constrained(SET, {"topologyName": "t", "packDomain": "rack"}),), forbidden(f"{TC}.packDomain"), (HEAD,)
    ),
    "G20-clique": Case(
        (constrained(A, {"topologyName": "t", "packDomain": "rack"}),), forbidden(f"{T}.cliques"), (HEAD,)
    ),
    "G20-group": Case(
        (constrained(SHARD, {"topologyName": "t", "packDomain": "rack"}),),
        forbidden(f"{T}.podCliqueScalingGroups"),
        (HEAD,),
    ),
    "G20-all": Case(
        (
            constrained(SET, {"topologyName": "t", "packDomain": "zone"}),
            constrained(A, {"packDomain": "rack"}),
            constrained(B, {"packDomain": "rack"}),
            constrained(SHARD, {"packDomain": "rack"}),
        ),
        forbidden(f"{TC}.packDomain", f"{T}.cliques", f"{T}.podCliqueScalingGroups"),
        (HEAD,),
    ),
    "G20-proposal": Case(
        (
            constrained(SET, {"topologyName": "t", "packDomain": "zone"}),
            constrained(A, {"packDomain": "rack"}),
            constrained(SHARD, {"packDomain": "rack"}),
        ),
        (),
        (GroveSettings(),),
    ),
    "G21-name-only": Case((constrained(SET, {"topologyName": "t"}),), required(f"{TC}.pack")),
    "G21-empty-pack": Case((constrained(SET, {"pack": {}}),), required(f"{TC}.pack")),
    "G21-named-empty-pack": Case((constrained(SET, named()),), required(f"{TC}.pack")),
    "G21-empty": Case((constrained(SET, {}),), required(f"{TC}.pack")),
    "G21-name-for-children-proposal": Case(
        (constrained(SET, {"topologyName": "t"}), constrained(A, {"packDomain": "host"})), (), (GroveSettings(),)
    ),
    "G21-name-for-children-head": Case(
        (constrained(SET, {"topologyName": "t"}), constrained(A, pack(required="host"))),
        required(f"{TC}.pack"),
        (HEAD,),
    ),
    "G23": Case((constrained(SET, named(preferred="host")),)),
    "G24": Case((constrained(SET, pack(required="rack")),), required(f"{TC}.topologyName")),
    "G25": Case((constrained(A, pack(required="rack")),), required(f"{CLIQUE0}.topologyName")),
    "G25-unrelated-group": Case(
        (constrained(A, pack(required="rack")), constrained(SHARD, named(required="rack"))),
        required(f"{CLIQUE0}.topologyName"),
    ),
    "G26-group-names": Case((constrained(SHARD, named(required="rack")), constrained(LEAD, pack(required="host")))),
    "G26-clique-alone": Case((constrained(A, named(required="rack")),)),
    "G27": Case(
        (constrained(SET, named(required="zone")), constrained(A, named("u", required="rack"))),
        invalid(f"{CLIQUE0}.topologyName"),
    ),
    "G28": Case(
        (constrained(A, named(required="rack")), constrained(B, named("u", required="rack"))),
        invalid(f"{CLIQUE0}.topologyName", f"{CLIQUE1}.topologyName"),
    ),
    "G29-missing": Case((constrained(SET, named("missing", required="rack")),), invalid(f"{TC}.topologyName")),
    "G29-missing-on-child": Case((constrained(A, named("missing", required="rack")),), invalid(f"{TC}.topologyName")),
    "G29-unreadable": Case(
        (constrained(SET, named(required="rack")),), (("Internal", f"{TC}.topologyName"),), topologies=Failing()
    ),
    "G30": Case((constrained(SET, named(required="pod")),), invalid(f"{TC}.pack.required")),
    "G30-proposal": Case(
        (constrained(SET, {"topologyName": "t", "packDomain": "pod"}),), invalid(f"{TC}.packDomain"), (GroveSettings(),)
    ),
    "G31": Case((constrained(A, named(preferred="pod")),), invalid(f"{CLIQUE0}.pack.preferred")),
    "G32": Case(
        (
            constrained(SET, named(required="host")),
            constrained(A, pack(required="zone")),
            constrained(B, pack(required="pod")),
        ),
        invalid(f"{CLIQUE1}.pack.required"),
    ),
    "G33-clique": Case((constrained(SET, named(required="rack")), constrained(A, pack(required="zone"))), invalid(TC)),
    "G33-group": Case(
        (constrained(SET, named(required="host")), constrained(SHARD, pack(required="rack"))), invalid(TC)
    ),
    "G34": Case(
        (constrained(SHARD, named(required="host")), constrained(LEAD, pack(required="rack"))), invalid(GROUP0)
    ),
    "G35": Case(
        (
            constrained(SET, named(required="host")),
            constrained(SHARD, pack(required="rack")),
            constrained(LEAD, pack(required="zone")),
            constrained(WORK, pack(required="block")),
        ),
        invalid(TC, TC, TC, GROUP0, GROUP0),
    ),
    "G36": Case(tuple(constrained(each, named(required="rack")) for each in (SET, A, SHARD, LEAD))),
    "G37": Case(
        (constrained(SET, named(preferred="host")), constrained(A, pack(preferred="rack"))),
        invalid(f"{TC}.pack.preferred"),
    ),
    "G38": Case((constrained(SET, named(required="rack", preferred="zone")),)),
    "G39": Case(
        (constrained(SET, named(required="host")), constrained(A, pack(required="datacenter"))),
        invalid(TC),
        topologies=DATACENTER,
    ),
    "G40-volcano": Case(
        (
            constrained(SET, named(required="rack")),
            *(assigned(f"spec.template.cliques.{index}.spec.podSpec.schedulerName", "volcano") for index in range(4)),
        ),
        invalid("spec"),
    ),
    "G40-no-queue": Case((assigned("metadata.labels", {}),), invalid("spec"), (HEAD,)),
    "G40-no-queue-proposal": Case((assigned("metadata.labels", {}),), (), (GroveSettings(),)),
    "G40-queue-by-annotation": Case(
        (assigned("metadata.labels", {}), annotated(SET, "inference", "kai.scheduler/queue"))
    ),
    "G40-queue-of-a-clique": Case(
        (assigned("metadata.labels", {}), assigned("spec.template.cliques.0.labels", {"kai.scheduler/queue": "q"}))
    ),
    "G40-two-queues": Case(
        (assigned("spec.template.cliques.0.labels", {"kai.scheduler/queue": "other"}),), invalid("spec")
    ),
    "G55-off": Case((annotated(SET, "fabric"),), invalid(f"metadata.{MNNVL}"), MNNVL_OFF),
    "G55-off-clique": Case((annotated(A, "fabric"),), invalid(f"{T}.cliques[0].{MNNVL}"), MNNVL_OFF),
    "G55-off-group": Case((annotated(SHARD, "f"),), invalid(f"{T}.podCliqueScalingGroups[0].{MNNVL}"), MNNVL_OFF),
    "G55-bad": Case((annotated(SET, "INVALID"),), invalid(f"metadata.{MNNVL}")),
    "G55-empty": Case((annotated(SET, ""),), invalid(f"metadata.{MNNVL}")),
    "G55-none": Case((annotated(SET, "none"),), (), MNNVL_OFF),
    "G55-good": Case((annotated(SET, "fabric"),)),
}


@pytest.mark.parametrize("case", CREATE.values(), ids=CREATE)
def test_a_new_set_is_judged_as_by_grove(case: Case) -> None:
    pcs = read(changed(standard(), *case.changes))
    for settings in case.settings:
        topologies = TOPOLOGIES if case.topologies is None else case.topologies
        faults = create_faults(pcs, topologies, settings)
        assert shown(faults) == list(case.expected)
        assert all(each.place and each.place.line and each.message and each.hint for each in faults)


@dataclass(frozen=True)
class Update:
    """A set before and after, both as changes of a good one, and what comes out."""

    before: tuple[Change, ...]
    after: tuple[Change, ...]
    expected: tuple[tuple[str, str], ...] = ()


LEGACY = {"packDomain": "host"}
OLD = {"topologyName": "t", "packDomain": "rack"}

UPDATE = {
    "G22": Update(
        (constrained(SET, OLD),),
        (constrained(SET, {**OLD, "pack": {"required": "rack"}}),),
        invalid(f"{TC}.pack.required"),
    ),
    "G41-changed": Update(
        (constrained(SET, named(required="rack")),),
        (constrained(SET, named("u", required="rack")),),
        forbidden(f"{TC}.topologyName"),
    ),
    "G41-added": Update((), (constrained(SET, named(required="rack")),), forbidden(f"{TC}.topologyName")),
    "G41-removed": Update((constrained(SET, named(required="rack")),), (), forbidden(f"{TC}.topologyName")),
    "G41-changed-with-domain": Update(
        (constrained(SET, named(required="rack")),),
        (constrained(SET, named("u", required="host")),),
        forbidden(f"{TC}.topologyName"),
    ),
    "G42": Update(
        (constrained(SET, named(required="zone")),), (constrained(SET, named(required="rack")),), forbidden(TC)
    ),
    "G43-clique-added": Update((), (constrained(A, named(required="rack")),), forbidden(CLIQUE0)),
    "G43-clique-removed": Update((constrained(A, named(required="rack")),), (), forbidden(CLIQUE0)),
    "G43-clique-changed": Update(
        (constrained(A, named(required="rack")),), (constrained(A, named(required="host")),), forbidden(CLIQUE0)
    ),
    "G43-clique-renamed": Update(
        (constrained(A, named(required="rack")),), (constrained(A, named("u", required="rack")),), forbidden(CLIQUE0)
    ),
    "G43-group-added": Update((), (constrained(SHARD, named(required="rack")),), forbidden(GROUP0)),
    "G43-group-removed": Update((constrained(SHARD, named(required="rack")),), (), forbidden(GROUP0)),
    "G43-group-changed": Update(
        (constrained(SHARD, named(required="rack")),), (constrained(SHARD, named(preferred="rack")),), forbidden(GROUP0)
    ),
    "G44": Update((constrained(SET, OLD),), (constrained(SET, named(required="rack")),)),
    "G44-clique": Update((constrained(A, OLD),), (constrained(A, named(required="rack")),)),
    "G44-preferred-kept": Update(
        (constrained(SET, {**OLD, "pack": {"preferred": "host"}}),),
        (constrained(SET, named(required="rack", preferred="host")),),
    ),
    "G44-backwards": Update((constrained(SET, named(required="rack")),), (constrained(SET, OLD),), forbidden(TC)),
    "G45-other-domain": Update((constrained(SET, OLD),), (constrained(SET, named(required="host")),), forbidden(TC)),
    "G45-preferred-too": Update(
        (constrained(SET, OLD),), (constrained(SET, named(required="rack", preferred="host")),), forbidden(TC)
    ),
    "G46": Update((constrained(SET, OLD),), (constrained(SET, OLD), assigned("spec.replicas", 3))),
    "G47": Update((constrained(A, LEGACY),), (constrained(A, {**LEGACY, "topologyName": "t"}),)),
    "G47-no-such-topology": Update(
        (constrained(A, LEGACY),),
        (constrained(A, {**LEGACY, "topologyName": "missing"}),),
        invalid(f"{TC}.topologyName"),
    ),
    "G47-no-such-domain": Update(
        (constrained(A, {"packDomain": "pod"}),),
        (constrained(A, {"packDomain": "pod", "topologyName": "t"}),),
        invalid(f"{CLIQUE0}.packDomain"),
    ),
    "G47-set": Update(
        (constrained(SET, LEGACY), constrained(A, LEGACY)),
        (constrained(SET, {**LEGACY, "topologyName": "t"}), constrained(A, LEGACY)),
    ),
    "G47-not-repaired": Update(
        (constrained(A, LEGACY),),
        (constrained(A, LEGACY), assigned("spec.replicas", 3)),
        required(f"{CLIQUE0}.topologyName"),
    ),
    "G48": Update(
        (constrained(A, LEGACY),),
        (constrained(A, {"packDomain": "rack", "topologyName": "t"}),),
        forbidden(CLIQUE0),
    ),
    "G48-with-migration": Update(
        (constrained(A, LEGACY),), (constrained(A, named(required="host")),), forbidden(CLIQUE0)
    ),
    "G48-set": Update(
        (constrained(SET, LEGACY),),
        (constrained(SET, {"packDomain": "rack", "topologyName": "t"}),),
        forbidden(TC),
    ),
    "G56-added": Update((), (annotated(SET, "fabric"),), forbidden(f"metadata.{MNNVL}")),
    "G56-removed": Update((annotated(SET, "fabric"),), (), forbidden(f"metadata.{MNNVL}")),
    "G56-changed": Update((annotated(SET, "fabric"),), (annotated(SET, "other"),), invalid(f"metadata.{MNNVL}")),
    "G56-clique": Update((), (annotated(B, "none"),), forbidden(f"{T}.cliques[1].{MNNVL}")),
    "G56-group": Update(
        (annotated(SHARD, "f"),), (annotated(SHARD, "g"),), invalid(f"{T}.podCliqueScalingGroups[0].{MNNVL}")
    ),
}


@pytest.mark.parametrize("case", UPDATE.values(), ids=UPDATE)
def test_an_update_is_judged_as_by_grove(case: Update) -> None:
    old, new = (read(changed(standard(), *changes)) for changes in (case.before, case.after))
    for settings in BOTH:
        faults = update_faults(old, new, TOPOLOGIES, settings)
        assert shown(faults) == list(case.expected)
        assert all(each.place and each.place.line and each.message and each.hint for each in faults)


@pytest.mark.parametrize("off", TAS_OFF)
def test_topology_aware_scheduling_that_is_off_does_not_stop_updates_of_a_constrained_set(off: GroveSettings) -> None:
    old = changed(standard(), constrained(SET, named(required="rack")))
    assert not update_faults(read(old), read(changed(old, assigned("spec.replicas", 5))), TOPOLOGIES, off)


def codes(
    manifest: dict[str, object], settings: GroveSettings = HEAD, old: dict[str, object] | None = None
) -> list[str]:
    found = warnings(read(manifest), TOPOLOGIES, settings, read(old) if old else None)
    assert all(each.place and each.place.line for each in found)
    return [each.code for each in found]


def test_g38_a_broader_preference_is_warned_of_on_create_only() -> None:
    manifest = changed(standard(), constrained(SET, named(required="rack", preferred="zone")))
    assert codes(manifest) == ["PreferredBroader"]
    assert codes(manifest, old=manifest) == []


def test_g44_a_migrated_set_is_not_warned_of() -> None:
    old = changed(standard(), constrained(SET, OLD))
    assert codes(changed(standard(), constrained(SET, named(required="rack"))), old=old) == []


def test_g46_pack_domain_that_stays_is_warned_of() -> None:
    old = changed(standard(), constrained(SET, OLD))
    assert codes(changed(old, assigned("spec.replicas", 3)), old=old) == ["Deprecated"]


def test_g57_gpu_cliques_are_in_the_nvlink_group_of_their_nearest_annotation() -> None:
    pcs = read(
        changed(
            podcliqueset(clique("cpu"), clique("x", 4), clique("y", 4), clique("z", 4), groups=[group("g", "z")]),
            annotated(SET, "one"),
            annotated("y", "two"),
            annotated("g", "none"),
            assigned("spec.replicas", 2),
        )
    )
    assert enrolled(pcs) == {"x": "one", "y": "two"}
