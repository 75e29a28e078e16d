"""The cause that holds a gang in the queue of its own scheduler: the engine's answer against the scheduler's words."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.backends.base.registry import traits
from coterie.errors import Reason
from coterie.service.views.wait_cause import wait_cause

KAI = traits("kai")
FULL = {"reason": "NoDomainFits"}
FORECAST = [{"code": "KaiWouldWait", "message": "KAI would leave it pending although it fits"}]


@pytest.mark.parametrize(
    ("refusal", "words", "warnings", "kind"),
    [
        (FULL, "KAI: no nodes with enough resources were found", [], "DoesNotFit"),
        (FULL, "KAI: Job is not ready for scheduling. Waiting for 3 pods, currently 2 exist", [], "Members"),
        ({"reason": "OverQuota"}, "", [], "Quota"),
        (None, "KAI: Limit is 16 GPUs, currently 16 GPUs allocated", [], "Quota"),
        (None, "KAI: <n1>: cannot allocate all claims.", [], "Claims"),
        (None, "KAI: ResourceClaim not created yet", FORECAST, "Claims"),
        (None, "KAI: can allocate only 2 of 3 required pods", FORECAST, "SchedulerRefuses"),
        (None, "KAI: no reason that anybody knows", [], "SchedulerRefuses"),
        ({"reason": "Undecided"}, "", [], "Undecided"),
        (None, "", [], "Turn"),
    ],
)
def test_the_cause_is_named(refusal: Any, words: str, warnings: list[dict[str, str]], kind: str) -> None:
    reason = Reason.SCHEDULER_REFUSED.value if words else ""
    assert wait_cause(refusal, reason, words, warnings, KAI)["kind"] == kind


@pytest.mark.parametrize(("reason", "kind"), [(Reason.GANG_INCOMPLETE, "Members"), (Reason.OVER_QUOTA, "Quota")])
def test_the_reason_of_a_driver_counts_whatever_its_words(reason: Reason, kind: str) -> None:
    assert wait_cause(None, reason.value, "", [], KAI)["kind"] == kind


def test_a_refusal_that_the_rule_of_the_scheduler_explains_is_told_in_its_words() -> None:
    found = wait_cause(None, Reason.SCHEDULER_REFUSED.value, "KAI: no", FORECAST, KAI)
    assert found["message"] == FORECAST[0]["message"]
