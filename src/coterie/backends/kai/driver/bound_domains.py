"""The domains of bound pods, written where their containers wait for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.objects import AnyObject, TaskPod
from coterie.backends.kai.driver.own_objects import apply_own
from coterie.backends.kai.manifests.domain_values import domain_values
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.config.configuration import Pool
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.kinds import CONFIG_MAP
from coterie.kube.reads import find

# How long tasks that are bound wait for the others of their gang, so that one write serves all. After each write of a
# gang they wait twice as long, since a scheduler that takes its time would otherwise cost many.
_TOGETHER_S, _LONGEST_S = 0.5, 4.0
# How long to wait before a failed write is repeated.
_PAUSE_S = 1.0

Placement = tuple[str, str, int]


@dataclass(slots=True)
class _Waiting:
    """Tasks that were created together, and those whose domains were written, to an object with this `uid`."""

    pool: str
    pods: dict[str, TaskAttempt] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    since: float | None = None
    together: float = _TOGETHER_S
    uid: str = ""
    failure: str = ""
    again: float = 0.0

    @property
    def due(self) -> float:
        """The time at which there is something to write, as far as it is known."""
        if self.failure:
            return self.again
        return math.inf if self.since is None else self.since + self.together


class BoundDomains:
    """The placements of one store whose pods have not all started."""

    def __init__(self, api: Api, namespace: str, store: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._store, self._clock = api, namespace, store, clock
        self._waiting: dict[Placement, _Waiting] = {}

    def expect(self, name: str, key: TaskAttempt, pool: str) -> None:
        """Write the domains of a pod once it is bound; `pool` is the name of its pool."""
        waiting = self._waiting.setdefault((key.workflow, key.group, key.attempt), _Waiting(pool))
        waiting.pods[name] = key
        # Tasks that are created again have an empty ConfigMap.
        waiting.written.pop(key.task, None)

    @property
    def due(self) -> float:
        """The time at which tasks no longer wait for others of their gang, or a failed write is repeated."""
        return min((each.due for each in list(self._waiting.values())), default=math.inf)

    @property
    def problems(self) -> list[str]:
        """The reasons why bound tasks do not get their domains, and so do not start."""
        return [each.failure for each in self._waiting.values() if each.failure]

    def write(
        self,
        pools: Mapping[str, Pool],
        followed: Collection[str],
        pod: Callable[[str], TaskPod | None],
        labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Write the domains of pods that were bound since the last call; forget those that are no longer followed.

        One that cannot be written is told by `problems`, and tried again after a pause.
        """
        for place, waiting in list(self._waiting.items()):
            waiting.pods = {name: key for name, key in waiting.pods.items() if name in followed}
            if waiting.pods and waiting.again > self._clock():
                continue
            waiting.failure, waiting.again = "", 0.0
            try:
                self._write(place, waiting, pools.get(waiting.pool), {name: pod(name) for name in waiting.pods}, labels)
            except CoterieError as error:
                waiting.failure, waiting.again, waiting.uid = str(error), self._clock() + _PAUSE_S, ""

    def _write(
        self,
        place: Placement,
        waiting: _Waiting,
        pool: Pool | None,
        pods: Mapping[str, TaskPod | None],
        labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        found = {waiting.pods[name].task: one for name, one in pods.items() if one is not None and one.spec.node_name}
        bound = {task: one.spec.node_name for task, one in found.items()}
        everything = len(bound) == len(waiting.pods)
        if everything and all(map(_started, found.values())):
            waiting.written = bound
        elif not bound.keys() - waiting.written.keys():
            waiting.since = None
        elif not self._early(waiting, everything):
            if pool is None:
                message = (
                    f'pool "{waiting.pool}" or its ClusterTopology is not known here: bound tasks of {place[0]} wait'
                )
                raise Unavailable(message, "The service keeps trying.")
            self._apply(place, waiting, pool, {task: (node, labels(node)) for task, node in bound.items()})
        if everything and bound.keys() <= waiting.written.keys():
            del self._waiting[place]

    def _early(self, waiting: _Waiting, everything: bool) -> bool:  # noqa: FBT001 - a private question
        if waiting.since is None:
            waiting.since = self._clock()
        return not everything and self._clock() < waiting.since + waiting.together

    def _apply(
        self, place: Placement, waiting: _Waiting, pool: Pool, nodes: Mapping[str, tuple[str, Mapping[str, str]]]
    ) -> None:
        workflow, group, attempt = place
        scene = ManifestContext(self._namespace, workflow, pool, store=self._store)
        # Tasks that have ended keep their keys: an apply takes away what it no longer states.
        waiting.nodes.update(nodes)
        manifest = domain_values(scene, group, attempt, waiting.nodes)
        # Without levels there is no ConfigMap, unless the pool had some when the pods were created: they wait for it.
        if pool.topology.levels or self._exists(manifest["metadata"]["name"]):
            waiting.uid = apply_own(self._api, manifest, waiting.uid)
        waiting.written, waiting.since = {task: node for task, (node, _) in nodes.items()}, None
        waiting.together = min(2 * waiting.together, _LONGEST_S)

    def _exists(self, name: str) -> bool:
        return find(self._api, CONFIG_MAP, name, AnyObject, self._namespace) is not None


def _started(pod: TaskPod) -> bool:
    """Return whether a container of the pod has begun, and so has its values."""
    states = [each.state for each in pod.status.container_statuses or ()]
    return any(state.running is not None or state.terminated is not None for state in states)
