"""The network of a lab's real nodes: one bridge, to which the pods of all of them are connected, and nothing else."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
from contextlib import suppress
from pathlib import Path

_SIOCSIFFLAGS = 0x8914
_SIOCBRDELBR = 0x89A1
_DEVICES = Path("/sys/class/net")
# Real nodes of a lab are told apart by the third number of their pods' addresses.
MOST_NODES = 200


def bridge_name(identity: str) -> str:
    """Return the name of the bridge of a lab; the kernel allows 15 characters."""
    return f"cot-{identity}"


def configuration(identity: str, index: int, addresses: Path) -> str:
    """Return the configuration of a node's network plugins; they record the addresses in use in `addresses`."""
    span = {
        "subnet": "10.244.0.0/16",
        "rangeStart": f"10.244.{index + 1}.2",
        "rangeEnd": f"10.244.{index + 1}.254",
    }
    bridge = {
        "type": "bridge",
        "bridge": bridge_name(identity),
        "isGateway": False,
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[span]], "dataDir": str(addresses)},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": bridge_name(identity), "plugins": [bridge]})


def devices(identity: str) -> list[str]:
    """Return the network devices of a lab that are there: its bridge, and whatever is connected to it."""
    bridge = _DEVICES / bridge_name(identity)
    # The guard of a killed lab may remove the bridge at any moment.
    with suppress(FileNotFoundError):
        return [bridge.name, *sorted(port.name for port in (bridge / "brif").iterdir())]
    return []


def remove(identity: str) -> None:
    """Remove the bridge of a lab, if there is one; what was connected went with the pods."""
    name = bridge_name(identity).encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        # Only a bridge that is down can be removed.
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", name, 0))
        fcntl.ioctl(control, _SIOCBRDELBR, name + b"\0")
