"""KAI's own reason why a gang is not scheduled, from the status of its PodGroup."""

from __future__ import annotations

from collections.abc import Collection

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.objects import GangPodGroup
from coterie.backends.shared.names import label_value
from coterie.errors import Reason
from coterie.lifecycle import Refused


def refusal_of(group: GangPodGroup, unbound: Collection[TaskAttempt]) -> tuple[str, Refused] | None:
    """Return why a PodGroup waits, with its workflow; None where none of its followed pods is `unbound`.

    KAI before version 0.17 does not clear its conditions when it has scheduled the pods after all.
    """
    said = next((each.message for each in reversed(group.status.scheduling_conditions or ()) if each.message), "")
    meta = group.metadata
    own = [
        key
        for key in unbound
        if label_value(key.workflow) == meta.workflow
        and label_value(key.group) == meta.group
        and key.attempt >= meta.attempt
    ]
    if not said or not own:
        return None
    last = max(own, key=lambda key: key.attempt)
    return last.workflow, Refused(
        last.group, last.attempt, Reason.SCHEDULER_REFUSED.value, f"KAI: {' '.join(said.split())}"
    )
