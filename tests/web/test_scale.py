"""Maps of large fleets: racks first, nodes and GPUs on zoom, and the same by mouse, keyboard and filter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.eventually import eventually
from tests.web.conftest import Visit
from tests.web.fleet import fleet
from tests.web.page_service import PageService

Open = Callable[..., Visit]

# The number of different colours on a line through the middle of the drawing.
COLOURS = """() => {
  const canvas = document.querySelector('canvas')
  const line = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data
  return new Set(Array.from({ length: line.length / 4 }, (_, at) => line.slice(at * 4, at * 4 + 3).join())).size
}"""


def written(tmp_path: Path, nodes: int) -> Path:
    cluster, file = tmp_path / "fleet.yaml", tmp_path / "map.html"
    cluster.write_text(fleet(nodes), encoding="utf-8")
    command = (sys.executable, "-m", "coterie", "map", str(cluster), "-o", "html")
    file.write_bytes(subprocess.run(command, capture_output=True, check=True, timeout=240).stdout)
    return file


def opened(tmp_path: Path, visit: Open, nodes: int, query: str = "") -> Visit:
    return visit(f"{written(tmp_path, nodes).as_uri()}#{query}")


def drawn(page: Page) -> None:
    # The page's policy forbids the browser to evaluate a condition again and again by itself.
    eventually(lambda: page.locator("canvas").count() and page.evaluate(COLOURS) > 1, "the map is drawn")


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
    expect(page.get_by_role("status").filter(has_text="1 node found")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(5)  # the head, a zone, a spine, a rack, the node


# Frames are drawn only when asked for, in the smallest parts; each canvas is noted with the frame's width when shown.
BY_HAND = """
const waiting = []
window.requestAnimationFrame = (act) => waiting.push(act)
window.cancelAnimationFrame = () => {}
let clock = 0
performance.now = () => (clock += 100)
window.frames = {
  shown: [],
  left: () => waiting.length,
  next: () => waiting.splice(0).forEach((act) => act(performance.now())),
}
new MutationObserver((all) => {
  const area = document.querySelector('.area')
  for (const canvas of all.flatMap((each) => [...each.addedNodes]).filter((each) => each.tagName === 'CANVAS'))
    window.frames.shown.push([parseFloat(canvas.style.width), area.clientWidth])
}).observe(document, { subtree: true, childList: true })
"""


@pytest.mark.usefixtures("built_page")
def test_a_picture_under_way_is_dropped_when_the_frame_changes(tmp_path: Path, visit: Open) -> None:
    file = written(tmp_path, 1024)
    seen = visit("about:blank")
    page = seen.page
    page.add_init_script(BY_HAND)
    page.goto(file.as_uri())

    def finish() -> None:
        eventually(lambda: page.evaluate("frames.left()"), "a picture is begun")
        eventually(lambda: page.evaluate("frames.next(), !frames.left()"), "the picture is done")

    finish()
    before = page.locator("canvas").get_attribute("style")
    page.get_by_role("application").focus()
    page.keyboard.press("Home")
    eventually(lambda: page.evaluate("frames.left()"), "the cursor is to be drawn")
    page.evaluate("frames.next()")
    assert page.evaluate("frames.left()"), "the picture takes more than one frame"
    page.set_viewport_size({"width": 900, "height": 700})
    eventually(lambda: page.locator("canvas").get_attribute("style") != before, "the map has another size")
    finish()
    shown = page.evaluate("frames.shown")
    assert len(shown) >= 2
    # A canvas reaches beyond the frame on either side.
    assert [(wide, width) for wide, width in shown if abs(wide - 1.8 * width) > 2] == []
    assert seen.errors == []


# The pixels of the picture in one of the page.
RATIO = "() => { const all = document.querySelector('canvas'); return all.width / parseFloat(all.style.width) }"


@pytest.mark.usefixtures("built_page")
def test_a_map_is_drawn_anew_when_it_is_moved_on_a_screen_of_smaller_pixels(tmp_path: Path, visit: Open) -> None:
    page = opened(tmp_path, visit, 1024).page
    drawn(page)
    assert page.evaluate(RATIO) == pytest.approx(1)
    page.evaluate("Object.defineProperty(window, 'devicePixelRatio', { value: 2 })")
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 116, box["y"] + 100)
    page.mouse.up()
    eventually(lambda: page.evaluate(RATIO) > 1.9, lambda: page.evaluate(RATIO))


CONFIG = """
backends:
  lab: {scheduler: local, cluster: cluster.yaml}
pools:
  fleet:
    backend: lab
    topology_keys:
    - {key: zone, label: example.com/zone}
    - {key: spine, label: example.com/spine}
    - {key: rack, label: example.com/rack}
"""
# The page's own handler of changes, and no frames, as in a hidden tab.
HIDDEN = """
const listen = EventSource.prototype.addEventListener
EventSource.prototype.addEventListener = function (kind, act, ...rest) {
  if (kind === 'change') window.change = act
  listen.call(this, kind, act, ...rest)
}
const draw = window.requestAnimationFrame.bind(window)
let hidden = []
window.hide = () => { window.requestAnimationFrame = (act) => hidden.push(act) }
window.unhide = () => {
  window.requestAnimationFrame = draw
  hidden.forEach((act) => draw(act))
}
"""
CHANGE = """(count) => window.change({ lastEventId: '', data: JSON.stringify({
  nodes: Array.from({ length: count }, (_, at) => (
    { index: at % 1024, gpus: 8, status: 'ready', channel: false, held: [] }
  )),
}) })"""


@pytest.mark.usefixtures("built_page")
def test_a_hidden_page_takes_any_number_of_changes(tmp_path: Path, visit: Open) -> None:
    with PageService(tmp_path, CONFIG, fleet(1024)) as served:
        seen = visit("about:blank")
        page = seen.page
        page.add_init_script(HIDDEN)
        page.goto(f"{served.url}/map?pool=fleet")
        drawn(page)
        page.evaluate("hide()")
        # More than a browser takes as the arguments of a function.
        page.evaluate(CHANGE, 200_000)
        expect(page.get_by_text("1,024 nodes · 0/8,192 GPUs used")).to_be_visible()
        page.evaluate(CHANGE, 1)
        page.evaluate("unhide()")
        eventually(lambda: page.evaluate(COLOURS) > 1, "the map is drawn")
        assert seen.errors == []
