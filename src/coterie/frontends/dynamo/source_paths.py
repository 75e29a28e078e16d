"""Source paths: the place in the user's document of a path in a newer or generated form of it."""

from __future__ import annotations

from collections.abc import Mapping

from coterie.document.located import Path

Origin = Mapping[Path, Path]


def follow(origin: Origin, path: Path) -> Path:
    """Return the source of a path: its longest known prefix is replaced and the rest stays."""
    for length in range(len(path), -1, -1):
        if (start := origin.get(path[:length])) is not None:
            return (*start, *path[length:])
    return path
