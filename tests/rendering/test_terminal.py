"""The map in the terminal: its content, its folding, and its width."""

from __future__ import annotations

import pytest

from coterie.rendering.scene import Area, MapScene
from coterie.rendering.terminal import map_lines
from coterie.rendering.text import ASCII, Style, columns
from tests.rendering.scenes import ESCAPE, USUAL, fleet, rack, scene, spot

PLAIN = Style()


def drawn(what: MapScene, style: Style = PLAIN, *, free: bool = False, fold: bool = True, every: bool = False) -> str:
    return "\n".join(map_lines(what, style, free=free, fold=fold, every=every))


def test_a_usual_map_in_full() -> None:
    assert drawn(USUAL) == (
        "b1  rack r1  ████████ ████████ ████░░░░ ░░░░░░░░  20/32  job\n"
        "    rack r2  ████████ ████████                    16/16  train\n"
        "b2  rack r1  ████░░░░ ░░░░░░░░! ████████*         12/24  1 cordoned, 1 not ready, a 10, b 2\n"
        "\n"
        "2 nodes in no rack:\n"
        "no zone  - ░░░░░░░░  0/8\n"
        "\n"
        "█ used  ░ free  ! cordoned  * not ready  - no GPUs\n"
        "48/80 GPUs used on 11 nodes, 8 idle GPUs out of service; largest free rack: b1/r1 (12)."
    )


def test_a_node_whose_pods_hold_more_than_it_has_is_marked_and_adds_no_gpus() -> None:
    text = drawn(scene(rack("b1/r1", spot("n1", 4, job=9), spot("n2", 4))))

    assert text.splitlines()[0] == "b1  rack r1  ████^ ░░░░  9/8  1 overfull, job"
    assert "^ pods hold more GPUs than it has" in text
    assert "9/8 GPUs used on 2 nodes; largest free rack: b1/r1 (4)." in text


def test_cliques_whose_ids_end_alike_stay_distinct() -> None:
    ids = [f"{start}-77aa-45e1-9e07-e1e51be99c31.1" for start in ("0a1b2c3d", "9f8e7d6c")]
    other = "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0"

    lines = drawn(scene(*(rack(f"b1/{name}", spot(f"n{name[0]}")) for name in (*ids, other)))).splitlines()

    assert [line.partition("░")[0].strip() for line in lines[:2]] == [
        "b1  rack 0a1b2c3d-…1e51be99c31.1",
        "rack 9f8e7d6c-…1e51be99c31.1",
    ]


def test_a_highlighted_holder_is_told_from_others_without_colour() -> None:
    highlighted = MapScene(USUAL.levels, USUAL.root, USUAL.pool, "a")

    lines = drawn(highlighted).splitlines()

    assert lines[2] == "b2  rack r1  ██▒▒░░░░ ░░░░░░░░! ████████*         12/24  1 cordoned, 1 not ready, a 10"
    assert "█ a  ▒ others  ░ free" in lines[-2]


def test_free_shows_only_domains_with_something_free_and_the_largest_of_each_level() -> None:
    text = drawn(USUAL, free=True)

    assert "12 free  1 whole node" in text
    assert "train" not in text
    assert "1 rack has nothing free." in text
    assert "24 of 80 GPUs free on 11 nodes, 8 idle GPUs out of service; largest free zone: b1 (12);" in text


def test_every_node_has_a_line_with_its_holders_when_asked() -> None:
    lines = drawn(USUAL, every=True).splitlines()

    assert "  n7  ████░░░░       4/8  a 2, b 2" in lines
    assert "  n8  ░░░░░░░░!      0/8" in lines
    assert "no zone  0/8" in lines
    assert all(f"  {node.name} " in "\n".join(lines) for node in USUAL.root.all_spots())


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 100, 250])
@pytest.mark.parametrize(
    "what",
    [USUAL, fleet(2, 3, 18, 4), fleet(3, 40, 16), fleet(1, 1, 300), fleet(70, 70, 1), fleet(2, 2, 2, 100)],
    ids=["usual", "nvl72", "many racks", "one rack", "too many racks", "many GPUs"],
)
def test_no_line_is_wider_than_the_screen_whatever_is_drawn(what: MapScene, width: int) -> None:
    for free in (False, True):
        for line in map_lines(what, Style(width), free=free):
            assert columns(line) <= width or " " not in line.strip()


def test_a_narrow_screen_has_the_nodes_below_the_label() -> None:
    assert drawn(USUAL, Style(40)).splitlines()[:4] == [
        "b1",
        "  rack r1  20/32  job",
        "    ████████ ████████ ████░░░░ ░░░░░░░░",
        "  rack r2  16/16  train",
    ]


def test_colours_only_add_to_what_stands_there_without_them() -> None:
    coloured = drawn(USUAL, Style(colour=True))

    assert ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured) == drawn(USUAL)


def test_without_block_characters_everything_is_ascii() -> None:
    text = drawn(USUAL, Style(symbols=ASCII))

    assert text.isascii()
    assert "####.... ........  20/32" in text


def test_many_nodes_are_drawn_as_a_sign_each() -> None:
    busy = rack("z9/r1", spot("a", x=8), spot("b", x=4), spot("c"), spot("d", out="cordoned"), spot("e", 0))
    text = drawn(scene(*fleet(1, 60, 16).at(2), busy))

    assert "z9  rack r1   █▒░!-" in text
    assert "█ all GPUs used  ▒ some used  ░ all GPUs free  ! cordoned  - no GPUs" in text


def test_too_many_domains_are_folded_into_coarser_ones_and_the_map_says_so() -> None:
    folded = drawn(fleet(3, 500, 18))

    assert "zone z0  ░░░░░░░░░░ 9,000 nodes  0/72000  500 racks" in folded
    assert "1,500 racks are folded into 3 zones; --level rack shows them." in folded
    assert len(folded.splitlines()) < 10


def test_a_level_that_was_asked_for_is_never_folded() -> None:
    lines = drawn(fleet(3, 500, 18), fold=False).splitlines()

    assert sum("18 nodes" in line for line in lines) == 1500


def test_more_coarsest_domains_than_a_screen_takes_are_cut_off_and_counted() -> None:
    flat = MapScene(("rack",), Area((), tuple(rack(f"r{number}", spot(f"n{number}")) for number in range(5000))))

    text = drawn(flat)

    assert "4,940 more racks not shown; -o json has all." in text
    assert len(text.splitlines()) < 70


def test_a_node_with_very_many_gpus_is_drawn_to_scale() -> None:
    text = drawn(scene(rack("a/r1", spot("n1", 1_000_000, job=1))))

    assert "█░░░░░░░░░░░░░░░  1/1000000  job" in text
    assert "Nodes with more than 16 GPUs are drawn to scale." in text


def test_names_cannot_drive_the_terminal_nor_break_a_line() -> None:
    text = drawn(scene(rack("a/r1\n", spot("\x1b[2J", by={"\x1b]0;owned\x07": 8}))), every=True)
    text += drawn(scene(rack("a/r1\n", spot("\x1b[2J", by={"\x1b]0;owned\x07": 8}))))

    assert "\x1b" not in text
    assert "\\x1b]0;owned\\x07" in text
    assert "r1\\n" in text


def test_an_empty_scene_says_so() -> None:
    assert drawn(MapScene((), Area())) == "There are no nodes."


def test_a_value_that_names_its_level_is_not_called_by_it_twice() -> None:
    assert drawn(scene(rack("a/rack7", spot("n1")))).startswith("a  rack7  ")
