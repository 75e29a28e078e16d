"""The lease: who may drive workflows. A holder that was overtaken cannot write, however late it notices."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select, update

from coterie.errors import Conflict
from coterie.store.records import Lease
from coterie.store.tables import leases

# Built once: it is part of every save.
_CURRENT = select(leases).where(leases.c.name == bindparam("of"))


def acquire(tx: Connection, name: str, holder: str, now: float, ttl_s: float) -> Lease | None:
    """Take a lease that is free, expired or one's own, with a new fence; None while somebody else has it."""
    known = current(tx, name)
    if known is not None and known.holder not in {"", holder} and known.expires_at > now:
        return None
    mine = Lease(name, holder, known.fence + 1 if known else 1, now + ttl_s)
    _write(tx, mine, new=known is None)
    return mine


def renew(tx: Connection, lease: Lease, now: float, ttl_s: float) -> Lease:
    """Keep a lease for longer; it may have expired, as long as nobody took it."""
    check(tx, lease.name, lease.fence)
    longer = Lease(lease.name, lease.holder, lease.fence, now + ttl_s)
    _write(tx, longer)
    return longer


def release(tx: Connection, lease: Lease) -> None:
    """Leave a lease to whoever comes next; do nothing when somebody else has it."""
    known = current(tx, lease.name)
    if known is not None and known.fence == lease.fence:
        _write(tx, Lease(lease.name, "", lease.fence, 0.0))


def current(tx: Connection, name: str) -> Lease | None:
    """Return the lease as it was last written, None before the first time."""
    row = tx.execute(_CURRENT, {"of": name}).first()
    return None if row is None else Lease(row.name, row.holder, row.fence, row.expires_at)


def check(tx: Connection, name: str, fence: int) -> None:
    """Refuse a holder that is not the one that holds the lease now."""
    known = current(tx, name)
    if known is None or known.fence != fence or not known.holder:
        now = f'"{known.holder}" has it now' if known and known.holder else "nobody has it now"
        raise Conflict(f"the {name}'s lease was lost: {now}, nothing was saved", "Acquire it again.")


def _write(tx: Connection, lease: Lease, *, new: bool = False) -> None:
    values = {"holder": lease.holder, "fence": lease.fence, "expires_at": lease.expires_at}
    if new:
        tx.execute(insert(leases), {"name": lease.name, **values})
    else:
        tx.execute(update(leases).where(leases.c.name == lease.name).values(values))
