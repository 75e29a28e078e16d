"""The picture: well formed, self-contained, never colour alone, and of bounded size."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.rendering.palette import MOST, paints_for
from coterie.rendering.scene import Area, MapScene
from coterie.rendering.svg import map_svg
from coterie.topology.abbreviations import abbreviated
from tests.rendering.scenes import USUAL, fleet, rack, scene, spot

SVG = "{http://www.w3.org/2000/svg}"
HEAD = [f"{SVG}title", f"{SVG}text", f"{SVG}text"]


def picture(what: MapScene, *, free: bool = False) -> tuple[str, ET.Element]:
    text = "\n".join(map_svg(what, free=free))
    return text, ET.fromstring(text)  # noqa: S314 - our own output


def words(root: ET.Element, tag: str = "text") -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}{tag}")]


def test_the_picture_has_a_title_every_domain_and_every_node() -> None:
    _, root = picture(USUAL)

    assert words(root, "title")[0] == "48 of 80 GPUs used"
    assert {"zone b1", "r1", "r2", "in no rack", "no zone"} <= set(words(root))
    tips = words(root, "title")
    for node in USUAL.root.all_spots():
        assert any(tip.startswith((f"{node.name}\n", f"{node.name} (")) for tip in tips)
    assert "n9 (not ready)\n8 of 8 GPUs used\na: 8" in tips


def test_the_picture_needs_nothing_but_itself() -> None:
    text, root = picture(USUAL)

    assert not {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject"}
    assert not re.search(r"href|@import|@font-face|\son\w+=|url\((?!#)", text)
    assert text.isascii()


def test_every_class_and_pattern_that_is_used_is_defined() -> None:
    text, root = picture(USUAL)
    used = {name for element in root.iter() for name in element.get("class", "").split()}
    defined = set(re.findall(r"\.([a-z][\w-]*)\{", text))

    assert used <= defined
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= set(re.findall(r'id="(\w+)"', text))


def test_a_long_title_of_a_card_ends_before_its_numbers() -> None:
    names = [f"nn-0000{number}aa5566778899" for number in range(3)]
    _, root = picture(scene(*(rack(f"z/{name}", spot(f"n{number}")) for number, name in enumerate(names))))
    [head] = [each for each in root.iter(f"{SVG}g") if words(each)[:1] == names[:1] and len(words(each)) == 2]
    title, numbers = head.iter(f"{SVG}text")
    # Digits are 0.696 of the size wide in the bold face of DejaVu Sans, the widest of the fonts that the picture names.
    assert float(title.get("x", 0)) + 0.696 * 12 * len(names[0]) < float(numbers.get("x", 0)) - 0.64 * 11 * len("0/8")


NAMES = st.sets(
    st.one_of(
        st.uuids().map(lambda uuid: f"{uuid}.0"),
        st.from_regex(r"(gb200-prod-useast1-)?rack-[0-9]{1,3}(\.cluster\.example)?", fullmatch=True),
        st.text("ab-.", min_size=1, max_size=63),
    ),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(NAMES, st.booleans())
def test_every_domain_has_a_title_of_its_own_that_is_never_cut(names: set[str], many: bool) -> None:  # noqa: FBT001 - drawn
    racks = [rack(f"z/{name}", spot("n1", by={"job": 123456})) for name in sorted(names)]
    nodes = tuple(spot(f"n{number}") for number in range(3000)) if many else ()
    _, root = picture(scene(*racks, rack("y/other", *nodes)))
    titles = [
        element[1].text for element in root.iter(f"{SVG}g") if len(element) == 3 and element[0].tag.endswith("title")
    ]

    assert len(set(titles)) == len(titles)
    assert set(abbreviated({*names, "other"}).values()) <= set(titles)


@pytest.mark.parametrize("end", ["", ".ec2.internal"])
def test_every_node_of_a_card_has_a_label_of_its_own(end: str) -> None:
    names = [f"ip-10-0-{net}-{at}{end}" for net in (1, 12) for at in (1, 11, 111)]
    _, root = picture(scene(rack("a/r1", *map(spot, names))))
    labels = [element.text for element in root.iter(f"{SVG}text") if element.get("class") == "n"]

    assert labels == ["1-1", "1-11", "1-111", "12-1", "12-11", "12-111"]


def test_the_legend_names_what_occurs_and_nothing_else() -> None:
    _, root = picture(scene(rack("a/r1", spot("n1", job=4))))

    assert {"job  4", "free  4"} <= set(words(root))
    assert not any("cordoned" in word or "other holder" in word for word in words(root))


def test_no_two_holders_look_alike_and_few_share_a_hatching() -> None:
    paints = list(paints_for([(f"j{index}", 1) for index in range(50)], None).values())

    assert len(paints) == MOST
    assert len({(paint.colour, paint.hatch) for paint in paints}) == MOST
    assert len({paint.hatch for paint in paints[:6]}) == len({paint.colour for paint in paints[:6]}) == 6


def test_a_highlighted_holder_is_the_only_one_with_a_paint() -> None:
    _, root = picture(MapScene(USUAL.levels, USUAL.root, USUAL.pool, "train"))

    assert {"train  16", "3 other holders  32"} <= set(words(root))


def test_free_leaves_out_full_domains_and_says_how_many() -> None:
    _, root = picture(USUAL, free=True)

    assert "r2" not in words(root)
    assert any("1 rack without free GPUs left out" in word for word in words(root))


@pytest.mark.parametrize("name", ["</text><script>alert(1)</script>", "\x1b[31m", '"&<>', "\x00\ufffe\ud800", "日本語"])
def test_names_are_text_whatever_they_hold(name: str) -> None:
    text, root = picture(scene(rack(f"{name.replace('/', '')}/r1", spot(name, by={name: 8}))))

    assert not list(root.iter(f"{SVG}script"))
    assert "\x1b" not in text


def test_a_thousand_nodes_make_a_picture_of_reasonable_size() -> None:
    text, _ = picture(fleet(2, 31, 16))

    assert len(text) < 400_000


def test_beyond_that_domains_are_bars_and_beyond_that_folded() -> None:
    bars, root = picture(fleet(4, 40, 18))
    folded, _ = picture(fleet(4, 1000, 1))

    assert "r39" in words(root)
    assert "n17" not in words(root)
    assert len(bars) < 200_000
    assert len(folded) < 20_000
    assert "4,000 racks are folded" in folded


@pytest.mark.parametrize(
    "what",
    [
        MapScene((), Area()),
        MapScene((), Area((), (), (spot("n1"),))),
        scene(rack("a/r1", spot("n1", 0))),
        scene(rack("a/r1", spot("n1", 10**9, job=1))),
        scene(rack("a/r1", *(spot(f"n{number}") for number in range(500)))),
        scene(outside=(spot("n1"),)),
    ],
    ids=["nothing", "no levels", "no GPUs", "very many GPUs", "a wide rack", "no domain"],
)
def test_odd_scenes_are_drawn_inside_the_picture(what: MapScene) -> None:
    _, root = picture(what)

    assert float(root.get("width", "0")) <= 1400
    assert float(root.get("height", "0")) > 0
