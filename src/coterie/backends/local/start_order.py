"""Whose turn it is: those that start together, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from coterie.backends.local.work_order import Key

Together = tuple[Key, ...]


@dataclass(slots=True)
class Turns:
    """The attempts that wait, by those that they start together with."""

    _waiting: dict[Together, set[Key]] = field(default_factory=dict)

    def add(self, key: Key, together: Together) -> None:
        """Let an attempt wait, last of all unless another of its company waits already."""
        self._waiting.setdefault(together, set()).add(key)

    def again(self, key: Key, together: Together) -> None:
        """Let an attempt wait that had its turn before: it is the first."""
        self._waiting = {together: {key, *self._waiting.get(together, ())}} | self._waiting

    def drop(self, key: Key, together: Together) -> None:
        """Let an attempt wait no longer."""
        found = self._waiting.get(together, set())
        found.discard(key)
        if not found:
            self._waiting.pop(together, None)

    def next(self, running: int, most: int, known: Callable[[Key], bool]) -> Iterable[Key]:
        """Return those who may begin now: all who still wait of the first company that is complete, if they fit.

        A company of which some have begun does not wait for room: it has had its turn. One that was accepted when there
        was more room than there ever is now begins when nothing else runs. Nobody overtakes.
        """
        for together, keys in self._complete(known):
            begun = len(keys) < len(together)
            if begun or not running or running + len(keys) <= most:
                return sorted(keys, key=together.index)
            break
        return ()

    def _complete(self, known: Callable[[Key], bool]) -> Iterator[tuple[Together, set[Key]]]:
        """Yield the companies that are all here; others were cut off while they were accepted, and come again."""
        return ((together, keys) for together, keys in self._waiting.items() if all(map(known, together)))
