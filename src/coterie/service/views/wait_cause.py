"""The cause that holds a gang on a cluster, from the engine's answer and the words of its scheduler and its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from coterie.backends.base.traits import RefusalKind, Traits
from coterie.errors import Reason
from coterie.service.pools.live_clusters import CONNECTING, unreached_words

Json = dict[str, Any]


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


def wait_cause(
    refusal: Json | None, told: str, words: str, warnings: Iterable[Mapping[str, Any]], traits: Traits
) -> Json:
    """Return the cause and a sentence about it.

    `refusal` and `warnings` are those of the engine's plan, `told` and `words` the reason and the message that the
    scheduler or its driver reported, empty where there is none, and `traits` are the scheduler's.
    """
    reason, title = refusal["reason"] if refusal else "", traits.title
    kind = traits.refusal_kind(words) if traits.refusal_kind else None
    forecast = next((each["message"] for each in warnings if each["code"] == traits.forecast_code), "")
    if told == Reason.GANG_INCOMPLETE or kind is RefusalKind.MEMBERS:
        return _cause(WaitCauseKind.MEMBERS, "not all pods of the gang exist yet")
    if Reason.OVER_QUOTA in (reason, told) or kind is RefusalKind.QUOTA:
        return _cause(WaitCauseKind.QUOTA, "the pool has reached its limit of GPUs")
    if reason == Reason.UNDECIDED:
        return _cause(WaitCauseKind.UNDECIDED, "the engine has not determined whether it fits")
    if refusal is not None:
        return _cause(WaitCauseKind.DOES_NOT_FIT, "it does not fit now")
    if kind is RefusalKind.DEVICES:
        said = f"it fits, but {title} counts devices as taken that nobody holds (P: channels that stay taken)"
        return _cause(WaitCauseKind.CLAIMS, f"{said}; restart its scheduler if this does not change")
    if kind is RefusalKind.CLAIMS:
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
