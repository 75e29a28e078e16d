"""Inter-pod affinity: every plan obeys it, and every refusal is right, checked by enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.config.configuration import Pool
from coterie.errors import Fault, Reason, SpecErrors
from coterie.gang.tree import Gang, Group, Shape, Task
from coterie.placement.refusal import Verdict
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from coterie.topology.cluster import GPU, Cluster, Node, Pod
from coterie.topology.levels import Topology
from coterie.topology.pod_affinity import HOSTNAME, AffinityTerm, HostPort, LabelRequirement, PodTraits
from tests.random_examples import examples

RACK = "example.com/rack"
LEVELS = Topology.of(("rack", RACK), ("host", HOSTNAME))
SPACE = "serving"
# The label on which the selectors of these worlds look.
KIND = "kind"


@dataclass(frozen=True)
class PodAffinityCase:
    """Nodes by rack with their free GPUs, pods that run, and kinds of pods to be placed, each with its number."""

    racks: tuple[tuple[int, ...], ...]
    running: tuple[tuple[PodTraits, int], ...]
    wanted: tuple[tuple[PodTraits, int], ...]
    together: bool = False

    @property
    def nodes(self) -> list[Node]:
        return [
            Node(f"n{rack}-{index}", {RACK: f"r{rack}", HOSTNAME: f"n{rack}-{index}"}, {GPU: gpus, "pods": 20})
            for rack, row in enumerate(self.racks)
            for index, gpus in enumerate(row)
        ]

    @property
    def pods(self) -> list[tuple[PodTraits, Node]]:
        nodes = self.nodes
        return [(traits, nodes[at % len(nodes)]) for traits, at in self.running]

    @property
    def cluster(self) -> Cluster:
        pods = (
            Pod(f"{SPACE}/p{number}", node.name, {}, owner=f"o{number}", beside=traits)
            for number, (traits, node) in enumerate(self.pods)
        )
        return Cluster.of(self.nodes, pods)

    @property
    def tasks(self) -> dict[str, PodTraits]:
        return {
            f"t{kind}-{index}": traits for kind, (traits, count) in enumerate(self.wanted) for index in range(count)
        }

    @property
    def workload(self) -> Workload:
        return workload(self.tasks, together=self.together)


def workload(
    tasks: Mapping[str, PodTraits], *, together: bool = False, name: str = "w", gpus: Mapping[str, int] | None = None
) -> Workload:
    asked = {each: (gpus or {}).get(each, 1) for each in tasks}
    leaves = tuple(Task(each, Shape(((GPU, asked[each]),)), rank=rank) for rank, each in enumerate(tasks))
    gang = Gang(f"{name}-0", tasks=leaves)
    if together:
        gang = Gang(f"{name}-0", (Group((("rack", "all"),), required=True, tasks=leaves),))
    terms = {term for traits in tasks.values() for term in (*traits.apart, *traits.near)}
    refusals = {term: Fault("not supported", Reason.UNSUPPORTED) for term in terms}
    pool = Pool.for_levels(LEVELS)
    return Workload(name, "PodCliqueSet", pool, (gang,), namespace=SPACE, traits=tasks, refusals=refusals)


def refused(plan: Plan) -> bool:
    return any(one.decision.found is None for one in plan.gangs)


def placement(plan: Plan) -> dict[str, str]:
    return {task: node for one in plan.gangs if one.decision.found for task, node in one.decision.found.nodes.items()}


# The judge, in the plainest words there are


def same_domain(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def may_share(one: tuple[PodTraits, Node], other: tuple[PodTraits, Node]) -> bool:
    """Tell whether two pods may be where they are, by Kubernetes' rules of anti-affinity and host ports."""
    for (traits, node), (others, place) in ((one, other), (other, one)):
        for term in traits.apart:
            if term.matches(others) and same_domain(term.key, node, place):
                return False
        if node == place and any(mine.clashes(theirs) for mine in traits.ports for theirs in others.ports):
            return False
    return True


