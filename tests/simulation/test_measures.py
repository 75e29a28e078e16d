"""Figures of a simulation: time averages, waits, series and fragmentation."""

from __future__ import annotations

import pytest

from coterie.simulation.measures import Waits, figures, series
from coterie.simulation.replay import PolicyRun, Sample
from tests.simulation.worlds import fabric, jobs, run


def made(*samples: Sample, starts: list[float | None] | None = None) -> PolicyRun:
    return PolicyRun("p", 10, starts or [], [], list(samples))


def test_means_are_over_time_and_not_over_events() -> None:
    samples = (Sample(0, 10, 0, None), Sample(90, 5, 2, 0.5), Sample(91, 5, 2, 1.0), Sample(100, 0, 0, 0.0))

    found = figures(made(*samples), [])

    assert found.gpu_use == pytest.approx((90 * 1.0 + 10 * 0.5) / 100)
    assert found.gpu_use_waiting == pytest.approx(0.5)
    assert found.fragmentation == found.fragmentation_waiting == pytest.approx((0.5 + 9 * 1.0) / 10)


def test_what_was_never_measured_has_no_mean() -> None:
    found = figures(made(Sample(0, 10, 0, None), Sample(5, 0, 0, None)), [])

    assert (found.gpu_use, found.gpu_use_waiting, found.fragmentation) == (1.0, None, None)


def test_waits_are_summed_up_over_the_jobs_that_started() -> None:
    trace = jobs(*((1, 0, 10) for _ in range(21)))
    starts: list[float | None] = [*(float(number) for number in range(20)), None]

    found = figures(made(starts=starts), trace.jobs)

    assert found.waits == Waits(mean=9.5, median=9.5, p95=18.0, longest=19.0)
    assert (found.started, found.jobs, found.makespan_s) == (20, 21, 29)


def test_a_series_holds_averages_of_equal_spans_and_gaps_where_nothing_is_measured() -> None:
    samples = (Sample(0, 10, 0, None), Sample(5, 0, 4, 0.5), Sample(20, 0, 0, 0.0))

    found = series(made(*samples), 40, 4)

    assert found.time_s == (0, 10, 20, 30)
    assert found.gpu_use == pytest.approx((0.5, 0, 0, 0))
    assert found.waiting == pytest.approx((2, 4, 0, 0))
    assert found.fragmentation == (0.5, 0.5, None, None)


@pytest.mark.parametrize(
    ("rows", "level", "expected"),
    [
        # Nothing in use: a whole rack is free.
        ([(1, 100.0, 1.0)], "rack", 0.0),
        # One GPU on each node of both racks: none is free as a whole.
        ([(29, 0.0, 9.0)], "rack", None),
        ([(5, 0.0, 9.0), (5, 0.0, 9.0), (5, 0.0, 9.0), (5, 0.0, 9.0)], "rack", 1.0),
        # One node of each rack in use: the best gang has one pod of two.
        ([(8, 0.0, 9.0), (12, 0.0, 9.0)], "rack", 0.0),
        ([(5, 0.0, 9.0), (16, 0.0, 9.0)], "rack", 0.0),
        ([(5, 0.0, 9.0)], "rack", 0.0),
        ([(5, 0.0, 9.0), (5, 0.0, 9.0)], None, 1 - 2 / 2),
    ],
)
def test_fragmentation_is_the_share_of_the_best_gang_that_does_not_fit(
    rows: list[tuple[int, float, float]], level: str | None, expected: float | None
) -> None:
    result = run(fabric([[8, 8], [8, 8]]), jobs(*rows), level=level, policies=["coterie"])

    assert result.runs[0].samples[0].fragmentation == expected
