"""NVIDIA's ComputeDomain controller, and what it expects to find in a cluster."""

from __future__ import annotations

from pathlib import Path

from lab.api import Object
from lab.process import Program

NAMESPACE = "nvidia-dra-driver"
DRIVER = "compute-domain.nvidia.com"
CLIQUE = "nvidia.com/gpu.clique"
_IS = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}']"


def compute_domain(built: Path, folder: Path, kubeconfig: Path, *, tied: bool) -> Program:
    """Prepare the controller; it finds its templates in its working folder."""
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "POD_NAME": "compute-domain-controller",
        "NAMESPACE": NAMESPACE,
        "IMAGE_NAME": "compute-domain-daemon",
        "LOG_VERBOSITY_CD_DAEMON": "1",
        "KUBE_API_QPS": "200",
        "KUBE_API_BURST": "400",
    }
    log = folder / "logs" / "compute-domain-controller.log"
    command = [str(built / "compute-domain-controller")]
    return Program("compute-domain-controller", command, log, environment, folder=built, tied=tied)


def prerequisites() -> list[Object]:
    """Return the namespace of the driver and the two classes of devices that it hands out."""
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    daemon = _device_class("compute-domain-daemon.nvidia.com", f"{_IS}.type == 'daemon'")
    channel = f"{_IS}.type == 'channel' && device.attributes['{DRIVER}'].id == 0"
    return [namespace, daemon, _device_class("compute-domain-default-channel.nvidia.com", channel)]


def resource_slice(node: str, number: int = 0) -> Object:
    """Return the ResourceSlice that the driver's kubelet plugin would announce: one channel and one daemon.

    The number is a part of their names only.
    """
    devices = [
        {"name": f"{kind}-{number}", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
        for kind in ("channel", "daemon")
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _device_class(name: str, expression: str) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
