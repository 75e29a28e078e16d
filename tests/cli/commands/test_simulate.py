"""`coterie simulate`: its table, its data formats, its options and its faults."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from coterie.cli.app import app
from coterie.cli.exit_codes import Exit
from coterie.cli.handlers import simulate

CLUSTER = """\
topology_keys:
- {key: spine, label: spine}
- {key: rack, label: rack}
fleet:
- domains: {spine: [a, b], rack: 2}
  nodes: 2
  gpu: 8
"""
TRACE = "job,gpus,submit,duration\n" + "".join(f"j{n},{(1, 8, 16, 32)[n % 4]},{n * 10},{100 + n}\n" for n in range(30))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a trace and a cluster."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "trace.csv").write_text(TRACE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_CONFIG", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


pytestmark = pytest.mark.usefixtures("folder")


def coterie(*arguments: str, stdin: str = "") -> Result:
    """Run `coterie simulate` on the folder's trace and cluster, unless the arguments name others."""
    words = list(arguments)
    if "--cluster" not in words:
        words += ["--cluster", "cluster.yaml"]
    if not (words[0].endswith(".csv") or words[0] == "-"):
        words.insert(0, "trace.csv")
    return CliRunner().invoke(app, ["simulate", *words], input=stdin)


def data(done: Result) -> Any:
    assert done.exit_code == Exit.DONE, done.stderr
    return json.loads(done.stdout)


def test_the_table_compares_three_policies_and_says_rule_queue_and_measure() -> None:
    done = coterie()

    assert done.exit_code == Exit.DONE, done.stderr
    assert done.stderr == ""
    assert "COTERIE" in done.stdout
    assert "FIRST-FIT" in done.stdout
    assert "KUEUE" in done.stdout
    flat = " ".join(done.stdout.split())
    assert "up to 16 GPUs: one rack required; more: groups of one rack each, one spine preferred" in flat
    assert "no trace records topology" in flat
    assert "until 100 jobs have been passed over" in flat
    assert "fragmentation = 1 - " in flat
    assert "violations 0 0 0" in flat


def test_json_is_one_object_that_says_all_that_the_table_says() -> None:
    found = data(coterie("-o", "json"))

    assert (found["version"], found["jobs"], found["cluster"]["gpus"]) == (1, 30, 64)
    assert found["trace"] == {"file": "trace.csv", "kind": "plain", "jobs": 30}
    assert found["rule"]["level"] == "rack"
    assert [one["name"] for one in found["policies"]] == ["coterie", "first-fit", "kueue"]
    for one in found["policies"]:
        assert (one["started"], one["violations"]) == (30, 0)
        assert {len(values) for values in one["series"].values()} == {200}
        assert one["stats"]["asked"] >= 30


def test_the_same_call_gives_the_same_answer_but_for_timing() -> None:
    first, second = (data(coterie("-o", "json")) for _ in range(2))
    for found in (first, second):
        for one in found["policies"]:
            del one["stats"]

    assert first == second


def test_yaml_and_name_output() -> None:
    assert yaml.safe_load(coterie("-o", "yaml").stdout)["version"] == 1
    assert coterie("-o", "name", "--policy", "kueue,coterie").stdout == "kueue\ncoterie\n"
    assert "placements per second" in coterie("-o", "wide").stdout


def test_options_choose_rule_policies_and_jobs() -> None:
    found = data(coterie("-o", "json", "--rule", "none", "--policy", "coterie", "--limit", "5"))

    assert (found["rule"]["level"], found["jobs"], len(found["policies"])) == (None, 5, 1)
    spine = data(coterie("-o", "json", "--rule", "spine", "--policy", "kueue", "--speed", "100"))
    assert (spine["rule"]["level"], spine["rule"]["domain_gpus"]) == ("spine", 32)
    assert spine["policies"][0]["wait_s"]["mean"] > 0


