"""`coterie why`: its counts, the evidence on request, and printed commands that run as they are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

import pytest

from tests.cli.command import call
from tests.cli.service_fixtures import ServiceFixture


@pytest.fixture
def stuck(hall: ServiceFixture) -> Iterator[str]:
    """Return a group of two tasks that waits: one node is free, and the others are held by two workflows and a pod."""
    ids = []
    for name in ("first", "second"):
        ids.append(hall.submit("sleep 300", name=name, gpus=8))
        assert hall.call("wait", ids[-1], "--for=running", "--timeout", "2m").code == 0
    ids.append(hall.submit("sleep 300", name="stuck", tasks=2, gpus=8))
    yield f"{ids[-1]}/g"
    for ident in reversed(ids):
        hall.call("cancel", ident, "--force")
        hall.finished(ident)


def test_domains_are_counted_in_a_line(hall: ServiceFixture, stuck: str) -> None:
    done = hall.call("why", stuck)

    assert "domains  2 racks: 2 full" in done.out
    assert "LACKS" not in done.out


def test_verbose_counts_nodes_and_shows_the_nearest_misses(hall: ServiceFixture, stuck: str) -> None:
    done, data = hall.call("why", stuck, "-v"), hall.data("why", stuck, "--verbose")

    assert "nodes    4 nodes: 3 full, 1 with room for one" in done.out
    assert re.search(r"a/r1 +1 of 2 +8 +0 +1 +full", done.out)
    assert [one["fits"] for one in data["groups"][0]["alternatives"][0]["domains"]] == [1, 0]
    assert "alternatives" not in hall.data("why", stuck)["groups"][0]


def test_the_call_that_is_printed_runs_as_it_is_printed(hall: ServiceFixture, stuck: str) -> None:
    printed = shlex.split(hall.call("why", stuck).out.splitlines()[-1])

    assert printed[:2] == ["coterie", "why"]
    assert "would be placed" in hall.call(*printed[1:]).out


def test_every_way_out_places_it_when_it_is_asked_about(hall: ServiceFixture, stuck: str) -> None:
    (group,) = hall.data("why", stuck)["groups"]
    commands = [way["command"] for way in group["refusal"]["ways_out"]]

    assert commands
    for command in commands:
        done = hall.call(*shlex.split(command)[1:], "-o", "json")
        assert json.loads(done.out)["groups"][0]["verdict"] == "placed", command


def test_a_service_that_is_named_is_named_in_the_call_too(hall: ServiceFixture, stuck: str) -> None:
    done = call("why", stuck, "--server", hall.url, COTERIE_SERVER="")

    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].endswith(f"--server {hall.url}")
