"""The kinds that this operator owns, kept up to date from the registrations of webhooks.

A kind that another operator judges is left to that operator for as long as it does, whichever of the two was there
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import structlog

from coterie.kube.kinds import ObjectKind
from coterie.operator.watches import SharedWatch
from coterie.operator.webhook.registration import other_owner

_log = structlog.get_logger("coterie.operator")


class Ownership:
    """The owned kinds among candidates: all of them without a watch, none before the registrations were read.

    `own` are the names of this operator's own registrations.
    """

    def __init__(self, candidates: Sequence[ObjectKind], own: Iterable[str], registrations: SharedWatch | None) -> None:
        self._candidates = tuple(candidates)
        self._own = frozenset(own)
        self._owners: dict[str, str] | None = None if registrations else {}
        self._subscribers: list[Callable[[frozenset[str]], None]] = []
        if registrations is not None:
            watch = registrations
            watch.subscribe(lambda _: self._judge(watch), lambda: self._judge(watch))

    def subscribe(self, on_change: Callable[[frozenset[str]], None]) -> None:
        """Add a subscriber, who gets the names of the kinds that were gained or lost; only before the watch starts."""
        self._subscribers.append(on_change)

    @property
    def kinds(self) -> tuple[ObjectKind, ...]:
        """The kinds that are owned now."""
        return tuple(kind for kind in self._candidates if self.owns(kind.name))

    def owns(self, name: str) -> bool:
        """Return whether a kind is owned now."""
        owners = self._owners
        return owners is not None and name not in owners and any(kind.name == name for kind in self._candidates)

    def _judge(self, registrations: SharedWatch) -> None:
        found = registrations.objects()
        if found is None:
            return  # what cannot be read says nothing about owners
        before = {kind.name for kind in self.kinds}
        there = list(found.values())
        known, owners = self._owners, {}
        for kind in self._candidates:
            if owner := other_owner(kind, there, self._own):
                owners[kind.name] = owner
                if known is None or kind.name not in known:
                    _log.warning("kind left to another operator", kind=kind.name, webhook=owner, override="--own")
            elif known is not None and kind.name in known:
                _log.info("kind taken over", kind=kind.name, no_longer_owned_by=known[kind.name])
        self._owners = owners
        changed = before ^ {kind.name for kind in self.kinds}
        for told in self._subscribers if changed else ():
            told(frozenset(changed))
