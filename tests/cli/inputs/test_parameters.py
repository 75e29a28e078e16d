"""The options of a command as a dataclass: filled from a call, and written as a call again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

import pytest
import typer
from typer.testing import CliRunner

from coterie.cli.commands.plan import PlanOptions
from coterie.cli.commands.remote.submit import SubmitOptions
from coterie.cli.commands.serve import ServeOptions
from coterie.cli.inputs.options import ClusterOptions, TemplateOptions, WhatIfOptions
from coterie.cli.inputs.parameters import command_words, with_options
from coterie.cli.inputs.service_options import ServiceOptions
from coterie.cli.output.formats import Output
from coterie.service.settings import Submission
from coterie.service.submission.preview import plan_call


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintOptions:
    files: Annotated[tuple[str, ...], typer.Argument(metavar="FILE...")]
    template: TemplateOptions
    colour: Annotated[Colour, typer.Option("--colour", "-k")] = Colour.RED
    coats: Annotated[int, typer.Option("--coats")] = 1
    dry: Annotated[bool, typer.Option("--dry")] = False
    shades: Annotated[tuple[Colour, ...], typer.Option("--shade")] = ()
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE


Options = TypeVar("Options")


def parsed(kind: type[Options], *words: str) -> Options:
    """Return the options that a command gets when it is called so."""
    found: list[Options] = []
    app = typer.Typer()
    app.command()(with_options(kind)(found.append))
    done = CliRunner().invoke(app, list(words), env={"COTERIE_CONFIG": "", "COTERIE_STATE": "", "COTERIE_STORE": ""})
    assert done.exit_code == 0, done.output
    return found[0]


def test_a_call_fills_the_dataclass_and_those_inside_it() -> None:
    call = ("a", "b", "--set", "x=1", "--set", "y=2", "-k", "blue", "--shade", "red", "--dry")

    assert parsed(PaintOptions, *call) == PaintOptions(
        files=("a", "b"),
        template=TemplateOptions(sets=("x=1", "y=2")),
        colour=Colour.BLUE,
        dry=True,
        shades=(Colour.RED,),
    )


def test_what_was_not_given_has_its_default() -> None:
    assert parsed(PaintOptions, "a") == PaintOptions(files=("a",), template=TemplateOptions())


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (PaintOptions, "a b --set x=1 --colour blue --coats 2 --shade red --shade blue --dry"),
        (
            PlanOptions,
            "train.yaml ./-odd.yaml - --cluster c.json --pool gb200 --levels rack=r --set a=1 --set-string b=2",
        ),
        (
            PlanOptions,
            "train.yaml --prefer rack --tasks t=2 --without rl-5 --independent --allow-excluded --alternatives",
        ),
        (SubmitOptions, "train.yaml --set a=1 --priority HIGH --label team=vision --key k --plan 4f2a91c0"),
        (ServeOptions, "--config coterie.yaml --state folder --port 0 --host-name here"),
    ],
)
def test_the_written_call_has_the_same_options(kind: type[object], call: str) -> None:
    options = parsed(kind, *call.split())

    assert command_words("paint", options) == ["coterie", "paint", *call.split()]


def test_a_written_call_does_not_repeat_how_it_was_answered() -> None:
    plain = PlanOptions(files=("a.yaml",), source=ClusterOptions(), template=TemplateOptions(), what_if=WhatIfOptions())

    assert parsed(PlanOptions, "a.yaml") == plain
    assert command_words("plan", parsed(PlanOptions, "a.yaml", "-o", "json", "--debug")) == [
        "coterie",
        "plan",
        "a.yaml",
    ]


def test_the_service_writes_the_options_that_submit_declares() -> None:
    submission = Submission(b"", "-odd.yaml", sets=("a=1",), set_strings=("b=2",))

    coterie, command, *words = plan_call(submission, "gb200")

    assert (coterie, command) == ("coterie", "submit")
    assert parsed(SubmitOptions, *words) == SubmitOptions(
        file="./-odd.yaml",
        pool="gb200",
        template=TemplateOptions(("a=1",), ("b=2",)),
        dry_run=True,
        what_if=WhatIfOptions(),
        service=ServiceOptions(),
    )
