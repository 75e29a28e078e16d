"""Workflows compiled to gangs: shapes, pools and platforms, constraint trees, and timeouts."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from coterie.config.configuration import Platform, Pool
from coterie.errors import Reason
from coterie.gang.tree import Shape, Toleration
from coterie.topology.levels import Topology
from tests.frontends.workflow.samples import LEVELS, POOL, faults, grouped, lowered, plain, resource, task

RACK = "topology: [{key: rack}]"


def test_a_resource_spec_becomes_a_shape() -> None:
    body = "cpu: 4, gpu: 8, memory: 2Gi, storage: 1G, nodesExcluded: [n1, n2]"
    (found,) = lowered(plain(task("a"), extra=resource(body))).gangs[0].all_tasks()
    assert found.shape == Shape(
        requests=(("cpu", 4000), ("ephemeral-storage", 10**9), ("memory", 2 << 30), ("nvidia.com/gpu", 8)),
        tolerations=(Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule", assumed=True),),
        excluded=frozenset({"n1", "n2"}),
    )


def test_nothing_is_requested_without_a_resource_spec() -> None:
    (found,) = lowered(plain(task("a"))).gangs[0].all_tasks()
    assert found.shape == Shape()


PLATFORMED = Pool(
    "p",
    "b",
    "kai",
    node_selector=(("pool", "p"), ("size", "any")),
    tolerations=(Toleration("gpu", "Exists"),),
    topology=LEVELS,
    platforms=MappingProxyType({"big": Platform((("size", "big"),), (Toleration("big", "Exists"),))}),
)


def test_a_task_tolerates_the_taint_of_a_resource_it_asks_for_unless_the_pool_says_otherwise() -> None:
    """As Kubernetes' ExtendedResourceToleration has it: the key is the resource, and the effect is NoSchedule."""
    asked = plain(task("a"), extra=resource("gpu: 1"))

    (found,) = lowered(asked, PLATFORMED).gangs[0].all_tasks()
    (strict,) = lowered(asked, replace(PLATFORMED, resource_tolerations=False)).gangs[0].all_tasks()

    added = Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule", assumed=True)
    assert found.shape.tolerations == (*strict.shape.tolerations, added)


def test_pool_and_platform_shape_every_task() -> None:
    (found,) = lowered(plain(task("a"), extra=resource("platform: big")), PLATFORMED).gangs[0].all_tasks()
    assert found.shape.selector == (("pool", "p"), ("size", "big"))
    assert found.shape.tolerations == (Toleration("gpu", "Exists"), Toleration("big", "Exists"))
    (other,) = lowered(plain(task("a")), PLATFORMED).gangs[0].all_tasks()
    assert other.shape.selector == (("pool", "p"), ("size", "any"))


def test_an_unknown_platform_is_refused_with_those_there_are() -> None:
    (fault,) = faults(plain(task("a"), extra=resource("platform: bigg")), PLATFORMED)
    assert fault.message == 'pool "p" has no platform "bigg"'
    assert 'Known: big. Did you mean "big"?' in fault.hint


def test_a_platform_in_a_pool_without_any_is_noticed() -> None:
    (notice,) = lowered(plain(task("a"), extra=resource("platform: big"))).notices
    assert notice.code == "FieldIgnored"
    assert notice.message.startswith("platform is ignored")
    assert notice.place is not None


def test_one_gang_per_group_with_the_tree_of_its_tasks() -> None:
    text = grouped(
        ("g", task("a", "lead: true", "resource: m1"), task("b", "resource: m2"), task("c", "resource: free")),
        ("h", task("d")),
        extra="""\
resources:
  m1: {topology: [{key: rack, group: r1, requirementType: preferred}, {key: zone}]}
  m2: {topology: [{key: zone}, {key: rack, group: r2, requirementType: preferred}]}
  free: {gpu: 1}
""",
    )
    first, second = lowered(text).gangs
    assert [(group.path, group.required) for group in first.walk()] == [
        ((("zone", "default"),), True),
        ((("zone", "default"), ("rack", "r1")), False),
        ((("zone", "default"), ("rack", "r2")), False),
    ]
    assert [leaf.name for leaf in first.tasks] == ["c"]
    assert [leaf.rank for leaf in first.all_tasks()] == [0, 1, 2]
    assert (second.name, second.groups) == ("h", ())


def test_inputs_say_which_groups_a_group_waits_for() -> None:
    text = grouped(
        ("a", task("a1")),
        ("b", task("b1", "inputs: [{task: a1}]")),
        ("c", task("c1", "lead: true", "inputs: [{task: b1}, {url: s3://x}]"), task("c2", "inputs: [{task: a1}]")),
    )
    assert lowered(text).needs == {"a": frozenset(), "b": frozenset("a"), "c": frozenset("ab")}


def test_places_lead_back_to_groups() -> None:
    found = lowered(grouped(("g", task("a", "lead: true"), task("b"))))
    assert (found.group_places["g"].line, found.group_places["g"].length) == (4, 1)


def test_faults_of_the_tree_have_places_in_the_file() -> None:
    (fault,) = faults(plain(task("a"), extra=resource("topology: [{key: rak}]")))
    assert fault.code is Reason.UNKNOWN_LEVEL
    assert fault.hint == 'Keys are: zone, spine, rack. Did you mean "rack"?'
    assert fault.place is not None
    assert (fault.place.line, fault.place.column, fault.place.length) == (6, 30, 3)


def test_topology_on_a_pool_without_keys_is_refused() -> None:
    (fault,) = faults(plain(task("a"), extra=resource(RACK)), Pool.for_levels(Topology()))
    assert fault.code is Reason.UNKNOWN_LEVEL


