"""Folded names unfold to the same names."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.topology.ranges import fold


def unfold(text: str) -> set[str]:
    """Expand ranges the slow and obvious way."""
    names: set[str] = set()
    for piece in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        choices = []
        for part in re.split(r"(\[[^\]]*\])", piece):
            if not part.startswith("["):
                choices.append([part])
                continue
            values = []
            for run in part[1:-1].split(","):
                first, _, last = run.partition("-")
                values += [str(n).zfill(len(first)) for n in range(int(first), int(last or first) + 1)]
            choices.append(values)
        names.update("".join(each) for each in itertools.product(*choices))
    return names


FOLDED: list[tuple[list[str], str]] = [
    ([], ""),
    (["a"], "a"),
    (["n1"], "n1"),
    (["n1", "n1"], "n1"),
    (["n2", "n1"], "n[1-2]"),
    ([*(f"n{i:02}" for i in range(1, 9)), "n12", "x3"], "n[01-08,12],x3"),
    (["n8", "n9", "n10", "n11"], "n[8-11]"),
    (["n08", "n09", "n10"], "n[08-10]"),
    (["n99", "n100"], "n[99-100]"),
    (["n1", "n01", "n2", "n02"], "n[01-02,1-2]"),
    ([f"r{r}-n{n}" for r in (1, 2) for n in range(1, 9)], "r[1-2]-n[1-8]"),
    (["r1-n1", "r1-n2", "r2-n1"], "r1-n[1-2],r2-n1"),
    (["ip-10-0-1-2.ec2.x", "ip-10-0-1-3.ec2.x"], "ip-10-0-1-[2-3].ec2.x"),
    (["b", "a", "n10", "n9x"], "a,b,n9x,n10"),
    (["odd[1]", "n1"], "n1,odd[1]"),
    (["i-0123456789012", "i-0123456789013"], "i-0123456789012,i-0123456789013"),
]


@pytest.mark.parametrize(("names", "text"), FOLDED, ids=[text or "none" for _, text in FOLDED])
def test_names_fold_into_ranges(names: list[str], text: str) -> None:
    assert fold(names) == text


NAMES = st.lists(st.from_regex(r"[a-c]?[-.]?[0-9]{0,3}(-[n.])?[0-9]{0,2}x?", fullmatch=True).filter(bool), max_size=30)


@given(NAMES)
def test_unfolding_gives_the_same_set(names: list[str]) -> None:
    assert unfold(fold(names)) == set(names)


@given(NAMES, st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_matter(names: list[str], shuffler: random.Random) -> None:
    shuffled = list(names)
    shuffler.shuffle(shuffled)
    assert fold(shuffled) == fold(names)
