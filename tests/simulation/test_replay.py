"""The replay of a trace: queue window, starts, ends, and jobs that never fit."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.placement.capacity import Capacity
from coterie.simulation.replay import PolicyRun
from coterie.simulation.rule import Rule
from coterie.simulation.simulate import Result, simulate
from coterie.simulation.trace import Trace
from coterie.topology.cluster import GPU, Cluster, Node, Pod
from coterie.topology.domains import Domains
from tests.random_examples import examples
from tests.simulation.worlds import ALL, TOPOLOGY, fabric, jobs, run

RACKS = fabric([[8, 8], [8, 8]])


def starts(result: Result) -> dict[str, list[float | None]]:
    """Return when each job started, by policy."""
    return {one.policy: one.starts for one in result.runs}


@pytest.mark.parametrize("policy", ALL)
def test_a_job_that_waits_holds_nobody_back(policy: str) -> None:
    trace = jobs((16, 0, 100), (8, 0, 100), (16, 1, 10), (8, 2, 10))

    assert starts(run(RACKS, trace, policies=[policy])) == {policy: [0, 0, 100, 2]}


@pytest.mark.parametrize("policy", ALL)
def test_no_more_jobs_are_passed_over_than_the_window_has(policy: str) -> None:
    full = jobs((32, 0, 100), (16, 1, 5), (8, 2, 5))
    busy = jobs((16, 0, 100), (8, 0, 100), (16, 1, 5), (16, 2, 5), (8, 3, 5))

    assert starts(run(RACKS, full, policies=[policy], window=1)) == {policy: [0, 100, 100]}
    assert starts(run(RACKS, busy, policies=[policy], window=2)) == {policy: [0, 0, 100, 100, 105]}
    assert starts(run(RACKS, busy, policies=[policy], window=3)) == {policy: [0, 0, 100, 100, 3]}


@pytest.mark.parametrize("policy", ALL)
def test_jobs_that_end_make_room_at_the_same_moment(policy: str) -> None:
    trace = jobs((32, 0, 10), (32, 0, 10), (32, 10, 0), (32, 10, 5))

    assert starts(run(RACKS, trace, policies=[policy])) == {policy: [0, 10, 20, 20]}


def test_by_first_fit_a_small_job_breaks_a_rack_that_a_large_one_needs() -> None:
    # A part of the second rack stays in use; the small job belongs there, and by first fit goes to the first.
    trace = jobs((16, 0, 5), (8, 0, 100), (8, 10, 100), (16, 11, 1))

    assert starts(run(RACKS, trace)) == {
        "coterie": [0, 0, 10, 11],
        "first-fit": [0, 0, 10, 100],
        "kueue": [0, 0, 10, 11],
    }


def test_what_others_hold_in_the_snapshot_stays_held() -> None:
    nodes = [Node(f"n{number}", {"spine": "a", "rack": "r"}, {GPU: 8}) for number in range(2)]
    domains = Domains.of(Cluster.of(nodes, [Pod("p", "n0", {GPU: 8})]), TOPOLOGY)

    result = run(domains, jobs((8, 0, 10), (8, 1, 10), (16, 2, 10)))

    assert starts(result) == {policy: [0, 10] for policy in ALL}
    assert result.gpus == 8
    assert [notice.code for notice in result.notices] == ["NeverFits"]


def test_jobs_that_can_never_fit_are_left_out_for_all() -> None:
    result = run(RACKS, jobs((33, 0, 1), (8, 1, 1), (1000, 2, 1)))

    assert [job.gpus for job in result.jobs] == [8]
    assert "1 of 33 GPUs, 1 of 1,000 GPUs" in result.notices[0].message


def test_a_job_for_which_a_policy_finds_no_place_on_the_idle_cluster_is_set_aside() -> None:
    # Racks of 8+8 and 7: eight GPUs and seven fit as a job of fifteen, but counted as two of eight they do not.
    domains = fabric([[8, 7], [8, 7]])

    result = run(domains, jobs((15, 0, 5), (15, 1, 5), (4, 2, 5)), window=1)

    assert starts(result) == {"coterie": [0, 1, 5], "first-fit": [0, 1, 5], "kueue": [None, None, 2]}
    assert [notice.code for notice in result.notices] == ["NeverStarted"]


def test_progress_is_told_and_ends_with_all_jobs() -> None:
    told: list[tuple[str, int, int, float]] = []
    rule = Rule.of(RACKS, "rack")

    simulate(jobs((8, 0, 10), (8, 5, 10)), rule, Capacity.now(RACKS), ALL, progress=lambda *event: told.append(event))

    assert [event for event in told if event[0] == "kueue"] == [
        ("kueue", 2, 0, 0),
        ("kueue", 2, 0, 5),
        ("kueue", 2, 1, 10),
        ("kueue", 2, 2, 15),
    ]


def test_a_trace_without_jobs_gives_a_result_without_figures() -> None:
    result = run(RACKS, Trace("plain", ()))

    assert [(one.waits, one.makespan_s, one.gpu_use) for one in result.figures] == [(None, 0, None)] * 3


# Nodes of different sizes, racks of different lengths, jobs that are awkward to split.
racks = st.lists(st.lists(st.sampled_from([8, 8, 8, 4]), min_size=1, max_size=3), min_size=1, max_size=3)
clusters = st.lists(racks, min_size=1, max_size=2).map(lambda spines: fabric(*spines))
times = st.integers(0, 50).map(float)
traces = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 4, 7, 8, 9, 12, 16, 24, 30, 32, 48]), times, times), min_size=1, max_size=25
).map(lambda rows: jobs(*sorted(rows, key=lambda row: row[1])))
levels = st.sampled_from(["rack", "spine", None])


def held_over_time(run: PolicyRun, result: Result) -> list[Counter[str]]:
    """Return, for every moment at which a job starts, the GPUs in use by node; computed from starts alone."""
    rule = result.rule
    found = []
    begun = [
        (start, start + job.duration_s, job.gpus, spots)
        for job, start, spots in zip(result.jobs, run.starts, run.spots, strict=True)
        if start is not None and spots is not None
    ]
    for moment, *_ in begun:
        held: Counter[str] = Counter()
        for start, end, gpus, spots in begun:
            if start <= moment < end:
                for spot, amount in zip(spots, rule.layout(gpus).gpus, strict=True):
                    held[rule.domains.name(spot)] += amount
        found.append(held)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(clusters, traces, levels, st.sampled_from([1, 3, 100]))
def test_every_job_runs_once_no_node_is_overfull_and_required_levels_hold(
    domains: Domains, trace: Trace, level: str | None, window: int
) -> None:
    result = run(domains, trace, level=level, window=window)

    cluster = domains.cluster
    room = dict(zip(cluster.names, cluster.allocatable[cluster.resource(GPU)].tolist(), strict=True))
    for one, figures in zip(result.runs, result.figures, strict=True):
        assert figures.violations == 0
        assert all(start is None or start >= job.submit_s for job, start in zip(result.jobs, one.starts, strict=True))
        assert one.policy != "coterie" or None not in one.starts
        assert all((last.used, last.waiting) == (0, 0) for last in one.samples[-1:])
        for held in held_over_time(one, result):
            assert all(amount <= room[name] for name, amount in held.items())
        for job, spots in zip(result.jobs, one.spots, strict=True):
            layout = result.rule.layout(job.gpus)
            assert sum(layout.gpus) == job.gpus
            if spots is not None and level is not None:
                places = [domains.values(spot).get(level) for spot in spots]
                spines = [domains.values(spot)["spine"] for spot in spots]
                for members in layout.members:
                    assert len({(spines[pod], places[pod]) for pod in members}) == 1


@settings(max_examples=examples(30), deadline=None)
@given(clusters, traces, levels)
def test_the_same_input_gives_the_same_result(domains: Domains, trace: Trace, level: str | None) -> None:
    first, second = (run(domains, trace, level=level) for _ in range(2))

    assert [one.spots for one in first.runs] == [one.spots for one in second.runs]
    assert first.figures == second.figures


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, 4, 8, 16, 32]), st.floats(0.5, 20)), min_size=1, max_size=12))
def test_without_contention_all_policies_are_equal(rows: list[tuple[int, float]]) -> None:
    """Each job comes when the one before has ended: nobody waits, whatever the policy."""
    ends = 0.0
    apart = []
    for gpus, duration in rows:
        apart.append((gpus, ends, duration))
        ends += duration
    result = run(fabric([[8, 8], [8, 8]]), jobs(*apart))

    assert {one.waits and one.waits.longest for one in result.figures} == {0}
    assert len({(one.makespan_s, one.gpu_use, one.missed) for one in result.figures}) == 1
