"""The numbered cases of Grove's and Dynamo's topology APIs, through a real API server that asks the webhook.

The table is that of `coterie validate`, which runs in tests/edge_cases: both must find the same. Left out are cases
without a document, which need a scheduler's or another operator's part: `test_the_rest_is_named` lists them.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from coterie.errors import SpecErrors
from coterie.frontends.admission import TargetCluster, judge_graph, judge_set, judge_topology, judged
from coterie.frontends.grove.topology import KINDS
from coterie.frontends.kubernetes.objects import resource_of
from coterie.operator.operator import Operator
from coterie.operator.webhook.registration import NAME
from lab import Lab
from tests.edge_cases.grove_dynamo_cases import EITHER, T_AND_U, Case, pcs
from tests.edge_cases.test_grove_dynamo import CASES, WRITTEN
from tests.frontends.dynamo.objects import alpha, beta
from tests.frontends.grove.objects import Manifest, constrained
from tests.operator.conftest import Operate
from tests.operator.webhook.test_review import CAUSES
from tests.seed import SEED

Object = dict[str, Any]
HOOKS = "validatingwebhookconfigurations"
MUTATIONS = 200
# `coterie validate` compares files, so it sees that an object is gone; an API server is asked to delete it.
ONLY_FILES = {"Removed"}
# Causes of an API server's own checks of a definition, besides those of field errors.
SCHEMA = {"FieldValueTooMany": "Invalid", "FieldValueTypeInvalid": "Invalid", "FieldValueTooLong": "Invalid"}


@dataclass(frozen=True)
class Answer:
    """The API server's answer to one request."""

    status: int
    body: Object
    warnings: tuple[str, ...]

    @property
    def faults(self) -> list[tuple[str, str]]:
        causes = (self.body.get("details") or {}).get("causes") or []
        # Where its own checks fail, an API server adds that it has skipped further ones, of no field.
        return [((CAUSES | SCHEMA)[each["reason"]], each["field"]) for each in causes if each["field"] != "<nil>"]


def asked(lab: Lab, method: str, manifest: Object, *, dry: bool = True) -> Answer:
    """Send an object; nothing is stored unless `dry` is False."""
    kind = lab.api.resource(f"{manifest['kind']}.{manifest['apiVersion'].partition('/')[0]}")
    meta = manifest["metadata"]
    path = kind.path(meta["name"] if method == "PUT" else "", meta.get("namespace", "") if kind.namespaced else "")
    version = manifest["apiVersion"].rpartition("/")[2]
    path = path.replace(f"/{kind.version}/", f"/{version}/")
    params = {"dryRun": "All"} if dry else {}

    def sent() -> httpx2.Response | None:
        found: httpx2.Response = lab.api._client.request(method, path, json=manifest, params=params)
        # On a busy machine an API server may not wait for the answer of the webhook; then nothing was done.
        return None if found.status_code >= 500 and "deadline exceeded" in found.text else found

    found = lab.wait(sent, 30, "the webhook answers in time")
    assert found is not None
    said = [each.split('"')[1].partition(":")[0] for each in found.headers.get_list("warning")]
    return Answer(found.status_code, found.json(), tuple(said))


def replaced(lab: Lab, manifest: Object, *, dry: bool = True) -> Answer:
    """Replace an object; the operator may write its status in between, so a conflict is tried again."""
    metadata = manifest["metadata"]
    kind = f"{manifest['kind']}.{manifest['apiVersion'].partition('/')[0]}"

    def attempt() -> Answer | None:
        old = lab.get(kind, metadata["name"], metadata.get("namespace", "")) or {"metadata": {}}
        version = {"resourceVersion": old["metadata"].get("resourceVersion", "")}
        found = asked(lab, "PUT", {**manifest, "metadata": {**metadata, **version}}, dry=dry)
        return found if found.status != 409 else None

    answer = lab.wait(attempt, 30, "it is replaced")
    assert answer is not None
    return answer


