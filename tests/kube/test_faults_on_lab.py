"""Failures to read a real cluster are shown as one line with the reason, and one with the remedy."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from coterie.cli.exit_codes import Exit
from lab import GoMissingError, Lab
from tests.cli.command import Done, call, quiet, workflow


@pytest.fixture(scope="module")
def plain() -> Iterator[Lab]:
    """Give a cluster with nothing in it, without KAI and without NVIDIA's driver."""
    lab = Lab(schedulers=(), compute_domain=False)
    try:
        lab.start()
    except GoMissingError as error:
        pytest.skip(f"NO CLUSTER: {error}. {error.hint}")
    try:
        yield lab
    finally:
        lab.stop()


@dataclass(frozen=True)
class Fault:
    """A fault of the connection to a cluster: its cause, and its message."""

    make: Callable[[Lab, dict[str, Any]], object]
    source: str
    code: Exit
    words: tuple[str, ...]


def unreachable(_: Lab, document: dict[str, Any]) -> None:
    # Nobody listens there, while a port that was free a moment ago may be somebody's by now.
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"


def no_longer_valid(lab: Lab, document: dict[str, Any]) -> None:
    """Leave the user with a token that was good when it was issued."""
    token = lab.token_for("leaver")
    document["users"][0]["user"] = {"token": token}
    lab.api.delete("serviceaccount", "leaver")

    def refused() -> bool:
        authority = lab.folder / "certificates" / "apiserver.crt"
        with httpx2.Client(verify=ssl.create_default_context(cafile=str(authority)), trust_env=False) as client:
            return client.get(f"{lab.url}/api", headers={"Authorization": f"Bearer {token}"}).status_code == 401

    # The server learns of the deletion a moment later.
    lab.wait(refused, 60, "the token is refused")


def without_permission(lab: Lab, document: dict[str, Any]) -> None:
    document["users"][0]["user"] = {"token": lab.token_for("guest")}


FAULTS: Mapping[str, Fault] = {
    "no such context": Fault(
        make=lambda *_: None,
        source="context:coterie-lap",
        code=Exit.NOT_FOUND,
        words=('no context "coterie-lap"', 'Did you mean "coterie-lab"?'),
    ),
    "unreachable": Fault(
        make=unreachable,
        source="context:coterie-lab",
        code=Exit.TRY_AGAIN,
        words=("cannot be reached: connection refused", "hint: Check that the", "kubectl --context coterie-lab"),
    ),
    "token no longer valid": Fault(
        make=no_longer_valid,
        source="context:coterie-lab",
        code=Exit.FAILED,
        words=('does not accept the credentials of context "coterie-lab"', "hint: A token may have expired: log in"),
    ),
    "forbidden": Fault(
        make=without_permission,
        source="context:",
        code=Exit.FAILED,
        words=(
            'user "system:serviceaccount:default:guest" may not list nodes in the whole cluster',
            'hint: Add this rule to a ClusterRole that is bound to the user: {apiGroups: [""], resources: ["nodes"]',
        ),
    ),
}
COMMANDS: Mapping[str, Callable[[str, Path], tuple[str | Path, ...]]] = {
    "plan": lambda source, file: ("plan", file, "--cluster", source),
    "render": lambda source, file: ("render", file, "--cluster", source),
    "check": lambda source, _: ("check", source),
    "map": lambda source, _: ("map", source),
    "fit": lambda source, _: ("fit", "--gpus", "8", "--level", "rack", source),
    "audit": lambda source, _: ("audit", source),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a workflow that nothing is wrong with."""
    path = tmp_path / "workflow.yaml"
    path.write_text(workflow(2), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FAULTS)
def test_every_command_says_why_a_cluster_cannot_be_read_and_what_to_do(
    plain: Lab, tmp_path: Path, file: Path, name: str, command: str
) -> None:
    fault = FAULTS[name]
    document = yaml.safe_load(plain.kubeconfig.read_text(encoding="utf-8"))
    fault.make(plain, document)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document), encoding="utf-8")

    done = call(*COMMANDS[command](fault.source, file), KUBECONFIG=str(kubeconfig))

    assert (done.code, done.out) == (fault.code, "")
    assert quiet(done, "error: ", *fault.words), done.err


def test_a_cluster_without_kai_and_grove_lacks_only_what_needs_them(plain: Lab, file: Path) -> None:
    plain.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})

    def done(*arguments: str | Path) -> Done:
        return call(*arguments, KUBECONFIG=str(plain.kubeconfig))

    read = done("map", "context:")
    named = done("plan", file, "--cluster", "context:", "--topology", "#main")
    audited = done("audit", "context:")

    assert (read.code, read.err) == (Exit.DONE, "")
    assert named.code == Exit.NOT_FOUND
    assert quiet(named, 'no ClusterTopology "main"')
    assert audited.code == Exit.NOT_FOUND
    assert quiet(
        audited, "the cluster has no kind PodGroup (scheduling.run.ai/v2alpha2)", "hint: Install KAI Scheduler"
    )
