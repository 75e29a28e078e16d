"""Models of user-written documents, and their faults in plain words.

Pydantic checks the shape; `faults_of` turns its errors into faults with places, plain words and suggestions. The
description of each field is shown by `coterie explain`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Strict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from coterie.document.located import Document, Path
from coterie.errors import Fault, SpecErrors, nearest

MOST_FAULTS = 100

T = TypeVar("T")


class DocumentModel(BaseModel):
    """The base of all user-written models: unknown fields are refused, and values are not converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


M = TypeVar("M", bound=DocumentModel)


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of a field's type in explanations."""

    text: str


@dataclass(frozen=True, slots=True)
class Wrong:
    """One fault that a rule found in a value; `at` is the path from the value to the faulty part."""

    message: str
    hint: str = ""
    at: Path = ()


def wrong(*found: Wrong) -> PydanticCustomError:
    """Return an error for a validator to raise; `{field}` in a message becomes the field's name."""
    return PydanticCustomError("coterie", "not valid", {"found": found})


def rule(check: Callable[[Any], Iterable[Wrong]]) -> AfterValidator:
    """Return a validator from a function that yields every fault of a value."""

    def validate(value: T) -> T:
        if found := tuple(check(value)):
            raise wrong(*found)
        return value

    return AfterValidator(validate)