def test_tasks_of_different_groups_are_held_to_the_same_keys() -> None:
    text = grouped(
        ("g", task("a")), ("h", task("b", "resource: z")), extra=resource(RACK) + "  z: {topology: [{key: zone}]}\n"
    )
    (fault,) = faults(text)
    assert 'task "b" uses topology keys zone, but task "a" uses rack' in fault.message


def test_a_topology_group_over_several_workflow_groups_is_noticed() -> None:
    text = grouped(("g", task("a")), ("h", task("b")), extra=resource(RACK))
    (notice,) = lowered(text).notices
    assert notice.code == "GroupSpansGangs"
    assert 'rack group "default" is used by 2 workflow groups ("g", "h")' in notice.message
    assert notice.place is not None
    assert notice.place.line == 11


BOTH_KINDS = (
    "resources:\n  must: {topology: [{key: rack}]}\n  may: {topology: [{key: rack, requirementType: preferred}]}\n"
)


def test_a_group_may_be_required_in_one_gang_and_preferred_in_another() -> None:
    text = grouped(("g", task("a", "resource: must")), ("h", task("b", "resource: may")), extra=BOTH_KINDS)
    kinds = [[(group.path, group.required) for group in gang.walk()] for gang in lowered(text).gangs]
    assert kinds == [[((("rack", "default"),), True)], [((("rack", "default"),), False)]]


def test_two_contradicting_specs_are_one_fault_however_many_tasks_and_gangs_use_them() -> None:
    def crowd(gang: str) -> tuple[str, ...]:
        named = [(f"{gang}{number}", "must" if number % 2 == 0 else "may") for number in range(64)]
        lead = f"{gang}0"
        return tuple(task(name, f"resource: {spec}", f"lead: {str(name == lead).lower()}") for name, spec in named)

    (fault,) = faults(grouped(("g", *crowd("a")), ("h", *crowd("b")), extra=BOTH_KINDS))
    assert fault.message == (
        'rack group "default" is required for task "a0" and 63 others and preferred for task "a1" and 63 others'
    )
    assert fault.place is not None
    assert fault.place.frame[-1][1].startswith("  may:")


def test_two_levels_that_contradict_are_two_faults() -> None:
    body = "resources:\n  x: {topology: [{key: zone}, {key: rack}]}\n"
    body += "  y: {topology: [{key: zone, requirementType: preferred}, {key: rack, requirementType: preferred}]}\n"
    text = grouped(("g", task("a", "resource: x", "lead: true"), task("b", "resource: y")), extra=body)
    assert [fault.message.split()[0] for fault in faults(text)] == ["zone", "rack"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{key: rak}", 'no topology key "rak"'),
        ("{key: rack}, {key: rack}", "is listed twice"),
        ("{key: rack, group: no good}", 'group name "no good"'),
    ],
)
def test_a_resource_spec_that_no_task_uses_is_checked(body: str, words: str) -> None:
    (fault,) = faults(plain(task("a"), extra=f"resources:\n  spare: {{topology: [{body}]}}\n"))
    assert words in fault.message
    assert fault.place is not None
    assert fault.place.line == 6


def test_an_unused_resource_spec_is_held_against_no_task() -> None:
    body = resource(RACK) + "  spare: {topology: [{key: zone, requirementType: preferred}]}\n"
    assert faults(plain(task("a"), extra=body)) == ()


def test_a_pool_without_keys_is_one_fault_however_many_specs_need_some() -> None:
    body = "resources:\n" + "".join(f"  {name}: {{{RACK}}}\n" for name in "abc")
    text = plain(*(task(name, f"resource: {name}") for name in "ab"), extra=body)
    (fault,) = faults(text, Pool.for_levels(Topology()))
    assert "no topology keys" in fault.message


def test_plain_tasks_with_one_topology_group_are_told_to_form_a_group() -> None:
    (notice,) = lowered(plain(*(task(name) for name in "abcde"), extra=resource(RACK))).notices
    assert notice.code == "GroupSpansGangs"
    assert "and 2 more" in notice.message
    assert "under groups" in notice.message


def test_group_names_under_different_parents_span_nothing() -> None:
    text = grouped(
        ("g", task("a", "resource: x")),
        ("h", task("b", "resource: y")),
        extra="resources:\n  x: {topology: [{key: zone, group: x}, {key: rack}]}\n"
        "  y: {topology: [{key: zone, group: y}, {key: rack}]}\n",
    )
    assert lowered(text).notices == ()


@pytest.mark.parametrize(
    ("asked", "most", "applied", "noticed"),
    [("2h", 3600, 3600, 1), ("1h", 3600, 3600, 0), (None, 3600, 3600, 0), ("2h", None, 7200, 0)],
)
def test_timeouts_are_cut_to_the_pools_with_a_notice(
    asked: str | None, most: int | None, applied: int, noticed: int
) -> None:
    text = plain(task("a"), extra=f"  timeout: {{exec_timeout: {asked}}}\n" if asked else "")
    found = lowered(text, Pool("p", "b", "kai", max_exec_timeout=most))
    assert found.exec_timeout == applied
    assert found.queue_timeout is None
    assert [notice.code for notice in found.notices] == ["TimeoutClamped"] * noticed
    if noticed:
        assert '2h is more than pool "p" allows; 1h applies' in found.notices[0].message


def test_lowering_is_the_same_each_time() -> None:
    text = grouped(("g", task("a", "lead: true"), task("b")), extra=resource(RACK))
    assert lowered(text, POOL) == lowered(text, POOL)
