"""The life cycle of a workflow as one pure state machine, the same for every backend.

A service keeps a `State` per workflow. For each observation it calls `step`, saves the new state, and then performs the
actions. After a crash it performs the `outstanding` actions.
"""

from coterie.lifecycle.actions import Action, Create, Delete, Enqueue, Go, Record, ReleaseTasks, Stop
from coterie.lifecycle.clock import deadline
from coterie.lifecycle.codec import VERSION, from_json, stored_tasks, to_json
from coterie.lifecycle.observations import (
    CancelAsked,
    Created,
    Ended,
    Gone,
    Lost,
    Observation,
    Placed,
    Recovered,
    Refused,
    Released,
    Rescued,
    RetryAsked,
    Running,
    Scheduled,
    Stopped,
    Submitted,
    Tick,
    Up,
)
from coterie.lifecycle.outstanding import outstanding, requests, unscheduled
from coterie.lifecycle.spec import ExitAction, GroupRules, Priority, Spec, TaskRules
from coterie.lifecycle.state import (
    Cancel,
    GroupState,
    Holding,
    PastAttempt,
    State,
    TaskState,
    Waiting,
    by_task,
    holdings,
    initial,
)
from coterie.lifecycle.state_encoder import EncodedState, StateEncoder
from coterie.lifecycle.status import LossCause, Presence, Status
from coterie.lifecycle.step import advance, step
from coterie.lifecycle.termination import terminated
from coterie.lifecycle.users import retry_fault

__all__ = [
    "VERSION",
    "Action",
    "Cancel",
    "CancelAsked",
    "Create",
    "Created",
    "Delete",
    "EncodedState",
    "Ended",
    "Enqueue",
    "ExitAction",
    "Go",
    "Gone",
    "GroupRules",
    "GroupState",
    "Holding",
    "LossCause",
    "Lost",
    "Observation",
    "PastAttempt",
    "Placed",
    "Presence",
    "Priority",
    "Record",
    "Recovered",
    "Refused",
    "ReleaseTasks",
    "Released",
    "Rescued",
    "RetryAsked",
    "Running",
    "Scheduled",
    "Spec",
    "State",
    "StateEncoder",
    "Status",
    "Stop",
    "Stopped",
    "Submitted",
    "TaskRules",
    "TaskState",
    "Tick",
    "Up",
    "Waiting",
    "advance",
    "by_task",
    "deadline",
    "from_json",
    "holdings",
    "initial",
    "outstanding",
    "requests",
    "retry_fault",
    "step",
    "stored_tasks",
    "terminated",
    "to_json",
    "unscheduled",
]
