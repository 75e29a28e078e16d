"""All faults of a call's files are reported at once: of fields, between fields, and those of a pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from coterie.errors import NotFound, SpecErrors
from coterie.planning.report import errors_json
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from tests.cli.command import CLUSTER, Done, SampleFolder, call
from tests.cli.sample_files import packed, text, topology
from tests.cli.service_fixtures import serving
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.grove.objects import assigned, changed, constrained, standard

Json = dict[str, Any]

CONFIG = """\
backends:
  here: {scheduler: local, cluster: cluster.yaml}
pools:
  lab:
    backend: here
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
    platforms: {a100: {}}
  bare: {backend: here}
"""
HEAD = "workflow:\n  name: w\n  pool: lab\n"


def tasks(*resources: str, more: str = "") -> str:
    """Return a group in which each task has one of the resource specs."""
    listed = "".join(
        f"    - {{name: t{number}, image: i, command: [run], resource: {name}, lead: {str(not number).lower()}}}\n"
        for number, name in enumerate(resources)
    )
    return f"  groups:\n  - name: g\n    tasks:\n{listed}{more}"


@dataclass(frozen=True)
class Case:
    """A file, and its faults in their order: code, a part of the message, and what stands at the place."""

    text: str
    faults: Sequence[tuple[str, str, str]]
    pool: str | None = None


INVALID, UNKNOWN = "InvalidSpec", "UnknownLevel"

CASES = {
    "an unknown key beside faults of fields": Case(
        f"{HEAD}  resources:\n    a: {{gpu: eight, topology: [{{key: rck}}]}}\n"
        + tasks("a", more="    - {name: t0, image: i, comand: [run]}\n"),
        [
            (INVALID, "gpu must be a whole number", "eight"),
            (UNKNOWN, 'no topology key "rck"', "rck"),
            (INVALID, 'two tasks have the name "t0"', "t0, image: i, comand"),
            (INVALID, 'unknown field "comand"', "comand"),
        ],
    ),
    "every rule of the tree": Case(
        f"{HEAD}  resources:\n"
        "    a: {topology: [{key: rck}, {group: one}]}\n"
        "    b: {topology: [{key: rack}, {key: rack}]}\n"
        "    c: {topology: [{key: zone}]}\n"
        "    d: {topology: [{key: rack}]}\n"
        "    e: {topology: [{key: rack, requirementType: preferred}]}\n"
        "    f: {topology: [{key: rack, group: no good}]}\n" + tasks("a", "b", "c", "d", "e", "f"),
        [
            (UNKNOWN, 'no topology key "rck"', "rck"),
            (INVALID, '"key" is missing', "{group: one}"),
            (INVALID, "is listed twice", "rack}]}"),
            (INVALID, 'task "t3" uses topology keys rack, but task "t2" uses zone', "[{key: rack}]}"),
            (INVALID, 'is required for task "t3" and preferred for task "t4"', "preferred"),
            (INVALID, 'group name "no good"', "no good"),
        ],
    ),
    "a platform, NVLink, an unknown resource and an input": Case(
        f'{HEAD}  labels: {{nvlink: "true"}}\n  resources:\n    a: {{platform: a101}}\n'
        + tasks("a", "nope", more="    - {name: t9, image: i, command: [run], inputs: [{task: nobody}]}\n"),
        [
            (INVALID, "asks for NVLink", '"true"'),
            (INVALID, 'no platform "a101"', "a101"),
            (INVALID, '"nope", which is not defined', "nope"),
            (INVALID, 'unknown task "nobody"', "nobody"),
        ],
    ),
    "a pool without keys": Case(
        "workflow:\n  name: w!\n  pool: bare\n  resources:\n    a: {topology: [{key: rack}]}\n" + tasks("a"),
        [(INVALID, "name", "w!"), (UNKNOWN, "this pool has no topology keys", "[{key: rack}]")],
    ),
    "a pool that is not there, named by the file": Case(
        "workflow:\n  name: w!\n  pool: lap\n  resources:\n    a: {topology: [{key: rck}]}\n" + tasks("a"),
        [(INVALID, "name", "w!"), (INVALID, 'no pool "lap", which the workflow names', "lap")],
    ),
    "a pool that is not there, named by the call": Case(
        "workflow:\n  name: w!\n  pool: lab\n" + tasks("default"),
        [(INVALID, 'no pool "lap"', ""), (INVALID, "name", "w!")],
        pool="lap",
    ),
    "which pool is not known, so nothing is said of its keys": Case(
        "workflow:\n  name: w\n  pool: [lab]\n  resources:\n    a: {topology: [{key: rck}]}\n" + tasks("a"),
        [(INVALID, "pool must be text", "[lab]")],
    ),
    "what a faulty entry would have asked for is not guessed": Case(
        f"{HEAD}  resources:\n    a: {{topology: [{{key: rack, requirementTyp: preferred}}]}}\n"
        "    b: {topology: [{key: rack, requirementType: preferred}]}\n" + tasks("a", "b"),
        [(INVALID, 'unknown field "requirementTyp"', "requirementTyp")],
    ),
    "a template that cannot be filled in is alone": Case(
        f"{HEAD}  resources:\n    a: {{topology: [{{key: '{{{{ nobody }}}}'}}]}}\n" + tasks("nope"),
        [(INVALID, "nobody", "nobody }}")],
    ),
}


@pytest.fixture
def site(desk: SampleFolder) -> SampleFolder:
    desk.file("cluster.yaml", CLUSTER)
    desk.file("coterie.yaml", CONFIG)
    return desk


def validated(site: SampleFolder, case: Case) -> Json:
    return said(command(site, case, "validate"))


def planned(site: SampleFolder, case: Case) -> Json:
    return said(command(site, case, "plan"))


def run(site: SampleFolder, case: Case) -> Json:
    return said(command(site, case, "run"))


def submitted(site: SampleFolder, case: Case) -> Json:
    return served(site, case, lambda service, submission: service.submit(submission))


def dry(site: SampleFolder, case: Case) -> Json:
    return served(site, case, lambda service, submission: service.plan(submission))


def served(site: SampleFolder, case: Case, ask: Callable[[Service, Submission], object]) -> Json:
    settings = Settings(str(site.folder / "store.db"), site.folder / "state", site.folder / "coterie.yaml")
    service = Service(settings)
    try:
        with pytest.raises(SpecErrors) as caught:
            ask(service, Submission(case.text.encode(), "w.yaml", pool=case.pool))
    finally:
        service.stop()
    return errors_json(caught.value.faults)


def command(site: SampleFolder, case: Case, *words: str) -> Done:
    site.file("w.yaml", case.text)
    pool = ("--pool", case.pool) if case.pool else ()
    return call(*words, "w.yaml", "--config", "coterie.yaml", *pool, "-o", "json", cwd=site.folder)


def said(done: Done) -> Json:
    assert done.code == 3, done
    found: Json = json.loads(done.out)
    assert found["version"] == 1
    return found


WAYS: dict[str, Callable[[SampleFolder, Case], Json]] = {
    "validate": validated,
    "plan": planned,
    "run": run,
    "service": submitted,
    "dry run": dry,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_workflow_is_told_of_all_its_faults_at_once(
    case: Case, way: Callable[[SampleFolder, Case], Json], site: SampleFolder
) -> None:
    check(way(site, case)["errors"], case)


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a service, and return its URL."""
    folder = tmp_path_factory.mktemp("hall")
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (folder / "coterie.yaml").write_text(CONFIG, encoding="utf-8")
    with serving(folder) as (url, _):
        yield url


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_client_tells_its_own_faults_with_those_of_the_service(case: Case, hall: str, site: SampleFolder) -> None:
    site.file("w.yaml", case.text)
    pool = ("--pool", case.pool) if case.pool else ()
    check(said(call("submit", "w.yaml", *pool, "-o", "json", cwd=site.folder, COTERIE_SERVER=hall))["errors"], case)


