"""Services for tests: a small cluster, short intervals, and workflows of short shell commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coterie.service.settings import Settings, Submission

CLUSTER = """
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
fleet:
- domains: {zone: [a], rack: [r1, r2]}
  nodes: 4
  name: "{rack}-n{n}"
  gpu: 4
  cpu: 32
  memory: 256Gi
"""

CONFIG = """
backends:
  lab: {scheduler: local, cluster: cluster.yaml}
pools:
  main:
    backend: lab
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
"""


# Longer than a busy machine may stop a service, so that none loses its lease unless a test takes it away.
LEASE_S = 60.0


@dataclass(frozen=True)
class ServiceFolder:
    """A folder with a configuration and everything a service keeps."""

    folder: Path
    config: str = CONFIG
    cluster: str = CLUSTER

    def settings(self, store: str | None = None, **changes: object) -> Settings:
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "coterie.yaml"
        if not config.exists():
            config.write_text(self.config, encoding="utf-8")
            (self.folder / "cluster.yaml").write_text(self.cluster, encoding="utf-8")
        quick = {"poll_s": 0.05, "grace_s": 1.0, "lease_s": LEASE_S}
        return Settings(
            store=store or str(self.folder / "store.db"),
            state=self.folder / "state",
            config=config,
            **{**quick, **changes},  # type: ignore[arg-type]
        )


def task(name: str, script: str, extra: str = "") -> str:
    """Return a task that runs a line of shell."""
    text = f"""    - name: {name}
      image: any
      command: [sh, -c, {script!r}]
"""
    return text + "".join(f"      {line}\n" for line in extra.splitlines())


def workflow(
    name: str, groups: Mapping[str, Sequence[str]], gpu: int = 4, topology: str = "", rest: str = ""
) -> Submission:
    """Return a workflow of groups of tasks, each of which asks for GPUs."""
    body = "".join(f"  - name: {group}\n    tasks:\n{''.join(tasks)}" for group, tasks in groups.items())
    text = f"""version: 2
workflow:
  name: {name}
  groups:
{body}  resources:
    default:
      gpu: {gpu}
      cpu: 1
{f"      topology: {topology}" if topology else ""}
{rest}"""
    return Submission(text.encode())


def single(name: str, script: str, gpu: int = 4, rest: str = "") -> Submission:
    """Return a workflow of one task."""
    return workflow(name, {"g": [task("t", script)]}, gpu=gpu, rest=rest)
