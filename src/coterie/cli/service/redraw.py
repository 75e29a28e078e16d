"""A screen that is drawn again and again until somebody has seen enough."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from coterie.cli.screen import screen
from coterie.rendering.text import Style


def redrawn(lines: Callable[[Style], Iterable[str]], every_s: float) -> None:
    """Draw lines on the terminal, anew after each pause, until interrupted."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            style = screen()
            # One column stays empty: some terminals wrap a line that fills the last one.
            style = Style(max(20, style.width - 1), style.symbols, style.colour and not os.environ.get("NO_COLOR"))
            live.update(Text.from_ansi("\n".join(lines(style)), no_wrap=True, overflow="crop"), refresh=True)
            time.sleep(every_s)
