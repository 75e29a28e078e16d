"""Maps of large fleets: racks first, nodes and GPUs on zoom, and the same by mouse, keyboard and filter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visit
from tests.web.fleet import fleet

Open = Callable[..., Visit]

# The number of different colours on a line through the middle of the drawing.
COLOURS = """() => {
  const canvas = document.querySelector('canvas')
  const line = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data
  return new Set(Array.from({ length: line.length / 4 }, (_, at) => line.slice(at * 4, at * 4 + 3).join())).size
}"""


def opened(tmp_path: Path, visit: Open, nodes: int, query: str = "") -> Visit:
    cluster, file = tmp_path / "fleet.yaml", tmp_path / "map.html"
    cluster.write_text(fleet(nodes), encoding="utf-8")
    command = (sys.executable, "-m", "coterie", "map", str(cluster), "-o", "html")
    file.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=240).stdout)
    return visit(f"{file.as_uri()}#{query}")


def drawn(page: Page) -> None:
    page.wait_for_function(f"({COLOURS})() > 1")


@pytest.mark.usefixtures("built_page")
@pytest.mark.parametrize("nodes", [10_240, 102_400])
def test_a_large_fleet_is_drawn_and_its_nodes_are_chosen_by_keys_and_mouse(
    nodes: int, tmp_path: Path, visit: Open
) -> None:
    seen = opened(tmp_path, visit, nodes)
    page = seen.page
    expect(page.get_by_text(f"{nodes:,} nodes")).to_be_visible()
    drawn(page)
    area = page.get_by_role("application")
    area.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Selection")).to_contain_text("z0s0r0-n1")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Selection")).to_contain_text(f"z{nodes // 1024 - 1} / ")
    box = area.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_label("Selection")).to_be_visible()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(12):
        page.mouse.wheel(0, -240)
    drawn(page)
    page.get_by_role("button", name="Table").click()
    expect(page.get_by_text("more rows are not shown")).to_be_visible()
    assert seen.errors == []


@pytest.mark.usefixtures("built_page")
def test_a_filter_finds_a_node_of_a_large_fleet(tmp_path: Path, visit: Open) -> None:
    page = opened(tmp_path, visit, 10_240, "view=table&filter=z3s2r7-n120").page
    expect(page.get_by_role("button", name="z3s2r7-n120", exact=True)).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(5)  # the head, a zone, a spine, a rack, the node
