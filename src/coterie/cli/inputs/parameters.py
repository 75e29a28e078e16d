"""The parameters of a command, declared once as a dataclass, from which Typer parses and calls are written.

Imports little, since every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from inspect import Parameter, Signature
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo

from coterie.placement.option import Option
from coterie.rendering.command_line import call

Options = TypeVar("Options")

# They decide the format of the answer and the service, not the question.
_REPLY = frozenset({"server", "token", "output", "debug"})


class _Field(NamedTuple):
    """A field of a dataclass of parameters; one without `info` is such a dataclass itself."""

    name: str
    kind: Any
    info: Any
    default: Any

    @property
    def repeated(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def option(self) -> str:
        """The name of the option, as API parameters are named."""
        return str(self.info.default).removeprefix("--").replace("-", "_")

    @property
    def parameter(self) -> Parameter:
        """The parameter as Typer takes it: a list for a tuple, and None for an empty one."""
        kind, default = self.kind, self.default
        if self.repeated:
            kind = list[get_args(kind)[0]]  # type: ignore[misc] # it is known at run time
            if default is not Parameter.empty:
                kind, default = kind | None, None
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, self.info])


def with_options(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of a dataclass as its parameters.

    A field that is such a dataclass itself is replaced by its own fields.
    """

    def decorated(command: Callable[[Options], None]) -> Callable[..., None]:
        def called(**values: object) -> None:
            command(_filled(kind, values))

        parameters = [field.parameter for field in _flat(kind)]
        called.__name__, called.__doc__, called.__module__ = command.__name__, command.__doc__, command.__module__
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # read by `inspect.signature`
        return called

    return decorated


def command_words(name: str, options: object) -> list[str]:
    """Return the words of a call with these options: arguments, then options with values, then flags.

    Options with default values are left out, and so are those of the output format and of the service: the user who
    repeats the call decides those again.
    """
    arguments: list[str] = []
    valued: list[Option] = []
    flags: list[Option] = []
    for field, value in _changed(options):
        texts = [str(each.value if isinstance(each, Enum) else each) for each in (value if field.repeated else [value])]
        if isinstance(field.info, ArgumentInfo):
            arguments += texts
        elif isinstance(value, bool):
            flags.append(Option(field.option))
        else:
            valued += [Option(field.option, text) for text in texts]
    return call(name, arguments, (*valued, *flags))


def _changed(options: object) -> Iterator[tuple[_Field, Any]]:
    """Yield the fields with values other than the default."""
    for field in _fields(type(options)):
        value = getattr(options, field.name)
        if field.info is None:
            yield from _changed(value)
        elif value != field.default and field.name not in _REPLY:
            yield field, value


def _filled(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return an object of a dataclass with the values that Typer read."""
    found = {}
    for field in _fields(kind):
        if field.info is None:
            found[field.name] = _filled(field.kind, values)
        else:
            value = values[field.name]
            found[field.name] = tuple(value or ()) if field.repeated else value
    return kind(**found)


def _flat(kind: type) -> Iterator[_Field]:
    for field in _fields(kind):
        if field.info is None:
            yield from _flat(field.kind)
        else:
            yield field


def _fields(owner: type) -> Iterator[_Field]:
    hints = get_type_hints(owner, include_extras=True)
    for field in fields(owner):
        hint = hints[field.name]
        default = Parameter.empty if field.default is MISSING else field.default
        if get_origin(hint) is Annotated:
            kind, info = get_args(hint)
            yield _Field(field.name, kind, info, default)
        else:
            yield _Field(field.name, hint, None, default)
