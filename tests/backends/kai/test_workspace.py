"""The folders of tasks on the workspace of their pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coterie.backends.kai.manifests.render import ServiceRun, start_faults
from coterie.config.configuration import Workspace, read_config
from coterie.errors import SpecErrors
from coterie.topology.levels import Topology
from tests.backends.kai.builders import POOL, codes, faults_of, of_kind, rendered
from tests.frontends.workflow.samples import grouped, read, task

SHARED = replace(POOL, workspace=Workspace("data", "teams/a"), topology=Topology())
WRITER = task("write", "args: ['{{output}}/x']")
CHAIN = grouped(("one", WRITER), ("two", task("read", "args: ['{{input:0}}/x'], inputs: [{task: write}]")))
RUN = ServiceRun("chain-7", "s1", "NORMAL", attempts={"write": 3})


def mounts(pod: Any) -> dict[str, Any]:
    return {one["mountPath"]: one for one in pod["spec"]["containers"][0]["volumeMounts"]}


def test_each_attempt_has_its_folder_and_reads_those_of_the_tasks_before_it() -> None:
    first, second = of_kind(rendered(CHAIN, SHARED, run=RUN), "Pod")
    volume = {"name": "workspace", "persistentVolumeClaim": {"claimName": "data"}}
    assert first["spec"]["volumes"] == second["spec"]["volumes"] == [volume]
    home = "teams/a/s1/chain-7"
    assert mounts(first) == {
        "/coterie/output": {"name": "workspace", "mountPath": "/coterie/output", "subPath": f"{home}/one/write/1"}
    }
    found = mounts(second)
    assert found["/coterie/output"]["subPath"] == f"{home}/two/read/1"
    # The last attempt of the other task, not its first.
    assert found["/coterie/input/0"]["subPath"] == f"{home}/one/write/3"
    assert found["/coterie/input/0"]["readOnly"] is True
    assert {"name": "COTERIE_OUTPUT", "value": "/coterie/output"} in first["spec"]["containers"][0]["env"]


def test_rendered_manifests_share_the_workspace_too() -> None:
    found = rendered(CHAIN, SHARED)
    first, second = of_kind(found, "Pod")
    assert mounts(second)["/coterie/input/0"]["subPath"] == mounts(first)["/coterie/output"]["subPath"]
    assert "NotCarriedOut" not in codes(found)


def test_without_a_workspace_only_workflows_that_order_their_tasks_run() -> None:
    message = 'task "write" uses {{output}}, but pool "pool" has no workspace that its pods could share'
    assert message in [fault.message for fault in start_faults(read(CHAIN), POOL, {})]
    assert list(start_faults(read(CHAIN), SHARED, {})) == []
    assert message in faults_of(CHAIN, POOL, run=RUN)
    ordered = grouped(("one", task("write")), ("two", task("read", "inputs: [{task: write}]")))
    assert list(start_faults(read(ordered), POOL, {})) == []


@pytest.mark.parametrize("folder", ["/a", "../a", "a//b", "a/../b", "", "."])
def test_a_folder_stays_inside_the_volume(folder: str) -> None:
    text = f"backends: {{b: {{scheduler: kai}}}}\npools:\n  p:\n    workspace: {{claim: c, folder: '{folder}'}}\n"
    with pytest.raises(SpecErrors, match="is not a folder of the volume"):
        read_config(text.encode(), "c")
