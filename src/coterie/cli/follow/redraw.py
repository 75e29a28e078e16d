"""Lines on a terminal that are redrawn at intervals, so that clocks in them advance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from coterie.rendering.text import ASCII, BLOCKS, Style


@contextmanager
def redrawn(
    lines: Callable[[Style, int], Iterable[str]], *, stderr: bool = False, per_second: float = 1.0
) -> Iterator[Callable[[], None]]:
    """Draw lines repeatedly, given a style and the available height; yield a function that draws them at once.

    The lines are also computed from another thread. The last drawing stays.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False)
    symbols = ASCII if console.encoding.lower() not in {"utf-8", "utf8"} else BLOCKS
    colour = not os.environ.get("NO_COLOR")

    def drawn() -> Text:
        # One column stays empty: some terminals wrap a line that fills the last one.
        style = Style(max(20, console.width - 1), symbols, colour)
        text = "\n".join(lines(style, max(8, console.height - 2)))
        return Text.from_ansi(text, no_wrap=True, overflow="crop")

    with Live(get_renderable=drawn, console=console, refresh_per_second=per_second, vertical_overflow="crop") as live:
        yield live.refresh
