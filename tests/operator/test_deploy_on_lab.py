"""The manifests of deploy/operator on a real API server: applied as written, with permissions that are enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from coterie.kube.errors import RequestDescription
from coterie.kube.kinds import CLUSTER_TOPOLOGY
from coterie.operator.crds import definitions
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.operator import Operator
from coterie.operator.webhook.registration import NAME, WebhookService, configuration
from lab import Lab, nodes
from tests.cli.command import ROOT
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import beta
from tests.lab.gangs import CLIQUE, ZONE, phases, two_models, two_zones
from tests.operator.conftest import Operate
from tests.operator.test_topologies_on_lab import TOPOLOGY, condition, declared, labels, settled, waits
from tests.operator.test_workloads_on_lab import GRAPHS, SETS, here, told

DEPLOY, OVERLAY = ROOT / "deploy" / "operator", ROOT / "deploy" / "operator-cert-manager"
DEFINITIONS = ROOT / "deploy" / "operator-crds"
ACCOUNT = SPACE = "coterie-operator"
HOOKS = "validatingwebhookconfigurations"
VERBS = {"post": "create", "put": "update"}
# An API server asks for it where an apply makes a new object; the request itself is a patch.
CREATED_BY_PATCH = {("create", HOOKS)}

Object = dict[str, Any]
Permission = tuple[str, str]


def manifests() -> list[Object]:
    return [each for file in sorted(DEPLOY.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))]


def granted() -> set[Permission]:
    rules = [rule for each in manifests() for rule in each.get("rules", ())]
    assert all(set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"} for rule in rules)
    return {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[Permission]:
    """Give the permissions that requests of operators needed so far."""
    found: set[Permission] = set()
    count = OperatorMetrics.count_request

    def noted(self: OperatorMetrics, call: RequestDescription, code: int) -> None:
        below = f"/{call.subresource}" if call.subresource else ""
        found.add((VERBS.get(call.verb, call.verb), f"{call.kind.plural}{below}"))
        count(self, call, code)

    monkeypatch.setattr(OperatorMetrics, "count_request", noted)
    return found


@pytest.fixture
def deployed(workload_lab: Lab) -> Iterator[Lab]:
    """Give the cluster with the manifests, applied by the commands of the manual."""
    workload_lab.reset(120.0)
    workload_lab.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(DEFINITIONS))
    workload_lab.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(DEPLOY))
    yield workload_lab
    workload_lab.api.delete(HOOKS, NAME)
    workload_lab.kubectl("delete", "clusterrole,clusterrolebinding", ACCOUNT)
    workload_lab.kubectl("delete", "deployment", ACCOUNT, f"--namespace={SPACE}")


def test_the_account_may_do_what_the_operator_does_and_nothing_else(
    deployed: Lab, operate: Operate, used: set[Permission]
) -> None:
    lab = deployed
    nodes.add(lab, two_zones())
    lab.queue("default")
    account = lab.kubeconfig_for(ACCOUNT, SPACE)
    # Fields of the registration that another manager has written are taken back.
    lab.apply(configuration((CLUSTER_TOPOLOGY,), "https://127.0.0.1:1/validate", b""))
    operator: Operator = operate(lab, account, webhook="127.0.0.1:0", lease_namespace=SPACE)
    lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
    lab.wait(lambda: operator.leads, 60, "it leads")
    for each in (declared(ZONE), topology("t")):
        lab.api.create(each)
    lab.wait(lambda: condition(lab) == ("False", "InSync", 1), 60, "a topology is followed")
    lab.wait(lambda: "t" in operator.catalog.known().found, 60, "the webhook knows the other one")
    for each in (here(packed()), here(beta())):
        lab.api.create(each)
    lab.wait(lambda: told(lab, SETS, "set")[0] == "False", 60, "the set is told")
    lab.wait(lambda: told(lab, GRAPHS, "chat")[0] == "True", 60, "the graph is told")
    lab.api.patch(TOPOLOGY, "racks", {"metadata": {"labels": None}})
    lab.wait(lambda: (lab.get(TOPOLOGY, "racks") or {})["metadata"].get("labels"), 60, "it is repaired")
    lab.apply(two_models("train"))
    lab.wait(lambda: waits(lab), 60, "work waits for a level")
    lab.apply(declared(ZONE, CLIQUE))
    lab.wait(lambda: phases(lab) == {"Running"}, 60, "the level is there")
    lab.wait(lambda: settled(lab) or labels(lab) == [ZONE, CLIQUE], 60, "the exchange has ended")
    lab.wait(lambda: condition(lab) == ("False", "InSync", 2), 60, "it is in sync")
    operator.__exit__()

    assert used | CREATED_BY_PATCH == granted()


def test_the_definitions_are_those_that_the_command_prints() -> None:
    assert list(yaml.safe_load_all((DEFINITIONS / "crds.yaml").read_text("utf-8"))) == definitions()


def test_the_deployment_runs_two_replicas_behind_the_service_that_is_registered(deployed: Lab) -> None:
    found = deployed.get("deployments.apps", ACCOUNT, SPACE)
    assert found is not None
    assert found["spec"]["replicas"] == 2
    [container] = found["spec"]["template"]["spec"]["containers"]
    service = deployed.get("services", "coterie-operator-webhook", SPACE)
    assert service is not None
    assert f"--webhook-service={SPACE}/{service['metadata']['name']}" in container["args"]
    assert service["spec"]["selector"] == found["spec"]["template"]["metadata"]["labels"]
    assert deployed.get("networkpolicies", ACCOUNT, SPACE) is not None
    # The registration by Service is one that the API server takes.
    made = configuration((), "https://0.0.0.0:9443/validate", b"", WebhookService(SPACE, service["metadata"]["name"]))
    deployed.apply(made)


def test_the_certificate_of_cert_manager_is_for_the_name_of_the_service() -> None:
    file = OVERLAY / "certificate.yaml"
    found = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(file.read_text("utf-8"))}
    certificate = found["Certificate", "coterie-operator-webhook"]
    service = WebhookService(SPACE, "coterie-operator-webhook")

    assert certificate["spec"]["dnsNames"] == [service.host]
    volumes = next(each for each in manifests() if each["kind"] == "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"secretName": certificate["spec"]["secretName"]} in [each.get("secret") for each in volumes]
    # A renewed certificate has the same authority, which the API server trusts already.
    issuer = found["Issuer", certificate["spec"]["issuerRef"]["name"]]
    authority = found["Certificate", "coterie-operator-authority"]
    assert issuer["spec"] == {"ca": {"secretName": authority["spec"]["secretName"]}}
    assert authority["spec"]["isCA"]


def test_the_overlay_with_a_certificate_can_be_built(workload_lab: Lab) -> None:
    text = workload_lab.kubectl("kustomize", str(OVERLAY))
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]

    assert {"Certificate", "Issuer", "Deployment", "ClusterRole", "NetworkPolicy"} <= set(kinds)
