"""Workflow templates: default values, `--set`, protected tokens, and rendering in a limited process.

The text is split at keys in column one before any YAML is parsed, because a template need not be valid YAML. Only
`default-values` is taken out; everything else is rendered as one text, with blank lines in place of that section, so
that line numbers stay those of the user's file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.document.located import load
from coterie.document.page import BREAK, LIMITS, Page
from coterie.errors import Fault, Hint, Notice, Place, SpecErrors, did_you_mean
from coterie.frontends.template.sandbox import RenderError, RenderFault, run

TOKENS = ("uuid", "workflow_id", "output", "input:N", "host:TASK")

# The parts of a name that --set gives a value: each is a mapping in the one before.
MOST_PARTS = 32

_TOKEN = re.compile(r"\{\{(?:uuid|workflow_id|output|input:[^}]+|host:[^}]+)\}\}")
_SPACED = re.compile(r"\{\{-?\s*(uuid|workflow_id|output|input:[^}\s]+|host:[^}\s]+)\s*-?\}\}")
_SYNTAX = re.compile(r"\{\{|\{%|\{#")
_SYNTAX_SPAN = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TOP_KEY = re.compile(r"(?P<quote>[\"']?)(?P<name>[A-Za-z][\w-]*)(?P=quote)[ \t]*:(?=\s|$)")
_NESTED_DEFAULTS = re.compile(r"^[ \t]+[\"']?default-values[\"']?[ \t]*:", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_INT = re.compile(r"[+-]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A workflow's rendered text: the text to parse, its name, and the user's text for messages.

    `shown` is None where rendering moved lines, so that places can only refer to the rendered text. `templated` is set
    where a template was rendered.
    """

    text: str
    file: str
    shown: str | None
    notices: tuple[Notice, ...] = ()
    origins: tuple[int, ...] | None = None
    templated: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the part that rendering has added to the user's text, so that it need not be rendered again."""
        return {"text": self.text, "origins": None if self.origins is None else list(self.origins)}

    @staticmethod
    def of_json(stored: Mapping[str, Any], file: str, shown: str) -> RenderedText:
        """Return a rendered text from its stored part and the user's text."""
        origins = stored["origins"]
        return RenderedText(
            stored["text"], file, shown, (), None if origins is None else tuple(origins), templated=True
        )


