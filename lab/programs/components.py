"""The programs and files that make up the lab, and the Go modules they come from.

Each component has a folder under `modules/` whose go.mod and go.sum fix every version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError

MODULES = Path(__file__).parents[1] / "modules"


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a module that the lab reads at run time: the YAML in `folder` by name, kept under `kept_as`."""

    module: str
    folder: str
    kept_as: str
    names: str = "*.yaml"


@dataclass(frozen=True, slots=True)
class Patch:
    """A text of a module's source that is replaced before building, because no flag does it."""

    module: str
    files: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Component:
    """One Go module of the lab: the packages of its programs by name, and the files that are read from it.

    `variables` are texts of the programs that are set while linking.
    """

    name: str
    source: Path
    binaries: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Files, ...] = ()
    patch: Patch | None = None


def pinned(folder: Path, module: str) -> str:
    """Return the version of a module that a folder's go.mod asks for."""
    found = re.search(
        rf"^\s*(?:require )?{re.escape(module)} (v\S+)", (folder / "go.mod").read_text("utf-8"), re.MULTILINE
    )
    if found is None:
        raise LabError(f"{folder.name}/go.mod does not name {module}")
    return found[1]


def _kubernetes_version(folder: Path) -> dict[str, str]:
    """Return the variables by which Kubernetes knows its version; kubectl fails without them."""
    version = pinned(folder, "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    known = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{name}": value for name, value in known.items()}


_KAI = "github.com/kai-scheduler/KAI-scheduler"
_KWOK = "sigs.k8s.io/kwok"
_DRIVER = "sigs.k8s.io/dra-driver-nvidia-gpu"
_GROVE = "github.com/ai-dynamo/grove/operator/api"

KUBERNETES = Component(
    "kubernetes",
    MODULES / "kubernetes",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        "keypair": "coterie.dev/lab/kubernetes/keypair",
    },
    variables=_kubernetes_version(MODULES / "kubernetes"),
)
# Apart from the control plane, because most labs do without it.
KUBE_SCHEDULER = Component(
    "kube-scheduler",
    MODULES / "kubernetes",
    {"kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler"},
    variables=_kubernetes_version(MODULES / "kubernetes"),
)
# Two versions behind the control plane: newer ones run with containerd 2 only, and Debian 12 has 1.6.
KUBELET = Component(
    "kubelet",
    MODULES / "kubelet",
    {"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
    variables=_kubernetes_version(MODULES / "kubelet"),
)
KAI = Component(
    "kai",
    MODULES / "kai",
    {"kai-scheduler": f"{_KAI}/cmd/scheduler", "kai-binder": f"{_KAI}/cmd/binder"},
    # The rest is for KAI's operator, which is not part of the lab.
    files=(
        Files(_KAI, "deployments/kai-scheduler/crds", "crds", "scheduling.run.ai_*.yaml"),
        Files(_KAI, "deployments/kai-scheduler/crds", "crds", "kai.scheduler_topologies.yaml"),
    ),
)
KWOK = Component(
    "kwok",
    MODULES / "kwok",
    {"kwok": f"{_KWOK}/cmd/kwok"},
    # KWOK's stage for finished Jobs is left out: it would end their pods as soon as they run.
    files=(
        Files(_KWOK, "kustomize/stage/pod/fast", "stages", "pod-ready.yaml"),
        Files(_KWOK, "kustomize/stage/pod/fast", "stages", "pod-delete.yaml"),
    ),
)
COMPUTE_DOMAIN = Component(
    "computedomain",
    MODULES / "computedomain",
    {"compute-domain-controller": f"{_DRIVER}/cmd/compute-domain-controller"},
    files=(
        Files(_DRIVER, "deployments/helm/dra-driver-nvidia-gpu/crds", "crds"),
        Files(_DRIVER, "templates", "templates"),
    ),
    # The controller reads its templates at the root of the file system, which belongs to nobody's test.
    # As a relative path they are found in its working folder.
    patch=Patch(
        _DRIVER,
        (
            "cmd/compute-domain-controller/daemonset.go",
            "cmd/compute-domain-controller/resourceclaimtemplate.go",
        ),
        '"/templates/',
        '"templates/',
    ),
)
GROVE = Component("grove", MODULES / "grove", files=(Files(_GROVE, "core/v1alpha1/crds", "crds"),))

# The components of a lab whose nodes KWOK simulates.
USUAL = (KUBERNETES, KAI, KWOK, COMPUTE_DOMAIN, GROVE, KUBE_SCHEDULER)
ALL = (*USUAL, KUBELET)
