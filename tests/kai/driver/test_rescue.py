"""Gangs that fit and that KAI leaves waiting: reported, and pinned to their domains where the pool allows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coterie.service.settings import Settings, Submission
from lab import Lab
from tests.kai.driver.service_on_kai import CONFIG, KaiService, add_nodes, serving, settings
from tests.service.running_service import task

LIMIT_S = 60.0
# KAI counts each pod as the largest (trap B), and takes the tightest rack for the largest sibling (trap D).
TRAPS: dict[str, tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, str]]]] = {
    "B": ({"r1": (8, 8)}, {"small": (4, "x"), "large": (8, "x"), "other": (4, "x")}),
    "D": (
        {"r1": (9,), "r2": (6,)},
        {f"{name}{n}": (1, name) for name, count in {"a": 5, "b": 4, "c": 3, "d": 3}.items() for n in range(count)},
    ),
}


def _cluster(racks: dict[str, tuple[int, ...]]) -> str:
    head = "topology_keys: [{key: zone, label: topology.kubernetes.io/zone}, {key: rack, label: nvidia.com/gpu.clique}]"
    line = "- {{name: {rack}-n{n}, gpu: {gpu}, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: {rack}}}}}"
    nodes = [line.format(rack=rack, n=n, gpu=gpu) for rack, gpus in racks.items() for n, gpu in enumerate(gpus)]
    return "\n".join([head, "nodes:", *nodes, ""])


def _workflow(name: str, tasks: dict[str, tuple[int, str]]) -> Submission:
    body = "".join(
        task(each, "run", f"resource: {each}" + ("" if number else "\nlead: true")) for number, each in enumerate(tasks)
    )
    resources = "".join(
        f"    {each}: {{gpu: {gpu}, cpu: 1, topology: [{{key: rack, group: {group}}}]}}\n"
        for each, (gpu, group) in tasks.items()
    )
    text = f"version: 2\nworkflow:\n  name: {name}\n  groups:\n  - name: g\n    tasks:\n{body}  resources:\n{resources}"
    return Submission(text.encode())


def _settings(folder: Path, *, rescue: bool) -> Settings:
    more = "    rescue_after: 2s\n" if rescue else ""
    return settings(folder, config=f"{CONFIG}{more}")


def _cause(here: KaiService, ident: str) -> dict[str, str]:
    groups = here.service.why(ident)["groups"]
    return dict(groups[0]["cause"]) if groups else {}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_gang_that_kai_leaves_waiting_is_pinned_to_its_domains_and_runs(lab: Lab, tmp_path: Path, trap: str) -> None:
    racks, tasks = TRAPS[trap]
    add_nodes(lab, _cluster(racks))
    found = _settings(tmp_path, rescue=False)
    with serving(lab, found) as here:
        ident = here.submit(_workflow("w", tasks))
        lab.wait(lambda: _cause(here, ident).get("kind") == "SchedulerRefuses", LIMIT_S, "KAI refuses it")
        assert f"although it fits ({trap}: " in _cause(here, ident)["message"]
    found = _settings(tmp_path, rescue=True)
    with serving(lab, found) as here:
        here.running(ident, len(tasks))
        assert here.service.placement(ident)["summary"]["violated"] == 0
        nodes = {name: one["node"][:2] for name, one in here.tasks(ident).items()}
        for group in {group for _, group in tasks.values()}:
            assert len({nodes[name] for name, (_, own) in tasks.items() if own == group}) == 1
        (event,) = [each for each in here.events(ident) if each["kind"] == "Rescued"]
        assert re.search(
            r"KAI has left the group waiting for \d+ s although it fits; .* pinned to rack r1", event["message"]
        )
        here.service.cancel(ident)
        here.finished(ident)
        assert here.left() == {}


def test_a_rescue_is_undone_when_the_room_has_vanished(lab: Lab, tmp_path: Path) -> None:
    racks, tasks = TRAPS["B"]
    add_nodes(lab, _cluster(racks))
    with serving(lab, _settings(tmp_path, rescue=False)) as here:
        ident = here.submit(_workflow("w", tasks))
        lab.wait(lambda: _cause(here, ident).get("kind") == "SchedulerRefuses", LIMIT_S, "KAI refuses it")
    # KAI does not run from before the rescue until the room has vanished.
    lab.programs["kai-scheduler"].stop()
    with serving(lab, _settings(tmp_path, rescue=True)) as here:
        try:
            _event(here, ident, "Rescued")
            lab.api.patch("nodes", "r1-n0", {"spec": {"unschedulable": True}})
            _event(here, ident, "RescueUndone")
        finally:
            lab.programs["kai-scheduler"].start()
        lab.wait(lambda: _cause(here, ident).get("kind") == "DoesNotFit", LIMIT_S, "it does not fit")
        lab.api.patch("nodes", "r1-n0", {"spec": {"unschedulable": False}})
        here.running(ident, len(tasks))
        here.service.cancel(ident)
        here.finished(ident)
        assert here.left() == {}


def _event(here: KaiService, ident: str, kind: str) -> None:
    here.lab.wait(lambda: any(each["kind"] == kind for each in here.events(ident)), LIMIT_S, f"{kind} is told")
