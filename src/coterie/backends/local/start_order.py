"""The start order of attempts: those that start together, in the order of arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from coterie.backends.local.work_order import AttemptKey

Together = tuple[AttemptKey, ...]


@dataclass(slots=True)
class StartOrder:
    """The waiting attempts, by the attempts that they start together with."""

    _waiting: dict[Together, set[AttemptKey]] = field(default_factory=dict)

    def add(self, key: AttemptKey, together: Together) -> None:
        """Add a waiting attempt, last of all unless another of its set already waits."""
        self._waiting.setdefault(together, set()).add(key)

    def again(self, key: AttemptKey, together: Together) -> None:
        """Add a waiting attempt that was begun before: it is the first."""
        self._waiting = {together: {key, *self._waiting.get(together, ())}} | self._waiting

    def drop(self, key: AttemptKey, together: Together) -> None:
        """Remove a waiting attempt."""
        found = self._waiting.get(together, set())
        found.discard(key)
        if not found:
            self._waiting.pop(together, None)

    def next(self, running: int, most: int, known: Callable[[AttemptKey], bool]) -> Iterable[AttemptKey]:
        """Return the attempts that may begin now: all waiting ones of the first complete set, if they fit.

        A set of which some have begun does not wait for capacity: it was already selected. One that was accepted under
        a higher limit than the current one begins when nothing else runs. The order is strict: no set overtakes
        another.
        """
        for together, keys in self._complete(known):
            begun = len(keys) < len(together)
            if begun or not running or running + len(keys) <= most:
                return sorted(keys, key=together.index)
            break
        return ()

    def _complete(self, known: Callable[[AttemptKey], bool]) -> Iterator[tuple[Together, set[AttemptKey]]]:
        """Yield the complete sets; others were interrupted while they were accepted, and are submitted again."""
        return ((together, keys) for together, keys in self._waiting.items() if all(map(known, together)))
