"""The service's persistent state: workflows, events, pools, tokens and leases, in SQLite or Postgres."""

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
