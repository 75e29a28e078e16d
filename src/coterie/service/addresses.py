"""The addresses on which a service without tokens may listen."""

from __future__ import annotations

import ipaddress

from coterie.errors import UsageError


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, *, tokens: bool) -> None:
    """Raise `UsageError` for an address that other machines can reach while no tokens are required."""
    if not tokens and not is_loopback(host):
        raise UsageError(
            f"listening on {host} would give everyone access: there are no tokens yet",
            "Create one first: coterie token create NAME --role admin. Without tokens only 127.0.0.1 is allowed.",
        )
