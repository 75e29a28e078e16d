"""Workflow files: the whole grammar, and every mistake with its place and a hint."""

from __future__ import annotations

import time

import pytest

from coterie.errors import SpecErrors
from coterie.frontends.workflow.read import read_workflow
from tests.frontends.workflow.samples import faults, grouped, plain, read, resource, task

FULL = """\
version: 2
default-values:
  gpus: 8
workflow:
  name: train
  pool: gb200
  labels: {team: research, run: 12}
  timeout: {exec_timeout: 10h5m, queue_timeout: 600}
  resources:
    default: {cpu: 4, gpu: {{ gpus }}, memory: 1.5Gi, storage: "100G", nodesExcluded: [n1]}
  groups:
  - name: prepare
    tasks:
    - name: fetch
      image: img
      command: [python, 3.10, 012]
      args: [--n, 5]
      environment: {VERSION: 3.10, NAME: x}
      files:
      - {path: /tmp/a.sh, contents: "echo {{output}}"}
      - {path: /tmp/b.sh, localpath: scripts/b.sh}
      - {path: /tmp/c.sh, contents: "aGk=", base64: true}
      exitActions: {COMPLETE: 0-3, FAIL: "4,5", RESCHEDULE: 137}
      volumeMounts: [/data, "/a:/b"]
  - name: train
    barrier: false
    ignoreNonleadStatus: false
    tasks:
    - {name: lead, lead: true, image: i, command: [a], inputs: [{task: fetch}]}
    - {name: worker, image: i, command: [a]}
"""


def test_the_whole_grammar_is_read() -> None:
    workflow = read(FULL)
    assert (workflow.name, workflow.pool) == ("train", "gb200")
    assert workflow.spec.labels == {"team": "research", "run": "12"}
    assert (workflow.spec.timeout.exec_timeout, workflow.spec.timeout.queue_timeout) == (36300, 600)
    spec = workflow.resources["default"].spec
    assert (spec.cpu, spec.gpu, spec.memory, spec.storage) == (4, 8, 3 << 29, 100_000_000_000)
    fetch = workflow.teams[0].members[0].spec
    assert fetch.command == ("python", "3.10", "012")
    assert fetch.args == ("--n", "5")
    assert fetch.environment == {"VERSION": "3.10", "NAME": "x"}
    assert fetch.files[0].contents == "echo {{output}}"
    assert [team.lead for team in workflow.teams] == ["fetch", "lead"]
    assert workflow.notices == ()


def test_plain_tasks_become_groups_of_their_own() -> None:
    workflow = read(plain(task("a"), task("b")))
    assert [(team.name, team.lead, team.plain) for team in workflow.teams] == [
        ("a-group", "a", True),
        ("b-group", "b", True),
    ]


def test_json_is_a_workflow_too() -> None:
    text = '{"version": 2, "workflow": {"name": "w", "tasks": [{"name": "a", "image": "i", "command": ["x"]}]}}'
    assert read(text).name == "w"


def test_anchors_and_merge_keys_may_share_parts_of_tasks() -> None:
    text = "workflow:\n  name: w\n  tasks:\n  - &t {name: a, image: i, command: [x]}\n  - {<<: *t, name: b}\n"
    assert [team.name for team in read(text).teams] == ["a-group", "b-group"]


