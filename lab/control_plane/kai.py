"""KAI's scheduler and binder. Its other parts are not needed by those who write PodGroups themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.api import Object
from lab.ports import Ports
from lab.process import Program

_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


@dataclass(frozen=True, slots=True)
class Kai:
    """The two programs, and the port at which the scheduler shows its metrics once it runs."""

    scheduler: Program
    binder: Program
    port: int


def kai(binaries: Path, folder: Path, kubeconfig: Path, ports: Ports, *, actions: str, tied: bool) -> Kai:
    """Prepare KAI; with `actions` other than "allocate" it also evicts."""
    port, plugins = ports.take(), ports.take()
    configuration = folder / "kai-scheduler.yaml"
    configuration.write_text(f'actions: "{actions}"\n', encoding="utf-8")
    # KAI takes the cluster from the environment only.
    environment = {"KUBECONFIG": str(kubeconfig)}
    scheduler = [
        str(binaries / "kai-scheduler"),
        f"--scheduler-conf={configuration}",
        "--schedule-period=200ms",
        f"--listen-address=127.0.0.1:{port}",
        f"--plugin-server-port={plugins}",
        "--qps=500",
        "--burst=1000",
        "--detailed-fit-errors",
        "--v=3",
    ]
    binder = [
        str(binaries / "kai-binder"),
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--qps=500",
        "--burst=1000",
    ]
    logs = folder / "logs"
    return Kai(
        scheduler=Program("kai-scheduler", scheduler, logs / "kai-scheduler.log", environment, tied=tied),
        binder=Program("kai-binder", binder, logs / "kai-binder.log", environment, tied=tied),
        port=port,
    )


def queue(name: str, parent: str | None = None, gpus: int = -1) -> Object:
    """Return a queue without limits, or with a limit of GPUs."""
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {
                "cpu": dict(_UNLIMITED),
                "memory": dict(_UNLIMITED),
                "gpu": {**_UNLIMITED, "limit": gpus},
            },
        },
    }
