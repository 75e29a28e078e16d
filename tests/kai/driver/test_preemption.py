"""A gang that KAI preempts for one of a higher priority: what is said of it, and that it runs again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.backends.kai.driver.observation import followed_pods
from coterie.lifecycle import State, from_json
from lab import Lab
from tests.kai.driver.service_on_kai import OWN, RACK, ZONE, KaiService, add_nodes, serving, settings
from tests.service.running_service import task, workflow

RACK_OF_TWO = f"""
topology_keys: [{{key: zone, label: {ZONE}}}, {{key: rack, label: {RACK}}}]
nodes:
- {{name: r1-n1, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r1}}}}
- {{name: r1-n2, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r1}}}}
"""
PAIR = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
LIMIT_S = 90.0


@contextmanager
def _preempting(lab: Lab) -> Iterator[None]:
    """Let KAI also evict, for as long as the block lasts."""
    program = lab.programs["kai-scheduler"]
    (option,) = [word for word in program.command if word.startswith("--scheduler-conf=")]
    file = Path(option.partition("=")[2])
    before = file.read_text(encoding="utf-8")
    try:
        program.stop()
        file.write_text('actions: "allocate,preempt"\n', encoding="utf-8")
        program.start()
        yield
    finally:
        program.stop()
        file.write_text(before, encoding="utf-8")
        program.start()


def _domains(lab: Lab) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in lab.objects("computedomains", selector=OWN)}


def _bound(here: KaiService, ident: str) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in here.pods(ident))


def test_a_preempted_gang_says_so_waits_as_a_whole_and_runs_again(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # KAI's event may come long after the deletion on a busy machine.
    monkeypatch.setattr(followed_pods, "EVENT_S", 60.0)
    add_nodes(lab, RACK_OF_TWO)
    with _preempting(lab), serving(lab, settings(tmp_path, nvlink=True)) as here:
        gang = workflow("low", PAIR, gpu=8, topology="[{key: rack}]")
        low = here.submit(replace(gang, priority="LOW"))
        here.running(low, 2)
        first = _domains(lab)
        urgent = workflow("high", PAIR, gpu=8, topology="[{key: rack}]")
        high = here.submit(replace(urgent, priority="HIGH"))
        here.running(high, 2)

        def waits() -> bool:
            found = here.tasks(low).values()
            return (
                all(one["attempt"] > 1 and one["status"] == "SCHEDULING" for one in found) and len(here.pods(low)) == 2
            )

        lab.wait(waits, LIMIT_S, "the preempted gang waits as a whole")
        assert _bound(here, low) == 0
        told = [each["message"] for each in here.events(low) if each["kind"] in ("TaskRescheduled", "GroupRescheduled")]
        words = "was lost: it was preempted by higher priority workload default/high-1-g-"
        assert any(words in each for each in told), told
        assert not any("somebody else" in each for each in told), told
        # One ComputeDomain for each of the two; that of an earlier placement goes.
        lab.wait(lambda: len(_domains(lab)) == 2, LIMIT_S, "each gang has one ComputeDomain")
        # The one with the lower priority has preempted nobody in turn.
        assert {one["attempt"] for one in here.tasks(high).values()} == {1}
        here.end(high, "a")
        assert here.finished(high) == "COMPLETED"
        here.running(low, 2)
        state = from_json(State, here.service.store.workflow(low).state)
        assert [one.reschedules for one in state.groups[0].tasks] == [0, 0]
        lab.wait(lambda: len(_domains(lab)) == 1, LIMIT_S, "that of the other gang is gone")
        # A group that starts again as a whole has a new one; replacements of its tasks join the first one.
        again = "GroupRescheduled" in [each["kind"] for each in here.events(low)]
        assert (_domains(lab).keys() == first.keys()) is not again
        here.end(low, "a")
        assert here.finished(low) == "COMPLETED"
        assert here.left() == {}
