"""The exceptions that Coterie raises on purpose, and the closed list of its reason codes.

CoterieError
├── SpecErrors     the user's document is invalid; carries every fault, each with its place
├── UsageError     the call itself is wrong (a missing option, two that exclude each other)
├── NotFound       a file, pool or node that was named does not exist
├── Unavailable    try again later
├── Conflict       another caller was first, or the current state forbids it
│   ├── PlanStale  a plan to be carried out no longer describes what would happen
│   └── NeverFits  a workflow can never run in its pool
├── Unauthorized   the caller is unknown
└── Forbidden      the caller is known but not allowed to do this

A `Fault` is data first: code, message, place, hint. Text with frames and colours is made once, at the edge.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self


class Mention(NamedTuple):
    """An option or a command that a hint names, as data; `about` is the name that the command is called with."""

    words: str
    about: str = ""


class Hint(str):
    """A hint that names options or commands; its mentions serve callers who have other words for them."""

    __slots__ = ("mentions",)
    mentions: tuple[Mention, ...]

    def __new__(cls, text: str, *mentions: str | Mention) -> Self:
        """Make a hint of its text and of what that names."""
        hint = super().__new__(cls, text)
        hint.mentions = tuple(Mention(one) if isinstance(one, str) else one for one in mentions)
        return hint


class Reason(StrEnum):
    """The reason of a refusal: one name for API codes, conditions and documentation pages."""

    INVALID_SPEC = "InvalidSpec"
    UNKNOWN_LEVEL = "UnknownLevel"
    UNSUPPORTED = "Unsupported"
    LEVEL_LOST = "LevelLost"
    NODES_UNLABELLED = "NodesUnlabelled"
    NODES_EXCLUDED = "NodesExcluded"
    NEVER_FITS = "NeverFits"
    NO_CAPACITY = "NoCapacity"
    NO_DOMAIN_FITS = "NoDomainFits"
    GROUPS_CONFLICT = "GroupsConflict"
    OVER_QUOTA = "OverQuota"
    GANG_INCOMPLETE = "GangIncomplete"
    COMPUTE_DOMAIN_NOT_READY = "ComputeDomainNotReady"
    COMPUTE_DOMAIN_BLOCKED = "ComputeDomainBlocked"
    SCHEDULER_REFUSED = "SchedulerRefused"
    UNDECIDED = "Undecided"


class FieldError(StrEnum):
    """The type of a field error of a Kubernetes object, as its API server names it."""

    INVALID = "Invalid"
    REQUIRED = "Required"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "NotFound"
    DUPLICATE = "Duplicate"
    NOT_SUPPORTED = "NotSupported"
    INTERNAL = "Internal"


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a user's text; lines and columns count from one."""

    file: str
    line: int | None = None
    column: int | None = None
    length: int = 1
    frame: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of an input, with a hint for correcting it.

    `path` is the position in the user's document. For a Kubernetes object `type` is the error type of its API, and
    `field` is the path that the API names where it differs: a rule may report the parent, or the same field in a newer
    version.
    """

    message: str
    code: Reason = Reason.INVALID_SPEC
    hint: str = ""
    place: Place | None = None
    path: tuple[str | int, ...] = ()
    type: FieldError | None = None
    field: str = ""

    def at(self, place: Place) -> Fault:
        """Return the same fault, located."""
        return replace(self, place=place)


def field_path(path: Iterable[str | int]) -> str:
    """Return a path as Kubernetes writes it: `spec.template.cliques[0].topologyConstraint`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the user that stops nothing."""

    code: str
    message: str
    place: Place | None = None
    path: tuple[str | int, ...] = ()

    def at(self, place: Place) -> Notice:
        """Return the same warning, located."""
        return replace(self, place=place)


class CoterieError(Exception):
    """The base of all exceptions raised on purpose; its text is one line, ready for `error: …`.

    `file` is the file that cannot be used as a whole.
    """

    def __init__(self, message: str, hint: str = "", *, file: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.file = file


class SpecErrors(CoterieError):  # noqa: N818 - it carries many
    """Raised when a document is invalid, with all of its faults at once."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(faults)


class UsageError(CoterieError):
    """Raised when the call cannot be carried out as written."""


class NotFound(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a named object does not exist."""


class Unavailable(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a later retry may help."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was probably meant to be, if there is one."""
    pool = list(known)
    folded = {candidate.casefold().replace("_", "-"): candidate for candidate in pool}
    if (same := folded.get(word.casefold().replace("_", "-"))) is not None:
        return same
    close = difflib.get_close_matches(word, pool, n=1, cutoff=0.7)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `Did you mean "x"?`, or an empty string when no known word is close."""
    guess = nearest(word, known)
    return f'Did you mean "{guess}"?' if guess else ""


class Conflict(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a valid call conflicts with the stored state; `details` are for programs."""

    def __init__(self, message: str, hint: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint)
        self.details = dict(details or {})


class PlanStale(Conflict):
    """Raised when a workflow is to be submitted as planned, and the plan would be different now."""


class NeverFits(Conflict):
    """Raised when a workflow can never run in its pool as it is, and was not submitted by force."""


class Unauthorized(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller provides no credentials, or invalid ones."""


class Forbidden(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a caller's role does not permit the call."""
