"""The files of the built web page, which an installation without Node.js does not have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "web"
MISSING = "no web page: building it needs Node.js 20.19 or newer"
REMEDY = "Install Node.js, then reinstall Coterie (in a checkout: scripts/build-page)."
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The page's document and its assets by name: each with its type and its bytes."""

    document: bytes
    assets: dict[str, tuple[str, bytes]]

    @staticmethod
    def read(folder: Path = FOLDER) -> PageFiles | None:
        """Return the built page; None where it was not built."""
        if not built(folder):
            return None
        found = sorted((folder / "assets").iterdir())
        assets = {file.name: (_TYPES[file.suffix], file.read_bytes()) for file in found if file.suffix in _TYPES}
        return PageFiles((folder / "index.html").read_bytes(), assets)


def built(folder: Path = FOLDER) -> bool:
    """Return whether this installation has the page."""
    return (folder / "index.html").is_file()