def near_enough(one: tuple[PodTraits, Node], others: Sequence[tuple[PodTraits, Node]]) -> bool:
    """Tell whether what a pod wants near is there; the first of those that want each other may go anywhere."""
    traits, node = one
    for term in traits.near:
        if term.key not in node.labels:
            return False
        matching = [place for each, place in others if term.matches(each)]
        if not matching and term.matches(traits):
            continue
        if not any(same_domain(term.key, node, place) for place in matching):
            return False
    return True


def allowed(world: PodAffinityCase, where: Mapping[str, Node]) -> bool:
    tasks, pods = world.tasks, world.pods
    placed = [(tasks[name], node) for name, node in where.items()]
    for node in world.nodes:
        if sum(place == node for _, place in placed) > node.allocatable[GPU]:
            return False
    if world.together and len({node.labels[RACK] for _, node in placed}) > 1:
        return False
    if not all(may_share(*pair) for pair in combinations(placed, 2)):
        return False
    if not all(may_share(one, other) for one, other in product(placed, pods)):
        return False
    return all(near_enough(one, [*pods, *placed[:index], *placed[index + 1 :]]) for index, one in enumerate(placed))


def placements(world: PodAffinityCase) -> Iterator[dict[str, Node]]:
    names = list(world.tasks)
    for nodes in product(world.nodes, repeat=len(names)):
        yield dict(zip(names, nodes, strict=True))


def reachable(world: PodAffinityCase, where: Mapping[str, Node]) -> bool:
    """Tell whether a scheduler gets there pod by pod: only those that are there already count as near."""
    pods = [(world.tasks[name], node) for name, node in where.items()]
    return any(
        all(near_enough(one, [*world.pods, *order[:index]]) for index, one in enumerate(order))
        for order in permutations(pods)
    )


def possible(world: PodAffinityCase) -> bool:
    return any(allowed(world, where) and reachable(world, where) for where in placements(world))


# Worlds

labels = st.fixed_dictionaries({KIND: st.sampled_from("ab")})
selectors = st.sampled_from(
    [
        (LabelRequirement(KIND, "In", ("a",)),),
        (LabelRequirement(KIND, "In", ("b",)),),
        (LabelRequirement(KIND, "In", ("a", "b")),),
        (LabelRequirement(KIND, "NotIn", ("a",)),),
        (LabelRequirement(KIND, "Exists"),),
        (LabelRequirement("other", "DoesNotExist"),),
        (),
        None,
    ]
)


def terms(keys: Sequence[str]) -> st.SearchStrategy[AffinityTerm]:
    return st.builds(
        lambda key, selector, spaces: (
            AffinityTerm(key, selector).of({}, SPACE) if spaces else AffinityTerm(key, selector, everywhere=True)
        ),
        st.sampled_from(keys),
        selectors,
        st.booleans(),
    )


ports = st.frozensets(
    st.builds(HostPort.of, st.just(80), st.just("TCP"), st.sampled_from(["", "10.0.0.1", "10.0.0.2"])), max_size=1
)


def kinds(apart: Sequence[str], near: Sequence[str] = ()) -> st.SearchStrategy[PodTraits]:
    return st.builds(
        PodTraits,
        st.just(SPACE),
        labels,
        st.lists(terms(apart), max_size=1).map(tuple),
        st.lists(terms(near), max_size=1).map(tuple) if near else st.just(()),
        ports,
    )


