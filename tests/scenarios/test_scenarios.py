"""Every scenario is answered as its file shows.

`pytest tests/scenarios --rewrite` writes the current answers into the files. Placements are checked against the rules
and remedies are applied in any case; whether an answer is the wanted one is for the reader of the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.errors import Reason
from tests.scenarios.script import RULE, replay, scenarios

# Reasons that need more than a cluster and a gang: a document, a pool, a scheduler.
_ELSEWHERE = {
    Reason.INVALID_SPEC,
    Reason.UNKNOWN_LEVEL,
    Reason.UNSUPPORTED,
    Reason.OVER_QUOTA,
    Reason.COMPUTE_DOMAIN_NOT_READY,
    Reason.SCHEDULER_REFUSED,
}


@pytest.mark.parametrize("file", scenarios(), ids=lambda file: file.stem)
def test_a_scenario_is_answered_as_it_shows(file: Path, *, rewrite: bool) -> None:
    text = file.read_text(encoding="utf-8")
    answered = replay(text)
    if rewrite:
        file.write_text(answered, encoding="utf-8")
    else:
        assert answered == text


@pytest.mark.parametrize("file", scenarios(), ids=lambda file: file.stem)
def test_a_scenario_says_first_why_it_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert f"\n{RULE}\n" in text


def test_every_reason_the_engine_gives_has_a_scenario() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in scenarios())
    shown = {reason for reason in Reason if f", {reason.value}" in text}
    assert shown == set(Reason) - _ELSEWHERE
