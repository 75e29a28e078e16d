"""A domain as a card: its nodes below each other, as in a rack, with a square per GPU; or one bar for many nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.rendering.blocks import FAINT, INK, Block, length, text, xml
from coterie.rendering.cells import MOST_CELLS, shares
from coterie.rendering.palette import Paint
from coterie.rendering.scene import Area, SceneNode, Total
from coterie.rendering.text import visible
from coterie.topology.abbreviations import abbreviated, shared_start

_CELL = 11
_PITCH = 14
_PAD = 10
_HEAD = 34
_COLUMN = 18  # nodes below each other: the number in a rack of NVLink nodes
_MARK = 12
_BAR = 150
_LABEL = 9
_LONG_LABEL = 8


def head_width(area: Area, title: str) -> int:
    """Return the minimum width of a card that shows its whole title."""
    return length(title, 12, bold=True) + length(_numbers(area.total), 11) + 12 + 2 * _PAD


def card(area: Area, title: str, paints: Mapping[str, Paint], room: int, least: int) -> Block:
    """Return a domain with all of its nodes, from `least` to about `room` pixels wide."""
    spots = list(area.all_spots())
    labels = _labels([spot.name for spot in spots])
    label = max((length(each, _LABEL) for each in labels), default=0) + 4
    strip = max((min(spot.gpus, MOST_CELLS) for spot in spots), default=0) * _CELL
    wide = label + max(strip, _CELL) + _MARK
    rows = max(_COLUMN, -(-len(spots) // max(1, (room - 2 * _PAD) // (wide + 8))))
    # Columns of equal height look better than an almost empty last one.
    columns = max(1, -(-len(spots) // rows))
    rows = max(1, -(-len(spots) // columns))
    width = max(least, columns * (wide + 8) - 8 + 2 * _PAD)
    height = _HEAD + rows * _PITCH + _PAD - 2
    lines = [*_frame(area, title, width, height)]
    for index, (spot, name) in enumerate(zip(spots, labels, strict=True)):
        x = _PAD + index // rows * (wide + 8)
        y = _HEAD + index % rows * _PITCH
        lines.append(f'<g transform="translate({x + label},{y})">{"".join(_node(spot, name, paints))}</g>')
    return Block(width, height, tuple(lines))


def bar_card(area: Area, title: str, paints: Mapping[str, Paint], least: int) -> Block:
    """Return a domain as one bar, at least `least` pixels wide."""
    width, height = max(_BAR + 2 * _PAD, least), _HEAD + _CELL + _PAD
    bar = width - 2 * _PAD
    total = area.total
    lines = [*_frame(area, title, width, height), f'<g transform="translate({_PAD},{_HEAD - 2})">']
    # With fewer GPUs than pixels, a GPU is several pixels wide: only the proportions of a bar matter, not its length.
    cells = min(bar, max(1, total.gpus))
    lines += _strip(total.holders, total.free, total.out, cells, bar, paints)
    return Block(width, height, (*lines, "</g>"))


def describe(total: Total) -> str:
    """Return the usage and its holders, for a tooltip."""
    parts = [f"{total.used} of {total.gpus} GPUs used"] if total.gpus else ["no GPUs"]
    parts += [f"{visible(owner)}: {gpus}" for owner, gpus in total.holders[:8]]
    parts += [f"and {len(total.holders) - 8} more holders"] if len(total.holders) > 8 else []
    parts += [f"{total.cordoned} cordoned"] if total.cordoned else []
    parts += [f"{total.not_ready} not ready"] if total.not_ready else []
    parts += [f"{total.overfull} overfull"] if total.overfull else []
    return "\n".join(parts)


def _numbers(total: Total) -> str:
    return f"{total.used}/{total.gpus}"


def _frame(area: Area, title: str, width: int, height: int) -> Iterator[str]:
    numbers = _numbers(area.total)
    yield f'<rect class="card" width="{width}" height="{height}" rx="6"/>'
    yield f"<g><title>{xml('/'.join(area.path) or 'all nodes')}&#10;{_lined(describe(area.total))}</title>"
    yield text(title, _PAD, 21, 12, bold=True)
    yield text(numbers, width - _PAD, 21, 11, colour=FAINT, end=True)
    yield "</g>"


def _node(spot: SceneNode, label: str, paints: Mapping[str, Paint]) -> Iterator[str]:
    state = "cordoned" if spot.cordoned else "not ready" if not spot.ready else "overfull" if spot.overfull else ""
    yield f"<title>{xml(spot.name)}{f' ({state})' if state else ''}&#10;{_lined(_held(spot))}</title>"
    yield f'<text class="n" x="-4" y="9">{xml(label)}</text>'
    cells = max(1, min(spot.gpus, MOST_CELLS))
    width = cells * _CELL
    if not spot.gpus:
        yield f'<rect class="none" x=".5" y=".5" width="{_CELL - 2}" height="{_CELL - 1}"/>'
    else:
        idle_out = 0 if spot.in_service else spot.idle
        yield from _strip(spot.holders, spot.free, idle_out, cells, width, paints)
        if spot.gpus <= MOST_CELLS:
            yield f'<rect fill="url(#grid)" width="{width}" height="{_CELL}"/>'
    if state:
        kind, sign = {"cordoned": ("cordoned", "!"), "overfull": ("down", "^")}.get(state, ("down", "*"))
        yield f'<rect class="{kind}" x="-1" y="-1" width="{width + 1}" height="{_CELL + 2}" rx="2"/>'
        yield f'<text class="m {kind}-m" x="{width + 3}" y="10">{sign}</text>'


def _strip(
    holders: Sequence[tuple[str, int]], free: int, out: int, cells: int, width: int, paints: Mapping[str, Paint]
) -> Iterator[str]:
    """Return the shares of holders, free GPUs and GPUs out of service as parts of one bar."""
    painted = [(paints[owner].name, gpus) for owner, gpus in holders if owner in paints]
    others = sum(gpus for owner, gpus in holders if owner not in paints)
    parts = [*painted, ("others", others), ("free", free), ("out", out)]
    done = 0
    for (kind, _), share in zip(parts, shares([gpus for _, gpus in parts], cells), strict=True):
        if share:
            x = done * width // cells
            done += share
            yield f'<rect class="{kind}" x="{x}" width="{done * width // cells - x}" height="{_CELL}"/>'
    if not done:
        yield f'<rect class="none" x=".5" y=".5" width="{width - 1}" height="{_CELL - 1}"/>'


def _held(spot: SceneNode) -> str:
    if not spot.gpus and not spot.used:
        return "no GPUs"
    holders = "\n".join(f"{visible(owner)}: {gpus}" for owner, gpus in spot.holders)
    used = f"{spot.used} of {spot.gpus} GPUs used"
    return f"{used}\n{holders}" if holders else used


def _lined(words: str) -> str:
    return "&#10;".join(xml(line) for line in words.split("\n"))


def _labels(names: Sequence[str]) -> list[str]:
    """Return the distinct parts of node names in one domain; the common prefix, up to a separator, is not repeated."""
    if len(names) < 2:
        return list(names)
    start = shared_start(names)
    start = start[: max(start.rfind(mark) for mark in "-._") + 1]
    end = shared_start([name[len(start) :][::-1] for name in names])[::-1]
    end = end[min((at for at, char in enumerate(end) if char in "-._"), default=len(end)) :]
    stems = [name[len(start) :].removesuffix(end) for name in names]
    forms = abbreviated(stems if all(stems) else names, longest=_LONG_LABEL)
    return [forms[name] for name in (stems if all(stems) else names)]


STYLE = f"""\
text{{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
.card{{fill:#fff;stroke:#d5dce3}}
.n{{font-size:{_LABEL}px;fill:{FAINT};text-anchor:end}}
.m{{font-size:12px;font-weight:700;fill:{INK}}}
.none{{fill:none;stroke:#b7c1cb;stroke-dasharray:2 2}}
.cordoned{{fill:none;stroke:#b26a00;stroke-width:1.4;stroke-dasharray:4 2}}
.down{{fill:none;stroke:#b3261e;stroke-width:1.6}}
.cordoned-m{{fill:#8f5500}}
.down-m{{fill:#b3261e}}"""
