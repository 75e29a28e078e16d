"""Why a group has no place, and plans, as lines; from the JSON that the service answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coterie.cli.service.times import between
from coterie.planning import words
from coterie.rendering.text import Ink, Style, count, paint, visible, wrapped
from coterie.topology.ranges import fold

Json = dict[str, Any]

_MARKS = {"placed": ("+", "green"), "impossible": ("x", "red")}
_OTHER = ("?", "yellow")


def why_lines(answer: Json, style: Style, now: float, expected: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield why groups of a workflow wait; `expected` has within what time they start, where that is known."""
    if not answer["groups"]:
        yield visible(f"{answer['id']} is {answer['status']}: no group of it waits for a place.")
        return
    for group in answer["groups"]:
        waiting, refusal = group["waiting"], group["refusal"]
        since = f"   for {between(waiting['since'], None, now)}" if waiting else ""
        word = refusal["reason"] if refusal else waiting["reason"] if waiting else ""
        verdict = str(group["verdict"])
        turn = f"   position {group['position']} of {answer['waiting']}" if group.get("position") else ""
        start = (expected or {}).get(group["name"])
        until = f"   expected within {start}" if start else ""
        head = visible(f" {answer['id']}/{group['name']}   {verdict}   {word}{since}{turn}{until}".rstrip())
        mark, colour = _MARKS.get(verdict, _OTHER)
        yield paint([Ink(mark, colour), Ink(head)], style)
        if refusal:
            yield from refusal_lines(refusal, style)
        elif waiting:
            yield from wrapped(visible(waiting["message"]), style.width, "    ", "    ")


def refusal_lines(refusal: Json, style: Style, *, indent: str = "    ") -> Iterator[str]:
    """Yield what stands in the way of a group, and what would help."""
    yield from wrapped(visible(refusal["message"]), style.width, indent, indent)
    rows = []
    if refusal["level"] and refusal["best"]:
        best = ", ".join(
            f"{words.domain(one['domain'])} fits {one['fits']} of {one['wanted']}" for one in refusal["best"]
        )
        rows.append(("best", best))
    if refusal["holders"]:
        held = (
            f"{one['owner']} {count(one['gpus'], 'GPU')}"
            + (f" in {words.domain(one['domain'])}" if one["domain"] else "")
            for one in refusal["holders"]
        )
        rows.append(("held by", ", ".join(held)))
    rows += [("way out", f"it {way['change']}") for way in refusal["ways_out"]]
    for word, text in rows:
        yield from wrapped(visible(text), style.width, f"{indent}{'':9}", f"{indent}{word:9}")


def plan_lines(plan: Json, style: Style) -> Iterator[str]:
    """Yield a plan that the service made."""
    nodes = count(plan["stats"]["nodes"], "node")
    yield visible(f"{plan['workload']}   pool {plan['pool']}, {nodes}")
    for group in plan["groups"]:
        mark, colour = _MARKS.get(group["verdict"], _OTHER)
        where = fold({one["node"] for one in group["assignments"]})
        refusal = group["refusal"]
        said = where if group["assignments"] else f"{group['verdict']}  {refusal['reason'] if refusal else ''}"
        yield "  " + paint([Ink(mark, colour), Ink(visible(f" {group['name']}   {said}".rstrip()))], style)
        yield from (f"      {line}" for line in _constraints(group["constraints"] if group["assignments"] else ()))
        if refusal:
            yield from refusal_lines(refusal, style, indent="      ")
    counted = Counter(group["verdict"] for group in plan["groups"])
    total = ", ".join(f"{counted[verdict]} {verdict}" for verdict in ("placed", "waiting", "impossible"))
    yield f"{count(len(plan['groups']), 'group')}: {total}."


def _constraints(found: Sequence[Json]) -> Iterator[str]:
    for one in found:
        name = words.group_name(tuple((level, group) for level, group in one["path"]))
        domains = ", ".join(words.domain(domain) for domain in one["domains"])
        missed = "" if one["satisfied"] else "missed: "
        yield visible(f"{'  ' * (len(one['path']) - 1)}{name}  {missed}{domains}")