def test_a_client_without_a_service_tells_what_it_sees_itself(site: SampleFolder) -> None:
    site.file("w.yaml", "workflow:\n  name: w!\n" + tasks("default"))
    done = call("submit", "w.yaml", "-o", "json", cwd=site.folder, COTERIE_SERVER="http://127.0.0.1:9")
    assert len(said(done)["errors"]) == 1


def check(found: list[Json], case: Case) -> None:
    assert [each["code"] for each in found] == [code for code, _, _ in case.faults], found
    parts = [part for _, part, _ in case.faults]
    assert [each["message"] for each, part in zip(found, parts, strict=True) if part not in each["message"]] == []
    lines = case.text.splitlines()
    for each, (_, _, there) in zip(found, case.faults, strict=True):
        assert (each["file"], each["line"] is None) == (("w.yaml", False) if there else (None, True))
        if there:
            assert lines[each["line"] - 1][each["column"] - 1 :].startswith(there), (each, there)


def test_a_pool_that_is_not_there_keeps_its_own_exit_code_where_nothing_else_is_wrong(site: SampleFolder) -> None:
    right = Case(HEAD + tasks("default"), [], pool="lap")
    assert [command(site, right, word).code for word in ("validate", "plan", "run")] == [4, 4, 4]
    with pytest.raises(NotFound, match="lap"):
        served(site, right, lambda service, submission: service.submit(submission))


