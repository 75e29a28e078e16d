"""Builders of workflows from text, and of their rendered manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coterie.backends.kai.manifests.render import RenderedManifests, RenderRequest, render
from coterie.config.configuration import Pool
from coterie.errors import SpecErrors
from coterie.frontends.workflow.lower import lower
from coterie.topology.cluster import GPU, Cluster, Node
from tests.frontends.workflow.samples import LEVELS, grouped, read, resource, task

POOL = Pool("pool", "b", "kai", topology=LEVELS)
NVLINK = replace(POOL, nvlink=True)
GPUS = resource("gpu: 4")
PAIR = grouped(("g", task("a", "lead: true"), task("b")))
RACKS = "resources:\n" + "".join(f"  r{n}: {{gpu: {n}, topology: [{{key: rack, group: r{n}}}]}}\n" for n in range(1, 9))


def rendered(text: str, pool: Pool = POOL, **more: Any) -> RenderedManifests:
    workflow = read(text)
    return render(workflow, lower(workflow, pool), pool, RenderRequest("default", **more))


def of_kind(found: RenderedManifests, kind: str) -> list[Any]:
    return [manifest for manifest in found.manifests if manifest["kind"] == kind]


def container(text: str, **more: Any) -> Any:
    """Return the container of the first pod."""
    return of_kind(rendered(text, **more), "Pod")[0]["spec"]["containers"][0]


def codes(found: RenderedManifests) -> list[str]:
    return [notice.code for notice in found.notices]


def cluster(*gpus: int) -> Cluster:
    return Cluster.of(Node(f"n{index}", {}, {GPU: count}) for index, count in enumerate(gpus))


def faults_of(text: str, pool: Pool = POOL, **more: Any) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        rendered(text, pool, **more)
    assert all(fault.place and fault.place.line and fault.hint for fault in caught.value.faults)
    return [fault.message for fault in caught.value.faults]
