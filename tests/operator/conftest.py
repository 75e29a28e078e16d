"""A cluster with the kinds of the operator, and operators in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bench.cluster.operator import open_definition

from coterie.kube.api import Api
from coterie.kube.kinds import GRAPH_DEPLOYMENT, POD_CLIQUE_SET
from coterie.kube.retry import RetryLimits
from coterie.operator.crds import definitions
from coterie.operator.operator import Operator
from coterie.operator.settings import OperatorSettings
from lab import Lab
from tests.kube.faulty_transport import config

Operate = Callable[..., Operator]


def serves(lab: Lab, *plurals: str) -> bool:
    """Return whether the API server of a lab knows some kinds."""
    return set(plurals) <= {each.plural for each in lab.api.resources()}


@pytest.fixture(scope="session")
def topology_lab(lab_programs: Mapping[str, Path]) -> Iterator[Lab]:
    """Give a cluster with KAI and the definitions of both kinds of topologies; others use Grove's in theirs."""
    assert lab_programs
    with Lab(compute_domain=False) as lab:
        lab.apply(definitions())
        lab.wait(lambda: serves(lab, "clustertopologies", "clustertopologybindings"), 60, "the kinds are served")
        yield lab


@pytest.fixture(scope="session")
def workload_lab(topology_lab: Lab) -> Lab:
    """Give the cluster with PodCliqueSets and graph deployments, whose operators it does not have."""
    topology_lab.apply(open_definition(POD_CLIQUE_SET, "v1alpha1"))
    topology_lab.apply(open_definition(GRAPH_DEPLOYMENT, "v1beta1", "v1alpha1"))
    topology_lab.wait(
        lambda: serves(topology_lab, POD_CLIQUE_SET.plural, GRAPH_DEPLOYMENT.plural), 60, "the kinds are served"
    )
    return topology_lab


@pytest.fixture
def api() -> Iterator[Api]:
    """Give a connection that nothing is sent through: there is no server behind it."""
    with Api(config(), patience=RetryLimits(attempts=1)) as found:
        yield found


@pytest.fixture
def cluster(topology_lab: Lab) -> Lab:
    """Give the cluster, empty."""
    topology_lab.reset(120.0)
    return topology_lab


@pytest.fixture
def operate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operate]:
    """Give a function that starts an operator in this process for a lab; it ends with the test."""
    with ExitStack() as stack:

        def start(lab: Lab, kubeconfig: Path | None = None, **settings: Any) -> Operator:
            monkeypatch.setenv("KUBECONFIG", str(kubeconfig or lab.kubeconfig))
            chosen = OperatorSettings(**{"settle_s": 0.3, "absent_s": 0.5, **settings})
            return stack.enter_context(Operator(chosen))

        yield start
