"""The work orders of a workflow group on given nodes; pure, nothing is started here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.backends.base.driver import TaskPlacement
from coterie.backends.base.settings import DEFAULT_GRACE_S, DEFAULT_LOG
from coterie.backends.local.work_order import AttemptKey, WorkOrder, order_faults
from coterie.backends.shared.task_environment import domain_variable, identity, reserved_notices
from coterie.backends.shared.task_files import contents_of
from coterie.errors import Fault, NotFound, Notice, SpecErrors
from coterie.frontends.workflow.read import Workflow, located
from coterie.frontends.workflow.rules import WorkflowGroup, WorkflowTask
from coterie.frontends.workflow.tokens import INPUT, TokenReplacement, TokenValues, unread_faults, uuid_of
from coterie.frontends.workflow.values import suggestion

# All tasks are on this machine, whatever nodes they represent.
HOST = "127.0.0.1"
DEVICES = "CUDA_VISIBLE_DEVICES"

# How many workflows are indexed at a time.
_INDEXES = 16


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow: the values that its groups share.

    `local` has the bytes of every `localpath`; `sources` has, for each task that others read from, the attempt whose
    output they read; `attempts` has the number of each task's attempt where that is not 1.
    """

    workflow_id: str
    local: Mapping[str, bytes] = field(default_factory=dict)
    sources: Mapping[str, AttemptKey] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    exec_timeout_s: float | None = None
    grace_s: float = DEFAULT_GRACE_S
    log_bytes: int = DEFAULT_LOG
    timestamps: bool = False


def orders_for(
    workflow: Workflow, group: str, seats: Mapping[str, TaskPlacement], run: WorkflowRun
) -> tuple[WorkOrder, ...]:
    """Return the orders of a group's tasks that have a node; raise `SpecErrors` with every fault."""
    index = _indexed(workflow)
    team = index.teams.get(group)
    if team is None:
        raise NotFound(
            f'the workflow has no group "{group}"', suggestion(group, [each.name for each in workflow.teams])
        )
    orders: list[WorkOrder] = []
    faults: list[Fault] = []
    for order, wrong in _drawn_up(index, team, seats, run):
        orders.append(order)
        faults += wrong
    if faults:
        raise SpecErrors(located(faults, workflow.document))
    return tuple(orders)


def start_faults(workflow: Workflow, run: WorkflowRun) -> Iterator[Fault]:
    """Yield the faults that would appear only when tasks are started, without keeping the orders of all of them."""
    index = _indexed(workflow)
    for team in workflow.teams:
        seats = {member.name: TaskPlacement("node") for member in team.members}
        for _, wrong in _drawn_up(index, team, seats, run):
            yield from located(wrong, workflow.document)


@dataclass(frozen=True, slots=True)
class _WorkflowIndex:
    """The groups of a workflow by name, the ranks of their tasks, and this machine as the host of every task."""

    workflow: Workflow
    teams: Mapping[str, WorkflowGroup]
    ranks: Mapping[str, Mapping[str, int]]
    hosts: Mapping[str, str]


_indexes: OrderedDict[int, _WorkflowIndex] = OrderedDict()


def _indexed(workflow: Workflow) -> _WorkflowIndex:
    """Return the index of a workflow, cached for the latest ones: each of its groups asks for it."""
    found = _indexes.get(id(workflow))
    if found is None or found.workflow is not workflow:
        found = _WorkflowIndex(
            workflow,
            {team.name: team for team in workflow.teams},
            {team.name: {member.name: rank for rank, member in enumerate(team.members)} for team in workflow.teams},
            {member.name: HOST for team in workflow.teams for member in team.members},
        )
        _indexes[id(workflow)] = found
        while len(_indexes) > _INDEXES:
            _indexes.popitem(last=False)
    return found


def _values(index: _WorkflowIndex, run: WorkflowRun) -> TokenValues:
    hosts = {**index.hosts, **run.hosts} if run.hosts else index.hosts
    return TokenValues(run.workflow_id, uuid_of("local", run.workflow_id), hosts)


