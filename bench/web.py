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
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from bench.served import OPEN, Served, served, submission, until
from bench.timing import say
from coterie.inspection.page_files import MISSING, PageFiles

WATCHERS = 20
LOADS = 5
VIEWPORT = ViewportSize(width=1360, height=820)
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

# A page with next to nothing on it, which moves a square with the same gestures: this machine is no faster than that.
_EMPTY = """<body style="margin: 0; height: 100vh; touch-action: none; overflow: hidden">
<div style="width: 90px; height: 90px; background: teal; will-change: transform"></div></body>"""
_FOLLOW = """() => {
  let at = 0
  const move = (event) => {
    event.preventDefault()
    at += 1
    document.querySelector('div').style.transform = `translate(${at}px, ${at}px)`
  }
  for (const kind of ['wheel', 'pointermove']) document.body.addEventListener(kind, move, { passive: false })
}"""
_TRACED = (
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "cc",
    "benchmark",
)

# Chromium makes these gestures itself, with an event in every frame; events that are sent from outside come late.
Way = dict[str, str | int]
_PAN: list[Way] = [
    {"gestureSourceType": "touch", "xDistance": way * 400, "yDistance": way * 250, "speed": 600} for way in (-1, 1)
]
_ZOOM: list[Way] = [{"gestureSourceType": "mouse", "yDistance": way * 900, "speed": 900} for way in (1, -1)]
REPEATS = 3
# A page that was just brought to the front is drawn anew first.
_SETTLED_S = 1.0

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
class Frames:
    """The frames of a gesture: shown and dropped, the time between two, and the processor time of the main thread."""

    frames: int
    per_second: float
    dropped: int
    interval_median_ms: float
    interval_p95_ms: float
    main_thread_median_ms: float
    main_thread_p95_ms: float


@dataclass(frozen=True, slots=True)
class PageSpeed:
    """The measurements: times in milliseconds, memory in MiB, and processor time as a share of one core."""

    nodes: int
    map_answer_mib: float
    map_answer_gzip_mib: float
    script_gzip_kb: float
    first_picture_best_ms: float
    first_picture_median_ms: float
    changes: int
    change_median_ms: float
    change_p95_ms: float
    pan: Frames
    zoom: Frames
    empty_pan: Frames
    empty_zoom: Frames
    pan_share: float
    zoom_share: float
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
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "web", options.nodes, held=True) as service:
        found = measure(service, files, options)
    sys.stdout.write("".join(f"{name:24} {value}\n" for name, value in asdict(found).items()))
    if options.json:
        options.json.write_text(json.dumps(asdict(found), indent=2) + "\n")
    return 0


def measure(service: Served, files: PageFiles, options: argparse.Namespace) -> PageSpeed:
    """Take all measurements in sequence."""
    answer = httpx2.get(f"{service.url}/api/v1/pools/{OPEN}/nodes", timeout=_PATIENCE_MS / 1000).content
    (script,) = [content for kind, content in files.assets.values() if kind.startswith("text/javascript")]
    with _chromium() as browser:
        say(f"{options.nodes:,} nodes: first picture")
        pages = [_opened(browser, service) for _ in range(LOADS)]
        first = [float(each.evaluate("window.noted.drawn")) for each in pages]
        page = pages.pop()
        for each in pages:
            each.close()
        say("pan and zoom")
        empty = browser.new_page(viewport=VIEWPORT)
        empty.set_content(_EMPTY)
        empty.evaluate(_FOLLOW)
        pan, empty_pan, zoom, empty_zoom = (
            _frames(browser, each, ways) for ways in (_PAN, _ZOOM) for each in (page, empty)
        )
        empty.close()
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
        nodes=options.nodes,
        map_answer_mib=round(len(answer) / 2**20, 2),
        map_answer_gzip_mib=round(len(gzip.compress(answer)) / 2**20, 2),
        script_gzip_kb=round(len(gzip.compress(script)) / 1024, 1),
        first_picture_best_ms=round(min(first), 1),
        first_picture_median_ms=round(statistics.median(first), 1),
        changes=len(changes),
        change_median_ms=round(statistics.median(changes), 2),
        change_p95_ms=round(_p95(changes), 2),
        pan=pan,
        zoom=zoom,
        empty_pan=empty_pan,
        empty_zoom=empty_zoom,
        pan_share=round(pan.per_second / empty_pan.per_second, 3),
        zoom_share=round(zoom.per_second / empty_zoom.per_second, 3),
        heap_mib=round(before, 2),
        heap_after_hour_mib=round(after, 2),
        idle_cpu=round(idle, 2),
        watched_cpu=round(watched, 2),
    )


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


