"""Hints that serve both callers: what they say about the command line is also said in the words of the API."""

from __future__ import annotations

import re

# An option of the command line, and the parameter that says the same in a request.
_OPTIONS = {
    "--pool": "?pool=",
    "--set": "?set=",
    "--set-string": "?set_string=",
    "--label": "?label=",
    "--priority": "?priority=",
    "--plan": "?plan=",
    "--force": "?force=true",
    "--dry-run": "?dry_run=true",
}
_COMMANDS = (
    (re.compile(r"\bcoterie list\b"), "GET /api/v1/workflows"),
    (re.compile(r"\bcoterie cancel ([\w.-]+)"), r"POST /api/v1/workflows/\1/cancel"),
    (re.compile(r"\bcoterie pool list\b"), "GET /api/v1/pools"),
    (re.compile(r"\bcoterie pool apply\b"), "PUT /api/v1/pools/NAME"),
)
_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")


def for_both(message: str, hint: str) -> str:
    """Return a hint that also names what a request holds instead of the options and commands in it or in its error."""
    said = f"{message} {hint}"
    found = [_OPTIONS[option] for option in _OPTION.findall(said) if option in _OPTIONS]
    found += [match.expand(path) for command, path in _COMMANDS for match in command.finditer(said)]
    if not found:
        return hint
    return f"{hint} (In the API: {', '.join(dict.fromkeys(found))})".strip()