@pytest.mark.parametrize(
    ("text", "message", "line", "hint"),
    [
        ("a", "the document must be a mapping", 1, ""),
        ("version: 2\n", '"workflow" is missing', 1, "The workflow itself."),
        ("workflow:\n", "workflow must be a mapping, not empty", 1, "Give it a value"),
        ("workflow: {tasks: []}\n", '"name" is missing in "workflow"', 1, "The workflow's name."),
        ("workflow: {name: 5, tasks: []}\n", "name must be text, not 5", 1, 'Put it in quotes: "5"'),
        (plain(task("a", "imag: x")), 'unknown field "imag" in "tasks[0]"', 4, 'Did you mean "image"?'),
        (plain(task("a", "zzz: x")), 'unknown field "zzz"', 4, "Fields are: name, image, command"),
        (plain(task("a", "gpu: 8")), 'unknown field "gpu"', 4, "workflow.resources.NAME.gpu"),
        (plain(task("a", "exec_timeout: 1h")), 'unknown field "exec_timeout"', 4, "workflow.timeout.exec_timeout"),
        (plain(task("a")) + "  image: x\n", 'unknown field "image" in "workflow"', 5, "belongs to a task"),
        (plain(task("a")) + "tasks: []\n", 'unknown field "tasks"', 5, "belongs under workflow"),
        (
            "workflow:\n  name: w\n  tasks:\n  - {name: a, image: i}\n",
            '"command" is missing in "tasks[0]"',
            4,
            "command",
        ),
        (
            "workflow:\n  name: w\n  tasks:\n  - {name: a, image: '', command: [x]}\n",
            "image must not be empty",
            4,
            "value",
        ),
        (
            "workflow:\n  name: w\n  tasks:\n  - {name: a, image: i, command: []}\n",
            "command must not be empty",
            4,
            "entry",
        ),
        (
            "workflow:\n  name: w\n  tasks:\n  - {name: a, image: i, command: run}\n",
            'must be a list, not "run"',
            4,
            '"- "',
        ),
        (plain(task("a", "args: [true]")), "args[0] must be text, not true", 4, 'Put it in quotes: "true"'),
        (plain(task("a", "args: [[x]]")), "args[0] must be text, not a list", 4, ""),
        (plain(task("a", "environment: {A: null}")), "A must be text, not empty", 4, "Give it a value"),
        (plain(task("a", "environment: {1A: x}")), '"1A" cannot be the name of an environment variable', 4, "digit"),
        (plain(task("a", "lead: 'yes'")), 'lead must be true or false, not "yes"', 4, "without quotes"),
        (plain(task("a", "resource: big"), extra="resources: {bigger: {}}\n"), "which is not defined", 4, "bigger"),
        (plain(task("a", "inputs: [{}]")), "either a task or a url", 4, "Example"),
        (plain(task("a", "inputs: [{dataset: x}]")), 'unknown field "dataset"', 4, "task, url, regex"),
        (plain(task("a", "outputs: [{task: x}]")), 'unknown field "task"', 4, ""),
        (plain(task("a", "files: [{path: tmp, contents: x}]")), "is not an absolute path", 4, "Example"),
        (plain(task("a", "files: [{path: /a/, contents: x}]")), "is not an absolute path of a file", 4, "Example"),
        (plain(task("a", f"files: [{{path: {'/d' * 600}, contents: x}}]")), "has 1,200 bytes", 4, "At most 1,024"),
        (plain(task("a", f"files: [{{path: {'/d' * 34}, contents: x}}]")), "is 33 folders deep", 4, "At most 32"),
        (plain(task("a", f"files: [{{path: /a, localpath: {'d/' * 33}x}}]")), "is 33 folders deep", 4, "At most 32"),
        (plain(task("a", f"volumeMounts: ['/a:{'/d' * 34}']")), "is 33 folders deep", 4, "At most 32"),
        (plain(task("a", "files: [{path: /a}]")), "neither contents nor localpath", 4, "one of the two"),
        (plain(task("a", "files: [{path: /a, contents: '%', base64: true}]")), "are not Base64", 4, "base64"),
        (plain(task("a", "files: [{path: //osmo/a, contents: x}]")), "is in /osmo", 4, ""),
        (plain(task("a", "files: [{path: /x/../osmo/a, contents: x}]")), "is in /osmo", 4, ""),
        (plain(task("a", "volumeMounts: [data]")), "must be absolute paths", 4, "/NODE-PATH:/CONTAINER-PATH"),
        (plain(task("a", "volumeMounts: [/a:/b:/c]")), "must be absolute paths", 4, ""),
        (plain(task("a", "volumeMounts: [/a, '/b:/a']")), '"/a" is mounted over twice', 4, ""),
        (
            plain(task("a", "files: [{path: /a/b, contents: x}, {path: //a, contents: x}]")),
            '"/a" is used both as a file and',
            4,
            "",
        ),
        (plain(task("a", f"files: [{{path: /{'d' * 256}, contents: x}}]")), "more than 255 bytes", 4, "shorter"),
        (plain(task("a", "args: ['{{input:7}}']")), '{{input:7}} is not an input of task "a"', 4, "has none"),
        (plain(task("a"), task("b", "args: ['{{host:aa}}']")), "{{host:aa}} names no task", 5, "Known: a, b."),
        (plain(task("a", "files: [{path: /a, contents: '{{host:x}}'}]")), "{{host:x}} names no task", 4, "Known: a."),
        (plain(task("osmo_ctrl")), 'the name "osmo_ctrl" is reserved', 4, "another"),
        (plain(task("1a")), 'name "1a" is not allowed', 4, "starts with a letter"),
        (plain(task("a_")), 'name "a_" is not allowed', 4, "ends with a letter or digit"),
        (plain(task("a" * 64)), "has 64 characters", 4, "At most 63"),
        (plain(task("a"), extra=resource("cpu: 0.5")), "cpu must be a whole number, not 0.5", 6, ""),
        (plain(task("a"), extra=resource("gpu: -1")), "gpu must not be negative", 6, ""),
        (plain(task("a"), extra=resource("gpu: true")), "gpu must be a whole number, not true", 6, ""),
        (plain(task("a"), extra=resource("memory: 16GB")), 'memory has the unknown unit "GB"', 6, "Did you mean 16G?"),
        (plain(task("a"), extra=resource("memory: 16Zi")), 'memory has the unknown unit "Zi"', 6, "Units are"),
        (plain(task("a"), extra=resource("memory: -1Gi")), "must be an amount such as 16Gi", 6, "Units are"),
        (plain(task("a"), extra=resource("memory: [1]")), "must be an amount such as 16Gi, not a list", 6, "Units are"),
        (plain(task("a"), extra=resource("topology: [rack]")), 'topology[0] must be a mapping, not "rack"', 6, ""),
        (plain(task("a"), extra=resource("topology: [{group: a}]")), '"key" is missing', 6, "The level to share"),
        ("workflow: {default: {{ x }} }\n", '"x" is not defined', 1, "--set x=VALUE"),
        (
            '{"default-values": {}, ' + plain(task("a")).replace("workflow:", '"workflow": {').replace("\n", " "),
            "YAML",
            1,
            "",
        ),
        (
            '{"default-values": {}, "workflow": {"name": "w", "tasks": [' + task("a") + "]}}",
            "default-values must be a section of its own",
            1,
            "column one",
        ),
    ],
)
def test_each_mistake_is_named_with_its_place_and_a_way_out(text: str, message: str, line: int, hint: str) -> None:
    found = [fault for fault in faults(text) if message in fault.message]
    assert found, faults(text)
    assert hint in found[0].hint
    assert found[0].place is not None
    assert found[0].place.line == line


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = plain(
        task("1a", "lead: 1"),
        task("b", "files: [{path: a, contents: x, localpath: ../x}]"),
        extra="resources:\n  default: {gpu: x, nodes: []}\nversion: 3\n",
    )
    found = faults(text)
    assert len(found) == 8
    lines = [fault.place.line for fault in found if fault.place and fault.place.line]
    assert lines == [4, 4, 5, 5, 5, 7, 7, 8]


