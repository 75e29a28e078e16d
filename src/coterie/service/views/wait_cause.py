"""The cause that holds a gang on a cluster, from the engine's answer and the words of its scheduler and its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from coterie.errors import Reason
from coterie.service.pools.live_clusters import CONNECTING, unreached_words

Json = dict[str, Any]

# Words of drivers and of KAI about pods that are not there, about the limit of a queue, and about claims to devices.
_MEMBERS = re.compile(r"\d+ of \d+ pods of the gang exist|waiting for \d+ pods", re.IGNORECASE)
_QUOTA = re.compile(r"over.?quota|limit is |exceeds? .*quota", re.IGNORECASE)
_CLAIMS = re.compile(r"resource ?claim", re.IGNORECASE)
_DEVICES = re.compile(r"allocate all claims", re.IGNORECASE)
_FORECAST = "KaiWouldWait"


class WaitCauseKind(StrEnum):
    """The kind of cause."""

    CONNECTING = "Connecting"
    UNREACHABLE = "Unreachable"
    DOES_NOT_FIT = "DoesNotFit"
    SCHEDULER_REFUSES = "SchedulerRefuses"
    QUOTA = "Quota"
    CLAIMS = "Claims"
    MEMBERS = "Members"
    IMAGE = "Image"
    START = "Start"
    UNDECIDED = "Undecided"
    TURN = "Turn"


def wait_cause(refusal: Json | None, words: str, warnings: Iterable[Mapping[str, Any]], title: str) -> Json:
    """Return the cause and a sentence about it; `words` are the scheduler's, `warnings` those of the engine's plan."""
    reason = refusal["reason"] if refusal else ""
    forecast = next((each["message"] for each in warnings if each["code"] == _FORECAST), "")
    if _MEMBERS.search(words):
        return _cause(WaitCauseKind.MEMBERS, "not all pods of the gang exist yet")
    if reason == Reason.OVER_QUOTA or _QUOTA.search(words):
        return _cause(WaitCauseKind.QUOTA, "the pool has reached its limit of GPUs")
    if reason == Reason.UNDECIDED:
        return _cause(WaitCauseKind.UNDECIDED, "the engine has not determined whether it fits")
    if refusal is not None:
        return _cause(WaitCauseKind.DOES_NOT_FIT, "it does not fit now")
    if _DEVICES.search(words):
        said = f"it fits, but {title} counts devices as taken that nobody holds (P: channels that stay taken)"
        return _cause(WaitCauseKind.CLAIMS, f"{said}; restart its scheduler if this does not change")
    if _CLAIMS.search(words):
        return _cause(WaitCauseKind.CLAIMS, f"it fits, but {title} waits for its claims to devices")
    if forecast:
        return _cause(WaitCauseKind.SCHEDULER_REFUSES, forecast)
    if words:
        return _cause(WaitCauseKind.SCHEDULER_REFUSES, f"it fits, but {title} does not place it")
    return _cause(WaitCauseKind.TURN, f"it fits, and {title} has not refused it")


def unreachable_cause(backend: str, problem: str) -> Json:
    """Return the cause of a gang on a cluster that does not answer, or has not yet; `problem` says which."""
    kind = WaitCauseKind.CONNECTING if problem == CONNECTING else WaitCauseKind.UNREACHABLE
    return _cause(kind, unreached_words(backend, problem))


def start_cause(waiting: Iterable[str], message: str) -> Json:
    """Return the cause of tasks that have nodes and do not run yet; `message` is about an image, or empty."""
    if message:
        return _cause(WaitCauseKind.IMAGE, message)
    names = list(waiting)
    said = f'task "{names[0]}"' if len(names) == 1 else f"{len(names)} tasks"
    return _cause(WaitCauseKind.START, f"{said} on a node: images are pulled, volumes mounted and containers started")


def _cause(kind: WaitCauseKind, message: str) -> Json:
    return {"kind": kind.value, "message": message}
