"""The map in the terminal: a row per domain, with its nodes and its largest holders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coterie.rendering.cells import MOST_CELLS, Density, Legend, held, node_inks, size
from coterie.rendering.rows import LEAST_CELLS, DomainRow, broken, draw, span
from coterie.rendering.scene import Area, MapScene, Total, abbreviations
from coterie.rendering.text import Ink, Style, columns, count, pad, paint, visible, wrapped
from coterie.topology.abbreviations import Abbreviations

# A map of more lines than this is folded, since it could not be read at once.
_GPU_LINES = 60
_NODE_LINES = 120
_COUNT_LINES = 60


@dataclass(frozen=True, slots=True)
class _View:
    """A choice of level and density, and what it leaves out."""

    depth: int
    density: Density
    areas: tuple[Area, ...]
    said: tuple[str, ...] = ()


def map_lines(
    scene: MapScene, style: Style, *, free: bool = False, fold: bool = True, every: bool = False
) -> Iterator[str]:
    """Yield the map of a scene, its legend and its totals.

    `free` shows free instead of used GPUs, and only domains that have some. `fold` lets a map of too many domains show
    coarser ones. `every` shows each node on its own line instead, and names in full.
    """
    if not scene.root.total.nodes:
        yield "There are no nodes."
        return
    legend = Legend()
    short = Abbreviations() if every else abbreviations([scene])
    if every:
        yield from _every(scene, style, legend, free=free)
        said: tuple[str, ...] = ()
        depth = len(scene.levels)
    else:
        view = _choose(scene, style, free=free, fold=fold)
        yield from draw(_rows(scene, view, short, free=free), view.density, scene.highlight, style, legend)
        yield from _outside(scene, view, short, style, legend, free=free)
        said, depth = view.said, view.depth
    yield ""
    signs = [[sign, Ink(f" {visible(meaning)}  ")] for sign, meaning in legend.inks(style)]
    yield from (paint(line, style).rstrip() for line in broken(signs, style.width))
    total = _sum(scene, depth, short, free=free)
    for text in (*said, *short.note(), total):
        yield from wrapped(text, style.width)


def _choose(scene: MapScene, style: Style, *, free: bool, fold: bool) -> _View:
    """Return the finest level and density within the limits; the coarsest, cut off, where none is."""
    finest = len(scene.levels)
    for depth in range(finest, 0 if finest else -1, -1):
        areas, said = _shown(scene, depth, free=free)
        if depth < finest:
            said = (*said, _folded(scene, depth))
        for density, limit in ((Density.GPUS, _GPU_LINES), (Density.NODES, _NODE_LINES)):
            if _lines(areas, density, style) <= limit and (density is Density.NODES or not _folded_nodes(areas)):
                return _View(depth, density, areas, (*said, *_to_scale(areas, density)))
        if len(areas) <= _COUNT_LINES or not fold:
            return _View(depth, Density.COUNTS, areas, said)
    left = len(areas) - _COUNT_LINES
    said = (*said, f"{count(left, f'more {scene.levels[depth - 1]}')} not shown; -o json has all.")
    return _View(depth, Density.COUNTS, areas[:_COUNT_LINES], said)


def _shown(scene: MapScene, depth: int, *, free: bool) -> tuple[tuple[Area, ...], tuple[str, ...]]:
    areas = scene.at(depth)
    if not free:
        return areas, ()
    some = tuple(area for area in areas if area.total.free)
    full = len(areas) - len(some)
    word = scene.levels[depth - 1] if depth else "cluster"
    return some, (f"{count(full, word)} {'has' if full == 1 else 'have'} nothing free.",) if full else ()


def _folded(scene: MapScene, depth: int) -> str:
    finest = scene.levels[-1]
    number = count(len(scene.at(len(scene.levels))), finest)
    return (
        f"{number} are folded into {count(len(scene.at(depth)), scene.levels[depth - 1])}; --level {finest} shows them."
    )


def _folded_nodes(areas: Sequence[Area]) -> bool:
    """Return whether a domain holds finer ones, whose nodes would look like one uniform row cell by cell."""
    return any(area.areas for area in areas)


def _to_scale(areas: Sequence[Area], density: Density) -> Iterator[str]:
    if density is Density.GPUS and any(spot.gpus > MOST_CELLS for area in areas for spot in area.all_spots()):
        yield f"Nodes with more than {MOST_CELLS} GPUs are drawn to scale."


def _lines(areas: Sequence[Area], density: Density, style: Style) -> int:
    """Return an estimate of the lines of a map: the cells of each domain over the width beside labels and notes."""
    room = max(LEAST_CELLS, style.width - 40)
    gap = density is Density.GPUS
    return sum(1 + sum(size(spot, density) + gap for spot in area.all_spots()) // room for area in areas)


def _rows(scene: MapScene, view: _View, short: Abbreviations, *, free: bool) -> Iterator[DomainRow]:
    before: tuple[str, ...] = ()
    for area in view.areas:
        path = area.path[:-1]
        above = visible(short.domain(path)) if path != before else ""
        before = path
        numbers, notes = _numbers(area.total, free=free), _notes(area, scene, free=free)
        yield DomainRow(above, visible(scene.named(area, short)), area, numbers, notes)


def _outside(
    scene: MapScene, view: _View, short: Abbreviations, style: Style, legend: Legend, *, free: bool
) -> Iterator[str]:
    areas = scene.outside(view.depth)
    if not areas:
        return
    rows = [
        DomainRow(
            visible(short.domain(area.path)),
            f"no {scene.levels[len(area.path)]}",
            area,
            _numbers(area.total, free=free),
            _notes(area, scene, free=free),
        )
        for area in areas
    ]
    nodes = sum(area.total.nodes for area in areas)
    yield ""
    yield f"{count(nodes, 'node')} in no {scene.levels[view.depth - 1]}:"
    density = view.density
    if density is Density.GPUS and _lines(areas, density, style) > _GPU_LINES:
        density = Density.NODES
    if density is Density.NODES and _lines(areas, density, style) > _NODE_LINES:
        density = Density.COUNTS
    yield from draw(rows[:_COUNT_LINES], density, scene.highlight, style, legend)
    if len(rows) > _COUNT_LINES:
        yield f"and {count(len(rows) - _COUNT_LINES, 'more place')}; -o json has all."


def _numbers(total: Total, *, free: bool) -> str:
    return f"{total.free} free" if free else f"{total.used}/{total.gpus}"


def _notes(area: Area, scene: MapScene, *, free: bool) -> str:
    total = area.total
    notes = []
    if area.areas and len(area.path) < len(scene.levels):
        below = sum(1 for one in area.walk() if len(one.path) == len(scene.levels))
        notes.append(count(below, scene.levels[-1]))
    if total.cordoned:
        notes.append(f"{total.cordoned} cordoned")
    if total.not_ready:
        notes.append(f"{total.not_ready} not ready")
    if total.overfull:
        notes.append(f"{total.overfull} overfull")
    if free:
        notes.append(f"{count(total.whole, 'whole node')}")
    elif scene.highlight is not None:
        mine = held(total, scene.highlight)
        notes += [f"{visible(scene.highlight)} {mine}"] if mine else []
    elif len(total.holders) == 1:
        notes.append(visible(total.holders[0][0]))
    elif total.holders:
        shown = " ".join(f"{visible(name)} {gpus}," for name, gpus in total.holders[:2]).removesuffix(",")
        rest = len(total.holders) - 2
        notes.append(f"{shown} and {rest} more" if rest > 0 else shown)
    return ", ".join(notes)


def _every(scene: MapScene, style: Style, legend: Legend, *, free: bool) -> Iterator[str]:
    """Yield a line for each node, below its domain."""
    finest = len(scene.levels)
    for area in (*scene.at(finest), *scene.outside(finest)):
        spots = [spot for spot in area.spots if spot.free] if free else area.spots
        if not spots:
            continue
        place = "/".join(map(visible, area.path))
        missing = f"no {scene.levels[len(area.path)]}" if len(area.path) < finest else "" if finest else "all nodes"
        place = "  ".join(filter(None, (place, missing)))
        yield f"{place}  {_numbers(area.total, free=free)}"
        name = max(columns(visible(spot.name)) for spot in spots)
        drawn = [node_inks(spot, Density.GPUS, scene.highlight, style, legend) for spot in spots]
        width = max(span(inks) for inks in drawn)
        for spot, inks in zip(spots, drawn, strict=True):
            total = Total.over([spot])
            holders = ", ".join(f"{visible(owner)} {gpus}" for owner, gpus in spot.holders)
            line = f"{' ' * (width - span(inks))}  {pad(_numbers(total, free=free), 7, right=True)}  {holders}"
            yield f"  {pad(visible(spot.name), name)}  {paint(inks, style)}{line}".rstrip()


def _sum(scene: MapScene, depth: int, short: Abbreviations, *, free: bool) -> str:
    total = scene.root.total
    nodes = count(total.nodes, "node")
    out = total.out
    beside = f", {count(out, 'idle GPU')} out of service" if out else ""
    if free:
        first = f"{total.free:,} of {count(total.gpus, 'GPU')} free on {nodes}{beside}"
        levels = range(1, depth + 1)
    else:
        first = f"{total.used:,}/{count(total.gpus, 'GPU')} used on {nodes}{beside}"
        levels = range(max(1, depth), depth + 1)
    largest = [
        f"largest free {scene.levels[at - 1]}: {visible(short.domain(area.path))} ({area.total.free:,})"
        for at in levels
        if (area := scene.largest_free(at))
    ]
    return "; ".join([first, *largest]) + "."
