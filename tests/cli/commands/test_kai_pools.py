"""Pools of KAI as commands show them: their levels, with counts where their nodes are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import CLUSTER, call
from tests.cli.service_fixtures import CONFIG, serving

pytestmark = pytest.mark.slow("starts a service and asks it in other processes")

LEVELS = "[{key: zone, label: topology.kubernetes.io/zone}, {key: rack, label: topology.kubernetes.io/rack}]"
FLEET = f"topology_keys: {LEVELS}\nfleet: [{{domains: {{zone: [z], rack: [r1, r2, r3]}}, nodes: 2, gpu: 8}}]\n"
BACKENDS = "  seen: {scheduler: kai, cluster: seen.yaml}\n  unseen: {scheduler: kai, context: far}\n"
POOLS = "".join(f"  {name}: {{backend: {name}, topology_keys: {LEVELS}}}\n" for name in ("seen", "unseen"))


def test_levels_of_a_kai_pool_are_shown_and_counted_where_its_nodes_are_known(tmp_path: Path) -> None:
    config = CONFIG.replace("pools:\n", f"{BACKENDS}pools:\n{POOLS}", 1)
    assert BACKENDS in config
    for name, text in {"cluster": CLUSTER, "seen": FLEET, "coterie": config}.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    with serving(tmp_path) as (url, _):
        listed = call("topology", "list", "--server", url)
        seen, unseen = (call("topology", "show", name, "--server", url) for name in ("seen", "unseen"))
        counted, configured = (call("pool", "show", name, "--server", url) for name in ("seen", "unseen"))

    rows = [line.split() for line in listed.out.splitlines()]
    assert ["seen", "rack", "topology.kubernetes.io/rack", "3"] in rows
    assert ["unseen", "rack", "topology.kubernetes.io/rack", "-"] in rows
    assert "-: not counted, because the nodes of unseen are not known here." in listed.out
    assert ["rack", "topology.kubernetes.io/rack", "3", "6", "0"] in [line.split() for line in seen.out.splitlines()]
    assert ["r2", "rack", "2", "0", "16", "0", "16"] in [line.split() for line in seen.out.splitlines()]
    for done in (unseen, configured):
        assert done.code == 0, done.err
        rows = [line.split() for line in done.out.splitlines()]
        assert ["rack", "topology.kubernetes.io/rack", "-", "-", "-"] in rows
        assert "domains are not counted, because the pool's nodes are not known here." in done.out
    assert ["nodes", "6"] in [line.split() for line in counted.out.splitlines()]
    assert ["nodes", "not", "known", "here"] in [line.split() for line in configured.out.splitlines()]
