"""Pools created through the API."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, delete, false, insert, select, update

from coterie.errors import Conflict, NotFound, did_you_mean
from coterie.store.records import Json, PoolRecord
from coterie.store.tables import pools, workflows

_SHOWN = 20
# Read for every request.
_EVERY = select(pools)


def every(tx: Connection) -> tuple[PoolRecord, ...]:
    """Return all pools, by name."""
    return tuple(sorted((PoolRecord(*row) for row in tx.execute(_EVERY)), key=lambda one: one.name))


def one(tx: Connection, name: str) -> PoolRecord:
    """Return a pool."""
    row = tx.execute(select(pools).where(pools.c.name == name)).first()
    if row is None:
        known = [other.name for other in every(tx)]
        have = f"Stored pools: {', '.join(known)}." if known else "No pools are stored."
        raise NotFound(f'there is no pool "{name}"', did_you_mean(name, known) or have)
    return PoolRecord(*row)


def put(tx: Connection, name: str, spec: Mapping[str, Json], at: float, version: int | None) -> tuple[PoolRecord, bool]:
    """Create or change a pool; return whether anything changed. `version` is the one it is based on."""
    row = tx.execute(select(pools).where(pools.c.name == name)).first()
    known = None if row is None else PoolRecord(*row)
    _expect(name, known, version)
    if known is None:
        new = PoolRecord(name, dict(spec), 1, at, at)
        values = {"spec": new.spec, "version": 1, "created_at": at, "updated_at": at}
        tx.execute(insert(pools), {"name": name, **values})
        return one(tx, name), True
    if known.spec == dict(spec):
        return known, False
    values = {"spec": dict(spec), "version": known.version + 1, "updated_at": at}
    tx.execute(update(pools).where(pools.c.name == name).values(values))
    return one(tx, name), True


def unchanged(tx: Connection, name: str, version: int) -> None:
    """Raise `Conflict` unless a pool still has the version that a submission was checked against."""
    now = tx.execute(select(pools.c.version).where(pools.c.name == name)).scalar()
    if now != version:
        became = "deleted" if now is None else "changed"
        raise Conflict(f'pool "{name}" was {became} in the meantime; nothing was stored', "Send it again.")


def remove(tx: Connection, name: str, version: int | None) -> None:
    """Delete a pool that no unfinished workflow uses."""
    _expect(name, one(tx, name), version)
    using = select(workflows.c.id).where(workflows.c.pool == name, workflows.c.finished == false())
    users = list(tx.execute(using.order_by(workflows.c.number)).scalars())
    if users:
        more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
        raise Conflict(
            f'pool "{name}" is in use by {", ".join(users[:_SHOWN])}{more}',
            "Wait until they end, or cancel them.",
            {"workflows": users},
        )
    tx.execute(delete(pools).where(pools.c.name == name))


def _expect(name: str, known: PoolRecord | None, version: int | None) -> None:
    if version is None or version == (known.version if known else 0):
        return
    now = f"is at version {known.version}" if known else "does not exist"
    wanted = f"version {version}" if version else "a new pool"
    raise Conflict(f'pool "{name}" {now}, not {wanted}', "Read it again and retry.")
