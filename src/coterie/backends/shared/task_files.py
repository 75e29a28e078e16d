"""The files of a task, the same for every backend: paths and contents, decoded, with tokens replaced."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from coterie.errors import Fault
from coterie.frontends.workflow.model import TaskFile
from coterie.frontends.workflow.tokens import TokenReplacement
from coterie.frontends.workflow.values import container_path


def contents_of(
    files: Sequence[TaskFile], local: Mapping[str, bytes], filling: TokenReplacement
) -> list[tuple[str, str | bytes]]:
    """Return path and content of each file, with tokens replaced in texts; faults are added to `filling`."""
    found: list[tuple[str, str | bytes]] = []
    for number, file in enumerate(files):
        place = ("files", number, "contents" if file.localpath is None else "localpath")
        content = _content(file, local)
        if content is None:
            hint = "Remove base64: true if they are plain text."
            message = f"the contents of {file.localpath} are not Base64"
            filling.faults.append(Fault(message, path=(*filling.member.path, *place), hint=hint))
        else:
            found.append(
                (container_path(file.path), filling.fill(content, *place) if isinstance(content, str) else content)
            )
    return found


def _content(file: TaskFile, local: Mapping[str, bytes]) -> str | bytes | None:
    """Return the content of a file, as text where possible; None when it is not valid Base64."""
    plain = file.contents if file.localpath is None else _text(local[file.localpath])
    if not file.base64:
        return plain
    try:
        return base64.b64decode(b"".join(_bytes(plain or "").split()), validate=True)
    except ValueError:
        return None


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")
