"""The plot of a simulation: valid XML, readable without colour, and reproducible."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from coterie.simulation.plot import simulation_svg
from coterie.simulation.trace import Trace
from tests.simulation.worlds import fabric, jobs, run

RACKS = fabric([[8, 8], [8, 8]])
BUSY = jobs(*((8, float(number), 20.0) for number in range(40)))


def test_a_plot_is_xml_with_a_line_per_policy_and_panel_that_needs_no_colour() -> None:
    text = "\n".join(simulation_svg(run(RACKS, BUSY), trace="a<b>.csv"))

    root = ET.fromstring(text)  # noqa: S314 - it was made a line above
    assert text.isascii()
    lines = [path for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("stroke-linejoin")]
    assert len(lines) == 9
    assert len({path.get("stroke-dasharray") for path in lines}) == 3
    assert {"coterie", "first-fit", "kueue"} <= {str(node.text) for node in root.iter() if node.tag.endswith("text")}


@pytest.mark.parametrize("trace", [Trace("plain", ()), jobs((8, 0, 0)), jobs((8, 0, 1e9)), jobs((8, 0, 1e-6))])
def test_odd_traces_are_drawn_too(trace: Trace) -> None:
    text = "\n".join(simulation_svg(run(RACKS, trace), trace="t.csv"))

    assert ET.fromstring(text) is not None  # noqa: S314 - it was made a line above
    assert not re.search(r"nan|inf\b", text)


def test_the_same_simulation_gives_the_same_picture() -> None:
    first, second = (list(simulation_svg(run(RACKS, BUSY), trace="t.csv")) for _ in range(2))

    assert first == second
