"""The measurement of applying a gang to a real cluster works both ways, on few nodes."""

from __future__ import annotations

import pytest
from bench.cluster.apply import ApplyTimes, Way, compare, gang, measure, snapshot
from bench.report import applying_rows

from lab import GoMissingError, Lab


def test_the_gang_has_a_pod_for_each_task_and_fits_the_cluster() -> None:
    cluster = snapshot(512)
    manifests = gang(cluster)
    assert (len(cluster.cluster), sum(manifest["kind"] == "Pod" for manifest in manifests)) == (512, 64)
    assert [manifest["kind"] for manifest in manifests][:4] == ["Queue", "Queue", "Topology", "PodGroup"]


def test_both_ways_bind_all_pods_and_leave_nothing(lab: Lab) -> None:
    found = compare(lab, runs=1, count=128, starts_s=[1.0])
    assert (found.nodes, found.pods, found.runs) == (128, 64, 1)
    for way in (found.coterie, found.kubectl):
        assert 0 < way.applied_ms < way.bound_ms
    assert not lab.objects("pods")


@pytest.mark.parametrize(("ours", "met"), [(110.0, "1.10 x, yes"), (111.0, "1.11 x, **no**")])
def test_the_goal_is_a_ratio_of_the_times_until_all_pods_are_bound(ours: float, met: str) -> None:
    found = ApplyTimes(512, 64, 68, 5, Way(50.0, ours), Way(40.0, 100.0), [4.0, 16.0, 5.0])
    applied, bound, started = (tuple(row) for row in applying_rows(found))
    assert applied[4:] == ("", "1.25 x")
    assert bound[4:] == ("1.1 x", met)
    assert started[1:] == ("5.0 s", "the slowest", "16.0 s of 3", "15 s", "**no**")


def test_without_go_no_cluster_is_measured_and_that_is_said_loudly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_: Lab) -> None:
        raise GoMissingError("there is no go command", "Install it.")

    monkeypatch.setattr(Lab, "start", missing)
    assert measure(1, 1) is None
    assert "*** there is no go command: a real cluster is NOT measured. Install it." in capsys.readouterr().err
