"""Hostile and accidental files are refused in time, in plain words, and never with a traceback."""

from __future__ import annotations

import json
import os
import shlex
import tracemalloc

import pytest

from tests.cli.command import CLUSTER, SampleFolder, call, quiet, spawn, workflow

BINARY = bytes(range(256)) * 64
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP = "[" * 20_000 + "]" * 20_000
JUNK = {
    "empty": b"",
    "blank": b"\n \n\n",
    "nul": b"\0",
    "binary": BINARY,
    "latin-1": "name: größe".encode("latin-1"),
    "utf-16": CLUSTER.encode("utf-16"),
    "alias bomb": BOMB.encode(),
    "deep": DEEP.encode(),
    "deep mapping": ("{a: " * 5000 + "}" * 5000).encode(),
    "a number": b"42",
    "a list": b"[1, 2]",
    "json of something else": json.dumps({"apiVersion": "v1", "kind": "ConfigMap"}).encode(),
    "broken json": b'{"items": [',
    "two documents": b"a: 1\n---\nb: 2\n",
    "python object": b"!!python/object/apply:os.system ['true']",
    "itself": b"a: &a [*a]",
    "merge": b"<<: [1, 2]",
    "huge number": b"a: " + b"9" * 100_000,
    "date": b"workflow: 2026-13-45",
}


@pytest.mark.parametrize("what", JUNK)
def test_junk_for_a_workflow_is_invalid_input(desk: SampleFolder, what: str) -> None:
    done = desk.plan(desk.file("junk.yaml", JUNK[what]), "-o", "json")

    assert done.code == 3, done.err
    errors = json.loads(done.out)["errors"]
    assert errors
    assert all(error["message"] and len(error["message"]) < 400 for error in errors)


@pytest.mark.parametrize("what", JUNK)
def test_junk_for_a_cluster_is_invalid_input(desk: SampleFolder, what: str) -> None:
    done = call("plan", desk.flow(2), "--cluster", desk.file("junk.yaml", JUNK[what]), "-o", "json")

    assert done.code == 3, done.err
    assert json.loads(done.out)["errors"]


@pytest.mark.parametrize("what", ["empty", "binary", "broken json", "deep", "a number", "alias bomb"])
def test_junk_for_a_snapshot_or_a_configuration_is_invalid_input(desk: SampleFolder, what: str) -> None:
    flow, junk = desk.flow(2), desk.file("junk.json", JUNK[what])

    assert call("plan", flow, "--cluster", junk).code == 3
    assert call("plan", flow, "--cluster", desk.cluster, "--config", junk).code == 3


@pytest.mark.parametrize("what", ["cluster", "workflow"])
def test_half_a_gigabyte_is_refused_before_it_is_read(desk: SampleFolder, what: str) -> None:
    large = desk.folder / "large.json"
    large.touch()
    os.truncate(large, 500 << 20)
    flow, cluster = (desk.flow(2), large) if what == "cluster" else (large, desk.cluster)

    tracemalloc.start()
    try:
        done = call("plan", flow, "--cluster", cluster)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100 << 20
    assert done.code == 2
    assert quiet(done, "large.json is too large", "500 MiB", "448 MiB")


def test_standard_input_is_read_no_further_than_its_limit(desk: SampleFolder) -> None:
    """A plan ends, whatever is piped into it."""
    done = desk.plan("-", stdin=b"x" * (1 << 20))

    assert done.code == 3


@pytest.mark.slow("reads files of ten megabytes")
def test_a_workflow_of_ten_megabytes_is_refused_or_planned_in_good_time(desk: SampleFolder) -> None:
    padded = workflow(2).replace("command: [run]", f"command: [run, '{'x' * (5 << 20)}']")
    assert len(padded) > 10 << 20

    done = spawn("plan", desk.file("large.yaml", padded), "--cluster", desk.cluster, "-o", "name")

    assert done.code in {0, 2, 3}
    assert "Traceback" not in done.err
    assert len(done.err) < 4000


def test_a_template_that_never_ends_is_stopped(desk: SampleFolder) -> None:
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"

    done = desk.plan(desk.file("t.yaml", workflow(1).replace("image: i", f"image: '{endless}'")))

    assert done.code == 3
    assert "too long" in done.err


@pytest.mark.parametrize("name", ["with space.yaml", "-dash.yaml", "quote'.yaml", "ünïcode.yaml", "new\nline.yaml"])
def test_ways_out_can_be_pasted_into_a_shell_whatever_the_file_is_called(desk: SampleFolder, name: str) -> None:
    desk.file(name, workflow(4, topology="{key: zone}"))

    done = call("plan", "-o", "json", "--cluster", desk.cluster, "--", name, cwd=desk.folder)

    assert done.code == 6
    ways = json.loads(done.out)["groups"][0]["refusal"]["ways_out"]
    assert [call(*shlex.split(way["command"])[1:], cwd=desk.folder).code for way in ways] == [0] * len(ways)
