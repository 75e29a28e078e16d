"""Samples of the use of pools over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from coterie.store.records import PoolSample
from coterie.store.tables import samples


def add(tx: Connection, new: Sequence[PoolSample], oldest: float) -> None:
    """Store samples, in place of those of the same pools and times, and drop those from before `oldest`."""
    tx.execute(delete(samples).where(samples.c.at < oldest))
    same = (samples.c.at.in_({one.at for one in new}), samples.c.pool.in_({one.pool for one in new}))
    tx.execute(delete(samples).where(*same))
    if new:
        tx.execute(insert(samples), [asdict(one) for one in new])


def of(tx: Connection, pool: str, since: float) -> tuple[PoolSample, ...]:
    """Return the samples of a pool since a time, oldest first."""
    wanted = select(samples).where(samples.c.pool == pool, samples.c.at >= since).order_by(samples.c.at)
    return tuple(PoolSample(*row) for row in tx.execute(wanted))