class Bench:
    """The cluster of the cases: one operator per configuration, and the topologies of the present case."""

    def __init__(self, lab: Lab, operate: Operate) -> None:
        self.lab, self._operate = lab, operate
        self._operator: Operator | None = None
        self._site: TargetCluster | None = None
        self._there: dict[str, Manifest] = {}

    def prepare(self) -> None:
        """Store the old forms of all cases, before anything judges them: some are of older versions of an API."""
        for case in WRITTEN:
            for old in workloads(case.before or ()):
                place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(case)}}
                self.lab.apply([place])
                assert asked(self.lab, "POST", placed(old, case), dry=False).status == 201

    def configured(self, site: TargetCluster) -> None:
        """Run an operator with a configuration, and wait until the API server asks it."""
        if self._site == site:
            return
        if self._operator is not None:
            self._operator.__exit__()
        operator = self._operate(self.lab, webhook="127.0.0.1:0", cluster=site)
        self.lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
        self._operator, self._site = operator, site

        def counted() -> float:
            return sum(sample.value for metric in operator.metrics.decisions.collect() for sample in metric.samples)

        def judges() -> bool:
            before = counted()
            asked(self.lab, "POST", placed(beta(), None))
            return counted() > before

        self.lab.wait(judges, 60, "the API server asks this operator")

    def topologies(self, wanted: tuple[Manifest, ...], *, update: bool = False) -> tuple[list[Answer], bool]:
        """Make the topologies of the cluster those of a case, as far as they are admitted; return the answers.

        Others of the same names are deleted first, unless they are the old forms of this case.
        """
        answers = []
        new = {each["metadata"]["name"]: each for each in wanted if each["kind"] in KINDS}
        for name, old in list(self._there.items()):
            if name not in new or (old != new[name] and not update):
                self.lab.api.delete(self._there.pop(name)["kind"], name)
        for name, manifest in new.items():
            if self._there.get(name) == manifest:
                continue
            if name in self._there:
                answers.append(replaced(self.lab, manifest, dry=False))
            else:
                answers.append(asked(self.lab, "POST", manifest, dry=False))
            if answers[-1].status < 300:
                self._there[name] = manifest
        levels = {name: [each["domain"] for each in found["spec"]["levels"]] for name, found in self._there.items()}
        self.lab.wait(lambda: self._known() == levels, 30, "the webhook knows the topologies")
        return answers, all(each.status < 300 for each in answers)

    def _known(self) -> dict[str, list[str]]:
        assert self._operator is not None
        return {name: list(found.names) for name, found in self._operator.catalog.known().found.items()}


def workloads(documents: tuple[Manifest, ...]) -> list[Manifest]:
    return [each for each in documents if each["kind"] not in KINDS]


def namespace(case: Case | None) -> str:
    return "default" if case is None or case.before is None else f"case-{case.id}"


def placed(manifest: Manifest, case: Case | None) -> Manifest:
    """Return an object in the namespace of its case."""
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace(case)}}


def judged_by_server(bench: Bench, case: Case) -> Iterator[Answer]:
    """Yield the answers to all requests of a case; what cannot be stored ends it."""
    if case.before is not None:
        bench.topologies(case.before)
    answers, stored = bench.topologies(case.now, update=case.before is not None)
    yield from answers
    for manifest in workloads(case.now) if stored else ():
        new = placed(manifest, case)
        yield asked(bench.lab, "POST", new) if case.before is None else replaced(bench.lab, new)


@pytest.fixture
def bench(workload_lab: Lab, operate: Operate) -> Iterator[Bench]:
    """Give the cluster, empty and without a webhook yet."""
    workload_lab.reset(120.0)
    yield Bench(workload_lab, operate)
    workload_lab.api.delete(HOOKS, NAME)


