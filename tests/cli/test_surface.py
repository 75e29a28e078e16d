"""The command line as a whole: flags, exit codes, and their help and documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup, TyperOption

from coterie.cli import command_table
from coterie.cli.app import app
from coterie.cli.command_table import PANELS
from coterie.cli.exit_codes import MEANINGS, Exit, exit_code_help
from coterie.cli.help import first_paragraph
from coterie.cli.output.errors import code_of
from coterie.errors import Conflict, CoterieError, Forbidden, NotFound, Unavailable, UsageError
from tests.cli.command import ROOT, SampleFolder, call


def _commands(command: object, name: str = "coterie") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    assert isinstance(command, TyperCommand | TyperGroup)
    yield name, command
    for word, below in command.commands.items() if isinstance(command, TyperGroup) else ():
        yield from _commands(below, f"{name} {word}")


COMMANDS = dict(_commands(typer.main.get_command(app)))
# The first answers nothing: it is a process that runs until it is stopped. The second writes YAML for kubectl.
WITHOUT_FORMAT = {"coterie serve", "coterie operator crds"}


def test_a_short_flag_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for command in COMMANDS.values():
        for option in command.params:
            if isinstance(option, TyperOption):
                short = [flag for flag in option.opts if not flag.startswith("--")]
                long = [flag for flag in option.opts if flag.startswith("--")]
                for flag in short:
                    meanings[flag].update(long)

    assert {flag: sorted(found) for flag, found in meanings.items()} == {
        "-b": ["--backend"],
        "-c": ["--cluster"],
        "-f": ["--follow"],
        "-g": ["--group"],
        "-l": ["--level"],
        "-m": ["--message"],
        "-n": ["--namespace"],
        "-o": ["--output"],
        "-p": ["--pool"],
        "-q": ["--quiet"],
        "-v": ["--verbose"],
        "-w": ["--watch"],
        "-y": ["--yes"],
    }


def test_the_help_shows_every_command_once_and_what_it_is_for_uncut() -> None:
    listed = [name for names in PANELS.values() for name in names]
    done = call("--help")

    assert sorted(listed) == sorted(name.split()[1] for name in COMMANDS if len(name.split()) == 2)
    assert "..." not in done.out.partition("Options:")[2]


def test_the_help_shows_the_start_of_the_help_of_each_command() -> None:
    shown = {name: entry.summary for panel in PANELS.values() for name, entry in panel.items()}

    assert shown == {name: first_paragraph(COMMANDS[f"coterie {name}"].help) for name in shown}


def test_only_the_command_that_is_called_is_loaded() -> None:
    script = """
import sys
from coterie.cli import main

for call, found in ((["--help"], set()), (["fit", "--help"], {"coterie.cli.commands.fit"})):
    sys.argv = ["coterie", *call]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0
    assert {name for name in sys.modules if name.startswith("coterie.cli.commands.")} == found
"""
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_completion_of_a_command_loads_none() -> None:
    script = """
import os, sys
from coterie.cli import main

os.environ |= {"_COTERIE_COMPLETE": "complete_bash", "COMP_WORDS": "coterie p", "COMP_CWORD": "1"}
sys.argv = ["coterie"]
try:
    main()
except SystemExit as end:
    assert not end.code
assert not [name for name in sys.modules if name.startswith("coterie.cli.commands.")]
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == ["plan", "pool"]


def test_an_error_in_a_command_is_not_taken_for_a_command_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("wrong")

    monkeypatch.setattr(command_table, "_load", fail)
    with pytest.raises(KeyError, match="wrong"):
        command_table.LazyCommands().get("plan")
    assert command_table.LazyCommands().get("plna") is None


@pytest.mark.parametrize("name", [name for name in COMMANDS if len(name.split()) > 1])
def test_every_command_that_answers_takes_a_format(name: str) -> None:
    command = COMMANDS[name]
    flags = {flag for option in command.params if isinstance(option, TyperOption) for flag in option.opts}

    assert isinstance(command, TyperGroup) or "--output" in flags or name in WITHOUT_FORMAT


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "coterie"])
def test_the_help_of_every_command_tells_its_exit_codes(name: str) -> None:
    epilog = COMMANDS[name].epilog or ""
    codes = [int(code) for code in re.findall(r"(?:codes:|,) (\d+) ", epilog)]

    assert epilog.startswith("Exit codes: 0 ")
    assert codes == sorted(set(codes))
    assert set(codes) <= {code.value for code in Exit}


def test_help_says_what_the_one_table_says_unless_a_command_has_words_of_its_own() -> None:
    assert exit_code_help(Exit.TIMED_OUT, words={Exit.DONE: "fine"}) == (
        "Exit codes: 0 fine, 1 unexpected error, 2 wrong usage, 3 invalid input, 4 not found, 75 try again later, "
        "124 timed out, 130 interrupted."
    )


def test_the_documented_table_of_exit_codes_is_the_one_that_commands_use() -> None:
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8").partition("\n## Exit codes\n")[2]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)

    assert list(MEANINGS) == list(Exit)
    assert [(int(code), words.partition(":")[0].partition(";")[0]) for code, words in rows] == [
        (code.value, meaning) for code, meaning in MEANINGS.items()
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [(NotFound, 4), (UsageError, 2), (Conflict, 5), (Unavailable, 75), (Forbidden, 1), (CoterieError, 1)],
)
def test_every_error_that_is_said_in_a_line_has_its_code(error: type[CoterieError], code: int) -> None:
    assert code_of(error("so it is")) == code


@pytest.mark.parametrize("command", [("map",), ("check",), ("fit", "--gpus", "1", "--level", "rack")])
def test_the_cluster_is_named_by_its_place_or_by_its_option(desk: SampleFolder, command: tuple[str, ...]) -> None:
    cluster = desk.cluster

    assert call(*command, "-c", cluster).out == call(*command, cluster).out != ""
    assert call(*command, cluster, "-c", cluster).code == 2
