"""The usage: sums per pool and domain, shared nodes, folded rows, and the largest users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coterie.rendering.scene import Area, MapScene, SceneNode
from coterie.rendering.text import ASCII, Style
from coterie.rendering.usage import Nodes, Usage, rows_of, usage_json, usage_of
from coterie.rendering.usage_table import TOTAL, usage_lines

PLAIN = Style(100, ASCII)
BUSY = SceneNode("n1", 8, (("train-7", 8),))
PART = SceneNode("n2", 8, (("eval-1", 2), ("train-7", 1)))
IDLE = SceneNode("n3", 8)
CLOSED = SceneNode("n4", 8, cordoned=True)
LOST = SceneNode("n5", 8, ready=False)
R1 = Area(("a", "r1"), spots=(BUSY, PART))
R2 = Area(("a", "r2"), spots=(IDLE, CLOSED))
SCENE = MapScene(("zone", "rack"), Area(areas=(Area(("a",), (R1, R2), (LOST,)),)), "gb200")
ABOUT: dict[str, Any] = {
    "backend": "prod",
    "gpus": {"used": 9, "limit": 16, "total": 40, "free": 13},
    "workflows": {"running": 2, "waiting": 1},
}


def pool(name: str, *spots: SceneNode, backend: str = "prod") -> tuple[MapScene, dict[str, Any]]:
    return MapScene(("rack",), Area(areas=(Area(("r1",), spots=spots),)), name), {**ABOUT, "backend": backend}


def lines(usage: Usage, **more: Any) -> list[str]:
    return list(usage_lines(usage, PLAIN, **more))


def test_a_node_is_allocated_idle_or_out_of_service() -> None:
    assert Nodes.over([BUSY, PART, IDLE, CLOSED, LOST]) == Nodes(allocated=2, idle=1, other=2)


def test_there_is_a_row_for_each_pool_and_each_domain_inside_it_and_a_sum() -> None:
    assert lines(usage_of([(SCENE, ABOUT)])) == [
        "POOL/DOMAIN    USED/TOTAL  USE  FREE  NODES A/I/O/T",
        "gb200               11/40  28%    13        2/1/2/5",
        "  a!*               11/40  28%    13        2/1/2/5",
        "    r1              11/16  69%     5        2/0/0/2",
        "    r2!              0/16   0%     8        0/1/1/2",
        "    (no rack)         0/8   0%     0        0/0/1/1",
        "total               11/40  28%    13        2/1/2/5",
        "",
        "A/I/O/T: nodes in use, idle, out of service, in all. ! has cordoned nodes. * has nodes that are not",
        "ready.",
        "",
        "WHO USES MOST  GPUS  SHARE  ON NODES OF",
        "train-7           9    22%  gb200",
        "eval-1            2     5%  gb200",
    ]


def test_a_level_that_is_asked_for_is_shown_alone_with_whole_names() -> None:
    shown = [line.split()[0] for line in lines(usage_of([(SCENE, ABOUT)]), level="rack")[:6]]

    assert shown == ["POOL/DOMAIN", "gb200", "a/r1", "a/r2!", "(no", "total"]


def test_nodes_that_pools_share_are_said_to_be_and_count_once_in_the_sum() -> None:
    usage = usage_of([pool("one", BUSY, IDLE), pool("two", IDLE, PART), pool("else", IDLE, backend="lab")])

    assert [each.shared_with for each in usage.pools] == [("two",), ("one",), ()]
    assert (usage.total.nodes.total, usage.total.gpus.gpus) == (4, 32)
    assert usage.holders == (("train-7", 9, ("one", "two")), ("eval-1", 2, ("two",)))
    shown = lines(usage)
    assert [line.split("  ")[0] for line in shown if "shared)" in line][:2] == ["one (shared)", "two (shared)"]
    assert "the total counts each once" in " ".join(shown)


def test_wide_tells_what_a_pool_uses_itself_its_limit_and_its_queue() -> None:
    shown = lines(usage_of([(SCENE, ABOUT)]), wide=True)

    assert shown[0].split()[-4:] == ["OWN", "LIMIT", "RUNNING", "WAITING"]
    assert shown[1].split()[-4:] == ["9", "16", "2", "1"]


def test_a_pool_of_few_levels_stands_beside_one_of_many() -> None:
    shown = lines(usage_of([(SCENE, ABOUT), pool("one", IDLE)]))

    assert [line.split("  ")[-1] for line in shown if line.startswith("  r1")] == ["0/1/0/1"]


def test_too_many_rows_are_folded_to_coarser_levels_and_that_is_said() -> None:
    racks = tuple(Area(("a", f"r{n}"), spots=(replace(IDLE, name=f"n{n}"),)) for n in range(100))
    usage = usage_of([(MapScene(("zone", "rack"), Area(areas=(Area(("a",), racks),)), "big"), ABOUT)])

    assert len(lines(usage)) < 10
    assert "--level rack shows them" in " ".join(lines(usage))
    assert len(lines(usage, level="rack")) > 100
    assert len(lines(usage, wide=True)) > 100


def test_the_marks_of_rows_stand_before_them() -> None:
    shown = lines(usage_of([(SCENE, ABOUT)]), marks={"gb200/a/r1": "+", TOTAL: "~"})

    assert [line[0] for line in shown[:7]] == [" ", " ", " ", "+", " ", " ", "~"]


def test_a_pool_without_nodes_and_no_pools_at_all_are_shown_for_what_they_are() -> None:
    empty = usage_of([(MapScene((), Area(), "none"), {"backend": "x"})])

    assert lines(empty)[1].split() == ["none", "0/0", "-", "0", "0/0/0/0"]
    assert lines(usage_of([])) == ["There are no pools; an admin can create one with `coterie pool apply`."]


def test_more_than_a_few_users_are_cut_and_counted() -> None:
    many = [SceneNode(f"n{n}", 8, ((f"w-{n}", 8 - n % 3),)) for n in range(8)]
    shown = lines(usage_of([pool("one", *many)]))

    assert shown[-1] == "and 3 others; -o wide shows all"


def test_a_name_that_could_drive_the_terminal_is_spelled_out_and_a_long_one_is_cut() -> None:
    ugly = SceneNode("n", 8, (("\x1b[31mred", 1),))
    long = MapScene(("rack",), Area(areas=(Area(("r" * 200,), spots=(ugly,)),)), "\x9b2J")
    shown = lines(usage_of([(long, {"backend": "x"})]))

    assert all(line.isprintable() and len(line) <= PLAIN.width for line in shown)


SPOTS = st.lists(
    st.builds(
        SceneNode,
        st.sampled_from([f"n{n}" for n in range(6)]),
        st.just(8),
        st.lists(st.tuples(st.sampled_from(["x", "y"]), st.integers(1, 4)), max_size=1).map(tuple),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
    unique_by=lambda spot: spot.name,
)


@given(SPOTS)
def test_the_rows_of_each_level_add_up_to_the_pool_and_data_says_what_the_table_says(spots: list[SceneNode]) -> None:
    half = len(spots) // 2
    areas = (Area(("r1",), spots=tuple(spots[:half])), Area(("r2",), spots=tuple(spots[half:])))
    usage = usage_of([(MapScene(("rack",), Area(areas=areas), "p"), ABOUT)])
    first, *rest = rows_of(usage.pools[0], "rack")
    data = usage_json(usage, None)

    assert first.use.gpus.used == sum(row.use.gpus.used for row in rest) == usage.total.gpus.used
    assert first.use.nodes.total == sum(row.use.nodes.total for row in rest) == len(spots)
    assert sum(data["total"]["gpus"][word] for word in ("used", "free", "out_of_service")) == 8 * len(spots)
    assert sum(one["gpus"] for one in data["holders"]) == data["total"]["gpus"]["used"]
