"""Small values for the store's tests."""

from __future__ import annotations

from typing import Any

from coterie.store import Lease, NewWorkflow, Store, WorkflowChange, WorkflowRecord

NOW = 1_700_000_000.0


def new(name: str = "train", **fields: Any) -> NewWorkflow:
    """Return a workflow to submit; every field can be given."""
    given: dict[str, Any] = {
        "pool": "gb200",
        "owner": "ann",
        "priority": "NORMAL",
        "submitted_at": NOW,
        "status": "PENDING",
        "source": b"workflow: {}",
        "file": "w.yaml",
        "spec": {"version": 1, "groups": []},
        "state": {"version": 1, "groups": []},
        **fields,
    }
    return NewWorkflow(name, **given)


def change(workflow: WorkflowRecord, status: str = "RUNNING", **fields: Any) -> WorkflowChange:
    """Return the next state of a workflow."""
    given: dict[str, Any] = {"state": {"version": 1, "status": status}, **fields}
    return WorkflowChange(workflow.id, workflow.version, status, **given)


def submitted(store: Store, name: str = "train", **fields: Any) -> WorkflowRecord:
    """Submit a workflow."""
    return store.submit(new(name, **fields))[0]


def leading(store: Store, holder: str = "me", now: float = NOW, ttl_s: float = 10.0) -> Lease:
    """Take the lease."""
    lease = store.acquire(holder, now, ttl_s)
    assert lease is not None
    return lease


def finish(store: Store, workflow: WorkflowRecord, lease: Lease) -> None:
    """Let a workflow end."""
    store.save([change(workflow, "COMPLETED", finished=True, ended_at=NOW)], lease.fence)
