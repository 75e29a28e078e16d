"""The faults of bytes that are not kubectl's JSON, with hints for correcting them."""

from __future__ import annotations

import re

from coterie.errors import Fault, Place, SpecErrors

COMMAND = "kubectl get nodes,pods -A -o json"
HINT = f"Make a snapshot with: {COMMAND} > snapshot.json"

_BYTE = re.compile(r" ?\(byte (\d+)\)")
_AT = re.compile(r" - at `\$\.?([^`]*)`")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}


def utf8(data: bytes, where: Place) -> bytes:
    """Return the text without byte order mark; UTF-16, as some shells write it, is converted."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError:
            raise SpecErrors(
                [Fault("it begins like UTF-16 text but is not valid UTF-16", hint=HINT, place=where)]
            ) from None
    return data.removeprefix(b"\xef\xbb\xbf")


def not_json(data: bytes, error: Exception, where: Place) -> Fault:
    """Return the fault of bytes that are not a JSON document."""
    start = data[:2048].lstrip()
    if not start and not data.strip():
        return Fault("it is empty", hint=f"Did kubectl fail? {HINT}", place=where)
    if isinstance(error, RecursionError):
        return Fault("it is nested too deeply to be a list of nodes and pods", hint=HINT, place=where)
    if start.startswith(b"\x1f\x8b"):
        return Fault("it is compressed", hint="Unpack it first: gunzip --stdout FILE | coterie … -", place=where)
    if re.match(rb"(---|#|apiVersion:|kind:|items:|nodes:|metadata:)", start):
        hint = f"With kubectl, use -o json: {COMMAND}. A cluster file of Coterie's own ends in .yaml or .yml."
        return Fault("it is YAML, not JSON", hint=hint, place=where)
    if re.match(rb"(NAME|NAMESPACE) ", start):
        return Fault("it is kubectl's table, not JSON", hint=HINT, place=where)
    if "truncated" in str(error):
        hint = "The copy is not complete; make it again."
        return Fault(f"the JSON breaks off at byte {len(data)}", hint=hint, place=_spot(data, len(data), where))
    found = _BYTE.search(str(error))
    offset = int(found[1]) if found else 0
    if "trailing characters" in str(error):
        offset -= 1  # the decoder has read one byte too far
        hint = f"Ask for nodes and pods in one call: {COMMAND}"
        message = f"there is more text after the JSON document, at byte {offset}"
        return Fault(message, hint=hint, place=_spot(data, offset, where))
    problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
    return Fault(f"it is not JSON: {problem} at byte {offset}", hint=HINT, place=_spot(data, offset, where))


def not_a_list(data: bytes, error: Exception, where: Place) -> Fault:
    """Return the fault of a JSON document that is not a Kubernetes object."""
    first = data.lstrip()[:1]
    if first == b"{":
        return Fault(field_problem(error)[1], hint=HINT, place=where)
    found = {b"[": "a bare list", b'"': "a text"}.get(first, "a single value")
    return Fault(f"it is {found}, and a List of nodes and pods is needed", hint=HINT, place=where)


def field_problem(error: Exception) -> tuple[str, str]:
    """Return the field that a decoder rejected, and a description of the problem that names it."""
    if isinstance(error, UnicodeDecodeError):
        return "", "it holds bytes that are not UTF-8 text"
    text = str(error)
    at = _AT.search(text)
    path = at[1] if at else ""
    problem = _AT.sub("", text)
    problem = re.sub(r"`([a-z |]+)`", lambda match: _plain_words(match[1]), problem)
    problem = problem.replace("`", '"')
    problem = problem[:1].lower() + problem[1:]
    if problem.startswith("object missing required field"):
        problem = "required field" + problem.removeprefix("object missing required field") + " is missing"
    return path, f"{path}: {problem}" if path else problem


def _plain_words(types: str) -> str:
    words = [_WORDS.get(word, f'"{word}"') for word in types.split(" | ")]
    return " or ".join(words)


def _spot(data: bytes, offset: int, where: Place) -> Place:
    before = data[:offset]
    line_start = before.rfind(b"\n") + 1
    column = len(before[line_start:].decode(errors="replace")) + 1
    return Place(where.file, before.count(b"\n") + 1, column)
