"""The leader lease: the right to drive workflows; fencing keeps a former holder from writing."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select, update

from coterie.errors import Conflict
from coterie.store.records import Lease
from coterie.store.tables import leases

# Built once, since every save executes it.
_CURRENT = select(leases).where(leases.c.name == bindparam("of"))


def acquire(tx: Connection, name: str, holder: str, now: float, ttl_s: float) -> Lease | None:
    """Acquire a lease that is free, expired or already one's own, with a new fence; None while another holds it."""
    known = current(tx, name)
    if known is not None and known.holder not in {"", holder} and known.expires_at > now:
        return None
    mine = Lease(name, holder, known.fence + 1 if known else 1, now + ttl_s)
    _write(tx, mine, new=known is None)
    return mine


def renew(tx: Connection, lease: Lease, now: float, ttl_s: float) -> Lease:
    """Extend a lease; it may have expired, as long as no other holder acquired it."""
    check(tx, lease.name, lease.fence)
    longer = Lease(lease.name, lease.holder, lease.fence, now + ttl_s)
    _write(tx, longer)
    return longer


def release(tx: Connection, lease: Lease) -> None:
    """Release a lease; do nothing when another holder has it."""
    known = current(tx, lease.name)
    if known is not None and known.fence == lease.fence:
        _write(tx, Lease(lease.name, "", lease.fence, 0.0))


def current(tx: Connection, name: str) -> Lease | None:
    """Return the lease as last written, None before the first one."""
    row = tx.execute(_CURRENT, {"of": name}).first()
    return None if row is None else Lease(row.name, row.holder, row.fence, row.expires_at)


def check(tx: Connection, name: str, fence: int) -> None:
    """Raise `Conflict` unless the fence is that of the current holder."""
    known = current(tx, name)
    if known is None or known.fence != fence or not known.holder:
        now = f'it is held by "{known.holder}"' if known and known.holder else "nobody holds it"
        raise Conflict(f"the {name}'s lease was lost: {now}, nothing was saved", "Acquire it again.")


def _write(tx: Connection, lease: Lease, *, new: bool = False) -> None:
    values = {"holder": lease.holder, "fence": lease.fence, "expires_at": lease.expires_at}
    if new:
        tx.execute(insert(leases), {"name": lease.name, **values})
    else:
        tx.execute(update(leases).where(leases.c.name == lease.name).values(values))