def _opened(browser: Browser, service: Served) -> Page:
    """Return a page with the map, once that is drawn."""
    page = browser.new_page(viewport=VIEWPORT)
    page.set_default_timeout(_PATIENCE_MS)
    page.add_init_script(_NOTES)
    page.goto(f"{service.url}/map?pool={OPEN}")
    # The policy of the page allows no expression to be evaluated in it by itself.
    until(lambda: bool(page.evaluate("window.noted.drawn > 0")), _PATIENCE_MS / 1000)
    return page


def _frames(browser: Browser, page: Page, ways: list[Way]) -> Frames:
    """Return the frames that Chromium's own trace has while a gesture is made in each way in turn.

    Only the time from the first to the last input event counts; nothing is left out in it.
    """
    page.bring_to_front()
    session = page.context.new_cdp_session(page)
    time.sleep(_SETTLED_S)
    shown, lost, seconds = 0, 0, 0.0
    gaps: list[float] = []
    busy: list[float] = []
    for way in ways * REPEATS:
        browser.start_tracing(page=page, categories=list(_TRACED))
        session.send("Input.synthesizeScrollGesture", {"x": 640, "y": 460, "preventFling": True, **way})
        trace = json.loads(browser.stop_tracing())
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        start, end = _gesture(events)
        presented, dropped = reported_frames(events, start, end)
        drawn = sorted(each["ts"] for each in events if each.get("name") == "DrawFrame" and start <= each["ts"] <= end)
        shown, lost, seconds = shown + presented, lost + dropped, seconds + (end - start) / 1e6
        gaps += [(later - earlier) / 1000 for earlier, later in pairwise(drawn)]
        busy += _main_thread(events, drawn)
    session.detach()
    figures = (statistics.median(gaps), _p95(gaps), statistics.median(busy), _p95(busy))
    return Frames(shown, round(shown / seconds, 1), lost, *(round(each, 2) for each in figures))


def _gesture(events: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Return the times of the first and the last input event that the page got."""
    kinds = {"pointermove", "wheel"}
    inputs = [
        each["ts"] for each in events if each.get("name") == "EventDispatch" and each["args"]["data"]["type"] in kinds
    ]
    return min(inputs), max(inputs)


def reported_frames(events: Sequence[dict[str, Any]], start: int, end: int) -> tuple[int, int]:
    """Return how many of the wanted frames of the page were presented in a time, and how many dropped.

    A frame whose later part was dropped counts as dropped, even where its earlier part was presented.
    """
    pages = {each["pid"] for each in events if each.get("name") == "EventDispatch"}
    states: dict[int, set[str]] = {}
    for each in events:
        report = each.get("args", {}).get("frame_reporter")
        if report and each["name"] == "PipelineReporter" and each["pid"] in pages and start <= each["ts"] <= end:
            states.setdefault(report["frame_sequence"], set()).add(report["state"])
    lost = sum("STATE_DROPPED" in found for found in states.values())
    idle = sum(found == {"STATE_NO_UPDATE_DESIRED"} for found in states.values())
    return len(states) - lost - idle, lost


def _main_thread(events: Sequence[dict[str, Any]], drawn: Sequence[int]) -> list[float]:
    """Return the processor time of the busiest main thread between each two frames, in milliseconds."""
    names = {(each["pid"], each["tid"]): each["args"]["name"] for each in events if each.get("name") == "thread_name"}
    tasks: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for each in events:
        thread = (each["pid"], each["tid"])
        if each.get("name") == "RunTask" and names.get(thread) == "CrRendererMain":
            tasks.setdefault(thread, []).append((each["ts"], each.get("tdur", 0) / 1000))
    page = max(tasks.values(), key=lambda found: sum(spent for _, spent in found))
    spent = [0.0] * (len(drawn) - 1)
    for start, took in page:
        frame = bisect(drawn, start) - 1
        if 0 <= frame < len(spent):
            spent[frame] += took
    return spent


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
