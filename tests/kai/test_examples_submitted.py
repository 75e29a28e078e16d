"""Examples through `coterie submit --pool` on a real KAI: placed, audited, run to their end, and gone without a trace.

Every run takes a few of them; COTERIE_EXAMPLES=all takes all.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from lab.api import ApiError

from coterie.config.configuration import Pool
from coterie.planning.load import WORKFLOW
from lab import Lab, nodes
from tests.cli.command import call
from tests.cli.service_fixtures import ServiceFixture, serving
from tests.eventually import eventually
from tests.examples.test_examples import EXAMPLES, Example
from tests.kai.driver.service_on_kai import KINDS, OWN
from tests.kai.live_workloads import WorkloadLab
from tests.seed import SEED

SHARE = 2
LIMIT_S = 90.0
ENDING = {"coterie.dev/lab-exit-code": "0", "coterie.dev/lab-runs-for": "0s"}


def chosen() -> list[Example]:
    """Return the examples of this run: workflows that can be placed as their clusters are."""
    found = [one for one in EXAMPLES if one.verdict == "placed" and "workflow:" in one.file.read_text()]
    return found if os.environ.get("COTERIE_EXAMPLES") == "all" else random.Random(SEED).sample(found, SHARE)  # noqa: S311 - no secret


def configuration(pool: Pool) -> str:
    """Return the pool of an example as one of a service on the lab."""
    levels = [{"key": level.name, "label": level.label} for level in pool.topology.levels]
    body = {
        **({"topology_keys": levels} if levels else {}),
        "nvlink": pool.nvlink,
        "node_selector": dict(pool.node_selector),
        "tolerations": [{"operator": "Exists"}],
        "workspace": {"claim": "files"},
    }
    backends = {"lab": {"scheduler": "kai", "namespace": "default"}}
    return json.dumps({"backends": backends, "pools": {"here": body, "other": {}}})


@pytest.mark.parametrize("example", chosen(), ids=str)
def test_an_example_is_submitted_placed_audited_and_gone(
    lab: Lab, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(lab.kubeconfig))
    stage = WorkloadLab.of(lab, example)
    (plan,) = stage.plans()
    assert plan.workload.kind == WORKFLOW
    (tmp_path / "coterie.yaml").write_text(configuration(plan.workload.pool), encoding="utf-8")
    lab.apply(nodes.workspace("files", tmp_path))
    sets = [word for value in stage.options.get("--set", ()) for word in ("--set", value)]
    first = sum(len(one.gang.all_tasks()) for one in plan.gangs if not plan.workload.needs.get(one.gang.name))
    with serving(tmp_path) as (url, _):
        here = ServiceFixture(url, tmp_path)
        said: list[str] = []

        def submitted() -> bool:
            done = here.call("submit", example.file, "--pool", "here", *sets)
            said[:] = [done.out.strip(), done.err]
            return done.code == 0

        eventually(submitted, lambda: said[-1])
        lab.wait(lambda: running(lab) == first, LIMIT_S, f"{first} pods run")
        audited = call("audit", "context:", "-o", "json", KUBECONFIG=str(lab.kubeconfig))
        outcomes = Counter(one["outcome"] for gang in json.loads(audited.out)["gangs"] for one in gang["constraints"])
        assert audited.code in (0, 6), audited.out
        assert outcomes["violated"] == 0

        def over() -> bool:
            for pod in lab.objects("pods", selector=OWN):
                if pod["status"].get("phase") == "Running":
                    # It may be gone by now.
                    with suppress(ApiError):
                        lab.api.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": ENDING}}, "default")
            return here.data("show", said[0])["status"] not in ("RUNNING", "WAITING", "PENDING")

        lab.wait(over, LIMIT_S, "the workflow has ended")
        assert here.data("show", said[0])["status"] == "COMPLETED"
        lab.wait(lambda: not left(lab), LIMIT_S, "nothing is left")
    print(f"{example}: {first} pods at once, {dict(outcomes)}, 0 objects left")  # noqa: T201 - the count


def running(lab: Lab) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in lab.objects("pods", selector=OWN))


def left(lab: Lab) -> list[str]:
    return [one["metadata"]["name"] for kind in KINDS for one in lab.objects(kind, selector=OWN)]
