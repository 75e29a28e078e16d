"""The measurements of a service on a real cluster work, on few nodes."""

from __future__ import annotations

from bench.cluster.steady_state import add_nodes, rest, restart

from lab import Lab


def test_a_service_is_measured_at_rest_and_after_a_restart(lab: Lab) -> None:
    add_nodes(lab, 20)
    found = rest(lab, 20, workflows=2, seconds=1.0)
    assert found.resident > 0
    assert 0 < found.noticed_s < 60
    assert "a lost pod is noticed after" in str(found)
    again = restart(lab, 20, workflows=2)
    assert again.seconds > 0
    assert "a restarted service follows all of them" in str(again)
