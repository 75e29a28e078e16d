"""The domains of bound pods, written where their containers wait for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.objects import TaskPod
from coterie.backends.kai.manifests.domain_values import domain_values
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.config.configuration import Pool
from coterie.kube.api import Api
from coterie.kube.apply import apply

# How long tasks that are bound wait for the others of their gang, so that one write serves all.
_TOGETHER_S = 0.5

Placement = tuple[str, str, int]


@dataclass(slots=True)
class _Waiting:
    """Tasks that were created together, and those whose domains were written."""

    pool: str
    pods: dict[str, TaskAttempt] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    since: float | None = None


class BoundDomains:
    """The placements of one store whose pods have not all started."""

    def __init__(self, api: Api, namespace: str, store: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._store, self._clock = api, namespace, store, clock
        self._waiting: dict[Placement, _Waiting] = {}

    def expect(self, name: str, key: TaskAttempt, pool: str) -> None:
        """Write the domains of a pod once it is bound; `pool` is the name of its pool."""
        place = (key.workflow, key.group, key.attempt)
        self._waiting.setdefault(place, _Waiting(pool)).pods[name] = key

    @property
    def due(self) -> float:
        """The time at which tasks no longer wait for others of their gang."""
        return min((each.since + _TOGETHER_S for each in list(self._waiting.values()) if each.since), default=math.inf)

    def write(
        self,
        pools: Mapping[str, Pool],
        followed: Collection[str],
        pod: Callable[[str], TaskPod | None],
        labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Write the domains of pods that were bound since the last call; forget those that are no longer followed."""
        for place, waiting in list(self._waiting.items()):
            waiting.pods = {name: key for name, key in waiting.pods.items() if name in followed}
            found = {key.task: pod(name) for name, key in waiting.pods.items()}
            bound = {task: one.spec.node_name for task, one in found.items() if one is not None and one.spec.node_name}
            everything = len(bound) == len(waiting.pods)
            late = [one for one in found.values() if one is not None and one.spec.node_name and not _started(one)]
            pool = pools.get(waiting.pool)
            if (everything and not late) or (pool is not None and not pool.topology.levels):
                waiting.written = bound
            elif pool is None:
                continue  # not known yet
            elif bound.keys() - waiting.written.keys() and not self._early(waiting, everything):
                self._apply(place, waiting, pool, {task: (node, labels(node)) for task, node in bound.items()})
            if everything and bound.keys() <= waiting.written.keys():
                del self._waiting[place]

    def _early(self, waiting: _Waiting, everything: bool) -> bool:  # noqa: FBT001 - a private question
        if waiting.since is None:
            waiting.since = self._clock()
        return not everything and self._clock() < waiting.since + _TOGETHER_S

    def _apply(
        self, place: Placement, waiting: _Waiting, pool: Pool, nodes: Mapping[str, tuple[str, Mapping[str, str]]]
    ) -> None:
        workflow, group, attempt = place
        scene = ManifestContext(self._namespace, workflow, pool, store=self._store)
        # Tasks that have ended keep their keys: an apply takes away what it no longer states.
        waiting.nodes.update(nodes)
        apply(self._api, domain_values(scene, group, attempt, waiting.nodes), reclaim=True)
        waiting.written, waiting.since = {task: node for task, (node, _) in nodes.items()}, None


def _started(pod: TaskPod) -> bool:
    """Return whether a container of the pod has begun, and so has its values."""
    states = [each.state for each in pod.status.container_statuses or ()]
    return any(state.running is not None or state.terminated is not None for state in states)