def test_each_case_is_answered_as_coterie_validate_answers_it(bench: Bench) -> None:
    bench.prepare()
    wrong = []
    for site in dict.fromkeys(site for case in WRITTEN for site in case.sites):
        bench.configured(site)
        for case in (case for case in WRITTEN if site in case.sites):
            answers = list(judged_by_server(bench, case))
            faults = sorted(fault for answer in answers for fault in answer.faults)
            warnings = sorted({code for answer in answers for code in answer.warnings})
            expected = sorted(set(case.warnings) - ONLY_FILES)
            if (faults, warnings) != (sorted(case.faults), expected):
                wrong.append((case.id, site, faults, sorted(case.faults), warnings, expected))
            assert all(answer.status < 500 for answer in answers)
    assert not wrong, "\n".join(map(str, wrong))


def test_the_rest_is_named() -> None:
    """Cases without a document are shown on the lab by other tests: 12 to 15 of topologies, 29b of the webhook."""
    assert [case.id for case in CASES if not case.now] == ["12", "13", "14", "15", "29b", "67", "68", "69"]


def mutated(source: random.Random, manifest: Manifest) -> Manifest:
    """Return a document with one to three fields removed, replaced by junk, repeated or renamed."""
    found = copy.deepcopy(manifest)
    for _ in range(source.randint(1, 3)):
        places = [(owner, key) for owner, key in walk(found) if key not in {"apiVersion", "kind", "namespace"}]
        if not places:
            break  # nothing is left of it to change
        owner, key = source.choice(places)
        junk: list[Any] = [None, 0, -1, "", "Rack", "rack", "zone", "t", "missing", [], {}, [{}], True, "x" * 70]
        match source.randrange(4):
            case 0:
                del owner[key]
            case 1:
                owner[key] = source.choice(junk)
            case 2 if isinstance(owner, list):
                owner.append(copy.deepcopy(owner[key]))
            case _ if isinstance(owner, dict):
                owner[source.choice(["packDomain", "pack", "topologyName", "levels", "x"])] = owner.pop(key)
    found["metadata"] = {
        **manifest["metadata"],
        **(found["metadata"] if isinstance(found.get("metadata"), dict) else {}),
    }
    return found


def walk(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place below the spec and the metadata of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield value, key
        yield from walk(each)


def rule_faults(bench: Bench, manifest: Object) -> list[str]:
    """Return what the rules say of an object, without an API server."""
    assert bench._operator is not None
    known = bench._operator.catalog.known()
    try:
        resource = resource_of(manifest, "")
        judge = {
            "PodCliqueSet": lambda: judge_set(resource, None, known, EITHER),
            "DynamoGraphDeployment": lambda: judge_graph(resource, None, known, EITHER),
        }.get(manifest["kind"], lambda: judge_topology(resource, None, EITHER))
        return [fault.message for fault in judged(judge).faults]
    except SpecErrors as error:
        return [fault.message for fault in error.faults]


def test_no_mutated_document_is_admitted_that_the_rules_forbid(bench: Bench) -> None:
    source = random.Random(SEED)  # noqa: S311 - repeatable
    bench.configured(EITHER)
    bench.topologies(T_AND_U)
    whole = pcs(
        constrained("set", {"topologyName": "t", "pack": {"required": "zone", "preferred": "rack"}}),
        constrained("shard", {"pack": {"required": "rack"}}),
        constrained("lead", {"pack": {"required": "host"}}),
    )
    sources = [whole, beta(), alpha(), {**T_AND_U[0], "metadata": {"name": "other"}}]
    refused = 0
    for number in range(MUTATIONS):
        sent = mutated(source, placed(sources[number % len(sources)], None))
        answer = asked(bench.lab, "POST", sent)
        assert answer.status < 500, (SEED, number, answer.body)
        if answer.status < 300:
            assert rule_faults(bench, answer.body) == [], (SEED, number, sent)
        else:
            refused += 1
            # An API server refuses some objects by itself: names and labels that none may have, and bad types.
            own = "denied the request" not in str(answer.body.get("message"))
            assert own or rule_faults(bench, sent), (SEED, number, sent, answer.body)
    assert 20 < refused < MUTATIONS
