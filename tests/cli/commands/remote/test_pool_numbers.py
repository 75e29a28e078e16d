"""The GPUs of a pool as its commands count them: used, free, held by others, out of service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import CLUSTER, call
from tests.cli.service_fixtures import CONFIG, serving

pytestmark = pytest.mark.slow("starts a service and runs tasks on it")


def test_idle_gpus_of_cordoned_nodes_are_out_of_service_and_not_held_by_others(tmp_path: Path) -> None:
    """Of five nodes with eight GPUs, `wf-12` holds one and another is cordoned."""
    cordoned = "nodes: [{name: c, gpu: 8, domains: {zone: a, rack: r1}, cordoned: true}]\n"
    (tmp_path / "cluster.yaml").write_text(CLUSTER + cordoned, encoding="utf-8")
    (tmp_path / "coterie.yaml").write_text(CONFIG, encoding="utf-8")
    with serving(tmp_path) as (url, _):
        listed = call("pool", "list", "--server", url, COLUMNS="200").out.splitlines()
        shown = call("pool", "show", "lab", "--server", url).out
        domains = call("topology", "show", "lab", "--server", url).out

    numbers = dict(zip(listed[0].split(), listed[1].replace(" (default)", "").split(), strict=False))
    assert {name: numbers[name] for name in ("GPUS", "FREE", "OTHERS", "OUT")} == {
        "GPUS": "0/40",
        "FREE": "24",
        "OTHERS": "8",
        "OUT": "8",
    }
    assert "0 used, 24 free, 8 held by others, 8 idle and out of service, 40 in all" in shown
    assert ["r1", "rack", "3", "0", "16", "8", "24"] in [line.split() for line in domains.splitlines()]
