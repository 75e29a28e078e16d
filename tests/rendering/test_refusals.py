"""Sentences are right for zero, one and many, and for an exact fit."""

from __future__ import annotations

from dataclasses import fields

import pytest

from coterie.errors import Reason
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Path, Shape
from coterie.placement.refusal import Nearest, Refusal, WayOut
from coterie.placement.whatif import AllowExcluded, Change, Coarsen, Keep, Prefer, Release, Tolerate, Uncordon
from coterie.planning.changes import WhatIf
from coterie.rendering import refusals
from coterie.rendering.command_line import words
from coterie.topology import display_names
from coterie.topology.cluster import Cluster, Node
from coterie.topology.levels import Topology
from tests.planning.plan_json import holes

TOPOLOGY = Topology.of(("zone", "topology.kubernetes.io/zone"), ("rack", "topology.kubernetes.io/rack"))
CLUSTER = Cluster.of([Node("n1", {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/rac": "r1"})])
RACK: Path = (("rack", "default"),)
MODEL: Path = (("zone", "default"), ("rack", "model-1"))


def gang(*gpus: int) -> Gang:
    shapes = (Shape((("nvidia.com/gpu", gpu),) if gpu else ()) for gpu in gpus)
    return build(
        "train", [RequestedTask(f"t{n}", shape, (TaskRequirement("rack"),)) for n, shape in enumerate(shapes)], TOPOLOGY
    )


def said(refusal: Refusal) -> str:
    text = refusals.message(refusal, gang(8, 8), TOPOLOGY, CLUSTER)
    assert list(holes({"message": text})) == []
    return text


@pytest.mark.parametrize(("number", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")])
def test_a_number_and_its_word_agree(number: int, text: str) -> None:
    assert refusals.count(number, "task") == text


@pytest.mark.parametrize(
    ("gpus", "text"),
    [
        ((8,), "1 × 8 GPU"),  # noqa: RUF001 - the sign is meant
        ((8, 8, 8), "3 × 8 GPU"),  # noqa: RUF001 - the same
        ((8, 4, 8), "2 × 8 GPU + 1 × 4 GPU"),  # noqa: RUF001 - the same
        ((0, 1), "1 × no GPU + 1 × 1 GPU"),  # noqa: RUF001 - the same
    ],
)
def test_sizes_are_summed_up(gpus: tuple[int, ...], text: str) -> None:
    assert refusals.sizes(gang(*gpus)) == text


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ((), "no GPU"),
        ((("cpu", 500),), "0.5 CPU"),
        ((("cpu", 4000), ("memory", 2**30)), "4 CPU"),
        ((("cpu", 1_000_000_000),), "1,000,000 CPU"),
        ((("memory", 3 * 2**29),), "1.5 GiB"),
        ((("memory", 10),), "10 bytes"),
        ((("memory", 512 * 2**20),), "512 MiB"),
        ((("memory", 2000 * 2**30),), "2000 GiB"),
        ((("nvidia.com/gpu", 1_000_000),), "1,000,000 GPU"),
        ((("cpu", 4000), ("nvidia.com/gpu", 1)), "1 GPU"),
    ],
)
def test_a_shape_is_named_by_what_matters_most(requests: tuple[tuple[str, int], ...], text: str) -> None:
    assert refusals.shape(Shape(requests)) == text


@pytest.mark.parametrize(
    ("refusal", "parts"),
    [
        (Refusal(Reason.NO_CAPACITY, wanted=2, best=(Nearest((), 1, 2),)), ["1 of 2 tasks"]),
        (
            Refusal(Reason.NO_DOMAIN_FITS, RACK, "rack", 2, 1, (Nearest(("a", "r1"), 1, 2),)),
            ["no rack", "2 tasks of train", "a/r1", "fits 1"],
        ),
        (
            Refusal(Reason.NO_DOMAIN_FITS, MODEL, "rack", 2, 1, (Nearest(("a", "r1"), 0, 2),)),
            ['rack group "model-1"', "fits 0"],
        ),
        (Refusal(Reason.NO_DOMAIN_FITS, RACK, "rack", 2), ["no rack", "2 tasks of train"]),
        (
            Refusal(Reason.NEVER_FITS, RACK, "rack", 2, 1, (Nearest(("a", "r1"), 1, 2),)),
            ["no rack", "not even when empty", "a/r1"],
        ),
        (Refusal(Reason.NEVER_FITS, wanted=9, best=(Nearest((), 8, 9),)), ["empty cluster", "8 of 9 tasks"]),
        (Refusal(Reason.NEVER_FITS, level="rack", together=(RACK, MODEL)), ["not even", "model-1"]),
        (Refusal(Reason.GROUPS_CONFLICT, level="rack", together=(RACK, MODEL)), ["rack", "model-1", "not together"]),
        (
            Refusal(Reason.NODES_UNLABELLED, RACK, "rack", 2),
            ["topology.kubernetes.io/rack", 'Did you mean "topology.kubernetes.io/rac"?'],
        ),
        (Refusal(Reason.NODES_EXCLUDED, excluded=("n1", "n2", "n3")), ["n[1-3]"]),
        (Refusal(Reason.OVER_QUOTA, wanted=1, quota=(0, 0)), ["1 GPU", "limit is 0"]),
        (Refusal(Reason.OVER_QUOTA, wanted=8, quota=(1, 8)), ["8 GPUs", "beside 1 GPU", "limit is 8"]),
        (Refusal(Reason.LEVEL_LOST, RACK, "rack", 2), ["one rack", "train"]),
        (Refusal(Reason.UNDECIDED, wanted=2), ["budget"]),
    ],
)
def test_a_refusal_says_what_it_knows(refusal: Refusal, parts: list[str]) -> None:
    text = said(refusal)
    assert [part for part in parts if part not in text] == []


def test_many_groups_are_not_all_listed() -> None:
    paths: tuple[Path, ...] = tuple((("rack", f"m{n}"),) for n in range(30))

    text = said(Refusal(Reason.GROUPS_CONFLICT, level="rack", together=paths))

    assert len(text) < 120
    assert "more" in text


def test_a_guess_is_made_only_where_a_label_is_close() -> None:
    bare = Cluster.of([Node("n1", {"disk": "nvme"})])

    text = refusals.message(Refusal(Reason.NODES_UNLABELLED, RACK, "rack", 2), gang(8), TOPOLOGY, bare)

    assert "Did you mean" not in text


@pytest.mark.parametrize(
    ("change", "text", "option"),
    [
        (Prefer("rack"), "fits now with rack preferred instead of required", ["--prefer", "rack"]),
        (Coarsen("rack", "zone"), "fits now with zone required instead of rack", ["--coarsen", "rack"]),
        (Keep("train", (), 1), "fits now with 1 task", ["--tasks", "train=1"]),
        (Keep("train", MODEL, 2), 'fits now with 2 tasks in rack group "model-1"', None),
        (Release("wf-12"), "fits when wf-12 ends", ["--without", "wf-12"]),
        (Tolerate(("x",)), "fits now if its tasks tolerate the taint x", ["--tolerate", "x"]),
        (
            Tolerate(("x", "y")),
            "fits now if its tasks tolerate the taints x and y",
            ["--tolerate", "x", "--tolerate", "y"],
        ),
        (Uncordon(("n1",)), "fits if node n1 is uncordoned", ["--uncordon", "n1"]),
        (Uncordon(("n1", "n2")), "fits if nodes n[1-2] are uncordoned", ["--uncordon", "n1", "--uncordon", "n2"]),
        (AllowExcluded(), "fits now without nodesExcluded", ["--allow-excluded"]),
    ],
)
def test_a_way_out_is_a_sentence_and_an_option(change: Change, text: str, option: list[str] | None) -> None:
    way = WayOut(change, now=True)
    assert refusals.way_out(way) == text
    assert {one.name for one in way.options} <= {field.name for field in fields(WhatIf)}
    assert words(way.options) == (option or ["--tasks", "train/zone:default/rack:model-1=2"])


def test_what_fits_only_the_empty_cluster_does_not_place_now() -> None:
    text = refusals.way_out(WayOut(Prefer("rack"), now=False))

    assert "now" not in text
    assert "empty cluster" in text


@pytest.mark.parametrize(
    ("values", "text"), [(("a", "r1"), "a/r1"), (("a", None), "a/(no label)"), ((None,), "(no label)")]
)
def test_a_task_outside_every_domain_shows_where_its_labels_end(values: tuple[str | None, ...], text: str) -> None:
    assert display_names.domain(values) == text


@pytest.mark.parametrize(
    ("refusal", "wrong"),
    [
        (Refusal(Reason.NO_CAPACITY, wanted=1, best=(Nearest((), 0, 1),)), "only 0"),
        (Refusal(Reason.NEVER_FITS, wanted=1, best=(Nearest((), 0, 1),)), "only 0"),
        (Refusal(Reason.NO_DOMAIN_FITS, RACK, "rack", 1, 1, (Nearest(("a", "r1"), 0, 1),)), "all 1 task"),
    ],
)
def test_one_task_and_no_room_is_said_as_people_would(refusal: Refusal, wrong: str) -> None:
    assert wrong not in said(refusal)
