"""Colours and hatchings for holders: no two drawn holders share both, and the first few share neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
# Lines and dots over a colour; their number and that of the colours have no common divisor, so that pairs repeat late.
_HATCHES = (
    "",
    "M-2,2l4,-4M0,8l8,-8M6,10l4,-4",
    "M0,2h8M0,6h8",
    "M-2,6l4,4M0,0l8,8M6,-2l4,4",
    "M1,1h2v2h-2zM5,5h2v2h-2z",
    "M2,0v8M6,0v8",
)
MOST = 16
OTHERS = "#8d99a6"
FREE = "#dde4eb"


@dataclass(frozen=True, slots=True)
class Paint:
    """The appearance of one holder; `name` is its identifier inside the picture."""

    name: str
    colour: str
    hatch: str

    def definition(self) -> Iterator[str]:
        """Yield the SVG pattern of a hatched paint."""
        if self.hatch:
            yield (
                f'<pattern id="{self.name}" width="8" height="8" patternUnits="userSpaceOnUse">'
                f'<rect width="8" height="8" fill="{self.colour}"/>{self._lines()}</pattern>'
            )

    def fill(self) -> str:
        """Return the fill of an area with this paint."""
        return f"url(#{self.name})" if self.hatch else self.colour

    def _lines(self) -> str:
        if "z" in self.hatch:
            return f'<path d="{self.hatch}" fill="#fff" fill-opacity=".75"/>'
        return f'<path d="{self.hatch}" stroke="#fff" stroke-opacity=".7" stroke-width="1.3"/>'


def paints_for(holders: Sequence[tuple[str, int]], highlight: str | None) -> Mapping[str, Paint]:
    """Return a paint for each of the largest holders, or only for the highlighted one; all others share one paint."""
    chosen = [name for name, _ in holders[:MOST]] if highlight is None else [highlight]
    return {
        name: Paint(f"h{index}", _COLOURS[index % len(_COLOURS)], _HATCHES[index % len(_HATCHES)])
        for index, name in enumerate(chosen)
    }
