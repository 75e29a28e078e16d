"""API tokens, identified by the hash of their secret."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, or_, select

from coterie.errors import Conflict, NotFound
from coterie.store.records import Token
from coterie.store.tables import tokens


def add(tx: Connection, token: Token) -> None:
    """Store a token whose id, name and hash are new."""
    same = or_(tokens.c.id == token.id, tokens.c.name == token.name, tokens.c.hash == token.hash)
    if tx.execute(select(tokens.c.id).where(same)).first() is not None:
        raise Conflict(f'there is already a token "{token.name}"', "Choose another name, or delete the old token.")
    tx.execute(insert(tokens), asdict(token))


def every(tx: Connection) -> tuple[Token, ...]:
    """Return all tokens, the oldest first."""
    return tuple(Token(*row) for row in tx.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id)))


def by_hash(tx: Connection, value: str) -> Token | None:
    """Return the token with this hash."""
    row = tx.execute(select(tokens).where(tokens.c.hash == value)).first()
    return None if row is None else Token(*row)


def remove(tx: Connection, ident: str) -> None:
    """Delete a token."""
    if not tx.execute(delete(tokens).where(tokens.c.id == ident)).rowcount:
        raise NotFound(f'there is no token "{ident}"', "List them: coterie token list")