def test_the_trace_can_come_from_standard_input() -> None:
    assert data(coterie("-", "-o", "json", stdin=TRACE))["trace"]["file"] == "standard input"


def test_a_trace_without_times_is_given_a_pace(folder: Path) -> None:
    (folder / "pods.csv").write_text("name,num_gpu,gpu_milli\na,8,1000\nb,0,0\nc,1,500\n", encoding="utf-8")

    done = coterie("pods.csv", "--every", "5", "--lasting", "60", "-o", "json")

    assert [warning["code"] for warning in data(done)["warnings"]] == ["NoGpus", "SharedGpus", "GpusOnly"]
    assert "warning[NoGpus]" in done.stderr


def test_a_plot_is_written_and_said_on_standard_error(folder: Path) -> None:
    done = coterie("--plot", "out.svg", "-o", "json")

    data(done)
    assert done.stderr == "plot written to out.svg\n"
    assert (folder / "out.svg").read_text(encoding="ascii").startswith("<svg ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--policy", "kueu"], Exit.USAGE, 'there is no policy "kueu"\nhint: Did you mean "kueue"?'),
        (["--policy", ","], Exit.USAGE, "no policy was named"),
        (["--rule", "rak"], Exit.USAGE, 'there is no level "rak"\nhint: Did you mean "rack"?'),
        (["--plot", "out.png"], Exit.USAGE, "does not end in .svg"),
        (["--plot", "nowhere/out.svg"], Exit.USAGE, "there is no directory nowhere"),
        (["--every", "5"], Exit.USAGE, "go together"),
        (["--every", "5", "--lasting", "nan"], Exit.USAGE, "are seconds"),
        (["--every", "5", "--lasting", "5"], Exit.USAGE, "has times of its own"),
        (["--speed", "0"], Exit.USAGE, "not a number above 0"),
        (["--speed", "inf"], Exit.USAGE, "not a number above 0"),
        (["--limit", "0"], Exit.USAGE, "--limit"),
        (["--cluster", "gone.yaml"], Exit.NOT_FOUND, "there is no file gone.yaml"),
        (["gone.csv"], Exit.NOT_FOUND, "there is no file gone.csv"),
        (["-", "--cluster", "-"], Exit.USAGE, "standard input can be read only once"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_what_to_do(arguments: list[str], code: Exit, words: str) -> None:
    done = coterie(*arguments)

    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_trace_is_shown_with_its_line(folder: Path) -> None:
    (folder / "bad.csv").write_text("gpus,submit,duration\n8,0,1\n8,soon,1\n", encoding="utf-8")

    done = coterie("bad.csv")
    told = coterie("bad.csv", "-o", "json")

    assert done.exit_code == told.exit_code == Exit.INVALID
    assert 'error[InvalidSpec]: column "submit": "soon" is not a number' in done.stderr
    assert "bad.csv:3:3" in done.stderr
    assert json.loads(told.stdout)["errors"][0]["line"] == 3


def test_a_cluster_without_levels_needs_a_rule_that_adds_none(folder: Path) -> None:
    (folder / "flat.yaml").write_text("nodes:\n- {name: n1, gpu: 8}\n", encoding="utf-8")

    refused = coterie("--cluster", "flat.yaml")
    done = coterie("--cluster", "flat.yaml", "--rule", "none", "-o", "json")

    assert refused.exit_code == Exit.USAGE
    assert "--rule none" in refused.stderr
    assert [warning["code"] for warning in data(done)["warnings"]] == ["NeverFits"]


@pytest.mark.parametrize("live", [True, False])
def test_progress_is_one_changing_line_on_a_terminal_and_a_line_now_and_then_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, live: bool
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live, raising=False)
    ticker = simulate._Ticker()
    for second in range(25):
        now[0] = float(second)
        ticker.tell("coterie", 100, second, second * 3600.0)
    ticker.end()

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\r" if live else "\n") == (26 if live else 2)
    assert "coterie: 20 of 100 jobs replayed, 20.0 h of the trace" in told.err
