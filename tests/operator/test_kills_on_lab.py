"""Operators that are killed at a write, that meet a conflict at every write, and whose certificates end, on a real API.

The end must be the same as without. A run kills at two writes of all, drawn by its seed; COTERIE_KILLS asks for more.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, tzinfo
from typing import Any, ClassVar

import pytest
from lab.api import ApiError

from coterie.operator import election
from coterie.operator.operator import Operator
from coterie.operator.webhook import certificates
from coterie.operator.webhook.registration import NAME
from coterie.operator.writer import Writer
from lab import Lab
from tests.cli.command import ROOT
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import beta
from tests.lab.gangs import CLIQUE, ZONE, pod
from tests.operator.conftest import Operate
from tests.operator.killed_operator import TIMING
from tests.operator.topologies.test_topologies_on_lab import GROUP, TOPOLOGY, declared, references
from tests.operator.workloads.test_workloads_on_lab import GRAPHS, SETS, events_of, here, told
from tests.seed import SEED

Object = dict[str, Any]
HOOKS = "validatingwebhookconfigurations"
KILLS = int(os.environ.get("COTERIE_KILLS", "2"))
# The writes of `change`, whatever the order in which controllers work: 8 for the topology under waiting work, 4 for the
# other one, and an event and a status for the set and for the graph. COTERIE_KILLS=32 kills before and after each.
WRITES = 16
DRAWN = random.Random(SEED).sample([(n, when) for n in range(1, WRITES + 1) for when in ("before", "after")], KILLS)  # noqa: S311 - repeatable


def group() -> list[Object]:
    """Return a gang that waits, since there is no node."""
    constraint = {"topology": "racks", "requiredTopologyLevel": CLIQUE}
    spec = {"queue": "default", "minMember": 1, "topologyConstraint": constraint, "subGroups": []}
    made = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "spec": spec}
    return [{**made, "metadata": {"name": "train", "namespace": "default"}}, pod("train", "train-0")]


def begin(lab: Lab, operate: Operate) -> None:
    """Bring a cluster to a state in which all is in sync, without an operator."""
    lab.reset(120.0)
    lab.queue("default")
    operator = operate(lab, timing=TIMING, settle_s=0.2)
    for each in (declared(ZONE), topology("t"), here(packed()), here(beta()), *group()):
        lab.api.create(each)
    lab.wait(lambda: in_sync(lab, 1) and told(lab, SETS, "set")[0] == "False", 60, "all is in sync")
    lab.wait(lambda: told(lab, GRAPHS, "chat")[0] == "True", 60, "the graph has its levels")
    operator.__exit__()


def change(lab: Lab) -> None:
    """Change the levels of a topology under waiting work, and remove one that a set and a graph name."""
    lab.apply([declared(ZONE, CLIQUE), topology("t", "zone", "host")])


def in_sync(lab: Lab, generation: int) -> bool:
    found = [*lab.objects("clustertopologies"), *lab.objects("clustertopologybindings")]
    states = [
        (each.get("status", {}).get("observedGeneration"), (each.get("status", {}).get("conditions") or [{}])[0])
        for each in found
    ]
    return bool(found) and all(seen == generation and one.get("status") == "False" for seen, one in states)


def ended(lab: Lab) -> bool:
    """Return whether the change has been carried out and told."""
    lost = told(lab, SETS, "set")[0] == "True" and told(lab, GRAPHS, "chat")[0] == "False"
    names = sorted(each["metadata"]["name"] for each in lab.objects(TOPOLOGY))
    return in_sync(lab, 2) and lost and names == ["racks", "t"] and pointed(lab) == {"racks"}


def pointed(lab: Lab) -> set[str]:
    found = lab.get(GROUP, "train")
    return references(found) if found else set()


def state(lab: Lab) -> Object:
    """Return everything that a user could see of the end, without times and versions."""
    kai = {each["metadata"]["name"]: each["spec"]["levels"] for each in lab.objects(TOPOLOGY)}
    statuses = {
        f"{kind}/{each['metadata']['name']}": [
            {key: value for key, value in one.items() if key != "lastTransitionTime"}
            for one in each["status"]["conditions"]
        ]
        for kind in ("clustertopologies", "clustertopologybindings", SETS, GRAPHS)
        for each in lab.objects(kind)
    }
    events = {name: sorted(events_of(lab, name)) for name in ("racks", "t", "set", "chat")}
    return {"topologies": kai, "conditions": statuses, "events": events, "group": pointed(lab)}


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Object]:
    """Give the end of an operator that nothing happened to, once a test has found it."""
    return {}


def expected(lab: Lab, operate: Operate, known: dict[str, Object]) -> Object:
    if not known:
        begin(lab, operate)
        change(lab)
        operator = operate(lab, timing=TIMING, settle_s=0.2)
        lab.wait(lambda: ended(lab), 60, "the change is carried out")
        operator.__exit__()
        known["end"] = state(lab)
    return known["end"]


@pytest.mark.parametrize(("number", "when"), DRAWN)
def test_an_operator_that_is_killed_at_a_write_is_continued_by_the_next(
    workload_lab: Lab, operate: Operate, undisturbed: dict[str, Object], number: int, when: str
) -> None:
    lab = workload_lab
    wanted = expected(lab, operate, undisturbed)
    begin(lab, operate)
    change(lab)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.operator.killed_operator", str(number), when],
        env={**os.environ, "KUBECONFIG": str(lab.kubeconfig)},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.wait(240) == -signal.SIGKILL
        finally:
            process.kill()
    operator = operate(lab, timing=TIMING, settle_s=0.2)
    lab.wait(lambda: ended(lab), 60, "the next operator has finished it")
    operator.__exit__()

    assert state(lab) == wanted


def test_a_conflict_at_every_write_of_a_status_changes_nothing_of_the_end(
    workload_lab: Lab, operate: Operate, undisturbed: dict[str, Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = workload_lab
    wanted = expected(lab, operate, undisturbed)
    begin(lab, operate)
    change(lab)
    write, met = Writer.status, []

    def raced(self: Writer, about: Object, status: Object) -> Object:
        metadata = about["metadata"]
        key = (about["kind"], metadata["name"], metadata.get("generation"), str(status))
        if key not in met:
            met.append(key)
            note = {"metadata": {"annotations": {"raced": str(len(met))}}}
            lab.api.patch(f"{about['kind']}", metadata["name"], note, metadata.get("namespace", ""))
        return write(self, about, status)

    monkeypatch.setattr(Writer, "status", raced)
    operate(lab, timing=TIMING, settle_s=0.2)
    lab.wait(lambda: ended(lab), 60, "the change is carried out")

    assert state(lab) == wanted
    assert len(met) >= 4


class SkewedClock:
    """A clock that is hours ahead in some threads, and hours behind in the others."""

    ahead: ClassVar[dict[int, bool]] = {}

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        ahead = cls.ahead.setdefault(threading.get_ident(), len(cls.ahead) % 2 == 0)
        return datetime.now(tz) + timedelta(hours=3 if ahead else -3)


def test_two_operators_with_clocks_that_are_hours_apart_come_to_the_same_end_as_one(
    workload_lab: Lab, operate: Operate, undisturbed: dict[str, Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = workload_lab
    wanted = expected(lab, operate, undisturbed)
    begin(lab, operate)
    # Each operator has one thread that reads and writes the lease.
    monkeypatch.setattr(election, "datetime", SkewedClock)
    first: Operator = operate(lab, timing=TIMING, settle_s=0.2)
    second: Operator = operate(lab, timing=TIMING, settle_s=0.2)
    lab.wait(lambda: first.leads or second.leads, 60, "one leads")
    change(lab)
    lab.wait(lambda: len(lab.objects(TOPOLOGY)) > 2 or ended(lab), 60, "the exchange has begun")
    (first if first.leads else second).__exit__()
    lab.wait(lambda: ended(lab), 60, "the other one has finished it")

    assert state(lab) == wanted
    assert not (first.leads and second.leads)
    assert set(SkewedClock.ahead.values()) == {True, False}


def test_certificates_that_end_are_replaced_under_the_eyes_of_the_api_server(
    workload_lab: Lab, operate: Operate, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = workload_lab
    lab.reset(120.0)
    # Lives of seconds: every certificate and every authority of this test ends while the API server uses it.
    monkeypatch.setattr(certificates, "SERVER_HOURS", 3 / 3600)
    monkeypatch.setattr(certificates, "AUTHORITY_DAYS", 6 / 86400)
    monkeypatch.setattr(certificates, "_SKEW", timedelta(seconds=5))
    operator = operate(lab, webhook="127.0.0.1:0", certificate_check_s=0.1)
    lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
    first = bundle(lab)
    lab.wait(lambda: refused(lab), 60, "the API server asks the webhook")
    lab.wait(lambda: not set(first) & set(bundle(lab)), 60, "no authority of the beginning is trusted any more")

    lab.wait(lambda: refused(lab), 60, "the API server still gets answers")
    operator.__exit__()
    lab.api.delete(HOOKS, NAME)


def bundle(lab: Lab) -> list[str]:
    """Return the authorities in the registration."""
    found = lab.get(HOOKS, NAME) or {"webhooks": [{"clientConfig": {"caBundle": ""}}]}
    text = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    return [part.strip() for part in text.split("-----END CERTIFICATE-----") if part.strip()]


def refused(lab: Lab) -> bool:
    """Return whether a set that the rules forbid is refused by them, and not for want of an answer."""
    try:
        lab.api.create(here(packed("rack", "missing")))
    except ApiError as error:
        return "topologyName" in str(error)
    lab.api.delete(SETS, "set", "default")
    return False
