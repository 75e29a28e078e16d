"""Folders of attempts, while others make and remove them."""

from __future__ import annotations

import shutil
from pathlib import Path

from coterie.backends.local.attempt_folder import folders


def _attempt(root: Path, group: str) -> None:
    folder = root / "w-1" / group / "t" / "1"
    folder.mkdir(parents=True)
    (folder / "order.json").touch()


def test_folders_that_are_removed_meanwhile_are_passed_over(tmp_path: Path) -> None:
    for group in ("first", "second", "third"):
        _attempt(tmp_path, group)
    found = folders(tmp_path)
    seen = [next(found)[0].group]
    for other in {"first", "second", "third"} - set(seen):
        shutil.rmtree(tmp_path / "w-1" / other)
    assert list(found) == []
