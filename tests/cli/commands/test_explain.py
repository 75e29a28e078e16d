"""`coterie explain`: a page for every reason, a description for every field, a suggestion otherwise."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from coterie.cli.app import app
from coterie.errors import Reason
from coterie.frontends.grove.conditions import REASONS
from tests.cli.command import CLUSTER, ROOT, call, quiet, spawn, workflow
from tests.cli.commands.test_plan import snapshot


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_an_explanation(reason: Reason) -> None:
    done = call("explain", reason.value)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"# {reason.value}\n")
    assert "## What to do" in done.out


@pytest.mark.parametrize(("condition", "reason"), [(name, one) for name, all_ in REASONS.items() for one in all_])
def test_a_condition_and_each_of_its_reasons_are_explained_on_one_page(condition: str, reason: str) -> None:
    done = call("explain", reason)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"# {condition}\n")
    assert f"| {reason} |" in done.out
    assert done.out == call("explain", condition).out
    assert f"  {condition} " in call("explain").out


def codes() -> Iterator[str]:
    """Yield the codes of errors in JSON output and in answers of the API."""
    commands = (ROOT / "src/coterie/cli/output/errors.py").read_text(encoding="utf-8")
    yield from re.findall(r'\(Exit\.[A-Z_]+, "([A-Za-z]+)"\)', commands)
    for source in (ROOT / "src/coterie/service/api").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        yield from re.findall(r'\b[45][0-9]{2}[:,] "([A-Z][A-Za-z]+)"', text)
        yield from re.findall(r'^_INVALID = "([A-Za-z]+)"', text, re.MULTILINE)


@pytest.mark.parametrize("code", ["Failed", *sorted(set(codes()))])
def test_every_code_of_an_error_has_an_explanation(code: str) -> None:
    done = call("explain", code)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"# {code}\n")
    assert f"  {code} " in call("explain").out


def test_a_reason_is_found_however_it_is_written() -> None:
    assert spawn("explain", "nodomainfits").out.startswith("# NoDomainFits\n")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("requirementType", "required or preferred"),
        ("workflow.groups.tasks", "lead"),
        ("nodesExcluded", "nodes"),
        ("pools.gpus.limit", "GPUs"),
        ("backends", "scheduler"),
        ("spec.tasks.topology", "requirementType"),
    ],
)
def test_a_field_is_explained_by_name_or_by_path(field: str, words: str) -> None:
    done = call("explain", field)

    assert (done.code, done.err) == (0, "")
    assert field.rpartition(".")[2] in done.out.splitlines()[0]
    assert words in done.out


@pytest.mark.parametrize(
    ("topic", "guess"),
    [
        ("NoDomainFit", "NoDomainFits"),
        ("NeverFit", "NeverFits"),
        ("requirmentType", "workflow.resources.topology.requirementType"),
        ("zzz", ""),
        ("nope", ""),
    ],
)
def test_an_unknown_topic_is_not_found_and_a_near_one_is_named(topic: str, guess: str) -> None:
    done = call("explain", topic)

    assert (done.code, done.out) == (4, "")
    assert quiet(done, topic, f"Did you mean {guess}" if guess else "Reasons are: ")


def test_without_a_topic_all_are_listed() -> None:
    done = call("explain")

    assert (done.code, done.err) == (0, "")
    assert [reason.value for reason in Reason if f"  {reason.value} " not in done.out] == []
    assert "\n  workflow " in done.out


def test_an_unknown_topic_ends_the_process_with_four() -> None:
    assert spawn("explain", "NoDomainFit").code == 4


COMMANDS = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typer hides the type of its groups
EXAMPLE = re.compile(r"^\s+(?:kubectl .*\| )?(?P<call>coterie .+?)(?: \|.*)?$", re.MULTILINE)


def examples(command: str) -> list[str]:
    return [found["call"] for found in EXAMPLE.finditer(COMMANDS[command].help)]


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_every_example_of_the_help_runs(command: str, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(workflow(2), encoding="utf-8")
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    shown = examples(command)

    assert len(shown) >= 2
    for example in shown:
        done = call(*shlex.split(example)[1:], stdin=snapshot(), cwd=tmp_path)
        assert done.code == 0, (example, done.err)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_help_of_a_command_shows_examples_and_exit_codes(command: str) -> None:
    done = call(command, "--help")

    assert done.code == 0
    assert "Examples:" in done.out
    assert examples(command)
    assert "Exit codes:" in done.out
