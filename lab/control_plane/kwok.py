"""KWOK, which simulates kubelets: bound pods run, and end when an annotation says so or they are deleted."""

from __future__ import annotations

from pathlib import Path

from lab.process import Program
from lab.realnodes.kubelet import REAL

STAGES = Path(__file__).parents[1] / "stages"

RUNS_FOR = "coterie.dev/lab-runs-for"
EXIT_CODE = "coterie.dev/lab-exit-code"


def kwok(built: Path, folder: Path, kubeconfig: Path, *, tied: bool) -> Program:
    """Prepare KWOK for all nodes without a kubelet; a node stays as ready as it was created."""
    stages = [*sorted((built / "stages").glob("*.yaml")), *sorted(STAGES.glob("*.yaml"))]
    configuration = folder / "kwok.yaml"
    configuration.write_text("\n---\n".join(path.read_text(encoding="utf-8") for path in stages), encoding="utf-8")
    command = [
        str(built / "kwok"),
        f"--kubeconfig={kubeconfig}",
        f"--config={configuration}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-label-selector=!{REAL}",
        "--node-lease-duration-seconds=0",
        # Its port is for logs and exec; two labs would want the same.
        "--node-port=0",
    ]
    return Program("kwok", command, folder / "logs" / "kwok.log", tied=tied)