def render(text: str, file: str, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> RenderedText:
    """Return a workflow's text rendered, with tokens such as `{{output}}` unchanged; raise `SpecErrors` for faults."""
    page = Page.of(text, file)
    body, variables = _take_defaults(text, file)
    given = _assign(variables, sets, set_strings)
    masked, tokens = _protect(body, page)
    if not _SYNTAX.search(masked):
        return RenderedText(body, file, text, _unused(given, frozenset(), variables, file))
    try:
        sign = _sign(masked)
        answer = run(masked, variables, LIMITS.size, traced=_traced(masked, sign))
    except RenderError as error:
        raise SpecErrors([_fault(fault, page, masked, variables) for fault in error.found]) from None
    result = _restore(answer.text, tokens)
    notices = _unused(given, answer.names, variables, file)
    origins = _origins(answer.text, answer.traced, sign)
    stayed = all(origin in (0, number) for number, origin in enumerate(origins, start=1))
    moved = None if stayed and _same_lines(body, result) else origins
    return RenderedText(result, file, text, notices, moved, templated=True)


def _take_defaults(text: str, file: str) -> tuple[str, dict[str, Any]]:
    """Return the text with its `default-values` section blanked, and the values."""
    lines = text.splitlines(keepends=True)
    starts = [
        index for index, line in enumerate(lines) if (key := _TOP_KEY.match(line)) and key["name"] == "default-values"
    ]
    if not starts:
        return text, {}
    if len(starts) > 1:
        place = Page.of(text, file).place(starts[1] + 1, 1, len("default-values"))
        raise SpecErrors([Fault("default-values is given twice", place=place, hint="Join the two sections into one.")])
    start = starts[0]
    end = next(
        (
            index
            for index in range(start + 1, len(lines))
            if _TOP_KEY.match(lines[index]) or lines[index].startswith("---")
        ),
        len(lines),
    )
    section = "".join(lines[start:end])
    document = load("\n" * start + section, file)
    values = document.data.get("default-values") if isinstance(document.data, dict) else None
    if values is not None and not isinstance(values, dict):
        raise SpecErrors(
            [
                Fault(
                    "default-values must be a mapping of names to values",
                    place=document.place(("default-values",), key=True),
                    hint="Example: default-values: {workers: 4}",
                )
            ]
        )
    blank = "".join("\n" for _ in range(start, end))
    return "".join(lines[:start]) + blank + "".join(lines[end:]), dict(values or {})


def _assign(variables: dict[str, Any], sets: Sequence[str], set_strings: Sequence[str]) -> dict[str, str]:
    """Write command-line values into the variables; return the option that set each top-level name."""
    faults: list[Fault] = []
    given: dict[str, str] = {}
    for option, pairs in (("--set", sets), ("--set-string", set_strings)):
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals or not _NAME.fullmatch(name):
                message = (
                    f'"{pair}" is not a name, "=" and a value' if not equals else f'"{name}" is not a variable name'
                )
                faults.append(
                    Fault(
                        f"{option}: {message}",
                        hint=Hint(f"Example: {option} workers=4", option),
                        place=Place(f"{option} {pair}"),
                    )
                )
                continue
            *parents, last = name.split(".")
            if len(parents) >= MOST_PARTS:
                message = f"{option}: a name has {len(parents) + 1:,} parts, and at most {MOST_PARTS} are allowed"
                hint = Hint("Use fewer dots.", option)
                faults.append(Fault(message, hint=hint, place=Place(f"{option} {pair}")))
                continue
            target = variables
            for step in parents:
                # Values from the file are shared with its anchors, so they are copied before a change.
                below = target.get(step, {})
                if not isinstance(below, dict):
                    message = f'{option}: "{step}" is a single value and has nothing below it'
                    hint = Hint(f'Set "{step}" itself, or change default-values in the file.', option)
                    faults.append(Fault(message, hint=hint, place=Place(f"{option} {pair}")))
                    break
                target[step] = dict(below)
                target = target[step]
            else:
                target[last] = value if option == "--set-string" else _number(value)
                given[name.split(".")[0]] = option
    if faults:
        raise SpecErrors(faults)
    return given


def _number(value: str) -> int | float | str:
    # Only spellings that look like numbers: a model called "nan" or "infinity" stays text.
    if _INT.fullmatch(value):
        return int(value)
    return float(value) if _FLOAT.fullmatch(value) else value


def _protect(text: str, page: Page) -> tuple[str, list[str]]:
    """Hide tokens behind a private-use character that neither the text nor any filter touches."""
    tokens: list[str] = []
    mark = _sign(text)
    if not mark:
        raise SpecErrors([Fault("the text uses every private-use character", place=page.place(1), hint="Remove some.")])

    def hide(match: re.Match[str]) -> str:
        tokens.append(match[0])
        return f"{mark}{len(tokens) - 1}{mark}"

    return _TOKEN.sub(hide, text), [mark, *tokens]


def _sign(text: str) -> str:
    """Return a private-use character that a text does not contain; empty where it contains all of them."""
    taken = set(text)
    return next((chr(code) for code in range(0xE000, 0xF900) if chr(code) not in taken), "")


def _traced(text: str, sign: str) -> str:
    """Return a template with its number appended to each line, after the last character outside template syntax."""
    syntax = [match.span() for match in _SYNTAX_SPAN.finditer(text)]
    parts: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        plain = list(line)
        for begin, end in syntax:
            for at in range(max(begin - start, 0), min(end - start, len(line))):
                plain[at] = " "
        cut = len("".join(plain).rstrip())
        parts.append(f"{line[:cut]}{sign}{number}{sign}{line[cut:]}" if cut else line)
        start += len(line) + 1
    return "\n".join(parts)


def _origins(text: str, traced: str | None, sign: str) -> tuple[int, ...]:
    """Return, for each line of a rendered text, the line it came from, 0 where it is not known."""
    if not sign or traced is None or re.sub(f"{sign}[0-9]+{sign}", "", traced) != text:
        return (0,) * len(BREAK.split(text))
    found = (re.search(f"{sign}([0-9]+){sign}", line) for line in BREAK.split(traced))
    return tuple(int(match[1]) if match else 0 for match in found)


def _restore(text: str, tokens: Sequence[str]) -> str:
    mark, *hidden = tokens
    return re.sub(f"{mark}([0-9]+){mark}", lambda match: hidden[int(match[1])], text)


def _same_lines(before: str, after: str) -> bool:
    """Return whether every line without template syntax is still at its position."""
    old, new = before.splitlines(), after.splitlines()
    return len(old) == len(new) and all(was == now or _SYNTAX.search(was) for was, now in zip(old, new, strict=True))


def _unused(
    given: Mapping[str, str], used: frozenset[str], variables: Mapping[str, Any], file: str
) -> tuple[Notice, ...]:
    others = [name for name in variables if name not in given]
    return tuple(
        Notice(
            "VariableUnused",
            f'{option} {name}: the workflow uses no variable "{name}". {did_you_mean(name, {*used, *others})}'.strip(),
            Place(file),
        )
        for name, option in given.items()
        if name not in used
    )


def _fault(fault: RenderFault, page: Page, masked: str, variables: Mapping[str, Any]) -> Fault:
    first = _SYNTAX.search(masked)
    line = fault.line or (masked.count("\n", 0, first.start()) + 1 if first else 1)
    text = page.lines[min(line, len(page.lines)) - 1]
    if fault.kind == "undefined":
        at = re.search(rf"\b{re.escape(fault.detail)}\b", text)
        place = page.place(line, at.start() + 1 if at else 1, len(fault.detail))
        return Fault(
            f'"{fault.detail}" is not defined', place=place, hint=_undefined_hint(fault.detail, page, variables)
        )
    at = _SYNTAX.search(text)
    place = page.place(line, at.start() + 1 if at else 1, len(text.rstrip()) - at.start() if at else 1)
    if fault.kind == "syntax":
        hint = "Write {% raw %} before and {% endraw %} after text that is not meant as a template."
        if spaced := _SPACED.search(text):
            hint = _token_hint(spaced[1])
        return Fault(f"this is not a valid template: {fault.detail}", place=place, hint=hint)
    message, hint = _LIMIT_WORDS.get(fault.kind, ("the template fails: {detail}", "Check the expression on this line."))
    return Fault(message.format(detail=fault.detail), place=place, hint=hint)


_LIMIT_WORDS = {
    "attribute": ("the template uses a value that does not exist: {detail}", "Check the name against default-values."),
    "security": (
        "the template uses something that is not allowed: {detail}",
        "Use plain variables and filters only.",
    ),
    "memory": ("the template needs too much memory", "Make the text or list it builds smaller."),
    "output": ("the template produces too much text", f"At most {LIMITS.size:,} characters are allowed."),
    "time": ("the template takes too long", "Make its loops and numbers smaller."),
    "depth": ("the template is nested too deeply", "Make its expressions simpler."),
    "start": ("templates cannot be rendered here: {detail}", "Check that Jinja2 is installed for this Python."),
}


def _undefined_hint(name: str, page: Page, variables: Mapping[str, Any]) -> str:
    if name in TOKENS:
        return _token_hint(name)
    known = ", ".join(sorted(variables)) or "none"
    hint = f"Variables are: {known}. {did_you_mean(name, variables)}".strip()
    if not variables and _NESTED_DEFAULTS.search("\n".join(page.lines)):
        return f"{hint} default-values is indented here: it belongs at the top level, in column one."
    return Hint(f"{hint} Give it a value under default-values or with --set {name}=VALUE.", "--set")


def _token_hint(name: str) -> str:
    return f"The token is written without spaces: {{{{{name}}}}}"
