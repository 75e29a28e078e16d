"""`coterie explain`: the page of a reason, or what a field means."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from importlib.resources import files

from coterie.cli.screen import show
from coterie.errors import NotFound, Reason, nearest
from coterie.frontends.fields import FieldDoc, all_fields, describe_field, similar_fields
from coterie.rendering.text import table

# Below this, a name that looks alike is another word.
_ALIKE = 0.75


def run(topic: str | None) -> None:
    """Print the page of a reason or the description of a field; without a topic, which ones there are."""
    if topic is None:
        show(_topics())
        return
    exact = {reason.value: reason for reason in Reason}
    folded = {name.casefold(): reason for name, reason in exact.items()}
    # A field may be called like a reason, but for its first letter: nodesExcluded.
    field = _field(topic)
    reason = exact.get(topic) or (None if field else folded.get(topic.casefold()))
    if reason:
        show([_page(reason).rstrip()])
    elif field:
        show(_lines(field))
    else:
        close = [word for word in (nearest(topic, list(exact)), *_alike(topic)) if word]
        hint = f"Did you mean {' or '.join(close[:3])}?" if close else f"Reasons are: {', '.join(exact)}."
        raise NotFound(f'there is no reason and no field "{topic}"', f"{hint} `coterie explain` lists all topics.")


def _field(topic: str) -> FieldDoc | None:
    """Describe a field; of `spec.…`, as objects of Kubernetes have it, what a workflow calls the same."""
    found = describe_field(topic)
    steps = topic.strip().split(".")
    if found or steps[0] != "spec":
        return found
    endings = (".".join(steps[at:]) for at in range(1, len(steps)))
    return next((field for ending in endings if (field := describe_field(ending))), None)


def _alike(topic: str) -> list[str]:
    last = topic.strip().rpartition(".")[2].casefold()
    return [
        path
        for path in similar_fields(topic)
        if SequenceMatcher(None, last, path.rpartition(".")[2].casefold()).ratio() >= _ALIKE
    ]


def _topics() -> Iterator[str]:
    yield "Reasons:"
    yield from table([(f"  {reason.value}", _first_sentence(_page(reason))) for reason in Reason])
    yield ""
    yield "Fields, each with what stands below it, such as workflow.groups.tasks:"
    tops = dict.fromkeys(path.partition(".")[0] for path in all_fields())
    yield from table([(f"  {name}", field.description) for name in tops if (field := describe_field(name))])


def _page(reason: Reason) -> str:
    return (files("coterie") / "pages" / f"{reason.value}.md").read_text(encoding="utf-8")


def _first_sentence(page: str) -> str:
    paragraph = page.partition("\n\n")[2].partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")


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
