"""The cause that holds a gang in the queue of its own scheduler, from the engine's answer and the scheduler's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from coterie.errors import Reason

Json = dict[str, Any]

# KAI's words about pods that it has not seen, about the limit of a queue, and about claims to devices.
_MEMBERS = re.compile(r"waiting for \d+ pods", re.IGNORECASE)
_QUOTA = re.compile(r"over.?quota|limit is |exceeds? .*quota", re.IGNORECASE)
_CLAIMS = re.compile(r"resource ?claim|allocate all claims", re.IGNORECASE)
_FORECAST = "KaiWouldWait"


class WaitCauseKind(StrEnum):
    """The kind of cause."""

    DOES_NOT_FIT = "DoesNotFit"
    SCHEDULER_REFUSES = "SchedulerRefuses"
    QUOTA = "Quota"
    CLAIMS = "Claims"
    MEMBERS = "Members"
    UNDECIDED = "Undecided"
    TURN = "Turn"


def wait_cause(refusal: Json | None, words: str, warnings: Iterable[Mapping[str, Any]], title: str) -> Json:
    """Return the cause and a sentence about it; `words` are the scheduler's, `warnings` those of the engine's plan."""
    reason = refusal["reason"] if refusal else ""
    forecast = next((each["message"] for each in warnings if each["code"] == _FORECAST), "")
    if _MEMBERS.search(words):
        return _cause(WaitCauseKind.MEMBERS, f"{title} has not seen all pods of the gang yet")
    if reason == Reason.OVER_QUOTA or _QUOTA.search(words):
        return _cause(WaitCauseKind.QUOTA, "the pool has reached its limit of GPUs")
    if reason == Reason.UNDECIDED:
        return _cause(WaitCauseKind.UNDECIDED, "the engine has not determined whether it fits")
    if refusal is not None:
        return _cause(WaitCauseKind.DOES_NOT_FIT, "it does not fit now")
    if _CLAIMS.search(words):
        return _cause(WaitCauseKind.CLAIMS, f"it fits, but {title} waits for its claims to devices")
    if forecast:
        return _cause(WaitCauseKind.SCHEDULER_REFUSES, forecast)
    if words:
        return _cause(WaitCauseKind.SCHEDULER_REFUSES, f"it fits, but {title} does not place it")
    return _cause(WaitCauseKind.TURN, f"it fits, and {title} has not refused it")


def _cause(kind: WaitCauseKind, message: str) -> Json:
    return {"kind": kind.value, "message": message}