def worlds(wanted: st.SearchStrategy[PodTraits]) -> st.SearchStrategy[PodAffinityCase]:
    return st.builds(
        PodAffinityCase,
        st.lists(st.lists(st.integers(1, 2), min_size=1, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple),
        st.lists(st.tuples(kinds([HOSTNAME, RACK]), st.integers(0, 3)), max_size=2).map(tuple),
        st.lists(st.tuples(wanted, st.integers(1, 2)), min_size=1, max_size=2).map(tuple),
        st.booleans(),
    )


def judged(world: PodAffinityCase) -> Verdict | None:
    """Hold a plan against the judge; None where it is not supported."""
    try:
        plan = Planner(world.cluster).plan(world.workload)
    except SpecErrors as error:
        if any(fault.code is not Reason.UNSUPPORTED for fault in error.faults):
            raise
        return None
    by_name = {node.name: node for node in world.nodes}
    if refused(plan):
        assert not possible(world)
    else:
        assert allowed(world, {task: by_name[node] for task, node in placement(plan).items()})
    return plan.verdict


@settings(max_examples=examples(400), deadline=None)
@given(worlds(kinds([HOSTNAME])))
def test_anti_affinity_by_host_and_host_ports_are_kept_and_a_refusal_is_right(world: PodAffinityCase) -> None:
    judged(world)


@settings(max_examples=examples(200), deadline=None)
@given(worlds(kinds([HOSTNAME, RACK], [HOSTNAME, RACK])))
def test_whatever_is_planned_keeps_affinity_and_anti_affinity_and_a_refusal_is_right(world: PodAffinityCase) -> None:
    judged(world)


def kind(name: str, *apart: AffinityTerm, ports: Sequence[int] = (), near: Sequence[AffinityTerm] = ()) -> PodTraits:
    listening = frozenset(HostPort(port) for port in ports)
    return PodTraits(SPACE, {KIND: name}, apart, tuple(near), listening)


def by(key: str, *names: str) -> AffinityTerm:
    return AffinityTerm(key, (LabelRequirement(KIND, "In", names),)).of({}, SPACE)


def test_pods_that_are_kept_apart_by_host_each_have_a_node() -> None:
    engine = kind("engine", by(HOSTNAME, "engine"))
    plan = Planner(PodAffinityCase(((8, 8), (8,)), (), ()).cluster).plan(workload({f"e{n}": engine for n in range(3)}))
    assert sorted(placement(plan).values()) == ["n0-0", "n0-1", "n1-0"]
    one_more = Planner(PodAffinityCase(((8, 8), (8,)), (), ()).cluster).plan(
        workload({f"e{n}": engine for n in range(4)})
    )
    assert one_more.verdict is Verdict.IMPOSSIBLE


def test_a_host_port_is_had_once_on_a_node_also_by_a_pod_that_runs() -> None:
    world = PodAffinityCase(((8, 8),), ((kind("other", ports=[9000]), 0),), ())
    both = {"x": kind("x", ports=[9000]), "y": kind("y", ports=[9000])}
    plan = Planner(world.cluster).plan(workload(both))
    assert plan.verdict is Verdict.WAITING
    assert placement(Planner(world.cluster).plan(workload({"x": both["x"]}))) == {"x": "n0-1"}
    assert not refused(Planner(replace(world, running=()).cluster).plan(workload(both)))


def test_what_was_planned_before_keeps_others_away() -> None:
    planner = Planner(PodAffinityCase(((8, 8),), (), ()).cluster)
    first = planner.plan(workload({"x": kind("a", by(HOSTNAME, "b"))}, name="first"))
    second = planner.plan(workload({"y": kind("b")}, name="second"))
    assert {**placement(first), **placement(second)} == {"x": "n0-0", "y": "n0-1"}
    assert refused(planner.plan(workload({"z": kind("c", by(HOSTNAME, "a", "b"))}, name="third")))


def test_a_pod_that_runs_keeps_its_whole_rack_for_itself() -> None:
    hermit = kind("hermit", by(RACK, "a"))
    world = PodAffinityCase(((8, 8), (8,)), ((hermit, 0),), ())
    assert placement(Planner(world.cluster).plan(workload({"x": kind("a")}))) == {"x": "n1-0"}
    both = Planner(world.cluster).plan(workload({f"x{n}": kind("a") for n in range(9)}))
    assert both.verdict is Verdict.WAITING


def test_affinity_to_a_pod_that_runs_leads_to_its_rack() -> None:
    world = PodAffinityCase(((8,), (8, 8)), ((kind("cache"), 1),), ())
    engine = kind("engine", near=[by(RACK, "cache")])
    plan = Planner(world.cluster).plan(workload({f"e{n}": engine for n in range(10)}))
    assert {node.partition("-")[0] for node in placement(plan).values()} == {"n1"}


def test_affinity_of_all_pods_to_each_other_is_a_required_group() -> None:
    engine = kind("engine", near=[by(RACK, "engine")])
    plan = Planner(PodAffinityCase(((1, 1), (2, 1)), (), ()).cluster).plan(
        workload({f"e{n}": engine for n in range(3)})
    )
    assert {node.partition("-")[0] for node in placement(plan).values()} == {"n1"}
    assert [outcome.level for outcome in plan.gangs[0].outcomes] == ["rack"]


@pytest.mark.parametrize(
    "tasks",
    [
        {f"e{n}": kind("e", by(RACK, "e"), near=[by(RACK, "nobody")]) for n in range(2)},
        {**{f"a{n}": kind("a", by(HOSTNAME, "b")) for n in range(2)}, **{f"b{n}": kind("b") for n in range(2)}},
        {"a": kind("a", near=[by(RACK, "b")]), "b": kind("b")},
        {"a": kind("a", near=[by(RACK, "nobody")])},
    ],
    ids=["several of these", "kinds of which several share a node", "affinity to some", "affinity to nobody"],
)
def test_what_no_plan_can_honour_is_not_supported(tasks: dict[str, PodTraits]) -> None:
    shared = {id(traits): traits for traits in tasks.values()}
    assert shared
    with pytest.raises(SpecErrors) as error:
        Planner(PodAffinityCase(((8, 8), (8, 8)), (), ()).cluster).plan(workload(tasks))
    assert {fault.code for fault in error.value.faults} == {Reason.UNSUPPORTED}


def test_pods_that_are_kept_apart_by_rack_each_have_a_rack() -> None:
    engine = kind("e", by(RACK, "e"))
    world = PodAffinityCase(((8, 8), (2, 8), (8,)), (), ())
    plan = Planner(world.cluster).plan(workload({f"e{n}": engine for n in range(3)}))
    assert sorted(node.partition("-")[0] for node in placement(plan).values()) == ["n0", "n1", "n2"]
    assert not plan.gangs[0].decision.found or not plan.gangs[0].decision.found.optimal
    over = Planner(world.cluster).plan(workload({f"e{n}": engine for n in range(6)}))
    assert over.verdict is Verdict.IMPOSSIBLE


def test_a_spread_over_racks_that_is_not_found_is_not_supported_rather_than_called_impossible() -> None:
    engine = kind("e", by(RACK, "e"))
    tasks = {"e0": engine, "e1": engine, "f0": kind("f"), "f1": kind("f")}
    # The first node of each rack is tried for the tasks that are kept apart, and is the only one for the others.
    world = PodAffinityCase(((2, 1, 1), (2, 1, 1)), (), ())
    with pytest.raises(SpecErrors, match="not known"):
        Planner(world.cluster).plan(workload(tasks, gpus={"f0": 2, "f1": 2}))


def test_more_pods_than_domains_to_keep_them_apart_never_fit() -> None:
    engine = kind("e", by(RACK, "e"))
    plan = Planner(PodAffinityCase(((8, 8), (8,)), (), ()).cluster).plan(workload({f"e{n}": engine for n in range(3)}))
    assert plan.verdict is Verdict.IMPOSSIBLE


def test_a_single_pod_with_anti_affinity_over_a_rack_is_planned() -> None:
    lone = kind("e", by(RACK, "e"))
    assert not refused(Planner(PodAffinityCase(((8, 8),), (), ()).cluster).plan(workload({"e": lone})))


def test_anti_affinity_over_a_label_that_no_node_has_keeps_nobody_apart_and_a_warning_says_so() -> None:
    engine = kind("e", by("example.com/none", "e"))
    plan = Planner(PodAffinityCase(((8, 8),), (), ()).cluster).plan(workload({"e0": engine, "e1": engine}))
    assert not refused(plan)
    assert [notice.code for notice in plan.notices] == ["AffinityWithoutLabel"]
