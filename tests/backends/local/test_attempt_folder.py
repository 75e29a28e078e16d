"""Folders of attempts, while others make and remove them."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.base.settings import DriverSettings
from coterie.backends.local.attempt_folder import _word, archive, folders, restore
from coterie.backends.local.output import LocalOutput


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


def test_a_log_is_read_whole_while_its_workflow_is_archived_and_brought_back(tmp_path: Path) -> None:
    _attempt(tmp_path, "g")
    (tmp_path / "w-1/g/t/1/log").write_bytes(b"all of it")
    output, attempt = LocalOutput(DriverSettings(tmp_path)), TaskAttempt("w-1", "g", "t", 1)

    seen = set()
    with ThreadPoolExecutor(1) as other:
        for move in (archive, restore) * 300:
            moved = other.submit(move, tmp_path, "w-1")
            while not moved.done():
                seen.add(output.log(attempt, 0))
            moved.result()
    assert seen == {b"all of it"}


@pytest.mark.parametrize(
    ("text", "written"), [("plain", b"plain"), ("gr\xfcn", b"gr\xc3\xbcn"), ("a\udc80b", b"a\x80b"), ("\ud800", b"?")]
)
def test_words_that_are_not_utf_8_are_written_as_they_were_inherited(text: str, written: bytes) -> None:
    assert _word(text) == written
