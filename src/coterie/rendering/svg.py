"""The map as one self-contained SVG: no script, font or style sheet from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coterie.rendering.blocks import FAINT, Block, flow, length, shortened, stack, text, xml
from coterie.rendering.cards import STYLE, bar_card, card, describe, head_width
from coterie.rendering.palette import FREE, OTHERS, Paint, paints_for
from coterie.rendering.scene import Area, MapScene, abbreviations
from coterie.rendering.text import count
from coterie.topology.abbreviations import Abbreviations

_WIDTH = 1240
_MARGIN = 32
_DOT = "  ·  "
_PAD = 14
# A larger picture would be slow to open and too small to read.
_MOST_NODES = 2000
_MOST_CARDS = 3000


@dataclass(frozen=True, slots=True)
class _Draw:
    """A scene with its drawing options: the finest level, names, paints, and whether nodes are shown."""

    scene: MapScene
    depth: int
    short: Abbreviations
    paints: Mapping[str, Paint]
    nodes: bool


def map_svg(scene: MapScene, *, free: bool = False) -> Iterator[str]:
    """Yield the lines of an SVG document, in ASCII; `free` leaves out domains without free GPUs."""
    for line in _document(scene, free=free):
        yield line.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _document(scene: MapScene, *, free: bool) -> Iterator[str]:
    depth = len(scene.levels)
    nodes = scene.root.total.nodes <= _MOST_NODES
    while depth > 1 and not nodes and len(scene.at(depth)) > _MOST_CARDS:
        depth -= 1
    areas = [area for area in scene.at(depth) if area.total.free or not free]
    outside = [area for area in scene.outside(depth) if area.total.free or not free]
    short = abbreviations([scene])
    paints = paints_for(scene.root.total.holders, scene.highlight)
    draw = _Draw(scene, depth, short, paints, nodes)
    panels = [*_panels(draw, areas[:_MOST_CARDS])]
    if outside:
        panels.append(_outside(draw, outside[:_MOST_CARDS]))
    about = _subline(scene, depth, short)
    said = _left_out(scene, depth, areas)
    said += ["long names are shortened; point at one for the full name"] if short.used else []
    head = stack([_title(scene, about, said), _legend(scene, paints)], 14)
    body = flow(panels, _WIDTH, 18)
    page = stack([head, body], 22)
    width, height = max(page.width, 480) + 2 * _MARGIN, page.height + 2 * _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="title desc">'
    )
    yield f'<title id="title">{xml(_headline(scene))}</title>'
    yield f'<desc id="desc">{xml(_DOT.join(about))}</desc>'
    yield f"<style>{STYLE}{''.join(_fills(paints))}</style>"
    yield "<defs>"
    yield '<pattern id="grid" width="11" height="11" patternUnits="userSpaceOnUse">'
    yield '<path d="M10.4,0v11" stroke="#fff" stroke-width="1.2"/></pattern>'
    yield '<pattern id="out" width="6" height="6" patternUnits="userSpaceOnUse">'
    yield f'<rect width="6" height="6" fill="{FREE}"/>'
    yield '<path d="M0,0l6,6M6,0l-6,6" stroke="#9aa6b2" stroke-width=".9"/></pattern>'
    for paint in paints.values():
        yield from paint.definition()
    yield "</defs>"
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    yield from page.at(_MARGIN, _MARGIN)
    yield "</svg>"


def _fills(paints: Mapping[str, Paint]) -> Iterator[str]:
    yield f".free{{fill:{FREE}}}.others{{fill:{OTHERS}}}.out{{fill:url(#out)}}"
    for paint in paints.values():
        yield f".{paint.name}{{fill:{paint.fill()}}}"


def _headline(scene: MapScene) -> str:
    total = scene.root.total
    if not total.gpus:
        return f"{count(total.nodes, 'node')}, no GPUs"
    return f"{total.used:,} of {count(total.gpus, 'GPU')} used"


def _subline(scene: MapScene, depth: int, short: Abbreviations) -> list[str]:
    total = scene.root.total
    parts = [f"pool {scene.pool}"] if scene.pool else []
    parts.append(count(total.nodes, "node"))
    parts += [
        f"largest free {scene.levels[at - 1]}: {short.domain(area.path)} ({area.total.free:,})"
        for at in range(1, depth + 1)
        if (area := scene.largest_free(at))
    ]
    if idle := total.out:
        parts.append(f"{count(idle, 'idle GPU')} out of service")
    return parts


def _left_out(scene: MapScene, depth: int, areas: Sequence[Area]) -> list[str]:
    said = []
    if depth < len(scene.levels):
        said.append(f"{count(len(scene.at(len(scene.levels))), scene.levels[-1])} are folded")
    if hidden := len(scene.at(depth)) - len(areas):
        said.append(f"{count(hidden, scene.levels[depth - 1] if depth else 'cluster')} without free GPUs left out")
    if (more := len(areas) - _MOST_CARDS) > 0:
        said.append(f"{more:,} more not shown")
    return said


def _title(scene: MapScene, about: Sequence[str], said: Sequence[str]) -> Block:
    under = [*_lines(about), *_lines(said)]
    lines = [text(_headline(scene), 0, 22, 24, bold=True)]
    for index, line in enumerate(under):
        lines.append(text(line, 0, 46 + 20 * index, 13, colour=FAINT))
    widest = max(length(_headline(scene), 24, bold=True), *(length(line, 13) for line in under))
    return Block(widest, 32 + 20 * len(under), tuple(lines))


def _lines(parts: Sequence[str]) -> list[str]:
    """Return parts on as few lines as their order allows."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]}{_DOT}{part}" if lines else part
        if lines and length(longer, 13) <= _WIDTH:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _legend(scene: MapScene, paints: Mapping[str, Paint]) -> Block:
    """Return the explanation of the paints and signs that occur."""
    total = scene.root.total
    held = dict(total.holders)
    entries = [(paint.name, f"{name}  {held.get(name, 0):,}") for name, paint in paints.items()]
    rest = [gpus for name, gpus in total.holders if name not in paints]
    if rest:
        entries.append(("others", f"{count(len(rest), 'other holder')}  {sum(rest):,}"))
    if total.free:
        entries.append(("free", f"free  {total.free:,}"))
    if total.out:
        entries.append(("out", f"out of service  {total.out:,}"))
    if total.cordoned:
        entries.append(("cordoned", f"! cordoned  {total.cordoned:,}"))
    if total.not_ready:
        entries.append(("down", f"* not ready  {total.not_ready:,}"))
    if total.overfull:
        entries.append(("down", f"^ overfull  {total.overfull:,}"))
    if any(not spot.gpus for spot in scene.root.all_spots()):
        entries.append(("none", "no GPUs"))
    blocks = []
    for kind, words in entries:
        fitting = shortened(words, 12, 300)
        swatch = f'<rect class="{kind}" x="1" y="1" width="20" height="13" rx="2"/>'
        blocks.append(Block(length(fitting, 12) + 40, 16, (swatch, text(fitting, 28, 12, 12))))
    return flow(blocks, _WIDTH, 8)