@pytest.mark.parametrize("word", ["validate", "plan", "run"])
@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--config", "broken.yaml"), "topology_key"),
        (("--levels", "rack"), "NAME=LABEL"),
        (("--topology", "wrong.yaml"), "cannot be the domain"),
    ],
)
def test_what_files_are_judged_against_may_have_faults_too(
    site: SampleFolder, option: Sequence[str], words: str, word: str
) -> None:
    site.file("broken.yaml", CONFIG.replace("topology_keys:", "topology_key:"))
    site.file("wrong.yaml", text(topology("t") | {"spec": {"levels": [{"domain": "R!", "key": "rack"}]}}))
    site.file("w.yaml", "workflow:\n  name: w!\n  resources:\n    a: {topology: [{key: rck}]}\n" + tasks("a"))
    where = ("--cluster", "cluster.yaml") if word != "validate" and "--config" not in option else ()
    found = said(call(word, "w.yaml", *option, *where, "-o", "json", cwd=site.folder))["errors"]
    assert [words in found[0]["message"], "w!" in found[-1]["message"], len(found)] == [True, True, 2], found


@pytest.mark.parametrize("word", ["validate", "plan"])
def test_the_faults_of_several_files_come_together_file_by_file(site: SampleFolder, word: str) -> None:
    for name, wrong in (("one", "w!"), ("two", "v!")):
        asking = "  pool: lab\n  resources:\n    a: {topology: [{key: rck}]}\n"
        site.file(f"{name}.yaml", f"workflow:\n  name: {wrong}\n{asking}" + tasks("a"))
    site.file("set.yaml", text(packed("rak")))
    files = ("two.yaml", "set.yaml", "one.yaml")
    found = said(call("validate", *files, "--config", "coterie.yaml", "-o", "json", cwd=site.folder))["errors"]
    assert [each["file"] for each in found] == ["two.yaml", "two.yaml", "one.yaml", "one.yaml"]
    site.file("topology.yaml", text(topology("t")))
    found = said(
        call(word, *files, "topology.yaml", "--config", "coterie.yaml", "--pool", "lab", "-o", "json", cwd=site.folder)
    )
    assert [(each["file"], each["code"]) for each in found["errors"]] == [
        ("two.yaml", INVALID),
        ("two.yaml", UNKNOWN),
        ("set.yaml", UNKNOWN),
        ("one.yaml", INVALID),
        ("one.yaml", UNKNOWN),
    ]


LEVEL = {"topologyName": "t", "pack": {"required": "rak"}}
SHAPE_AND_LEVEL = {
    "a wrong type": (
        text(changed(standard(), constrained("set", LEVEL), assigned("spec.replicas", "soon"))),
        {"spec.replicas", "spec.template.topologyConstraint.pack.required"},
    ),
    "an unknown field beside the level": (
        text(changed(standard(), constrained("set", {**LEVEL, "hard": True}))),
        {"spec.template.topologyConstraint.hard", "spec.template.topologyConstraint.pack.required"},
    ),
    "an unknown field instead of the level": (
        text(changed(standard(), constrained("set", {"topologyName": "t", "packDomian": "rack"}))),
        {"spec.template.topologyConstraint.packDomian"},
    ),
}


@pytest.mark.parametrize("word", ["validate", "plan"])
@pytest.mark.parametrize(("content", "fields"), SHAPE_AND_LEVEL.values(), ids=SHAPE_AND_LEVEL)
def test_a_set_is_told_of_faulty_fields_and_of_unknown_levels_at_once(
    content: str, fields: set[str], site: SampleFolder, word: str
) -> None:
    site.file("set.yaml", content)
    site.file("topology.yaml", text(topology("t")))
    where = ("--cluster", "cluster.yaml") if word == "plan" else ()
    found = said(call(word, "set.yaml", "topology.yaml", *where, "-o", "json", cwd=site.folder))["errors"]
    assert {each["field"] for each in found} == fields
    assert len(found) == len(fields)
    assert found == sorted(found, key=lambda each: (each["line"], each["column"]))


def test_a_graph_is_told_of_faulty_fields_and_of_unknown_levels_at_once(site: SampleFolder) -> None:
    graph = dynamo.beta()
    graph["spec"]["topologyConstraint"]["packDomain"] = "rak"
    graph["spec"]["colour"] = "red"
    site.file("graph.yaml", text(graph))
    site.file("topology.yaml", text(topology("t")))
    found = said(call("validate", "graph.yaml", "topology.yaml", "-o", "json", cwd=site.folder))["errors"]
    assert {each["field"] for each in found} == {"spec.colour", "spec.topologyConstraint.packDomain"}


def test_an_object_that_is_none_hides_nothing_about_those_beside_it(site: SampleFolder) -> None:
    site.file(
        "set.yaml", text(packed("rak"), {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqeSet"}, topology("t"))
    )
    found = said(call("validate", "set.yaml", "-o", "json", cwd=site.folder))["errors"]
    assert {each["code"] for each in found} == {INVALID, UNKNOWN}
    assert len(found) == 2


def test_a_file_that_does_not_exist_is_not_counted_as_a_fault_of_another(site: SampleFolder) -> None:
    path = site.file("wrong.yaml", "workflow:\n  name: w\n" + tasks("none"))
    done = call("plan", path, "--cluster", site.folder / "missing.yaml")
    assert done.err.splitlines()[-1].endswith(" faults in the input")
