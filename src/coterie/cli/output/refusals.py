"""The reasons why groups wait as lines, from the JSON of the service."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coterie.cli.output.plan import MARKS, best_of, held_by, option_of
from coterie.cli.output.short_names import short_names
from coterie.cli.output.times import between
from coterie.rendering.alternatives import choice_lines, counted
from coterie.rendering.text import Ink, Style, paint, visible, wrapped
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.ranges import fold

Json = dict[str, Any]

_INDENT = "    "


def why_lines(
    answer: Json,
    style: Style,
    now: float,
    expected: Mapping[str, str] | None = None,
    plan: str | None = None,
    *,
    server: Sequence[str] = (),
    verbose: bool = False,
    wide: bool = False,
) -> Iterator[str]:
    """Yield why groups of a workflow wait; `expected` has the time within which they start, where it is known.

    `plan` is the `coterie plan` command that takes the options of remedies, where no service does. `server` are the
    words that select the service in a call. `alternatives` are counted; `verbose` shows them. `wide` shows names in
    full.
    """
    if not answer["groups"]:
        yield visible(f"{answer['id']} is {answer['status']}: no group waits to be placed.")
        return
    short = short_names(answer["groups"], wide=wide)
    for group in answer["groups"]:
        waiting, refusal = group["waiting"], group["refusal"]
        since = f"   for {between(waiting['since'], None, now)}" if waiting else ""
        word = refusal["reason"] if refusal else waiting["reason"] if waiting else ""
        verdict = str(group["verdict"])
        turn = f"   position {group['position']} of {answer['waiting']}" if group.get("position") else ""
        start = (expected or {}).get(group["name"])
        until = f"   expected within {start}" if start else ""
        said = f"{verdict}   {word}{since}{turn}{until}".rstrip() if not group.get("assignments") else "would be placed"
        head = visible(f" {answer['id']}/{group['name']}   {said}")
        mark, colour = MARKS[verdict]
        yield paint([Ink(mark, colour), Ink(head)], style)
        choices = group.get("alternatives") or []
        if cause := group.get("cause"):
            yield from wrapped(visible(f"{cause['kind']}: {cause['message']}"), style.width, "    ", "    ")
            if waiting and refusal and waiting["message"] != refusal["message"]:
                yield from wrapped(visible(waiting["message"]), style.width, "    ", "    ")
        if refusal:
            yield from refusal_lines(refusal, short, style, choices=choices, verbose=verbose)
        elif group.get("assignments"):
            yield visible(f"    would be on {fold(short.names(one['node'] for one in group['assignments']))}")
        elif waiting:
            yield from wrapped(visible(waiting["message"]), style.width, "    ", "    ")
        for choice in choices if verbose else ():
            yield ""
            yield from (f"    {line}".rstrip() for line in choice_lines(group["name"], choice, short, style))
    yield from short.note()
    ways = [way for group in answer["groups"] for way in (group["refusal"] or {}).get("ways_out", ())]
    calls = [way["command"] for way in ways if option_of(way)]
    if calls:
        said = "Every way out was checked."
        if plan:
            yield from wrapped(
                visible(f"{said} Run it with the option, or see its plan: {plan} OPTION"), style.width, "  ", ""
            )
            return
        # On its own line, however long, so that it can be copied.
        yield f"{said} To try one:"
        yield visible(f"  {shlex.join([*shlex.split(calls[0]), *server])}")


def refusal_lines(
    refusal: Json,
    short: Abbreviations,
    style: Style,
    *,
    choices: Sequence[Json] = (),
    verbose: bool = False,
) -> Iterator[str]:
    """Yield the obstacles of a group, and remedies; `choices` are counted, with `verbose` nodes too."""
    yield from wrapped(visible(short.sentence(refusal["message"])), style.width, _INDENT, _INDENT)
    rows = []
    if refusal["level"] and refusal["best"]:
        rows.append(("best", best_of(refusal, short)))
    for choice in choices:
        if choice["level"] and (verbose or refusal["reason"] != "OverQuota"):
            rows.append(("domains", counted(choice["counted"]["domains"], choice["level"], "with room")))
        if verbose or not choice["level"]:
            rows.append(("nodes", counted(choice["counted"]["nodes"], "node", "with room for one")))
    if refusal["holders"]:
        rows.append(("held by", held_by(refusal, short)))
    ways = [(f"it {way['change']}", option_of(way)) for way in refusal["ways_out"]]
    width = max((len(text) for text, _ in ways), default=0)
    longest = width + 2 + max((len(option) for _, option in ways), default=0)
    aligned = width if len(_INDENT) + 9 + longest <= style.width else 0
    rows += [("way out", f"{text.ljust(aligned)}  {option}".rstrip()) for text, option in ways]
    for word, text in rows:
        yield from wrapped(visible(text), style.width, f"{_INDENT}{'':9}", f"{_INDENT}{word:9}")
