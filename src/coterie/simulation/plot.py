"""A simulation as one self-contained SVG: utilisation, waiting jobs and fragmentation over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coterie.rendering.blocks import FAINT, INK, shortened, text, xml
from coterie.simulation.simulate import Result

_WIDTH = 1080
_LEFT = 84
_RIGHT = 28
_TOP = 122
_PANEL = 190
_GAP = 54
_SPAN = _WIDTH - _LEFT - _RIGHT
_GRID = "#e3e8ee"

# Okabe and Ito's colours, and a pattern for each, so that lines differ without colour. Later lines are thinner and have
# wider gaps: where they coincide, the earlier ones show through.
_LINES = (("#0072b2", "", 3.6), ("#e69f00", "8 4", 2.4), ("#111111", "2 5", 1.8))
_STEPS = ((1, "s"), (60, "min"), (3600, "h"), (86400, "d"))


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    most: float
    percent: bool
    values: tuple[Sequence[float | None], ...]


def simulation_svg(result: Result, *, trace: str) -> Iterator[str]:
    """Yield the lines of an SVG document, in ASCII."""
    for line in _document(result, trace):
        yield line.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _document(result: Result, trace: str) -> Iterator[str]:
    panels = _panels(result)
    height = _TOP + len(panels) * (_PANEL + _GAP) + 12
    end_s = max((one.makespan_s for one in result.figures), default=0.0)
    headline = f"{len(result.jobs):,} jobs on {result.gpus:,} GPUs"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'role="img" aria-labelledby="title desc" font-family="system-ui,sans-serif">'
    )
    yield f'<title id="title">{xml(headline)}</title>'
    yield f'<desc id="desc">{xml(f"{trace}; rule: {result.rule.words()}")}</desc>'
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    yield text(headline, _LEFT, 34, 20, bold=True)
    yield text(shortened(trace, 12, _SPAN), _LEFT, 55, 12, colour=FAINT)
    yield text(shortened(result.rule.words(), 11, _SPAN), _LEFT, 73, 12, colour=FAINT)
    yield from _legend([one.policy for one in result.figures])
    for number, panel in enumerate(panels):
        yield f'<g transform="translate({_LEFT},{_TOP + number * (_PANEL + _GAP) + 24})">'
        yield from _axes(panel, end_s)
        for index, values in enumerate(panel.values):
            yield from _line(values, panel.most, _LINES[index % len(_LINES)])
        yield "</g>"
    yield "</svg>"


def _panels(result: Result) -> tuple[_Panel, ...]:
    waiting = max((value for one in result.series for value in one.waiting), default=0.0)
    where = f"one {result.rule.level}" if result.rule.level else "the cluster"
    return (
        _Panel("GPUs in use", 1.0, percent=True, values=tuple(one.gpu_use for one in result.series)),
        _Panel("jobs waiting", _round_up(waiting), percent=False, values=tuple(one.waiting for one in result.series)),
        _Panel(
            f"fragmentation: share of the best possible gang in {where} that does not fit",
            1.0,
            percent=True,
            values=tuple(one.fragmentation for one in result.series),
        ),
    )


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = _LEFT
    for index, name in enumerate(names):
        colour, dashes, width = _LINES[index % len(_LINES)]
        yield (
            f'<path d="M{x},97h44" stroke="{colour}" stroke-width="{width}"{_dashed(dashes)} fill="none"/>'
            f"{text(name, x + 54, 101, 13)}"
        )
        x += 54 + len(name) * 8 + 36


def _axes(panel: _Panel, end_s: float) -> Iterator[str]:
    yield text(panel.title, 0, -10, 13, bold=True)
    for quarter in range(5):
        y = round(_PANEL * (1 - quarter / 4), 1)
        value = panel.most * quarter / 4
        words = f"{value:.0%}" if panel.percent else f"{value:,.4g}"
        yield f'<path d="M0,{y}h{_SPAN}" stroke="{_GRID if quarter else INK}"/>'
        yield text(words, -10, int(y) + 4, 11, colour=FAINT, end=True)
    for seconds, words in _ticks(end_s):
        x = round(seconds / end_s * _SPAN, 1)
        yield f'<path d="M{x},{_PANEL}v5" stroke="{INK}"/>'
        yield (
            f'<text x="{x}" y="{_PANEL + 20}" font-size="11" fill="{FAINT}" text-anchor="middle">{xml(words)}</text>'
        )


def _ticks(end_s: float) -> Iterator[tuple[float, str]]:
    """Yield round times for the axis, in one unit."""
    if end_s <= 0:
        return
    size, unit = next(((size, unit) for size, unit in reversed(_STEPS) if end_s >= 4 * size), _STEPS[0])
    step = _nice(end_s / size / 8)
    for number in range(int(end_s / size / step) + 1):
        yield number * step * size, f"{number * step:g} {unit}"


def _nice(rough: float) -> float:
    scale = float(10 ** math.floor(math.log10(rough)))
    return next(scale * factor for factor in (1.0, 2.0, 5.0, 10.0) if rough <= scale * factor * (1 + 1e-9))


def _round_up(most: float) -> float:
    """Return the end of a scale from zero that includes a maximum and divides well by four."""
    return max(4.0, 4 * _nice(most / 4)) if most > 0 else 4.0


def _line(values: Sequence[float | None], most: float, style: tuple[str, str, float]) -> Iterator[str]:
    colour, dashes, width = style
    drawn = []
    step = _SPAN / max(1, len(values))
    joined = False
    for index, value in enumerate(values):
        if value is not None:
            y = f"{_PANEL * (1 - min(1.0, value / most)):.1f}"
            begin = f"V{y}" if joined else f"M{index * step:.1f},{y}"
            drawn.append(f"{begin}H{(index + 1) * step:.1f}")
        joined = value is not None
    if drawn:
        yield (
            f'<path d="{"".join(drawn)}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-linejoin="round" stroke-linecap="butt"{_dashed(dashes)}/>'
        )


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""
