"""Short forms of long names, such as `…5c6d.0` for a clique named by a UUID; imports no arrays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from coterie.topology.display_names import domain

MARK = "…"
# The mark as it is typed and as terminals without Unicode show it; a name that contains it is not shortened.
_PLAIN_MARK = "..."
NOTE = "Long names are shortened; -o wide shows them in full."

# Names up to this length are readable as they are.
_LONG = 20
_SAVING = 4
# Shorter fragments occur in too many other words to be searched for.
_LEAST = 4
_TOKEN = re.compile(r"[^-._/:]+")
# A longer token is an id rather than a word or a counter, and its last characters identify it.
_WORD = 8
_OF_ID = (4, 6, 8)
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def abbreviated(names: Iterable[str], *, longest: int = _LONG) -> dict[str, str]:
    """Return a distinct short form for each name, never longer than the name itself.

    The ending that long names share is replaced by a mark, and so is as much of their beginnings as possible while each
    form stays distinct. Without its marks, a form is the ending of exactly one name (ignoring the shared ending). Names
    of at most `longest` characters are left alone, and so is a name without others to compare with, since then any part
    of it may matter.
    """
    whole = dict.fromkeys(names)
    same = {name: name for name in whole}
    long = [name for name in whole if len(name) > longest]
    if len(whole) == 1 or not long or any(mark in name for name in whole for mark in (MARK, _PLAIN_MARK)):
        return same
    shared = _shared_end(long)
    cuts = {name: _cuts(name.removesuffix(shared), longest) for name in long}
    for step in range(max(map(len, cuts.values()))):
        ends = {name: each[min(step, len(each) - 1)] for name, each in cuts.items()}
        found = same | {name: _form(name, end, shared) for name, end in ends.items()}
        cut = [end for name, end in ends.items() if end + shared != name]
        if (
            all(len(end) >= _LEAST for end in cut)
            and _only_ends(whole, {end + shared for end in cut})
            and len(set(found.values())) == len(found)
        ):
            return found
    return same


class Abbreviations:
    """The names of one output in their short forms; `used` is true once one was shown: then `NOTE` is due."""

    def __init__(self, *kinds: Iterable[str]) -> None:
        """Shorten names; those of each kind (one level, the nodes) are kept distinct from each other."""
        self.used = False
        self._forms = {name: form for kind in _apart(kinds) for name, form in abbreviated(kind).items() if name != form}

    def name(self, name: str) -> str:
        """Return one name in its displayed form."""
        form = self._forms.get(name)
        if form is None:
            return name
        self.used = True
        return form

    def names(self, names: Iterable[str]) -> list[str]:
        """Return several names in their displayed forms."""
        return [self.name(name) for name in names]

    def domain(self, values: Sequence[str | None]) -> str:
        """Return the path of a domain in its displayed form."""
        return domain([None if value is None else self.name(value) for value in values])

    def sentence(self, text: str) -> str:
        """Return a sentence with the names in it in their displayed forms."""
        if not self._forms:
            return text
        return _LABEL_VALUE.sub(lambda found: self.name(found[0]), text)

    def note(self) -> Iterator[str]:
        """Yield the note that explains short forms, if the output contains any."""
        if self.used:
            yield NOTE


def full_name(shown: str, names: Iterable[str]) -> str:
    """Return the name that a short form copied from an output stands for; any other text is returned unchanged."""
    form = shown.replace(_PLAIN_MARK, MARK)
    if MARK not in form:
        return shown
    return next((name for name, short in abbreviated(names).items() if short == form), shown)


def shared_start(names: Sequence[str]) -> str:
    """Return the longest common prefix of the names."""
    # The first and the last name in sorted order share the shortest common prefix.
    first, last = min(names), max(names)
    differs = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differs, len(first))]


def _apart(kinds: Iterable[Iterable[str]]) -> list[set[str]]:
    """Return the names of each kind; kinds that share a name are merged, so that each name has one form."""
    found: list[set[str]] = []
    for kind in map(set, kinds):
        common = [other for other in found if other & kind]
        found = [other for other in found if not other & kind]
        found.append(kind.union(*common))
    return found


def _shared_end(names: Sequence[str]) -> str:
    """Return the common ending of the names, starting at a separator, if leaving it out shortens them enough."""
    end = shared_start([name[::-1] for name in names])[::-1]
    start = next((at for at, char in enumerate(end) if char in "-._/:"), len(end))
    # An ending that is a whole name would leave nothing of that name.
    end = end[start:] if end[start:] not in names else ""
    return end if len(end) > _SAVING else ""


def _cuts(stem: str, longest: int) -> list[str]:
    """Return the endings that may stand for a name, shortest first, the whole name last."""
    if len(stem) <= longest:
        return [stem]
    ends = []
    for token in reversed(list(_TOKEN.finditer(stem))):
        sizes = _OF_ID if len(token[0]) > _WORD else ()
        ends += [stem[token.end() - size :] for size in sizes]
        ends.append(stem[token.start() :])
    return [*ends, stem]


def _form(name: str, end: str, shared: str) -> str:
    """Return a name reduced to its ending, with marks for omitted parts, or the whole name if that saves too little."""
    before = MARK if len(end) + len(shared) < len(name) else ""
    form = f"{before}{end}{MARK if shared else ''}"
    return form if len(form) + _SAVING <= len(name) else name


def _only_ends(names: Iterable[str], ends: set[str]) -> bool:
    """Return whether each ending belongs to exactly one name."""
    found: Counter[str] = Counter()
    for size in {len(end) for end in ends}:
        found.update(name[-size:] for name in names if len(name) >= size)
    return all(found[end] == 1 for end in ends)
