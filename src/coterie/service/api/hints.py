"""Hints for both kinds of callers: options and commands with their equivalents in the API."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.errors import Hint

# The request fields and calls that replace an option or a command.
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
    """Return the equivalent of a hint's options and commands in a request."""
    mentions = hint.mentions if isinstance(hint, Hint) else ()
    return [_IN_API[one.words].format(about=one.about) for one in mentions]


def for_both(hint: str, words: Sequence[str]) -> str:
    """Return a hint with the equivalents in the API."""
    return f"{hint}{_remark(words)}".strip()


def for_commands(hint: str, words: Sequence[str]) -> str:
    """Return a hint for both kinds of callers without the equivalents in the API."""
    return hint.removesuffix(_remark(words).strip()).rstrip()


def _remark(words: Sequence[str]) -> str:
    return f" (In the API: {', '.join(words)})" if words else ""
