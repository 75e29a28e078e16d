"""Measurements of the web page in Chromium, on a real service with a large pool."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from bench.served import OPEN, Served, served, submission, until
from bench.timing import say
from coterie.inspection.page_files import MISSING, PageFiles

WATCHERS = 20
FRAME_MS = 1000 / 60
_PATIENCE_MS = 120_000
# Notes when the map is drawn for the first time, and the work of each change: its handler, and the frame after it.
_NOTES = """
window.noted = { drawn: 0, changes: [] }
const asked = window.requestAnimationFrame.bind(window)
let work = null
window.requestAnimationFrame = (act) => asked((now) => {
  const start = performance.now()
  act(now)
  if (work) { work.ms += performance.now() - start; work.frame = true }
})
const look = () => {
  const canvas = document.querySelector('canvas')
  const at = canvas?.width && canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data[3]
  if (at) window.noted.drawn = performance.now()
  else asked(look)
}
asked(look)
const listen = EventSource.prototype.addEventListener
EventSource.prototype.addEventListener = function (kind, act, ...rest) {
  if (kind === 'change') window.noted.act = act
  listen.call(this, kind, kind !== 'change' ? act : (event) => {
    work = { ms: 0, frame: false }
    const mine = work
    const start = performance.now()
    act(event)
    mine.ms += performance.now() - start
    asked(() => asked(() => { if (work === mine) work = null; window.noted.changes.push(mine.ms) }))
  }, ...rest)
}
"""

# Hands changes to the page as fast as it draws them: each gives nodes to another workflow, or frees them.
_REPLAY = """async ([count, nodes]) => {
  for (let at = 0; at < count; at += 1) {
    const held = (task) => (at % 2 ? [] : [{ owner: `replayed-${at}`, group: 'g', task: `t${task}`, gpus: 8 }])
    const changed = Array.from({ length: 16 }, (_, task) => ({
      index: ((at >> 1) * 16 + task) % nodes, gpus: 8, status: 'ready', channel: false, held: held(task),
    }))
    window.noted.act({ data: JSON.stringify({ nodes: changed }), lastEventId: '' })
    await new Promise((next) => requestAnimationFrame(next))
  }
}"""
# An hour of changes, one a second; the memory of the first tenth is what the page needs at all.
HOUR = 3600


@dataclass(frozen=True, slots=True)
class PageSpeed:
    """The measurements: times in milliseconds, memory in MiB, and processor time as a share of one core."""

    nodes: int
    script_gzip_kb: float
    first_picture_ms: float
    changes: int
    change_median_ms: float
    change_p95_ms: float
    pan_frame_median_ms: float
    pan_frame_p95_ms: float
    zoom_frame_p95_ms: float
    heap_mib: float
    heap_after_hour_mib: float
    idle_cpu: float
    watched_cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the result, and write the requested file."""
    options = _options(arguments)
    files = PageFiles.read()
    if files is None:
        sys.stderr.write(f"{MISSING}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "web", options.nodes) as service:
        found = measure(service, files, options)
    sys.stdout.write("".join(f"{name:24} {value}\n" for name, value in asdict(found).items()))
    if options.json:
        options.json.write_text(json.dumps(asdict(found), indent=2) + "\n")
    return 0


def measure(service: Served, files: PageFiles, options: argparse.Namespace) -> PageSpeed:
    """Take all measurements in sequence."""
    (script,) = [content for kind, content in files.assets.values() if kind.startswith("text/javascript")]
    with _chromium() as browser:
        page = browser.new_page(viewport={"width": 1360, "height": 820})
        page.set_default_timeout(_PATIENCE_MS)
        page.add_init_script(_NOTES)
        say(f"{options.nodes:,} nodes: first picture")
        page.goto(f"{service.url}/map?pool={OPEN}")
        # The policy of the page allows no expression to be evaluated in it by itself.
        until(lambda: bool(page.evaluate("window.noted.drawn > 0")), _PATIENCE_MS / 1000)
        first = float(page.evaluate("window.noted.drawn"))
        say("pan and zoom")
        panned = _frames(browser, page, _pan)
        zoomed = _frames(browser, page, _zoom)
        page.get_by_role("button", name="Show all").click()
        say(f"changes for {options.seconds:.0f} s")
        with service.client() as client:
            _run_gangs(client, options.seconds)
        changes = [float(each) for each in page.evaluate("window.noted.changes")]
        say(f"{options.changes:,} changes in quick succession")
        page.evaluate(_REPLAY, [options.changes // 10, options.nodes])
        before = _heap(page)
        page.evaluate(_REPLAY, [options.changes, options.nodes])
        after = _heap(page)
    say(f"{WATCHERS} pages watch")
    idle = _busy(service, 0, options.seconds / 2)
    watched = _busy(service, WATCHERS, options.seconds / 2)
    return PageSpeed(
        options.nodes,
        round(len(gzip.compress(script)) / 1024, 1),
        round(first, 1),
        len(changes),
        *(round(each, 2) for each in (statistics.median(changes), _p95(changes))),
        *(round(each, 2) for each in (statistics.median(panned), _p95(panned), _p95(zoomed))),
        *(round(each, 2) for each in (before, after, idle, watched)),
    )


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


def _frames(browser: Browser, page: Page, act: Callable[[Page], None]) -> list[float]:
    """Return the milliseconds between the frames that Chromium's own trace has while something is done."""
    browser.start_tracing(page=page, categories=["devtools.timeline", "disabled-by-default-devtools.timeline.frame"])
    act(page)
    trace = json.loads(browser.stop_tracing())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    drawn = sorted(event["ts"] / 1000 for event in events if event.get("name") == "DrawFrame")
    return [later - earlier for earlier, later in pairwise(drawn)] or [0.0]


def _pan(page: Page) -> None:
    page.mouse.move(900, 600)
    page.mouse.down()
    for step in range(90):
        page.mouse.move(900 - 6 * step, 600 - 3 * step)
    page.mouse.up()


def _zoom(page: Page) -> None:
    page.mouse.move(600, 450)
    for step in range(60):
        page.mouse.wheel(0, -30 if step < 30 else 30)


def _run_gangs(client: httpx2.Client, seconds: float) -> None:
    """Submit small gangs one after another; each changes a node twice."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ident = client.post("/workflows", json=submission(1)).json()["id"]
        while not client.get(f"/workflows/{ident}").json()["finished"]:
            time.sleep(0.05)


def _heap(page: Page) -> float:
    """Return the memory of the page's script after a collection, in MiB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = float(session.send("Runtime.getHeapUsage")["usedSize"])
    session.detach()
    return used / 2**20


def _busy(service: Served, watchers: int, seconds: float) -> float:
    """Return the share of a core that the service uses while gangs run and pages watch."""
    over = threading.Event()

    def watch() -> None:
        address = f"{service.url}/api/v1/pools/{OPEN}/nodes?follow=true"
        with httpx2.stream("GET", address, timeout=60) as stream:
            for _ in stream.iter_bytes():
                if over.is_set():
                    return

    threads = [threading.Thread(target=watch, daemon=True) for _ in range(watchers)]
    for thread in threads:
        thread.start()
    with service.client() as client:
        _run_gangs(client, 2)  # until all have their first map
        start, began = service.cpu_s()[0], time.monotonic()
        _run_gangs(client, seconds)
        used, took = service.cpu_s()[0] - start, time.monotonic() - began
        over.set()
        _run_gangs(client, 0.5)
    return used / took


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench web", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_240, help="nodes of the pool (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long changes arrive (%(default)s)")
    parser.add_argument("--changes", type=int, default=HOUR, help="changes of the memory's measurement (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the result there")
    return parser.parse_args(arguments)
