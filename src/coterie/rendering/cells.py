"""Nodes and domains as characters: a cell per GPU, a sign per node, or a bar."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from coterie.rendering.scene import Area, SceneNode, Total
from coterie.rendering.text import Ink, Style

# A node with more GPUs than this is drawn to scale.
MOST_CELLS = 16
_BAR = 10


class Density(StrEnum):
    """The amount of detail shown of a node."""

    GPUS = "gpus"
    NODES = "nodes"
    COUNTS = "counts"


class Legend:
    """The signs drawn so far, so that only signs that occur are explained."""

    _ORDER = ("used", "part", "mine", "other", "free", "cordoned", "not_ready", "overfull", "none")

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def note(self, sign: str, meaning: str) -> None:
        """Record that a sign was drawn, and its meaning."""
        self._seen.setdefault(sign, meaning)

    def inks(self, style: Style) -> Iterator[tuple[Ink, str]]:
        """Yield each drawn sign with its meaning, in a fixed order."""
        symbols = style.symbols
        drawn = {
            "used": Ink(symbols.used),
            "part": Ink(symbols.other),
            "mine": Ink(symbols.used, "cyan"),
            "other": Ink(symbols.other, "dim"),
            "free": Ink(symbols.free, "green"),
            "cordoned": Ink(symbols.cordoned, "yellow"),
            "not_ready": Ink(symbols.not_ready, "red"),
            "overfull": Ink(symbols.overfull, "red"),
            "none": Ink(symbols.none, "dim"),
        }
        for sign in self._ORDER:
            if sign in self._seen:
                yield drawn[sign], self._seen[sign]


def size(spot: SceneNode, density: Density) -> int:
    """Return how many columns a node takes."""
    if density is Density.NODES:
        return 1
    return max(1, min(spot.gpus, MOST_CELLS)) + (not spot.in_service or spot.overfull)


def node_inks(spot: SceneNode, density: Density, highlight: str | None, style: Style, legend: Legend) -> list[Ink]:
    """Return a node as `size` columns."""
    mark = _mark(spot, style, legend)
    if density is Density.NODES:
        return [mark or _sign(spot, highlight, style, legend)]
    tail = [mark] if mark else []
    if not spot.gpus:
        legend.note("none", "no GPUs")
        return [Ink(style.symbols.none, "dim"), *tail]
    mine = dict(spot.holders).get(highlight, 0) if highlight is not None else 0
    runs = _runs(mine, spot.used - mine, spot.idle, min(spot.gpus, MOST_CELLS), highlight, style, legend)
    return [*runs, *tail]


def bar(area: Area, highlight: str | None, style: Style, legend: Legend) -> list[Ink]:
    """Return a domain as a bar of fixed length, divided into used and free."""
    total = area.total
    mine = held(total, highlight)
    if not total.usable:
        legend.note("none", "no GPUs in service")
        return [Ink(style.symbols.none * _BAR, "dim")]
    return _runs(mine, total.used - mine, total.free, _BAR, highlight, style, legend)


def held(total: Total, holder: str | None) -> int:
    """Return the GPUs that one holder has."""
    return dict(total.holders).get(holder, 0) if holder is not None else 0


def _mark(spot: SceneNode, style: Style, legend: Legend) -> Ink | None:
    if spot.cordoned:
        legend.note("cordoned", "cordoned")
        return Ink(style.symbols.cordoned, "yellow")
    if not spot.ready:
        legend.note("not_ready", "not ready")
        return Ink(style.symbols.not_ready, "red")
    if spot.overfull:
        legend.note("overfull", "pods hold more GPUs than it has")
        return Ink(style.symbols.overfull, "red")
    return None


def _sign(spot: SceneNode, highlight: str | None, style: Style, legend: Legend) -> Ink:
    symbols = style.symbols
    if not spot.gpus:
        legend.note("none", "no GPUs")
        return Ink(symbols.none, "dim")
    if not spot.used:
        legend.note("free", "all GPUs free")
        return Ink(symbols.free, "green")
    if highlight is not None:
        mine = highlight in dict(spot.holders)
        legend.note("mine" if mine else "other", highlight if mine else "others only")
        return Ink(symbols.used, "cyan") if mine else Ink(symbols.other, "dim")
    full = not spot.idle
    legend.note("used" if full else "part", "all GPUs used" if full else "some used")
    return Ink(symbols.used) if full else Ink(symbols.other)


def _runs(
    mine: int, others: int, idle: int, cells: int, highlight: str | None, style: Style, legend: Legend
) -> list[Ink]:
    symbols = style.symbols
    if highlight is None:
        parts = [("used", "used", others, Ink(symbols.used)), ("free", "free", idle, Ink(symbols.free, "green"))]
    else:
        parts = [
            ("mine", highlight, mine, Ink(symbols.used, "cyan")),
            ("other", "others", others, Ink(symbols.other, "dim")),
            ("free", "free", idle, Ink(symbols.free, "green")),
        ]
    inks = []
    for (sign, meaning, _, ink), length in zip(parts, shares([part[2] for part in parts], cells), strict=True):
        if length:
            legend.note(sign, meaning)
            inks.append(Ink(ink.text * length, ink.colour))
    return inks


def shares(amounts: list[int], cells: int) -> list[int]:
    """Return cells divided in proportion to amounts; every positive amount gets one where they suffice."""
    total = sum(amounts)
    if total <= cells:
        return amounts
    least = [min(1, amount) for amount in amounts]
    if sum(least) > cells:
        least = [0] * len(amounts)
    shared = [max(low, amount * cells // total) for low, amount in zip(least, amounts, strict=True)]
    # Rounding leaves a few cells too many or too few; they are least visible in the largest part.
    largest = max(range(len(amounts)), key=lambda at: (amounts[at], -at))
    shared[largest] += cells - sum(shared)
    return shared
