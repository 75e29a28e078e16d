"""Usage errors in Coterie's style: the fault of a call, the allowed values, and the command for its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer._click import exceptions as parser
from typer._click.core import Command
from typer.core import TyperGroup, TyperOption

from coterie.cli.exit_codes import Exit
from coterie.cli.output.formats import Output
from coterie.errors import UsageError, did_you_mean


def report_usage(error: parser.UsageError, program: TyperGroup, arguments: Sequence[str]) -> Exit:
    """Report a wrong call in the format that its arguments request, and return the exit code."""
    from coterie.cli.output.errors import report

    command, name = _called(program, arguments)
    message, hint = _words(error, command, name, arguments)
    # The typed text is repeated in the message, so its length is limited.
    return report(UsageError(message[:500], f"{hint} See `{name} --help`.".strip()), requested_output(arguments))


def requested_output(arguments: Sequence[str]) -> Output:
    """Return the format that a call requests, even if the rest of it is invalid."""
    formats = {output.value: output for output in Output}
    found = Output.TABLE
    for at, word in enumerate(arguments):
        if word in {"-o", "--output"} and at + 1 < len(arguments):
            found = formats.get(arguments[at + 1], found)
        elif word.startswith(("--output=", "-o")):
            found = formats.get(word.removeprefix("--output=").removeprefix("-o").removeprefix("="), found)
    return found


def _called(program: TyperGroup, arguments: Sequence[str]) -> tuple[Command, str]:
    """Return the command that a call names, as far as it can be found, and its usage name."""
    command: Command = program
    names = ["coterie"]
    for word in arguments:
        below = command.commands.get(word) if isinstance(command, TyperGroup) else None
        if below is not None:
            command = below
            names.append(word)
    return command, " ".join(names)


def _words(error: parser.UsageError, command: Command, name: str, arguments: Sequence[str]) -> tuple[str, str]:
    options = [one for one in command.params if isinstance(one, TyperOption)]
    match error:
        case parser.NoSuchOption():
            known = [flag for one in options for flag in one.opts]
            return f"`{name}` has no option {error.option_name}", did_you_mean(error.option_name, known)
        case parser.BadOptionUsage():
            option = next((one for one in options if error.option_name in one.opts), None)
            if option is not None and option.is_flag:
                return f"{error.option_name} takes no value", "Write the option alone."
            value = f" {option.metavar}" if option is not None and option.metavar else ""
            return f"{error.option_name} needs a value", f"Write {error.option_name}{value or ' VALUE'}."
        case parser.MissingParameter():
            return f"`{name}` needs {_name(error.param)}", _help(error.param)
        case parser.BadParameter():
            return _bad_value(error)
    if isinstance(command, TyperGroup):
        called = name.split()
        word = next((each for each in arguments if not each.startswith("-") and each not in called), "")
        commands = list(command.commands)
        allowed = did_you_mean(word, commands) or f"Commands: {', '.join(commands)}."
        return f'`{name}` has no command "{word}"', allowed
    # The parser puts the words that belong to no parameter into its message and keeps them nowhere else.
    if words := error.message.partition("(s) (")[2].removesuffix(")"):
        return f'`{name}` does not take "{words}"', "Quote an argument that has spaces."
    return error.message[:1].lower() + error.message[1:].removesuffix("."), ""


def _bad_value(error: parser.BadParameter) -> tuple[str, str]:
    name = _name(error.param)
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    fault: dict[str, Any] = details[0] if details else {}
    value, kind, limits = fault.get("input", ""), fault.get("type", ""), fault.get("ctx", {})
    descriptor = getattr(error.param, "type_descriptor", None)
    if choices := getattr(descriptor, "choices", None):
        allowed = [str(getattr(choice, "value", choice)) for choice in choices]
        guess = did_you_mean(str(value), allowed)
        return f'{name}: "{value}" is not allowed', f"Allowed: {', '.join(allowed)}. {guess}".strip()
    if kind.startswith("int"):
        return f'{name}: "{value}" is not a whole number', ""
    if kind.startswith("float"):
        return f'{name}: "{value}" is not a number', ""
    if kind == "greater_than_equal":
        return f"{name}: {value} is too small", f"The minimum is {limits.get('ge')}."
    if kind == "less_than_equal":
        return f"{name}: {value} is too large", f"The maximum is {limits.get('le')}."
    return f'{name}: "{value}" is not allowed' if value else f"{name}: {error.message}", _help(error.param)


def _name(param: Any) -> str:  # noqa: ANN401 - the parser keeps its own types to itself
    """Return a parameter as its help shows it: the long option, or the name of an argument."""
    if param is None:
        return "a value"
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.name).upper()


def _help(param: Any) -> str:  # noqa: ANN401 - the same
    return str(getattr(param, "help", "") or "").partition(". ")[0].removesuffix(".") + "." if param else ""