def _panels(draw: _Draw, areas: Sequence[Area]) -> Iterator[Block]:
    """Return the domains of each coarser one in a panel, which is as wide as its cards need."""
    scene, depth, short = draw.scene, draw.depth, draw.short
    outer = _panel_depth(areas, depth)
    groups: dict[tuple[str, ...], list[Area]] = {}
    for area in areas:
        groups.setdefault(area.path[:outer], []).append(area)
    totals = {area.path: area.total for area in scene.at(outer)}
    for path, group in groups.items():
        if not path:
            yield _cards(draw, group, [scene.named(area, short) for area in group], _WIDTH)
            continue
        title = "  /  ".join(f"{name} {short.name(value)}" for name, value in zip(scene.levels, path, strict=False))
        total = totals[path]
        numbers = f"{count(len(group), scene.levels[depth - 1])}{_DOT}{total.used}/{total.gpus}"
        inner = _cards(draw, group, [short.domain(area.path[outer:]) for area in group], _WIDTH - 2 * _PAD)
        tip = f"{'/'.join(path)}\n{describe(total)}"
        yield _panel(title, numbers, tip, inner, "#f4f6f8", "")


def _panel_depth(areas: Sequence[Area], depth: int) -> int:
    """Return the finest level whose domains hold at least two others on average; a panel per card would not help."""
    outer = max(0, depth - 1)
    while outer > 1 and len({area.path[:outer] for area in areas}) * 2 > len(areas):
        outer -= 1
    return outer


def _outside(draw: _Draw, areas: Sequence[Area]) -> Block:
    scene = draw.scene
    missing = [f"no {scene.levels[len(area.path)]}" for area in areas]
    places = [draw.short.domain(area.path) for area in areas]
    titles = [f"{place}: {lacks}" if place else lacks for place, lacks in zip(places, missing, strict=True)]
    number = count(sum(area.total.nodes for area in areas), "node")
    inner = _cards(draw, areas, titles, _WIDTH - 2 * _PAD)
    title = f"in no {scene.levels[draw.depth - 1]}"
    return _panel(title, number, f"{title}\n{number}", inner, "#fff", "5 4")


def _cards(draw: _Draw, areas: Sequence[Area], titles: Sequence[str], room: int) -> Block:
    """Return domains side by side, no narrower than the widest title, so that titles are complete and form columns."""
    pairs = list(zip(areas, titles, strict=True))
    least = max((head_width(area, title) for area, title in pairs), default=0)
    if not draw.nodes:
        return flow([bar_card(area, title, draw.paints, least) for area, title in pairs], room, 10)
    return flow([card(area, title, draw.paints, room, least) for area, title in pairs], room, 10)


def _panel(title: str, numbers: str, tip: str, inner: Block, fill: str, dashes: str) -> Block:
    width = max(inner.width, length(title, 14, bold=True) + length(numbers, 12) + 16) + 2 * _PAD
    height = inner.height + 36 + _PAD
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    lines = (
        f'<rect width="{width}" height="{height}" rx="10" fill="{fill}" stroke="#d5dce3"{dashed}/>',
        f"<g><title>{'&#10;'.join(xml(line) for line in tip.split(chr(10)))}</title>",
        text(title, _PAD, 24, 14, bold=True),
        text(numbers, width - _PAD, 24, 12, colour=FAINT, end=True),
        "</g>",
        *inner.at(_PAD, 36),
    )
    return Block(width, height, lines)
