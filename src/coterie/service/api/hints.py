"""Hints for both kinds of callers: what they name of the command line is also said in the words of the API."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.errors import Hint

# What a request holds or asks instead of an option or a command.
_IN_API = {
    "--pool": "?pool=",
    "--set": "?set=",
    "--set-string": "?set_string=",
    "--force": "?force=true",
    "--dry-run": "?dry_run=true",
    "coterie list": "GET /api/v1/workflows",
    "coterie cancel": "POST /api/v1/workflows/{about}/cancel",
    "coterie pool list": "GET /api/v1/pools",
    "coterie pool apply": "PUT /api/v1/pools/NAME",
}


def in_api(hint: str) -> list[str]:
    """Return what a request holds instead of what a hint names."""
    mentions = hint.mentions if isinstance(hint, Hint) else ()
    return [_IN_API[one.words].format(about=one.about) for one in mentions]


def for_both(hint: str, words: Sequence[str]) -> str:
    """Return a hint with the words of the API."""
    return f"{hint}{_remark(words)}".strip()


def for_commands(hint: str, words: Sequence[str]) -> str:
    """Return a hint that was made for both without the words of the API."""
    return hint.removesuffix(_remark(words).strip()).rstrip()


def _remark(words: Sequence[str]) -> str:
    return f" (In the API: {', '.join(words)})" if words else ""