def test_faults_between_files_come_with_those_of_single_files() -> None:
    files = (
        "{path: a, contents: x}",
        "{path: /b}",
        "{path: /b, contents: '{{host:x}}'}",
        "{path: /c/d, contents: x}",
        "{path: /c, contents: x}",
    )
    found = faults(plain(task("t", f"files: [{', '.join(files)}]", "volumeMounts: [/m, m, '/n:/m']")))
    assert [fault.message for fault in found] == [
        'path "a" is not an absolute path of a file',
        'file "/b" has neither contents nor localpath',
        '"/b" is written twice',
        "{{host:x}} names no task of the workflow",
        '"/c" is used both as a file and as a folder of the file "/c/d"',
        'volumeMounts[1] must be absolute paths, not "m"',
        '"/m" is mounted over twice',
    ]


def test_a_token_that_may_name_a_faulty_task_or_input_is_no_fault_of_its_own() -> None:
    tokens = "args: ['{{host:b}}', '{{input:0}}']"
    found = faults(plain("{name: 1b, image: i, command: [x]}", task("t", tokens, "inputs: [{tsk: b}]")))
    assert [fault.message for fault in found] == ['name "1b" is not allowed', 'unknown field "tsk" in "inputs[0]"']


def test_tokens_in_files_that_are_not_text_of_the_workflow_are_left_alone() -> None:
    files = "files: [{path: /a, contents: 'e3tob3N0Onh9fQ==', base64: true}, {path: /b, localpath: b}]"
    assert read(plain(task("t", files, "args: ['{{output}} {{uuid}} {{workflow_id}} {{host:t}}']"))).notices == ()


