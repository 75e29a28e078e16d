"""The measurement of the operator, on few objects: one changed level costs writes for its users alone."""

from __future__ import annotations

from bench.cluster.operator import cluster_costs, decisions

from lab import Lab


def test_a_changed_level_and_a_restart_cost_what_they_change(workload_lab: Lab) -> None:
    workload_lab.reset(120.0)
    found = cluster_costs(workload_lab, topologies=3, sets=9)

    assert found.restart_writes == 0
    # An event and a status for each user; the resource is tried, deleted and created, and the status is written.
    assert found.changed == 3
    assert found.change_writes == 2 * 3 + 4
    # Each user reads the topology once more; the resource and its interim one, the work and its pods are read before a
    # step and after it.
    assert found.change_reads <= 3 + 2 * 4


def test_decisions_are_measured_over_tls() -> None:
    found = decisions(topologies=10, requests=120)

    assert 0 < found.median_ms <= found.p99_ms
    assert found.per_second > 0
