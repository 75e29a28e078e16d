"""The reasons why gangs wait: a ComputeDomain that is not ready, else KAI's own; each is told once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from coterie.backends.base.driver import BackendEvent, News, TaskAttempt
from coterie.backends.kai.driver.objects import GangPodGroup, ObjectMeta
from coterie.backends.kai.driver.observation.refusal import refusal_of
from coterie.backends.shared.names import label_value
from coterie.errors import Reason
from coterie.lifecycle import Refused


class GangWaitReasons:
    """The reasons told so far, by the common name of a gang's PodGroup and ComputeDomain."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._unready: dict[str, str] = {}
        self._ready: set[str] = set()

    def domains(
        self,
        found: Mapping[str, tuple[ObjectMeta, str]],
        attempts: Iterable[TaskAttempt],
        unbound: Collection[TaskAttempt],
    ) -> Iterator[tuple[str, News]]:
        """Yield the ComputeDomains that are not ready: as the reason of gangs that wait, and as events of others."""
        followed = list(attempts)
        self._ready |= self._unready.keys() - found.keys()
        self._unready = {name: said for name, said in self._unready.items() if name in found}
        for name, (meta, said) in found.items():
            own = [key for key in followed if label_value(key.workflow) == meta.workflow]
            own = [key for key in own if label_value(key.group) == meta.group and key.attempt >= meta.attempt]
            if not own or self._unready.get(name) == said:
                continue
            self._unready[name] = said
            last, reason = max(own, key=lambda key: key.attempt), Reason.COMPUTE_DOMAIN_NOT_READY.value
            if any(key in unbound for key in own):
                yield last.workflow, Refused(last.group, last.attempt, reason, said)
            else:
                yield last.workflow, BackendEvent(reason, said, last.group, "", last.attempt)

    def refusals(
        self,
        changed: Collection[str],
        group: Callable[[str], GangPodGroup | None],
        unbound: Collection[TaskAttempt],
    ) -> Iterator[tuple[str, Refused]]:
        """Yield KAI's reasons for changed PodGroups that wait, and again for those whose domain has become ready."""
        ready, self._ready = self._ready, set()
        for name in ready:
            self._refused.pop(name, None)
        for name in dict.fromkeys([*changed, *ready]):
            known = group(name)
            if known is None:
                self._refused.pop(name, None)
                continue
            found = None if name in self._unready else refusal_of(known, unbound)
            if found is not None and self._refused.get(name) != found[1].message:
                self._refused[name] = found[1].message
                yield found
