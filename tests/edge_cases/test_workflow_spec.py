"""Edge cases of workflow files that broke real systems, T050 to T085."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from coterie.config.configuration import Pool
from coterie.errors import Reason, SpecErrors
from coterie.frontends.workflow.lower import LoweredWorkflow, lower
from coterie.frontends.workflow.read import read_workflow
from coterie.topology.levels import Topology
from tests.frontends.workflow.samples import POOL, grouped, plain, resource, task

NO_LEVELS = Pool.for_levels(Topology())
SHORT = Pool("short", "b", "local", max_exec_timeout=3600)


@dataclass(frozen=True)
class Case:
    """A workflow, and either the fault it must give, the notice it must give, or neither when it is right."""

    id: str
    text: str
    fault: str = ""
    code: Reason = Reason.INVALID_SPEC
    hint: str = ""
    notice: str = ""
    pool: Pool = POOL
    sets: tuple[str, ...] = ()


def topology(*entries: str) -> str:
    return resource("gpu: 8, topology: [" + ", ".join(f"{{{entry}}}" for entry in entries) + "]")


def pair(first: str, second: str) -> str:
    """Return one group of two tasks, each with a topology list of its own."""
    return grouped(
        ("g", task("a", "lead: true", "resource: x"), task("b", "resource: y")),
        extra=f"resources:\n  x: {{topology: [{first}]}}\n  y: {{topology: [{second}]}}\n",
    )


ONE = plain(task("a"))
TWO = grouped(("g", task("a", "lead: true"), task("b")))
ZONE_RACK = ("key: zone", "key: rack, requirementType: preferred")


CASES = [
    Case("T050-no-keys", ONE + topology("key: rack"), "has no topology keys", Reason.UNKNOWN_LEVEL, pool=NO_LEVELS),
    Case(
        "T050-unknown", ONE + topology("key: rak"), 'no topology key "rak"', Reason.UNKNOWN_LEVEL, "zone, spine, rack"
    ),
    Case(
        "T051-differ", pair("{key: zone}, {key: rack}", "{key: zone}"), 'task "b" uses topology keys zone, but task "a"'
    ),
    Case("T051-mixed-with-free", pair("{key: zone}", "")),
    Case("T052-shared-both-kept", TWO + topology(*ZONE_RACK)),
    Case(
        "T053-per-group-both-kept",
        pair(
            "{key: zone}, {key: rack, group: r1, requirementType: preferred}",
            "{key: zone}, {key: rack, group: r2, requirementType: preferred}",
        ),
    ),
    Case("T054-both-kinds", pair("{key: rack}", "{key: rack, requirementType: preferred}"), "is required for task"),
    Case("T055-twice", ONE + topology("key: rack", "key: rack"), 'topology key "rack" is listed twice'),
    Case("T056-empty", ONE + topology("key: rack, group: ''"), "group name"),
    Case("T056-long", ONE + topology(f"key: rack, group: {'g' * 64}"), "group name"),
    Case("T056-space", ONE + topology("key: rack, group: My Group"), "group name"),
    Case("T056-slash", ONE + topology("key: rack, group: a/1"), "group name"),
    Case("T056-unicode", ONE + topology("key: rack, group: größe"), "group name"),
    Case("T056-upper-case", ONE + topology("key: rack, group: Model-1")),
    Case("T056-leading-dash", ONE + topology("key: rack, group: '-a'")),
    Case("T056-number", ONE + topology("key: rack, group: 1")),
    Case(
        "T057-reused-name",
        pair("{key: zone, group: a}, {key: rack, group: r}", "{key: zone, group: b}, {key: rack, group: r}"),
    ),
    Case("T058-same-level", ONE + topology("key: rack", "key: rack, requirementType: preferred"), "is listed twice"),
    Case("T059-any-order", TWO + topology("key: rack", "key: zone")),
    Case("T066-no-tasks-in-group", "workflow: {name: w, groups: [{name: g, tasks: []}]}", "tasks must not be empty"),
    Case("T066-no-groups", "workflow: {name: w, groups: []}", "the workflow has no tasks"),
    Case("T066-count", plain(task("a", "count: 0")), 'unknown field "count"'),
    Case("T067-segment", ONE + topology("key: rack, segmentSize: 0"), 'unknown field "segmentSize"'),
    Case("T068-gpu-text", ONE + resource('gpu: "8"')),
    Case("T068-gpu-million", ONE + resource("gpu: 1000000")),
    Case("T068-gpu-huge", ONE + resource(f"gpu: {2**53 + 1}"), "gpu is too large"),
    Case("T068-gpu-digits", ONE + resource(f"gpu: {'9' * 4000}"), "gpu is too large"),
    Case("T068-gpu-long-text", ONE + resource(f"gpu: '{'9' * 9000}'"), "gpu is too large"),
    Case("T068-gpu-endless", ONE + resource(f"gpu: {'9' * 9000}"), "cannot be read as int"),
    Case("T068-cpu-huge", ONE + resource(f"cpu: {2**53}"), "cpu is too large"),
    Case("T068-memory-huge", ONE + resource("memory: 9999999Ti"), "memory is too large"),
    Case("T068-gpu-infinite", ONE + resource("gpu: .inf"), "gpu must be a whole number, not .inf"),
    Case(
        "T070-case", ONE + topology("key: rack, requirementType: Required"), "required or preferred", hint='"required"'
    ),
    Case("T070-word", ONE + topology("key: rack, requirementType: soft"), 'not "soft"', hint="Allowed are: required"),
    Case("T071-top-level", TWO + topology("key: rack")),
    Case("T071-under-workflow", "workflow: {name: w, resources: {default: {gpu: 1}}, tasks: [" + task("a") + "]}"),
    Case(
        "T071-both",
        "workflow: {name: w, resources: {default: {}}, tasks: [" + task("a") + "]}\n" + resource("gpu: 1"),
        "both under workflow and at the top level",
    ),
    Case("T072-nested", plain(task("a")) + "  default-values: {n: 1}\n", "default-values", hint="top level"),
    Case("T072-nested-and-used", plain(task("{{ n }}")) + "  default-values: {n: a}\n", '"n" is not', hint="indented"),
    Case("T073-platform", plain(task("a", "platform: x")), "platform", hint="workflow.resources.NAME.platform"),
    Case("T073-resources", plain(task("a", "resources: {gpu: 1}")), "resources", hint="resource: NAME"),
    Case("T074-both", ONE + "  groups: [{name: g, tasks: [" + task("b") + "]}]\n", "either groups or tasks, not both"),
    Case("T074-neither", "workflow: {name: w}", "the workflow has no tasks"),
    Case("T074-two-leads", grouped(("g", task("a", "lead: true"), task("b", "lead: true"))), "two lead tasks"),
    Case("T074-no-lead", grouped(("g", task("a"), task("b"))), 'group "g" has no lead task', hint="lead: true"),
    Case("T074-auto-lead", grouped(("g", task("a")))),
    Case("T075-groups", grouped(("Group_1", task("a")), ("group-1", task("b"))), "differ only by case"),
    Case("T075-tasks", plain(task("a_b"), task("A-B")), "differ only by case"),
    Case("T075-equal", plain(task("a"), task("a")), 'two tasks have the name "a"'),
    Case("T075-aliased", "workflow: {name: w, tasks: [&t " + task("a") + ", *t]}", 'two tasks have the name "a"'),
    Case("T076-later", plain(task("a", "inputs: [{task: b}]"), task("b")), "which is defined later", hint="move"),
    Case("T076-itself", plain(task("a", "inputs: [{task: a}]")), "itself as input"),
    Case("T076-unknown", plain(task("fetch"), task("b", "inputs: [{task: fech}]")), "unknown task", hint='"fetch"'),
    Case("T076-same-group", grouped(("g", task("a", "lead: true"), task("b", "inputs: [{task: a}]"))), "together"),
    Case(
        "T076-circle",
        plain(task("a", "inputs: [{task: c}]"), task("b", "inputs: [{task: a}]"), task("c", "inputs: [{task: b}]")),
        "which itself waits for this group",
        hint="cycle",
    ),
    Case("T076-elsewhere", plain(task("a", "inputs: [{task: 'wf-1:x'}]")), notice="FieldIgnored"),
    Case("T076-earlier", plain(task("a"), task("b", "inputs: [{task: a}]"))),
    Case(
        "T077-unknown", plain(task("a", "exitActions: {RESTART: 1}")), 'unknown field "RESTART"', hint="COMPLETE, FAIL"
    ),
    Case("T077-lower-case", plain(task("a", "exitActions: {fail: 1}")), 'unknown field "fail"', hint='"FAIL"'),
    Case("T077-overlap", plain(task("a", "exitActions: {COMPLETE: 0-5, FAIL: '3'}")), "exit code 3 is listed for both"),
    Case("T077-overlap-own", plain(task("a", "exitActions: {FAIL: '1-3,2'}")), "exit code 2 is listed for FAIL twice"),
    Case("T077-large", plain(task("a", "exitActions: {FAIL: 0-256}")), "FAIL names exit code 256", hint="0 to 255"),
    Case("T077-backwards", plain(task("a", "exitActions: {FAIL: 9-2}")), "backwards", hint="2-9"),
    Case("T077-words", plain(task("a", "exitActions: {FAIL: all}")), "must be exit codes such as"),
    Case("T077-good", plain(task("a", "exitActions: {COMPLETE: '0-10,16', FAIL: 11, RESCHEDULE: '255'}"))),
    Case("T078-span", ONE + "  timeout: {exec_timeout: 10h5m}\n"),
    Case("T078-number-is-seconds", ONE + "  timeout: {exec_timeout: 90}\n"),
    Case("T078-zero", ONE + "  timeout: {exec_timeout: 0}\n", "more than zero"),
    Case("T078-zero-span", ONE + "  timeout: {queue_timeout: 0h}\n", "more than zero"),
    Case("T078-negative", ONE + "  timeout: {queue_timeout: -5}\n", "more than zero"),
    Case(
        "T078-bare-text", ONE + "  timeout: {exec_timeout: '90'}\n", "must be a time such as 10h5m", hint="Write 90s."
    ),
    Case("T078-empty", ONE + "  timeout: {exec_timeout: ''}\n", "must be a time such as 10h5m"),
    Case("T078-endless", ONE + "  timeout: {exec_timeout: 999999999d}\n", "too long"),
    Case("T078-clamped", ONE + "  timeout: {exec_timeout: 2h}\n", notice="TimeoutClamped", pool=SHORT),
    Case("T079-twice", plain(task("a", "files: [{path: /x, contents: a}, {path: //x, contents: b}]")), "written twice"),
    Case("T079-osmo", plain(task("a", "files: [{path: /osmo/x, contents: a}]")), "is in /osmo"),
    Case("T079-near-osmo", plain(task("a", "files: [{path: /osmosis/x, contents: a}]"))),
    Case(
        "T079-both", plain(task("a", "files: [{path: /x, contents: a, localpath: b}]")), "both contents and localpath"
    ),
    Case("T079-folder", plain(task("a", "files: [{path: /x, localpath: dir/}]")), "is a folder"),
    Case("T079-dot", plain(task("a", "files: [{path: /x, localpath: .}]")), "is a folder"),
    Case("T079-escape", plain(task("a", "files: [{path: /x, localpath: a/../../b}]")), "leaves the folder"),
    Case("T079-absolute", plain(task("a", "files: [{path: /x, localpath: /etc/passwd}]")), "leaves the folder"),
    Case("T080-undefined", plain(task("a", "args: ['{{ who }}']")), '"who" is not defined'),
    Case("T080-class", plain(task("a", "args: [{{ ''.__class__ }}]")), "something that is not allowed"),
    Case(
        "T080-cpu",
        plain(task("a", "args: [{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}]")),
        "takes too long",
    ),
    Case("T080-memory", plain(task("a", "args: [{{ 'x' * 10 ** 10 }}]")), "too much memory"),
    Case("T081-token", plain(task("a", "args: ['{{output}}']"))),
    Case("T081-spaced", plain(task("a", "args: ['{{ output }}']")), '"output" is not defined', hint="{{output}}"),
    Case("T082-set", plain(task("a"), extra=resource("gpu: {{ n }}")), sets=("n=1",)),
    Case("T082-second-equals", plain(task("a", "args: ['{{ n }}']")), sets=("n=b=c",)),
    Case("T082-no-equals", plain(task("a")), '"n" is not a name, "=" and a value', sets=("n",)),
    Case("T082-unused", plain(task("a")), notice="VariableUnused", sets=("n=1",)),
    Case("T083-many", ONE + f"  labels: {{{', '.join(f'k{n}: v' for n in range(17))}}}\n", "at most 16 labels"),
    Case("T083-most", ONE + f"  labels: {{{', '.join(f'k{n}: v' for n in range(16))}}}\n"),
    Case("T083-empty", ONE + "  labels: {team: ''}\n", 'the label "team" has no value'),
    Case("T083-key", ONE + "  labels: {'a b': c}\n", "is not a label"),
    Case("T083-value", ONE + "  labels: {a: 'b c'}\n", "cannot be the value of label"),
    Case("T083-long-value", ONE + f"  labels: {{a: {'b' * 64}}}\n", "cannot be the value of label"),
    Case("T083-system", ONE + "  labels: {coterie.dev/workflow: a}\n", "is reserved for the system"),
    Case("T083-osmo", ONE + "  labels: {osmo.workflow_id: a}\n", "is reserved for the system"),
    Case("T084-twice", ONE + ONE, '"workflow" is given twice, first in line 1'),
    Case("T084-1", "version: 1\n" + ONE, "version 1 is not supported", hint="version: 2"),
    Case("T084-text", 'version: "2"\n' + ONE, 'must be the number 2, not "2"', hint="Remove the quotes"),
    Case("T084-2.5", "version: 2.5\n" + ONE, "must be the number 2, not 2.5"),
    Case("T084-2.0", "version: 2.0\n" + ONE, "must be the number 2, not 2.0"),
    Case("T084-true", "version: true\n" + ONE, "must be the number 2, not true"),
    Case("T084-nothing", "version:\n" + ONE, "must be the number 2, not empty"),
    Case("T084-2", "version: 2\n" + ONE),
    Case("T084-absent", ONE),
    Case("T085-101", grouped(("g", task("t0", "lead: true"), *(task(f"t{n}") for n in range(1, 101))))),
    Case("T085-400", grouped(("g", task("t0", "lead: true"), *(task(f"t{n}") for n in range(1, 400))))),
    Case("T085-400-plain", plain(*(task(f"t{n}") for n in range(400)))),
]

# Placement, not the document, decides these; the document itself is accepted, and the engine's tests hold the rest.
ENGINE = {
    "T060": "a group larger than the largest domain is refused by the engine as never fitting",
    "T061": "an exact fit, one short and zero free are capacities, which a document does not have",
    "T062": "whether a size tiles a domain depends on the cluster's domains",
    "T063": "hosts of different size are a matter of search",
    "T064": "a task without GPUs in a GPU clique is placed by the engine",
    "T065": "a task without requests under a constraint is placed by the engine",
    "T069": "which nodes an exclusion leaves is known only with a cluster",
}


def outcome(case: Case) -> LoweredWorkflow:
    return lower(read_workflow(case.text.encode(), "w.yaml", sets=case.sets), case.pool)


@pytest.mark.parametrize("case", [case for case in CASES if case.fault], ids=lambda case: case.id)
def test_what_is_wrong_is_refused_with_code_place_and_hint(case: Case) -> None:
    with pytest.raises(SpecErrors) as caught:
        outcome(case)
    found = [fault for fault in caught.value.faults if case.fault in fault.message]
    assert found, caught.value.faults
    assert found[0].code is case.code
    assert case.hint in found[0].hint
    assert found[0].place is not None


@pytest.mark.parametrize("case", [case for case in CASES if not case.fault], ids=lambda case: case.id)
def test_what_is_right_is_lowered_with_the_notices_it_deserves(case: Case) -> None:
    found = outcome(case)
    assert found.gangs
    assert {notice.code for notice in found.notices} == ({case.notice} if case.notice else set())


ENGINE_DOCUMENTS = {
    "T060": grouped(("g", task("t0", "lead: true"), *(task(f"t{n}") for n in range(1, 99)))) + topology("key: rack"),
    "T061": TWO + topology("key: rack"),
    "T062": grouped(("g", task("t0", "lead: true"), *(task(f"t{n}") for n in range(1, 9)))) + topology("key: rack"),
    "T063": pair("{key: rack}", "{key: rack}"),
    "T064": grouped(("g", task("a", "lead: true"), task("b", "resource: cpu")))
    + topology("key: rack")
    + "  cpu: {cpu: 4, topology: [{key: rack}]}\n",
    "T065": TWO + resource("topology: [{key: rack}]"),
    "T069": ONE + resource("nodesExcluded: [n1, n2, nowhere]"),
}


@pytest.mark.parametrize("identity", ENGINE)
def test_documents_that_only_placement_can_refuse_are_accepted(identity: str) -> None:
    assert outcome(Case(identity, ENGINE_DOCUMENTS[identity])).gangs


def test_every_case_of_the_list_is_here() -> None:
    covered = {case.id[:4] for case in CASES} | set(ENGINE)
    assert covered == {f"T{number:03}" for number in range(50, 86)}


def test_t052_and_t053_keep_the_required_and_the_preferred_level() -> None:
    by_id = {case.id: case for case in CASES}
    shared = outcome(by_id["T052-shared-both-kept"]).gangs[0]
    assert [(group.level, group.required) for group in shared.walk()] == [("zone", True), ("rack", False)]
    split = outcome(by_id["T053-per-group-both-kept"]).gangs[0]
    assert [(group.level, group.required) for group in split.walk()] == [
        ("zone", True),
        ("rack", False),
        ("rack", False),
    ]


def test_t057_the_same_name_under_different_parents_is_two_groups() -> None:
    gang = outcome(next(case for case in CASES if case.id.startswith("T057"))).gangs[0]
    assert len([group for group in gang.walk() if group.level == "rack"]) == 2


def test_t059_the_coarser_level_is_always_above() -> None:
    gang = outcome(next(case for case in CASES if case.id.startswith("T059"))).gangs[0]
    assert [group.level for group in gang.walk()] == ["zone", "rack"]


def test_t068_digits_in_quotes_are_the_number() -> None:
    gang = outcome(next(case for case in CASES if case.id == "T068-gpu-text")).gangs[0]
    assert gang.all_tasks()[0].shape.amount("nvidia.com/gpu") == 8
