"""`coterie explain`: the page of a reason, a condition, an error or a warning, or the meaning of a field."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from importlib.resources import files

from coterie.cli.output.formats import Output
from coterie.cli.output.screen import show_as
from coterie.errors import NotFound, Reason, nearest
from coterie.frontends.field_reference import FieldDoc, all_fields, describe_field, similar_fields
from coterie.frontends.grove.conditions import EVENTS, REASONS
from coterie.rendering.text import table

# Below this similarity, a name is another word.
_ALIKE = 0.75


def run(topic: str | None, output: Output) -> None:
    """Print the page of a topic, or the description of a field; without a topic, the list of topics."""
    if topic is None:
        listed = [{"topic": name, "kind": kind, "text": text} for kind, name, text in _all_topics()]
        show_as(output, listed, (str(one["topic"]) for one in listed), _topics)
        return
    found = _found(topic)
    if found is None:
        known = [*(reason.value for reason in Reason), *_conditions(), *_sections("warnings"), *_sections("errors")]
        close = [word for word in (nearest(topic, known), *_alike(topic)) if word]
        reasons = ", ".join(reason.value for reason in Reason)
        hint = f"Did you mean {' or '.join(close[:3])}?" if close else f"Reasons are: {reasons}."
        message = f'there is no reason, warning or field "{topic}"'
        raise NotFound(message, f"{hint} `coterie explain` lists all topics.")
    name, kind, lines = found
    show_as(output, {"topic": name, "kind": kind, "text": "\n".join(lines)}, [name], lambda: lines)


def _found(topic: str) -> tuple[str, str, list[str]] | None:
    """Return the name, the kind and the text of a topic.

    Reasons come first, then conditions: a warning may have the name of either. The reason of a condition is explained
    on the condition's page.
    """
    reasons = [reason.value for reason in Reason]
    conditions, warnings, errors = _conditions(), _sections("warnings"), _sections("errors")
    # A field may have the name of a reason, except for its first letter: nodesExcluded.
    field = None if topic in {*reasons, *conditions, *warnings, *errors} else _field(topic)
    if field:
        return field.path, "field", list(_lines(field))
    folded = topic.casefold()
    if name := next((name for name in reasons if folded == name.casefold()), None):
        return name, "reason", [_page(name).rstrip()]
    if name := next((name for name in conditions if folded == name.casefold()), None):
        return conditions[name], "condition", [_page(conditions[name]).rstrip()]
    for kind, sections in (("warning", warnings), ("error", errors)):
        if name := next((name for name in sections if folded == name.casefold()), None):
            return name, kind, [f"# {name}\n\n{sections[name]}"]
    return None


def _field(topic: str) -> FieldDoc | None:
    """Return the description of a field; for `spec.…`, as in Kubernetes objects, that of a workflow's equivalent."""
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
    titles = {
        "reason": "Reasons:",
        "condition": "Conditions of ClusterTopologies, PodCliqueSets and graph deployments:",
        "error": "Other codes of errors:",
        "warning": "Warnings:",
        "field": "Fields, each with its subfields, such as workflow.groups.tasks:",
    }
    topics = list(_all_topics())
    for kind, title in titles.items():
        yield from ["", title] if kind != "reason" else [title]
        yield from table([(f"  {name}", text) for each, name, text in topics if each == kind])


def _all_topics() -> Iterator[tuple[str, str, str]]:
    """Yield the kind and the name of every topic, with one sentence about it."""
    for reason in Reason:
        yield "reason", reason.value, _first_sentence(_page(reason.value).partition("\n\n")[2])
    for name in REASONS:
        yield "condition", name, _first_sentence(_page(name).partition("\n\n")[2])
    for kind in ("error", "warning"):
        for name, text in _sections(f"{kind}s").items():
            yield kind, name, _first_sentence(text)
    for name in dict.fromkeys(path.partition(".")[0] for path in all_fields()):
        if field := describe_field(name):
            yield "field", name, field.description


def _sections(name: str) -> dict[str, str]:
    """Return the text about each warning or error, by its code, from the page about all of them."""
    page = _page(name)
    sections = (section.partition("\n") for section in page.split("\n## ")[1:])
    return {name.strip(): text.strip() for name, _, text in sections}


def _conditions() -> dict[str, str]:
    """Return the condition of every condition name, of every reason of a condition, and of every event about it."""
    found = {word: condition for condition, reasons in REASONS.items() for word in (condition, *reasons)}
    return found | {word: condition for condition, events in EVENTS.items() for word in events}


def _page(name: str) -> str:
    return (files("coterie") / "pages" / f"{name}.md").read_text(encoding="utf-8")


def _first_sentence(text: str) -> str:
    paragraph = text.partition("\n\n")[0]
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
