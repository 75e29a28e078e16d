"""The GPU limit of a pool, and the refusal of a gang that exceeds it."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.errors import Reason
from coterie.placement.refusal import Decision, Refusal, Verdict


@dataclass(frozen=True, slots=True)
class Quota:
    """The GPUs in use by others in the pool, and the limit for all together."""

    used: int
    limit: int

    def refused(self, wanted: int, *, running: int = 0, beside: int = 0) -> Decision | None:
        """Return the refusal of a gang with this many GPUs, or None for one within the limit."""
        if wanted <= running or self.used + beside + wanted <= self.limit:
            return None
        verdict = Verdict.IMPOSSIBLE if beside + wanted > self.limit else Verdict.WAITING
        refusal = Refusal(Reason.OVER_QUOTA, wanted=wanted, quota=(self.used + beside, self.limit))
        return Decision(verdict, refusal=refusal)
