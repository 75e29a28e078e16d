"""Work orders of a group: environment, hosts, ranks and token replacement of its tasks."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from coterie.backends.base.driver import TaskPlacement
from coterie.backends.local.group_orders import WorkflowRun, notices_for, orders_for
from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import AttemptKey, WorkOrder
from coterie.errors import NotFound, SpecErrors
from tests.backends.local.builders import ended, piece
from tests.frontends.workflow.samples import grouped, plain, read, task

RUN = WorkflowRun("w-1")
SEAT = TaskPlacement("n1")
PAIR = grouped(("g", task("a", "lead: true"), task("b")))


def orders(text: str, group: str = "t-group", run: WorkflowRun = RUN, **seats: TaskPlacement) -> tuple[WorkOrder, ...]:
    return orders_for(read(text), group, seats or {"t": SEAT}, run)


def one(*fields: str, **run: Any) -> WorkOrder:
    """Return the order of a task with these fields."""
    [found] = orders(plain("{name: t, image: i, " + ", ".join(fields) + "}"), run=replace(RUN, **run))
    return found


def faults(*fields: str, **run: Any) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        one(*fields, **run)
    assert all(fault.place and fault.place.line and fault.hint for fault in caught.value.faults)
    return [fault.message for fault in caught.value.faults]


def test_a_task_is_told_who_and_where_it_is() -> None:
    seats = {
        "a": TaskPlacement("n7", {"zone": "z1", "rack-row": "r 1"}, (4, 5)),
        "b": TaskPlacement("n8", {"zone": "z1"}),
    }
    first, second = orders_for(read(PAIR), "g", seats, RUN)
    assert first.environment == {
        "COTERIE_WORKFLOW": "w-1",
        "COTERIE_GROUP": "g",
        "COTERIE_TASK": "a",
        "COTERIE_ATTEMPT": "1",
        "COTERIE_NODE": "n7",
        "COTERIE_RANK": "0",
        "COTERIE_WORLD_SIZE": "2",
        "COTERIE_HOSTS": "127.0.0.1,127.0.0.1",
        "COTERIE_DOMAIN_ZONE": "z1",
        "COTERIE_DOMAIN_RACK_ROW": "r 1",
        "COTERIE_GPUS": "4,5",
        "CUDA_VISIBLE_DEVICES": "4,5",
    }
    assert (second.environment["COTERIE_RANK"], second.environment["CUDA_VISIBLE_DEVICES"]) == ("1", "")


def test_the_hosts_of_a_group_are_one_text_for_all_its_tasks() -> None:
    first, second = orders_for(read(PAIR), "g", {"a": SEAT, "b": SEAT}, RUN)
    assert first.environment["COTERIE_HOSTS"] is second.environment["COTERIE_HOSTS"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("command: [run, {0}]",), "an argument of the command has 131,072 bytes"),
        (("command: [run]", "args: [{0}]"), "an argument of the command has 131,072 bytes"),
        (("command: [run]", "environment: {{X: {0}}}"), "the variable X has 131,074 bytes"),
    ],
)
def test_a_text_that_no_program_can_be_given_is_told_before_it_is_started(fields: tuple[str, ...], said: str) -> None:
    longest = (128 << 10) - 1
    [found] = faults(*(field.format("x" * (longest + 1)) for field in fields))
    assert found == f'task "t": {said}, and a program can receive at most 131,071 in one'
    one(*(field.format("x" * (longest - 2)) for field in fields))


def test_only_tasks_with_a_seat_are_ordered_and_keep_their_rank() -> None:
    [found] = orders(PAIR, "g", run=replace(RUN, attempts={"b": 3}), b=SEAT)
    assert found.key == AttemptKey("w-1", "g", "b", 3)
    assert (found.environment["COTERIE_RANK"], found.environment["COTERIE_WORLD_SIZE"]) == ("1", "2")


def test_tokens_are_replaced_everywhere() -> None:
    fields = (
        'command: [run, "{{output}}"]',
        'args: ["{{input:0}}", "{{workflow_id}}"]',
        'environment: {HOST: "{{host:t}}", ID: "{{uuid}}"}',
        'files: [{path: /a, contents: "{{output}}/x"}]',
        "inputs: [{task: first}]",
    )
    [found] = orders(plain(task("first"), "{name: t, image: i, " + ", ".join(fields) + "}"))
    assert found.command == ("run", "/coterie/output", "/coterie/input/0", "w-1")
    assert found.environment["HOST"] == "127.0.0.1"
    assert uuid.UUID(found.environment["ID"]).version == 5
    assert found.files == (("/a", "/coterie/output/x"),)
    assert found.inputs == {"/coterie/input/0": None}


_NOT_BROUGHT = (
    ("inputs: [{url: s3://x}]", "a URL, and nothing is downloaded from object storage"),
    ('inputs: [{task: "other-1:t"}]', "a task of another workflow, whose output is not kept for it"),
)


@pytest.mark.parametrize(("inputs", "what"), _NOT_BROUGHT)
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (('command: [cat, "{{input:0}}/x"]',), "command[1]"),
        (("command: [cat]", 'args: ["{{input:0}}/x", "{{input:0}}/y"]'), "args[0]"),
        (("command: [run]", 'environment: {DATA: "{{input:0}}"}'), "environment.DATA"),
        (("command: [run]", 'files: [{path: /a, contents: "cat {{input:0}}"}]'), "files[0].contents"),
    ],
)
def test_what_nobody_brings_is_not_read(inputs: str, what: str, fields: tuple[str, ...], where: str) -> None:
    assert faults(*fields, inputs) == [f'task "t": {where} uses {{{{input:0}}}}, which is {what}']


@pytest.mark.parametrize("inputs", [inputs for inputs, _ in _NOT_BROUGHT])
def test_an_input_that_nobody_brings_and_nobody_reads_is_no_fault(inputs: str) -> None:
    assert one("command: [run]", inputs, "outputs: [{url: s3://y}]").inputs == {"/coterie/input/0": None}


def test_an_input_is_the_output_of_the_attempt_that_the_caller_names() -> None:
    text = plain(task("first"), task("t", "inputs: [{task: first}]"))
    source = AttemptKey("w-1", "first-group", "first", 2)
    [found] = orders(text, run=replace(RUN, sources={"first": source}))
    assert found.inputs == {"/coterie/input/0": source}


def test_files_come_from_text_base64_and_beside_the_workflow() -> None:
    found = one(
        "command: [run]",
        'files: [{path: /a, contents: x}, {path: /b, contents: "/w==", base64: true}, {path: /c, localpath: d/e}]',
        local={"d/e": b"\xfe"},
    )
    assert found.files == (("/a", "x"), ("/b", b"\xff"), ("/c", b"\xfe"))


def test_a_path_of_a_file_that_climbs_stays_below_the_root_of_its_container() -> None:
    assert one("command: [run]", "files: [{path: /../../x, contents: y}]").files == (("/x", "y"),)


def test_mounted_paths_are_those_of_this_machine() -> None:
    assert one("command: [run]", 'volumeMounts: ["/data", "/a:/b"]').mounts == {"/b": "/a"}


def test_limits_are_those_of_the_run() -> None:
    found = one("command: [run]", exec_timeout_s=60, grace_s=5.0, log_bytes=10_000, timestamps=True)
    assert (found.timeout_s, found.grace_s, found.log_bytes, found.timestamps) == (60, 5.0, 10_000, True)


def test_all_that_is_wrong_is_told_at_once_and_where() -> None:
    found = faults(
        "command: [run]",
        'args: ["a\\0b"]',
        "files: [{path: /coterie/output, contents: x}, {path: /c, localpath: gone}, {path: /d, localpath: sent}]",
        local={"sent": b"{{host:nobody}} {{input:3}}"},
    )
    assert len(found) == 5
    for words in (
        "{{host:nobody}}",
        "zero byte",
        "{{input:3}}",
        "also that of a folder of the task",
        "gone was not sent with the workflow",
    ):
        assert any(words in message for message in found), words


def test_a_group_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(NotFound, match='no group "x"'):
        orders(PAIR, "x")


def test_files_may_be_larger_than_an_object_of_kubernetes() -> None:
    text = plain(task("t", "files: [{path: /tmp/large, localpath: large}]"))
    large = bytes(3 << 20)

    [order] = orders_for(read(text), "t-group", {"t": TaskPlacement("n1")}, WorkflowRun("w-1", local={"large": large}))

    assert order.files == (("/tmp/large", large.decode()),)  # noqa: S108 - a path of the task's


def test_what_this_machine_does_differently_is_said_once() -> None:
    tasks = [
        task("first", "environment: {CUDA_VISIBLE_DEVICES: '0', PATH: x}"),
        task("t", "inputs: [{task: first, regex: a}]"),
    ]
    found = notices_for(read(plain(*tasks)))
    assert [notice.message.split(" is ")[0] for notice in found] == ["image", "regex", "CUDA_VISIBLE_DEVICES"]
    assert all(notice.place and notice.place.line for notice in found)


def test_a_workflow_runs_from_its_text_to_its_log(supervisor: Supervisor) -> None:
    text = """
workflow:
  name: w
  tasks:
  - name: first
    image: i
    command: [bash, /tmp/run.sh]
    files:
    - {path: /tmp/run.sh, contents: "echo from $COTERIE_NODE > {{output}}/note"}
  - name: second
    image: i
    command: [cat]
    args: ["{{input:0}}/note"]
    inputs: [{task: first}]
"""
    [first] = orders(text, "first-group", first=TaskPlacement("n1"))
    ended(supervisor, first)
    [second] = orders(text, "second-group", run=replace(RUN, sources={"first": first.key}), second=TaskPlacement("n2"))
    [found] = ended(supervisor, second)
    assert (found.exit_code, piece(supervisor, second.key)) == (0, b"from n1\n")
