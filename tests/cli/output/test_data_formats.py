"""Answers and errors in YAML have the same data as in JSON."""

from __future__ import annotations

import json
from enum import StrEnum

import pytest
import yaml

from coterie.cli.output.formats import Output
from coterie.cli.output.screen import show_data
from coterie.errors import Hint, Reason
from tests.cli.command import SampleFolder, call, workflow

TWO_POOLS = """\
backends: {lab: {scheduler: local, cluster: cluster.yaml}}
pools: {a: {backend: lab}, b: {backend: lab}}
"""
# Each of them ends in an error, most of them with a hint. The errors of `render` go to standard error: YAML is its
# result.
WRONG = (
    "plan undefined.yaml --cluster cluster.yaml",
    "plan good.yaml --cluster cluster.yaml --set a",
    "plan good.yaml --cluster cluster.yaml --config two.yaml",
    "plan good.yaml --config two.yaml",
    "plan good.yaml",
    "plan good.yaml --cluster cluster.yaml --pool zz",
    "plan good.yaml --cluster cluster.yaml --without zz",
    "plan good.yaml --cluster cluster.yaml --uncordon zz",
    "plan bad.yaml --cluster cluster.yaml",
    "plan nowhere.yaml --cluster cluster.yaml",
    "plan cluster.yaml --cluster cluster.yaml",
    "plan good.yaml --cluster good.yaml",
    "plan good.yaml --clustr cluster.yaml",
    "validate undefined.yaml",
    "validate bad.yaml undefined.yaml nowhere.yaml",
    "run good.yaml",
    "run undefined.yaml --cluster cluster.yaml",
    "check nowhere.yaml",
    "map good.yaml",
    "fit good.yaml",
    "audit nowhere.yaml",
    "simulate good.yaml --cluster cluster.yaml",
    "explain zz",
    "submit bad.yaml --server http://127.0.0.1:1",
    "list --server http://127.0.0.1:1",
)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("words", WRONG)
def test_an_error_in_yaml_has_the_data_of_the_one_in_json(desk: SampleFolder, words: str) -> None:
    desk.file("good.yaml", workflow(2))
    desk.file("bad.yaml", workflow(1).replace("image", "imge"))
    desk.file("undefined.yaml", workflow(1).replace("command: [run]", 'command: ["{{ nope }}"]'))
    desk.file("two.yaml", TWO_POOLS)
    assert desk.cluster.is_file()
    as_json = call(*words.split(), "-o", "json", cwd=desk.folder)
    as_yaml = call(*words.split(), "-o", "yaml", cwd=desk.folder)

    assert json.loads(as_json.out)["errors"]
    assert (as_yaml.code, as_yaml.err) == (as_json.code, as_json.err)
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)


def test_subclasses_of_text_are_text_and_nothing_is_an_alias(capsys: pytest.CaptureFixture[str]) -> None:
    shared = [Hint("Write --pool NAME.", "--pool")]
    show_data({"code": Reason.NEVER_FITS, "colour": Colour.RED, "hints": shared, "again": shared}, Output.YAML)

    assert capsys.readouterr().out == (
        "code: NeverFits\ncolour: red\nhints:\n- Write --pool NAME.\nagain:\n- Write --pool NAME.\n"
    )
