"""The service's persistent state: workflows, events, pools, tokens and leases, in SQLite or Postgres."""

from coterie.store.records import (
    EVERYTHING,
    LEADER,
    EventRecord,
    Lease,
    NewEvent,
    NewWorkflow,
    PlacementRecord,
    PoolRecord,
    RequestRecord,
    Slot,
    Summary,
    Token,
    Upload,
    WorkflowChange,
    WorkflowPage,
    WorkflowQuery,
    WorkflowRecord,
)
from coterie.store.store import Store

__all__ = [
    "EVERYTHING",
    "LEADER",
    "EventRecord",
    "Lease",
    "NewEvent",
    "NewWorkflow",
    "PlacementRecord",
    "PoolRecord",
    "RequestRecord",
    "Slot",
    "Store",
    "Summary",
    "Token",
    "Upload",
    "WorkflowChange",
    "WorkflowPage",
    "WorkflowQuery",
    "WorkflowRecord",
]
