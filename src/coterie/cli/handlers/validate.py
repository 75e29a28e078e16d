"""`coterie validate`: read the files, apply the rules, print the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import typer

from coterie.cli.commands.validate import ValidateOptions
from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.allowed_domains import allowed_domain_problems
from coterie.cli.inputs.source import collect, named_files, read_input, read_pools, read_source, shown, warn
from coterie.cli.output.errors import print_faults
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import screen, show, show_data
from coterie.errors import Fault, UsageError, field_path
from coterie.frontends.admission import TargetCluster
from coterie.planning.validation import (
    InputText,
    Judgement,
    ObjectChange,
    Validation,
    ValidationContext,
    validate,
    validation_json,
)
from coterie.rendering.text import Ink, Style, count, paint, table, visible


def run(options: ValidateOptions) -> None:
    """Judge the files of a call, print the faults of each, and exit by whether any is refused."""
    found = _validated(options)
    if options.output in {Output.JSON, Output.YAML}:
        show_data(validation_json(found), options.output)
    elif options.output is Output.NAME:
        show(_name(each) for each in found.judgements if each.faults)
    else:
        for each in found.judgements:
            print_faults([_in_words(fault) for fault in each.faults])
        warn(found.notices)
        show(_lines(options, found, screen()))
    raise typer.Exit(Exit.DONE if found.valid else Exit.INVALID)


def _validated(options: ValidateOptions) -> Validation:
    source = options.source
    if (*options.files, *options.old, *named_files(source)).count("-") > 1:
        hint = "Use - for one of FILE, --old, --cluster, --config and --topology."
        raise UsageError("standard input can be read only once", hint)
    for problem in allowed_domain_problems(options.allowed_domains):
        raise problem
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    name = source.cluster
    snapshot = None if name is None else collect(faults, lambda: read_source(name))
    texts = [_text(file) for file in dict.fromkeys(options.files)]
    old = None if not options.old else [_text(file) for file in dict.fromkeys(options.old)]
    against = ValidationContext(
        site=TargetCluster(options.strict, frozenset(options.off), frozenset(options.allowed_domains)),
        config=config,
        pool=source.pool,
        levels=levels,
        snapshot=snapshot,
        sets=options.template.sets,
        set_strings=options.template.set_strings,
        unread=bool(faults),
    )
    found = validate(texts, against, old)
    return _with_unread(faults, found) if faults else found


def _with_unread(faults: Sequence[Fault], found: Validation) -> Validation:
    """Return the faults of the files that others are judged against, and the others' own faults."""
    files: dict[str, list[Fault]] = {}
    for fault in faults:
        files.setdefault(fault.place.file if fault.place else "--levels", []).append(fault)
    own = [replace(each, notices=()) for each in found.judgements if each.faults]
    return Validation((*(Judgement(file, faults=tuple(each)) for file, each in files.items()), *own))


def _text(file: str) -> InputText:
    return InputText(shown(file), read_input(file))


def _in_words(fault: Fault) -> Fault:
    """Return a fault that also names the field as an API server would."""
    if fault.type is None:
        return fault
    named = f"{fault.type.value}: {fault.field or field_path(fault.path) or 'the object'}"
    return replace(fault, hint=f"{fault.hint}\n{named}".lstrip("\n"))


def _lines(options: ValidateOptions, found: Validation, style: Style) -> Iterator[str]:
    wide = options.output is Output.WIDE
    head = ("FILE", "OBJECT", *(("NAMESPACE", "CHANGE") if wide else ()), "RESULT")
    rows = [head, *(_row(each, wide=wide) for each in found.judgements)]
    colours = ["", *(_colour(each) for each in found.judgements)]
    for line, colour, row in zip(table(rows), colours, rows, strict=True):
        yield line.removesuffix(row[-1]) + paint([Ink(row[-1], colour)], style)
    yield ""
    yield _summary(options, found)


def _row(judgement: Judgement, *, wide: bool) -> tuple[str, ...]:
    more = (visible(judgement.namespace) or "-", judgement.change.value or "-") if wide else ()
    return visible(judgement.file), _name(judgement, whole="-"), *more, _result(judgement)


def _result(judgement: Judgement) -> str:
    counts = [(len(judgement.faults), "fault"), (len(judgement.notices), "warning")]
    said = ", ".join(count(number, word) for number, word in counts if number)
    if judgement.faults:
        return said
    good = "removed" if judgement.change is ObjectChange.REMOVED else "OK"
    return f"{good}, {said}" if said and judgement.change is not ObjectChange.REMOVED else good


def _colour(judgement: Judgement) -> str:
    return "red" if judgement.faults else "yellow" if judgement.notices else "green"


def _name(judgement: Judgement, whole: str = "") -> str:
    """Return an object as kubectl names it; a file as a whole has its own name."""
    if not judgement.name:
        return whole or visible(judgement.file)
    return f"{judgement.kind.lower()}/{visible(judgement.name)}"


def _summary(options: ValidateOptions, found: Validation) -> str:
    objects = [each for each in found.judgements if each.name and each.change is not ObjectChange.REMOVED]
    changes = _changes(objects) if options.old else ""
    bad = sum(1 for each in found.judgements if each.faults)
    head = f"{count(len(dict.fromkeys(options.files)), 'file')}, {count(len(objects), 'object')}{changes}"
    tail = f"{count(len(found.faults), 'fault')}, {count(len(found.notices), 'warning')}"
    verdict = "valid" if any(each.name for each in found.judgements) else "nothing to validate"
    return f"{head}: {verdict if found.valid else f'{bad} refused'}; {tail}."


def _changes(objects: Sequence[Judgement]) -> str:
    counted = Counter(each.change for each in objects)
    parts = [
        f"{counted[change]} {change.value}"
        for change in (ObjectChange.CREATED, ObjectChange.UPDATED)
        if counted[change]
    ]
    return f" ({', '.join(parts)})" if parts else ""
