"""The reasons why gangs wait, one after another."""

from __future__ import annotations

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.objects import GangPodGroup, ObjectMeta, PodGroupStatus, SchedulingCondition
from coterie.backends.kai.driver.observation.wait_reasons import GangWaitReasons
from coterie.lifecycle import Refused
from coterie.sources.task_labels import ATTEMPT, GROUP, WORKFLOW

KEY = TaskAttempt("w", "g", "t", 1)
META = ObjectMeta("gang", labels={WORKFLOW: "w", GROUP: "g", ATTEMPT: "1"})
WAITS = GangPodGroup(META, status=PodGroupStatus([SchedulingCondition("no room", "True")]))
KAI = ("w", Refused("g", 1, "SchedulerRefused", "KAI: no room"))


def test_the_reason_of_kai_returns_when_the_domain_is_ready() -> None:
    reasons, groups = GangWaitReasons(), {"gang": WAITS}

    def told(*, changed: bool = False, unready: bool = False) -> list[object]:
        domains = {"gang": (META, "not ready")} if unready else {}
        found: list[object] = list(reasons.domains(domains, [KEY], [KEY]))
        return [*found, *reasons.refusals({"gang"} if changed else set(), groups.get, [KEY])]

    assert told(changed=True) == [KAI]
    assert told(changed=True, unready=True) == [("w", Refused("g", 1, "ComputeDomainNotReady", "not ready"))]
    assert told() == [KAI]
    assert told(changed=True) == []
