"""What the service remembers: workflows, events, pools, tokens and who leads, in SQLite or Postgres."""

from coterie.store.records import (
    EVERYTHING,
    LEADER,
    Change,
    Event,
    Lease,
    NewEvent,
    NewWorkflow,
    Page,
    Placement,
    PoolRecord,
    Query,
    Slot,
    Summary,
    Token,
    Upload,
    Wish,
    Workflow,
)
from coterie.store.store import Store

__all__ = [
    "EVERYTHING",
    "LEADER",
    "Change",
    "Event",
    "Lease",
    "NewEvent",
    "NewWorkflow",
    "Page",
    "Placement",
    "PoolRecord",
    "Query",
    "Slot",
    "Store",
    "Summary",
    "Token",
    "Upload",
    "Wish",
    "Workflow",
]
