"""A service that is killed again and again while its workflows run on a real cluster."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import Lab
from tests.cli.service_fixtures import ServiceFixture, serving
from tests.eventually import eventually
from tests.kai.service_on_kai import CONFIG, KINDS, OWN, add_nodes
from tests.seed import SEED

FLOW = """
workflow:
  name: killed
  groups:
  - name: g
    tasks:
    - {name: a, image: i, lead: true, command: [run], files: [{path: /f, contents: x}]}
    - {name: b, image: i, command: [run]}
  resources: {default: {gpu: 1, topology: [{key: rack}]}}
"""


@contextmanager
def _seen(lab: Lab) -> Iterator[dict[str, set[str]]]:
    """Collect the uids of all pods by name, for as long as the block lasts."""
    found: dict[str, set[str]] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            for pod in lab.objects("pods", selector=OWN):
                found.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(30)


def test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nodes(lab)
    monkeypatch.setenv("KUBECONFIG", str(lab.kubeconfig))
    (tmp_path / "coterie.yaml").write_text(CONFIG.replace("NVLINK", "true"), encoding="utf-8")
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    moments: list[Callable[[str], bool]] = [
        lambda _: True,
        lambda _: bool(lab.objects("configmaps", selector=OWN)),
        lambda _: bool(lab.objects("podgroups.scheduling.run.ai", selector=OWN)),
        lambda ident: bool(lab.objects("pods", selector=f"coterie.dev/workflow={ident}")),
    ]
    random.Random(SEED).shuffle(moments)  # noqa: S311 - an order of test cases
    idents: list[str] = []
    with _seen(lab) as uids:
        for moment in moments:
            _kill_at(moment, tmp_path, idents)
        with serving(tmp_path) as (url, _):
            here = ServiceFixture(url, tmp_path)
            for ident in idents[:-1]:
                assert here.finished(ident) == "FAILED_CANCELED"
            eventually(lambda: here.data("show", idents[-1])["status"] == "RUNNING")
            here.call("cancel", idents[-1], "-y")
            assert here.finished(idents[-1]) == "FAILED_CANCELED"
            eventually(lambda: not any(lab.objects(kind, selector=OWN) for kind in KINDS))
    assert len(idents) == len(moments)
    assert {name: found for name, found in uids.items() if len(found) > 1} == {}


def _kill_at(moment: Callable[[str], bool], folder: Path, idents: list[str]) -> None:
    """Run a service that cancels its last workflow and takes another, and kill it at a moment of that one's life."""
    with serving(folder) as (url, process):
        here = ServiceFixture(url, folder)
        if idents:
            here.call("cancel", idents[-1], "-y")
        eventually(lambda: _submitted(here, idents))
        eventually(lambda: moment(idents[-1]))
        process.kill()


def _submitted(here: ServiceFixture, idents: list[str]) -> bool:
    done = here.call("submit", here.folder / "flow.yaml")
    if done.code == 0:
        idents.append(done.out.strip())
    return done.code == 0