def _drawn_up(
    index: _WorkflowIndex, team: WorkflowGroup, seats: Mapping[str, TaskPlacement], run: WorkflowRun
) -> Iterator[tuple[WorkOrder, Sequence[Fault]]]:
    """Yield the order of each task that has a node, one at a time, with its faults."""
    values, ranks = _values(index, run), index.ranks[team.name]
    # One text for all, since each task lists as many hosts as there are tasks.
    hosts = ",".join(map(values.hosts.__getitem__, ranks))
    for rank in sorted(ranks[name] for name in seats if name in ranks):
        member = team.members[rank]
        filling = TokenReplacement(values, member)
        order = _order(filling, team, rank, seats[member.name], run, hosts)
        refused = [
            Fault(f'task "{member.name}": {message}', path=(*member.path, *_written(where, member)), hint=hint)
            for message, hint, where in order_faults(order)
        ]
        yield order, (*filling.faults, *unread_faults(filling), *refused)


def _order(
    filling: TokenReplacement, team: WorkflowGroup, rank: int, seat: TaskPlacement, run: WorkflowRun, hosts: str
) -> WorkOrder:
    member, spec = filling.member, filling.member.spec
    command = [filling.fill(word, "command", index) for index, word in enumerate(spec.command)]
    command += [filling.fill(word, "args", index) for index, word in enumerate(spec.args)]
    environment = {name: filling.fill(value, "environment", name) for name, value in spec.environment.items()}
    missing = {file.localpath for file in spec.files if file.localpath is not None and file.localpath not in run.local}
    filling.faults.extend(
        Fault(
            f"the file {path} was not sent with the workflow",
            path=(*member.path, "files"),
            hint="Submit the workflow again.",
        )
        for path in sorted(missing)
    )
    local = {**dict.fromkeys(missing, b""), **run.local} if missing else run.local
    files = contents_of(spec.files, local, filling)
    attempt = run.attempts.get(member.name, 1)
    return WorkOrder(
        key=AttemptKey(run.workflow_id, team.name, member.name, attempt),
        command=tuple(command),
        environment={
            **environment,
            **identity(run.workflow_id, team, rank, hosts),
            **_seat(seat),
            "COTERIE_ATTEMPT": str(attempt),
        },
        files=tuple(files),
        inputs={
            f"{INPUT}/{number}": None if entry.task is None else run.sources.get(entry.task)
            for number, entry in enumerate(spec.inputs)
        },
        mounts={to: from_ for from_, _, to in (mount.partition(":") for mount in spec.volume_mounts) if to},
        timeout_s=run.exec_timeout_s,
        grace_s=run.grace_s,
        log_bytes=run.log_bytes,
        timestamps=run.timestamps,
    )


def _seat(seat: TaskPlacement) -> dict[str, str]:
    """Return the environment variables that identify the node of a task."""
    devices = ",".join(map(str, seat.gpus))
    return {
        "COTERIE_NODE": seat.node,
        **{domain_variable(level): name for level, name in seat.domains.items()},
        "COTERIE_GPUS": devices,
        DEVICES: devices,
    }


_NO_IMAGES = "image is ignored: commands run on this machine, not in containers"


def notices_for(workflow: Workflow) -> tuple[Notice, ...]:
    """Return notices of how a run on this machine deviates from the workflow."""
    members = [member for team in workflow.teams for member in team.members]
    return tuple(_notices(workflow, members))


def _notices(workflow: Workflow, members: Sequence[WorkflowTask]) -> Iterator[Notice]:
    path = (*members[0].path, "image")
    yield Notice("FieldIgnored", _NO_IMAGES, workflow.place(path, key=True), path)
    for member in members:
        for number, entry in enumerate(member.spec.inputs):
            if entry.task is not None and entry.regex is not None:
                path = (*member.path, "inputs", number, "regex")
                message = "regex is ignored: the task sees everything that the other task wrote"
                yield Notice("FieldIgnored", message, workflow.place(path, key=True), path)
    yield from reserved_notices(workflow, DEVICES)


def _written(where: tuple[str | int, ...], member: WorkflowTask) -> tuple[str | int, ...]:
    """Return the path of a fault in the task as written, where the command and its arguments are separate."""
    match where:
        case ("command", int(index)) if index >= len(member.spec.command):
            return ("args", index - len(member.spec.command))
        case ("environment", str(name)) if name not in member.spec.environment:
            return ("name",)
    return where
