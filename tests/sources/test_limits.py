"""An input is read completely or refused, and never read beyond its limit."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from coterie.errors import NotFound, UsageError
from coterie.sources.limits import read_bytes

NONE = io.BytesIO()


def test_a_file_and_standard_input_are_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"x" * 10)
    assert read_bytes(str(file), NONE) == b"x" * 10
    assert read_bytes("-", io.BytesIO(b"y" * (3 << 20))) == b"y" * (3 << 20)
    assert read_bytes(str(file), NONE, limit=10) == b"x" * 10


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "big.json"
    with file.open("wb") as stream:
        stream.truncate(500 << 20)
    with pytest.raises(UsageError, match=r"big.json is too large: 500 MiB, at most 448 MiB are read") as caught:
        read_bytes(str(file), NONE)
    assert "managedFields" in caught.value.hint


class Endless(io.BytesIO):
    """Gives bytes for ever, and counts them."""

    given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        self.given += size
        return b"z" * size


def test_endless_standard_input_is_refused_at_the_limit() -> None:
    stream = Endless()
    with pytest.raises(UsageError, match="standard input is too large: at most 5 MiB are read"):
        read_bytes("-", stream, limit=5 << 20)
    assert stream.given <= 6 << 20


def test_an_endless_device_is_refused_at_the_limit() -> None:
    with pytest.raises(UsageError, match="too large"):
        read_bytes("/dev/zero", NONE, limit=2 << 20)


def test_a_missing_file_is_not_found_and_a_neighbour_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no file .*/lab.json") as caught:
        read_bytes(str(tmp_path / "lab.json"), NONE)
    assert "standard input" in caught.value.hint
    (tmp_path / "lab.yaml").touch()
    with pytest.raises(NotFound) as caught:
        read_bytes(str(tmp_path / "lab.json"), NONE)
    assert caught.value.hint == f"Did you mean {tmp_path}/lab.yaml?"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the name of the cluster is empty"),
        (".", r"\. is a directory"),
        ("a\0b", "cannot be read"),
        ("x" * 5000, "cannot be read: file name too long"),
        (__file__ + "/x", "cannot be read: not a directory"),
    ],
    ids=["empty", "directory", "null byte", "long", "below a file"],
)
def test_what_is_no_readable_file_is_refused(path: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_bytes(path, NONE)
