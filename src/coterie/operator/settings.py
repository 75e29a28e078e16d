"""The settings of an operator, as its command line gives them."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from coterie.frontends.admission import TargetCluster
from coterie.kube.kinds import (
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_BINDING,
    GRAPH_DEPLOYMENT,
    POD_CLIQUE_SET,
    ObjectKind,
)
from coterie.operator.election import LeaseTiming
from coterie.operator.topologies.reconciler import SETTLE_S
from coterie.operator.watches import ABSENT_S
from coterie.operator.webhook.server import CERTIFICATE_CHECK_S

# The kinds that an operator can own, in the order in which they are listed.
OWNABLE: tuple[ObjectKind, ...] = (CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, GRAPH_DEPLOYMENT)
TOPOLOGY_KINDS = frozenset({CLUSTER_TOPOLOGY.name, CLUSTER_TOPOLOGY_BINDING.name})


def _identity() -> str:
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """One operator: its cluster, its addresses, its kinds, and its pace.

    `own` are the names of kinds; empty means every kind that no other operator owns. `webhook` is the address of the
    webhook, empty for none; `webhook_certificates` a folder with its certificate, without which it makes its own;
    `webhook_configuration` the registration that a manifest has made, without which it registers its address itself.
    """

    context: str = ""
    listen: str = ""
    own: tuple[str, ...] = ()
    webhook: str = ""
    webhook_certificates: Path | None = None
    webhook_configuration: str = ""
    webhook_cleanup: bool = False
    cluster: TargetCluster = field(default_factory=TargetCluster)
    lease: str = "coterie-operator"
    lease_namespace: str = ""
    identity: str = field(default_factory=_identity)
    timing: LeaseTiming = field(default_factory=LeaseTiming)
    settle_s: float = SETTLE_S
    absent_s: float = ABSENT_S
    certificate_check_s: float = CERTIFICATE_CHECK_S
