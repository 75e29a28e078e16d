"""`coterie explain`: the page of a reason, or what a field means."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import typer

from coterie.errors import NotFound, Reason, nearest
from coterie.frontends.fields import FieldDoc, describe_field, similar_fields


def run(topic: str) -> None:
    """Print the page of a reason or the description of a field."""
    exact = {reason.value: reason for reason in Reason}
    folded = {name.casefold(): reason for name, reason in exact.items()}
    # A field may be called like a reason, but for its first letter: nodesExcluded.
    reason = exact.get(topic) or (None if describe_field(topic) else folded.get(topic.casefold()))
    if reason:
        page = files("coterie") / "pages" / f"{reason.value}.md"
        typer.echo(page.read_text(encoding="utf-8").rstrip())
        return
    if (field := describe_field(topic)) is None:
        close = [word for word in (nearest(topic, [reason.value for reason in Reason]), *similar_fields(topic)) if word]
        known = ", ".join(reason.value for reason in Reason)
        hint = f"Did you mean {' or '.join(close[:3])}?" if close else f"Reasons are: {known}."
        raise NotFound(f'there is no reason and no field "{topic}"', hint)
    for line in _lines(field):
        typer.echo(line)


def _lines(field: FieldDoc) -> Iterator[str]:
    must = "required" if field.required else f"default {field.default}" if field.default else "optional"
    yield f"{field.path}   {field.kind}, {must}"
    yield f"  {field.description}"
    if field.children:
        width = max(len(child.path.rpartition(".")[2]) for child in field.children)
        yield ""
        for child in field.children:
            yield f"  {child.path.rpartition('.')[2].ljust(width)}  {child.kind}: {child.description}"
    if field.also:
        yield ""
        yield f"See also: {', '.join(field.also)}"
