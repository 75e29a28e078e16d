"""The pods of driven tasks, and what was already reported about them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from coterie.backends.base.driver import IMAGE_MISSING, BackendEvent, News, TaskAttempt
from coterie.backends.kai.driver.objects import TaskPod
from coterie.backends.kai.driver.observation.pod_report import DELETED, lacks_folder, missing, missing_image, report
from coterie.lifecycle import Ended, LossCause, Lost, Observation

# After this time, a created pod that no watch has shown is looked up.
_UNSEEN_S = 10.0
# After this time, a pod whose node cannot make a folder for it is lost. Nodes try again after 10 to 15 s.
_FOLDER_S = 60.0
# How long the event with the reason of a deletion may take, and how often it is looked for.
EVENT_S, _LOOK_S = 1.0, 0.25


@dataclass(slots=True)
class FollowedPod:
    """A pod, the attempt it is, the observations that were reported of it, and since when it lacks a folder.

    `deleted` is when its deletion by somebody else was first seen, and `last` its last state, if it is gone meanwhile.
    """

    key: TaskAttempt
    since: float
    adopted: bool = False
    seen: bool = False
    told: list[Observation] = field(default_factory=list)
    image: str = ""
    lacking: float | None = None
    deleted: float | None = None
    last: TaskPod | None = None


class FollowedPods:
    """The pods of driven tasks by name; every observation of one is reported once.

    `evicted` returns why the scheduler has evicted a pod, as far as that is known.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, evicted: Callable[[TaskPod], str] = lambda _: ""
    ) -> None:
        self._clock, self._evicted = clock, evicted
        self._pods: dict[str, FollowedPod] = {}
        self._fresh: set[str] = set()
        # When the reason of a deletion is looked for again, by the name of the pod.
        self._look_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def follow(self, name: str, key: TaskAttempt, *, adopted: bool = False) -> None:
        """Follow a pod from now on; one that is followed already stays as it is.

        An `adopted` one was created before the watches began, so that one which they do not show is gone.
        """
        if name not in self._pods:
            self._pods[name] = FollowedPod(key, self._clock(), adopted)
            self._fresh.add(name)

    def drop(self, wanted: Callable[[TaskAttempt], bool]) -> None:
        """Follow some pods no longer."""
        self._pods = {name: pod for name, pod in self._pods.items() if not wanted(pod.key)}
        self._look_at = {name: at for name, at in self._look_at.items() if name in self._pods}

    def take_fresh(self) -> set[str]:
        """Return the names of pods that are followed since the last call."""
        found, self._fresh = self._fresh, set()
        return found

    def attempts(self) -> dict[str, TaskAttempt]:
        """Return the followed attempts, by the names of their pods."""
        return {name: pod.key for name, pod in self._pods.items()}

    def existed(self, name: str) -> bool:
        """Return whether a pod that no watch shows any more was there before."""
        return name in self._pods and (self._pods[name].adopted or self._pods[name].last is not None)

    @property
    def due(self) -> float:
        """The time at which the reason of a deletion is looked for again."""
        return min(list(self._look_at.values()), default=math.inf)

    def unexplained(self) -> list[str]:
        """Return the pods of which the reason of their deletion is to be looked for now."""
        return [name for name, at in self._look_at.items() if at <= self._clock()]

    def overdue(self) -> list[str]:
        """Return pods that should have been seen, or have a folder, by now."""
        due = self._clock() - _UNSEEN_S
        return [
            name
            for name, pod in self._pods.items()
            if (not pod.seen and pod.since <= due) or (pod.lacking is not None and not self._may_start(pod))
        ]

    def news(self, name: str, pod: TaskPod | None, last: TaskPod | None = None) -> Iterator[tuple[str, News]]:
        """Yield what is new about a pod; `pod` is None for one that is gone, `last` its last known state."""
        followed = self._pods.get(name)
        self._look_at.pop(name, None)
        if followed is None:
            return
        task, attempt = followed.key.task, followed.key.attempt
        last = last or followed.last
        if pod is None:
            if not any(isinstance(each, Ended | Lost) for each in followed.told):
                # It may have ended between two looks at it.
                told = list(report(last, task, attempt)) if last is not None else []
                ended = [each for each in told if isinstance(each, Ended)]
                found = self._explained(name, followed, ended[0] if ended else missing(task, attempt, last), last)
                if found is None:
                    followed.last = last
                    return
                yield followed.key.workflow, found
            del self._pods[name]
            return
        followed.seen = True
        if (said := missing_image(pod)) and said != followed.image:
            followed.image = said
            yield followed.key.workflow, BackendEvent(IMAGE_MISSING, said, followed.key.group, task, attempt)
        if not lacks_folder(pod):
            followed.lacking = None
        elif followed.lacking is None:
            followed.lacking = self._clock()
        for reported in report(pod, task, attempt):
            each = self._explained(name, followed, reported, pod)
            if each is None or (isinstance(each, Lost) and self._may_start(followed)):
                continue
            if each not in followed.told and not any(isinstance(old, Ended | Lost) for old in followed.told):
                followed.told.append(each)
                yield followed.key.workflow, each

    def _explained(
        self, name: str, followed: FollowedPod, found: Observation, pod: TaskPod | None
    ) -> Observation | None:
        """Return an observation with the reason of a deletion, None while that may still become known."""
        if not isinstance(found, Lost) or found.message != DELETED or pod is None:
            return found
        if any(isinstance(each, Ended | Lost) for each in followed.told):
            return found
        if reason := self._evicted(pod):
            return replace(found, cause=LossCause.PREEMPTED, message=reason)
        if followed.deleted is None:
            followed.deleted = self._clock()
        if self._clock() >= followed.deleted + EVENT_S:
            return found
        self._look_at[name] = self._clock() + _LOOK_S
        return None

    def _may_start(self, followed: FollowedPod) -> bool:
        """Return whether the next try of a pod's node may make the folder that it lacks."""
        return followed.lacking is not None and self._clock() < followed.lacking + _FOLDER_S
