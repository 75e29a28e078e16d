"""Authentication and authorisation: tokens and roles.

A token is a long random text that is shown once; the store keeps its SHA-256, which is enough for a random secret.
Tokens are compared by looking up the hash, so the time it takes reveals nothing about the text.
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
    """The permissions of a caller: read; also submit and change one's own; also everything else."""

    VIEWER = "viewer"
    USER = "user"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Return whether this role includes another."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request."""

    name: str
    role: Role

    @property
    def known_as(self) -> str:
        """The name of the caller in events; empty where all callers are the same."""
        return "" if self == LOCAL else self.name

    def need(self, role: Role) -> None:
        """Raise `Forbidden` unless the caller has this role or a larger one."""
        if not self.role.covers(role):
            raise Forbidden(f"this needs the role {role}, and {self.name} has {self.role}", "Use another token.")

    def need_own(self, owner: str) -> None:
        """Raise `Forbidden` unless the caller owns an object, or is an admin."""
        self.need(Role.USER)
        if self.role is not Role.ADMIN and self.name != owner:
            raise Forbidden(f"this belongs to {owner}, and {self.name} is not an admin", "Ask its owner, or an admin.")


# A caller on a loopback address without tokens is a user of this machine.
LOCAL = Caller("local", Role.ADMIN)


def new_token(store: Store, name: str, role: str, *, now: float, owner: str = "", expires: float | None = None) -> str:
    """Create a token and return its text, which is not stored; `owner` is the owner of the workflows it may change."""
    if role not in list(Role):
        hint = f"Roles are: {', '.join(Role)}. {did_you_mean(role, list(Role))}".strip()
        raise UsageError(f'there is no role "{role}"', hint)
    if LOCAL.name in (name, owner):
        raise UsageError(f'"{LOCAL.name}" is the name of callers without a token', "Choose another name.")
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
    """Return the stored hash of a token."""
    return hashlib.sha256(text.encode()).hexdigest()


def caller_of(store: Store, header: str | None, *, open_to_all: bool, now: float) -> Caller:
    """Return the caller of an Authorization header; raise `Unauthorized` where it identifies none.

    `open_to_all` needs no header, until the store holds a token: the first one that is created ends open access.
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