def _as_text(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # 3.10 must not become 3.1: a text field keeps the spelling of a number.
        return getattr(value, "written", None) or str(value)
    return value


Text = Annotated[str, BeforeValidator(_as_text), TypeName("text (numbers are taken as they are written)")]
Many = Annotated[tuple[T, ...], Strict(strict=False)]


def model_of(annotation: Any) -> type[DocumentModel] | None:  # noqa: ANN401 - annotations are of any kind
    """Return the model inside an annotation such as `Many[Task]`, `dict[str, Task]` or `Task | None`."""
    if isinstance(annotation, type) and issubclass(annotation, DocumentModel):
        return annotation
    for part in typing.get_args(annotation):
        if (found := model_of(part)) is not None:
            return found
    return None


def named_fields(model: type[DocumentModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the names users write."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def keyed(annotation: Any) -> bool:  # noqa: ANN401 - annotations are of any kind
    """Return whether an annotation is a mapping with keys chosen by users."""
    origin = typing.get_origin(annotation)
    if origin in (Annotated, typing.Union, types.UnionType):
        return any(keyed(part) for part in typing.get_args(annotation))
    return isinstance(origin, type) and issubclass(origin, Mapping)


def model_at(root: type[DocumentModel], path: Path) -> type[DocumentModel] | None:
    """Return the model that describes the mapping at a path."""
    model: type[DocumentModel] | None = root
    steps = iter(path)
    for step in steps:
        if isinstance(step, int):
            continue
        field = named_fields(model).get(step) if model else None
        if field is None:
            return None
        if keyed(field.annotation):
            next(steps, None)
        model = model_of(field.annotation)
    return model


Advice = Callable[[type[DocumentModel] | None, str], str]


def faults_of(error: ValidationError, root: type[DocumentModel], document: Document, advice: Advice) -> list[Fault]:
    """Return the faults of a validation error in plain words and with places.

    `advice` returns where a misplaced field belongs, or an empty string.
    """
    details = _apart([detail for detail in error.errors(include_url=False) if not follows(detail)])
    found = (fault for detail in details[:MOST_FAULTS] for fault in _faults(detail, root, document, advice))
    faults = sorted(dict.fromkeys(found), key=in_order)
    if len(details) > MOST_FAULTS:
        faults.append(
            Fault(
                f"and {len(details) - MOST_FAULTS} more like these",
                hint="Fix these to see the others.",
                place=faults[-1].place,
            )
        )
    return faults


def valid(model: type[M], data: object, document: Document, advice: Advice) -> M:
    """Return data as a model; raise `SpecErrors` with every fault, located by `document`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise SpecErrors(faults_of(error, model, document, advice)) from None


def in_order(fault: Fault) -> tuple[int, int]:
    """Return a sort key that orders faults by their position in the file."""
    return (fault.place.line or 0, fault.place.column or 0) if fault.place else (0, 0)


def by_file(faults: Iterable[Fault]) -> list[Fault]:
    """Return distinct faults: those without a file, then by file in order of first occurrence, and by position."""
    found = list(dict.fromkeys(faults))
    files = ["", *dict.fromkeys(fault.place.file for fault in found if fault.place)]
    order = {file: number for number, file in enumerate(files)}
    return sorted(found, key=lambda fault: (order[fault.place.file if fault.place else ""], in_order(fault)))


def follows(detail: ErrorDetails) -> bool:
    """Return whether a fault only follows from others: a list is too short because its entries are invalid."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _apart(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return the details without missing fields that were probably misspelt as an unknown field beside them."""
    missing: dict[Path, list[str]] = {}
    for each in details:
        if each["type"] == "missing" and each["loc"]:
            missing.setdefault(each["loc"][:-1], []).append(str(each["loc"][-1]))
    meant = {
        (*each["loc"][:-1], nearest(str(each["loc"][-1]), missing[each["loc"][:-1]]))
        for each in details
        if each["type"] == "extra_forbidden" and each["loc"][:-1] in missing
    }
    return [each for each in details if each["type"] != "missing" or each["loc"] not in meant]


def _faults(detail: ErrorDetails, root: type[DocumentModel], document: Document, advice: Advice) -> Iterator[Fault]:
    on_key = detail["loc"][-1:] == ("[key]",)
    path: Path = detail["loc"][:-1] if on_key else detail["loc"]
    kind, value = detail["type"], detail["input"]
    name = field_name(path)
    if kind == "extra_forbidden":
        yield _unknown(path, model_at(root, path[:-1]), document, advice)
    elif kind == "missing":
        owner = f' in "{field_name(path[:-1])}"' if len(path) > 1 else ""
        field = named_fields(model_at(root, path[:-1]) or DocumentModel).get(str(path[-1]))
        hint = f"{field.description}" if field and field.description else ""
        yield Fault(f'"{path[-1]}" is missing{owner}', path=path, place=document.place(path), hint=hint)
    elif kind == "coterie":
        for each in detail["ctx"]["found"]:
            message = each.message.replace("{field}", name)
            yield Fault(
                message, path=(*path, *each.at), place=document.place((*path, *each.at), key=on_key), hint=each.hint
            )
    else:
        message, hint = _wrong_type(kind, name, value, detail.get("ctx", {}))
        yield Fault(message, path=path, place=document.place(path, key=on_key), hint=hint)


def _unknown(path: Path, model: type[DocumentModel] | None, document: Document, advice: Advice) -> Fault:
    word = str(path[-1])
    known = list(named_fields(model)) if model else []
    hint = advice(model, word)
    if not hint:
        guess = nearest(word, known)
        hint = f'Did you mean "{guess}"?' if guess else f"Fields are: {', '.join(known)}."
    where = f' in "{field_name(path[:-1])}"' if len(path) > 1 else ""
    return Fault(f'unknown field "{word}"{where}', path=path, place=document.place(path, key=True), hint=hint)


_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}


def _wrong_type(kind: str, name: str, value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    if kind == "literal_error":
        allowed = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        guess = nearest(value, allowed) if isinstance(value, str) else None
        hint = f"Allowed are: {', '.join(allowed)}." + (f' Did you mean "{guess}"?' if guess else "")
        return f"{name} must be {' or '.join(allowed)}, not {said(value)}", hint
    if kind == "too_short":
        return f"{name} must not be empty", "Add at least one entry, or remove the line."
    if kind == "string_too_short":
        return f"{name} must not be empty", "Write its value between the quotes."
    wanted = _WANTED.get(kind)
    if wanted is None:
        return f"{name} is not valid: {said(value)}", ""
    hint = ""
    if value is None:
        hint = "Give it a value, or remove the line."
    elif kind == "string_type" and isinstance(value, bool | int | float):
        hint = f'Put it in quotes: "{said(value)}"'
    elif kind == "bool_type":
        hint = "Write true or false without quotes."
    elif kind in {"tuple_type", "list_type"}:
        hint = 'Begin each entry with "- ".'
    return f"{name} must be {wanted}, not {said(value)}", hint


def field_name(path: Sequence[str | int]) -> str:
    """Return the last field of a path as a user would name it, such as `command[1]`."""
    names = [index for index, step in enumerate(path) if isinstance(step, str)]
    if not names:
        return "the document" if not path else f"entry {path[-1]}"
    last = names[-1]
    return str(path[last]) + "".join(f"[{step}]" for step in path[last + 1 :])


def said(value: object) -> str:
    """Return a value in the form used inside a sentence."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of many digits"
    if isinstance(value, int | float):
        return getattr(value, "written", None) or str(value)
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}…"'
    return "a list" if isinstance(value, list | tuple) else "a mapping"
