"""Who may do what: tokens and roles.

A token is a long random text that is shown once; the store keeps its SHA-256, which is enough for a secret that nobody
chose. Tokens are compared by looking the hash up, so the time it takes tells nothing about the text.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from coterie.errors import Forbidden, Unauthorized, UsageError, did_you_mean
from coterie.store import Store, Token

_PREFIX = "coterie_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


class Role(StrEnum):
    """What a caller may do: look; also submit and change what is one's own; also everything else."""

    VIEWER = "viewer"
    USER = "user"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Tell whether this role may do what another may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    role: Role

    @property
    def known_as(self) -> str:
        """The name under which events say what the caller did; empty where everybody is the same caller."""
        return "" if self == LOCAL else self.name

    def need(self, role: Role) -> None:
        """Raise `Forbidden` unless the caller has this role or a larger one."""
        if not self.role.covers(role):
            raise Forbidden(f"this needs the role {role}, and {self.name} has {self.role}", "Use another token.")

    def need_own(self, owner: str) -> None:
        """Raise `Forbidden` unless the caller owns something, or is an admin."""
        self.need(Role.USER)
        if self.role is not Role.ADMIN and self.name != owner:
            raise Forbidden(f"this belongs to {owner}, and {self.name} is not an admin", "Ask its owner, or an admin.")


# Whoever reaches a loopback address without tokens is somebody at this machine.
LOCAL = Caller("local", Role.ADMIN)


def new_token(store: Store, name: str, role: str, *, now: float, owner: str = "", expires: float | None = None) -> str:
    """Make a token and return its text, which is kept nowhere. `owner` is whose workflows it may change."""
    if role not in list(Role):
        hint = f"Roles are: {', '.join(Role)}. {did_you_mean(role, list(Role))}".strip()
        raise UsageError(f'there is no role "{role}"', hint)
    for text in (name, owner or name):
        if not _NAME.fullmatch(text):
            hint = "Use 1 to 63 letters, digits and the characters . _ @ -"
            raise UsageError(f'"{text[:80]}" cannot be the name of a user', hint)
    if expires is not None and expires <= now:
        raise UsageError("the token would have expired already", "Give a time in the future.")
    text = _PREFIX + secrets.token_urlsafe(32)
    store.add_token(Token(secrets.token_hex(8), name, digest(text), role, owner or name, now, expires))
    return text


def digest(text: str) -> str:
    """Return what the store keeps of a token."""
    return hashlib.sha256(text.encode()).hexdigest()


def caller_of(store: Store, header: str | None, *, open_to_all: bool, now: float) -> Caller:
    """Return who sends an Authorization header; raise `Unauthorized` where it does not say who.

    `open_to_all` needs no header, until the store holds a token: the first one that is made closes the door.
    """
    if header is None:
        if open_to_all and not store.tokens():
            return LOCAL
        raise Unauthorized("a token is needed", "Send the header `Authorization: Bearer TOKEN`.")
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Unauthorized(
            "the Authorization header holds no bearer token", "Send the header `Authorization: Bearer TOKEN`."
        )
    token = store.token_by_hash(digest(text.strip()))
    if token is None or token.role not in list(Role):
        raise Unauthorized("the token is not valid", "Ask an admin for a new one.")
    if token.expires_at is not None and token.expires_at <= now:
        raise Unauthorized("the token has expired", "Ask an admin for a new one.")
    return Caller(token.owner, Role(token.role))
