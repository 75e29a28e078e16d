"""Random gangs on the real KAI: all of a gang runs or nothing does, and everything required holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from coterie.backends.kai.manifests import objects
from coterie.inspection.audit import AuditOutcome, GangProgress, audit
from coterie.topology.cluster import Cluster
from lab import Lab, nodes
from tests.kai.live_workloads import Marker, live_snapshot
from tests.kai.random_clusters import case, found
from tests.kai.test_rule_against_kai import pool_of, render

FIRST, GANGS = 5060, 20


def test_a_random_gang_runs_as_required_or_not_at_all(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    cases = {f"case{number}": replace(case(number), bare=False) for number in range(FIRST, FIRST + GANGS)}
    rendered = {name: render(name, one.gang, pool_of(one)) for name, one in cases.items()}
    nodes.add(
        lab,
        Cluster.of(
            [node for one in cases.values() for node in one.nodes], [pod for one in cases.values() for pod in one.pods]
        ),
    )
    rounds = Marker(lab)
    lab.api.each(lab.api.create, [manifest for one in rendered.values() for manifest in (*one.before, one.last)])
    # Without their queue the gangs wait, so KAI knows all nodes and pods when it takes the first.
    rounds.settle()
    lab.api.each(lab.api.create, list(objects.queues(rendered[f"case{FIRST}"].scene)))
    rounds.settle()

    gangs = {gang.asked.workload: gang for gang in audit(live_snapshot(lab)).gangs}

    assert gangs.keys() == cases.keys()
    states = Counter(gang.state for gang in gangs.values())
    outcomes = Counter(finding.outcome for gang in gangs.values() for finding in gang.findings)
    with capsys.disabled():
        print(f"\n{GANGS} random gangs: {_listed(states)}; constraints: {_listed(outcomes)}")  # noqa: T201 - to be seen
    for name, gang in gangs.items():
        placed = [seat.task for seat in gang.seats if seat.node]
        if gang.state is GangProgress.RUNNING:
            assert {finding.outcome for finding in gang.findings} <= {AuditOutcome.HELD, AuditOutcome.MISSED}, cases[
                name
            ]
            # KAI counts what is needed, and may take a small task that is only wanted for a large one that is needed.
            assert found(cases[name]) or not all(task.needed for task in cases[name].gang.all_tasks()), cases[name]
        else:
            assert (gang.state, placed) == (GangProgress.WAITING, []), cases[name]
    assert states[GangProgress.RUNNING] > GANGS / 4
    assert states[GangProgress.WAITING]
    assert outcomes[AuditOutcome.MISSED]


def _listed(counted: Counter[GangProgress] | Counter[AuditOutcome]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counted.items()))