def test_very_many_faults_are_counted_instead_of_listed() -> None:
    found = faults(plain(*(task(f"{number}") for number in range(300))))
    assert len(found) == 101
    assert found[-1].message == "and 200 more like these"


def test_what_coterie_does_not_do_is_noticed_once_per_field() -> None:
    fields = (
        "credentials: {c: {KEY: k}}",
        "outputs: [{url: s3://b}]",
        "inputs: [{url: s3://a}, {task: 'other-1:x'}]",
        "checkpoint: [{path: /a, url: s3://c, frequency: 5m}]",
        "privileged: true",
        "hostNetwork: true",
        "downloadType: x",
        "cacheSize: 10Gi",
        "kpis: [{a: 1}]",
        "backend: b",
    )
    notices = read(plain(task("a", *fields), task("b", *fields))).notices
    assert {notice.code for notice in notices} == {"FieldIgnored"}
    assert {notice.message.split()[0] for notice in notices} == {
        *("credentials", "outputs", "inputs.url", "inputs.task", "checkpoint", "privileged"),
        *("hostNetwork", "downloadType", "cacheSize", "kpis", "backend"),
    }
    assert len(notices) == 11
    assert all("(in 2 places)" in notice.message for notice in notices)
    assert all(notice.place is not None and notice.place.line == 4 for notice in notices)


def test_fields_that_say_what_is_done_anyway_are_not_noticed() -> None:
    assert (
        read(plain(task("a", "privileged: false", "hostNetwork: false", "outputs: []", "credentials: {}"))).notices
        == ()
    )


def test_an_amount_without_a_unit_is_noticed() -> None:
    (notice,) = read(plain(task("a"), extra=resource("memory: 16, storage: 5Gi"))).notices
    assert (notice.code, notice.place is not None and notice.place.line) == ("NoUnit", 6)
    assert "16 bytes" in notice.message


def test_places_in_a_template_are_the_users_lines() -> None:
    text = "default-values: {n: -4}\n" + plain(task("a"), extra="resources:\n  default: {gpu: {{ n }} }\n")
    (fault,) = faults(text)
    assert fault.place is not None
    assert fault.place.file == "w.yaml"
    assert fault.place.frame[-1] == (7, "  default: {gpu: {{ n }} }")


def test_a_mistake_in_a_loop_is_one_fault_at_the_users_line() -> None:
    text = (
        "workflow:\n  name: w\n  tasks:\n"
        "{% for i in range(3) %}\n  - {name: t{{ i }}, image: i, command: x}\n{% endfor %}\n"
    )
    (found,) = faults(text)
    assert found.place is not None
    assert found.place.file == "w.yaml"
    assert found.place.frame[-1] == (5, "  - {name: t{{ i }}, image: i, command: x}")


def test_set_string_reaches_the_template() -> None:
    text = plain(task("a", "args: ['{{ v is string }}']"))
    assert read_workflow(text.encode(), "w", set_strings=["v=1"]).teams[0].members[0].spec.args == ("True",)
    assert read_workflow(text.encode(), "w", sets=["v=1"]).teams[0].members[0].spec.args == ("False",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02", "is not allowed in YAML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a" * (10 << 20), "too large"),
        (b"[" * 10_000, "nested too deeply"),
    ],
)
def test_what_is_no_workflow_at_all_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(SpecErrors, match=message):
        read_workflow(data, "w.yaml")


def test_groups_and_their_tasks_keep_their_places() -> None:
    workflow = read(grouped(("g", task("a", "lead: true"), task("b"))))
    assert workflow.place(workflow.teams[0].members[1].path).line == 7


def test_a_large_workflow_with_every_task_wrong_is_refused_quickly() -> None:
    started = time.process_time()
    found = faults(plain(*(task(f"t{number}", f"inputs: [{{task: u{number}}}]") for number in range(8000))))
    assert len(found) == 101
    assert found[-1].message == "only the first 100 faults are shown"
    assert time.process_time() - started < 30


@pytest.mark.parametrize("entry", ["{url: s3://x}", "{task: 'w-1:t'}"])
def test_an_input_that_nobody_fills_is_a_warning_where_nothing_runs(entry: str) -> None:
    found = read(plain(task("a", f"inputs: [{entry}]", "args: ['{{input:0}}']")))
    assert [notice.code for notice in found.notices] == ["FieldIgnored"]
