"""Every example gives the answer stated in its first lines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import Reason
from tests.examples.console import ROOT, run

_COMMAND = re.compile(r"# \$ coterie (?P<arguments>.+)")
_PROMISE = re.compile(r"# exits (?P<code>\d+): (?P<words>.+)")
_REASONS = {reason.value for reason in Reason}
_VERDICTS = {"placed", "waiting", "undecided", "impossible"}
_WORKLOAD = re.compile(r"^(workflow:|kind: (PodCliqueSet|DynamoGraphDeployment)$)", re.MULTILINE)
_USE_CASES = (
    "01-single-nvl72-rack",
    "02-multiple-nvl72-racks",
    "03-racks-in-one-zone",
    "04-best-effort",
    "05-reused-group-names",
    "06-training-4x4x4",
    "07-aggregated-serving",
    "08-disaggregated-serving",
    "09-scaling-groups",
    "10-two-generations",
    "11-multinode-worker",
    "13-gb200-fleet",
)
# What `plan` can say of files alone; the other reasons are about tasks that run, or about running out of budget.
_REFUSED_FROM_FILES = {
    Reason.INVALID_SPEC,
    Reason.UNKNOWN_LEVEL,
    Reason.NODES_UNLABELLED,
    Reason.NODES_EXCLUDED,
    Reason.NEVER_FITS,
    Reason.NO_CAPACITY,
    Reason.NO_DOMAIN_FITS,
    Reason.GROUPS_CONFLICT,
    Reason.OVER_QUOTA,
}


@dataclass(frozen=True)
class Example:
    """A command in the head of a file with workloads, and what the head promises."""

    file: Path
    arguments: tuple[str, ...]
    code: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT / 'examples')} {self.words[-1]}"

    @property
    def reason(self) -> str | None:
        """The reason that is promised, if there is one."""
        return next((word for word in self.words if word in _REASONS), None)

    @property
    def reasons(self) -> set[str]:
        """All reasons that are promised: gangs of one file may be refused for different ones."""
        return {word for word in self.words if word in _REASONS}

    @property
    def verdict(self) -> str | None:
        """The verdict that is promised; invalid input has none."""
        return next((word for word in self.words if word in _VERDICTS), None)

    @property
    def missed(self) -> set[str]:
        """The preferred levels that are promised to be missed."""
        return {word.removesuffix(" missed") for word in self.words if word.endswith(" missed")}

    @property
    def left_out(self) -> int:
        """The number of wanted tasks that are expected to find no room."""
        return sum(int(word.removesuffix(" left out")) for word in self.words if word.endswith(" left out"))


def workload_files() -> list[Path]:
    """Return every file with workloads among the examples."""
    found = sorted((ROOT / "examples").rglob("*.yaml"))
    return [file for file in found if _WORKLOAD.search(file.read_text(encoding="utf-8"))]


def examples() -> Iterator[Example]:
    """Yield every promise in the head of every file with workloads."""
    for file in workload_files():
        lines = file.read_text(encoding="utf-8").splitlines()
        for command, promise in pairwise(lines):
            if (asked := _COMMAND.fullmatch(command)) and (given := _PROMISE.fullmatch(promise)):
                words = tuple(given["words"].split(", "))
                yield Example(file, tuple(shlex.split(asked["arguments"])), int(given["code"]), words)


EXAMPLES = list(examples())


def plan(example: Example) -> tuple[int, Any]:
    """Plan an example; return the exit code and the JSON without the warnings around it."""
    done = run(*example.arguments, "-o", "json")
    start = re.search(r"^[{\[]", done.stdout, re.MULTILINE)
    assert start, done.stdout
    return done.returncode, json.JSONDecoder().raw_decode(done.stdout[start.start() :])[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_gives_what_its_head_promises(example: Example) -> None:
    code, answer = plan(example)

    assert code == example.code
    if example.verdict is None:
        assert example.reason in {error["code"] for error in answer["errors"]}
        return
    plans = answer if isinstance(answer, list) else [answer]
    groups = [group for plan in plans for group in plan["groups"]]
    assert {plan["verdict"] for plan in plans} == {example.verdict}
    assert {group["refusal"]["reason"] for group in groups if group["refusal"]} == example.reasons
    assert sum(len(group.get("left_out", ())) for group in groups) == example.left_out
    constraints = [constraint for group in groups if not group["refusal"] for constraint in group["constraints"]]
    assert {one["level"] for one in constraints if not one["satisfied"]} == example.missed


@pytest.mark.parametrize("file", workload_files(), ids=lambda file: str(file.relative_to(ROOT / "examples")))
def test_a_workload_says_on_top_how_to_plan_it_and_what_comes_out(file: Path) -> None:
    own = [example for example in EXAMPLES if example.file == file]

    assert own
    assert all(str(file.relative_to(ROOT)) in example.arguments for example in own)


def test_every_use_case_has_a_folder_that_explains_itself() -> None:
    for name in _USE_CASES:
        folder = ROOT / "examples" / name
        assert (folder / "README.md").is_file()
        assert any(example.file.parent == folder for example in EXAMPLES)


def test_every_reason_that_files_can_produce_has_an_example() -> None:
    shown = {example.reason for example in EXAMPLES if example.file.parent.name == "refusals"}

    assert shown == {reason.value for reason in _REFUSED_FROM_FILES}


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.reason and one.file.parent.name == "refusals"], ids=str
)
def test_the_page_of_a_reason_shows_what_its_example_really_says(example: Example) -> None:
    _, answer = plan(example)
    page = (ROOT / "src/coterie/pages" / f"{example.reason}.md").read_text(encoding="utf-8")
    flat = " ".join(page.split())

    if example.verdict is None:
        assert any(f"error[{error['code']}]: {error['message']}" in flat for error in answer["errors"])
    else:
        assert answer["groups"][0]["refusal"]["sentence"] in flat
