"""Shell lines of the documents that call coterie run unchanged; the output of `kubectl` is read from a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("runs each block of a document in a shell, with a process for each command")

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The two commands of the README install things; whoever runs these tests has just run the second.
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    if re.search(r"(^|\| )coterie ", block, re.MULTILINE)
    # A map in a browser is shown until Ctrl-C; tests of the page open one.
    and "--web" not in block
]

TRAIN = """
version: 2
workflow:
  name: train
  groups:
  - name: prepare
    tasks: [{name: fetch, image: i, command: [fetch]}]
  - name: training
    tasks: [{name: worker, image: i, command: [train], inputs: [{task: fetch}]}]
"""
SERVE = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serve, labels: {kai.scheduler/queue: inference}}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: hall-a, pack: {required: rack}}
    cliques:
    - name: worker
      spec: {roleName: worker, replicas: 1, podSpec: {containers: [{name: engine, image: "example.com/engine:2.3.0"}]}}
"""
KUBECTL = '#!/bin/sh\ncase "$1" in get) cat "$SNAPSHOT" ;; apply|diff) cat > /dev/null ;; esac\n'


def snapshot() -> str:
    labels = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/rack": "r1"}
    node = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1Ti", "pods": "110"}},
    }
    topology = {
        "kind": "ClusterTopology",
        "apiVersion": "grove.io/v1alpha1",
        "metadata": {"name": "hall-a"},
        "spec": {"levels": [{"domain": key.rpartition("/")[2], "key": key} for key in labels]},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, topology]})


def program(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("block", BLOCKS)
def test_a_shell_block_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "kubectl", KUBECTL)
    program(tmp_path / "bin" / "coterie", f'#!/bin/sh\nexec "{sys.executable}" -m coterie "$@"\n')
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "serve.yaml").write_text(SERVE, encoding="utf-8")
    (tmp_path / "snapshot.json").write_text(snapshot(), encoding="utf-8")
    (tmp_path / "coterie.yaml").write_text((ROOT / "examples" / "coterie.yaml").read_text("utf-8"), encoding="utf-8")
    # The nodes of its pools are those of an example.
    nodes = Path("06-training-4x4x4") / "cluster.yaml"
    (tmp_path / nodes.parent).mkdir()
    (tmp_path / nodes).write_text((ROOT / "examples" / nodes).read_text("utf-8"), encoding="utf-8")
    answers = tmp_path / "answers.json"
    answers.write_text(snapshot(), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SNAPSHOT": str(answers)}

    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", block],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )

    assert done.returncode == 0, done.stderr
