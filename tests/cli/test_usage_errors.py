"""Wrong calls are reported as an error and a hint in one style, in the format that the call requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coterie.cli.output.formats import Output
from coterie.cli.usage_errors import requested_output
from tests.cli.command import call

WRONG = {
    ("plan",): ("`coterie plan` needs FILE...", "coterie plan --help"),
    ("plan", "--clustr", "x"): ("`coterie plan` has no option --clustr", 'Did you mean "--cluster"?'),
    ("plan", "x.yaml", "-o", "xml"): ('--output: "xml" is not allowed', "Allowed: table, wide, json, yaml, name."),
    ("plan", "x.yaml", "--pool"): ("--pool needs a value", "Write --pool NAME."),
    ("plan", "x.yaml", "--debug=3"): ("--debug takes no value", "Write the option alone."),
    ("fit", "--gpus", "abc"): ('--gpus: "abc" is not a whole number', "coterie fit --help"),
    ("simulate", "t.csv", "--speed", "fast"): ('--speed: "fast" is not a number', "coterie simulate --help"),
    ("list", "--limit", "0"): ("--limit: 0 is too small", "The minimum is 1."),
    ("serve", "--port", "70000"): ("--port: 70000 is too large", "The maximum is 65535."),
    ("submit", "x.yaml", "--priority", "URGENT"): ('--priority: "URGENT" is not allowed', "HIGH, NORMAL, LOW"),
    ("explain", "a", "b"): ('`coterie explain` does not take "b"', "Quote an argument that has spaces."),
    ("plann", "x.yaml"): ('`coterie` has no command "plann"', 'Did you mean "plan"?'),
    ("pool", "frob"): ('`coterie pool` has no command "frob"', "Commands: list, show, apply"),
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_call_says_what_is_wrong_and_what_is_allowed(arguments: tuple[str, ...]) -> None:
    message, hint = WRONG[arguments]
    done = call(*arguments)
    first, second = done.err.splitlines()

    assert (done.code, done.out) == (2, "")
    assert first == f"error: {message}"
    assert second.startswith("hint: ")
    assert hint in second


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_call_that_asks_for_json_gets_json(arguments: tuple[str, ...]) -> None:
    message, hint = WRONG[arguments]
    done = call(arguments[0], "--output=json", *arguments[1:]) if "xml" not in arguments else None
    if done is None:
        return
    (error,) = json.loads(done.out)["errors"]

    assert done.code == 2
    assert set(error) == {"code", "message", "file", "line", "column", "hint"}
    assert error["code"] == "BadRequest"
    if arguments[0] not in {"explain", "pool", "plann", "serve"}:  # their own option is the first thing wrong, or none
        assert message in error["message"]
        assert hint in error["hint"]


def test_a_file_that_is_missing_is_json_where_json_is_asked_for() -> None:
    done = call("plan", "missing.yaml", "-o", "json")
    (error,) = json.loads(done.out)["errors"]

    assert (done.code, done.err) == (4, "")
    assert error["code"] == "NotFound"
    assert "missing.yaml" in error["message"]
    assert (error["file"], error["line"]) == ("missing.yaml", None)


@pytest.mark.parametrize("command", ["plan", "validate", "check", "run"])
def test_a_file_that_cannot_be_read_is_named_in_json(command: str, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.yaml"):
        (error,) = json.loads(call(command, path, "-o", "json").out)["errors"]

        assert error["file"] == str(path)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["plan", "x", "-o", "json"], Output.JSON),
        (["plan", "-oyaml"], Output.YAML),
        (["plan", "--output=name"], Output.NAME),
        (["plan", "-o", "xml"], Output.TABLE),
        (["plan", "-o"], Output.TABLE),
        (["plan", "json"], Output.TABLE),
    ],
)
def test_the_format_is_found_in_a_call_that_cannot_be_parsed(arguments: list[str], output: Output) -> None:
    assert requested_output(arguments) == output
