"""etcd, the API server and the controller manager."""

from __future__ import annotations

import csv
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.ports import Ports
from lab.process import Program

# The garbage collector is needed even for bare pods: KAI finds a BindRequest by its pod's name, and one that a pod of
# the same name left behind would hold the new pod back. Node controllers are left out: nothing sends heartbeats.
_CONTROLLERS = (
    "daemonset-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    # Without it no PodGroup of Kubernetes' own is ever gone: it lifts their finalizer.
    "podgroup-protection-controller",
    "resourceclaim-controller",
    "serviceaccount-controller",
)

# Gangs and nested topology constraints of Kubernetes itself. All programs must agree on them: where a gate is off, the
# API server takes objects of the others and silently drops their constraints.
GATES = ",".join(
    f"{gate}=true"
    for gate in ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "DRAWorkloadResourceClaims")
)
_VERSIONS = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The API server's address and the token that may do anything, with the programs behind it."""

    url: str
    token: str
    authority: Path
    kubeconfig: Path
    etcd: Program
    api_server: Program
    controller_manager: Program


def control_plane(binaries: Path, folder: Path, ports: Ports, *, tied: bool) -> ControlPlane:
    """Prepare the control plane of a lab in its folder; nothing is started."""
    client, peer, secure = ports.take(), ports.take(), ports.take()
    url, token = f"https://127.0.0.1:{secure}", secrets.token_hex(16)
    etcd_url, peer_url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    logs, kubeconfig = folder / "logs", folder / "kubeconfig"

    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    with tokens.open("w", newline="") as file:
        csv.writer(file).writerow([token, "lab-admin", "lab-admin", "system:masters"])
    key = folder / "service-accounts.pem"
    key.touch(mode=0o600)
    # S603: the lab's own program.
    key.write_bytes(subprocess.run([binaries / "keypair"], check=True, capture_output=True).stdout)  # noqa: S603

    etcd = [
        str(binaries / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={etcd_url}",
        f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    api_server = [
        str(binaries / "kube-apiserver"),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        # A new node would be tainted not-ready, and nothing here would lift the taint.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        # Where kubelets of real nodes are reached, for logs and exec.
        "--kubelet-preferred-address-types=InternalIP",
        f"--feature-gates={GATES}",
        f"--runtime-config={_VERSIONS}",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
    ]
    controller_manager = [
        str(binaries / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(_CONTROLLERS)}",
        f"--feature-gates={GATES}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]
    return ControlPlane(
        url=url,
        token=token,
        authority=folder / "certificates" / "apiserver.crt",
        kubeconfig=kubeconfig,
        etcd=Program("etcd", etcd, logs / "etcd.log", tied=tied),
        api_server=Program("kube-apiserver", api_server, logs / "kube-apiserver.log", tied=tied),
        controller_manager=Program(
            "kube-controller-manager", controller_manager, logs / "kube-controller-manager.log", tied=tied
        ),
    )
