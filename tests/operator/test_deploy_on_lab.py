"""The manifests of deploy/operator on a real API server: applied as written, with permissions that are enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from lab.api import ApiError

from coterie.kube import kubeconfig
from coterie.kube.errors import RequestDescription
from coterie.operator.crds import definitions
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.operator import Operator
from coterie.operator.settings import OWNABLE
from coterie.operator.webhook.certificates import Authority
from coterie.operator.webhook.registration import NAME, configuration
from coterie.operator.webhook.server import PATH
from lab import Lab, nodes
from tests.cli.command import ROOT
from tests.cli.sample_files import packed, topology
from tests.frontends.dynamo.objects import beta
from tests.lab.gangs import CLIQUE, ZONE, phases, two_models, two_zones
from tests.operator.conftest import Operate
from tests.operator.topologies.test_topologies_on_lab import TOPOLOGY, condition, declared, labels, settled, waits
from tests.operator.webhook.test_webhook_on_lab import enforced
from tests.operator.workloads.test_workloads_on_lab import GRAPHS, SETS, here, told

DEPLOY, OVERLAY = ROOT / "deploy" / "operator", ROOT / "deploy" / "operator-cert-manager"
DEFINITIONS = ROOT / "deploy" / "operator-crds"
ACCOUNT = SPACE = "coterie-operator"
HOOKS = "validatingwebhookconfigurations"
VERBS = {"post": "create", "put": "update"}
SERVICE = "coterie-operator-webhook"

Object = dict[str, Any]
Permission = tuple[str, str]


def manifests() -> list[Object]:
    return [each for file in sorted(DEPLOY.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))]


def registration() -> Object:
    """Return the registration of the manifests."""
    return next(each for each in manifests() if each["kind"] == "ValidatingWebhookConfiguration")


def overlay(folder: Path, url: str) -> Path:
    """Return an overlay of the manifests for a cluster whose API server reaches the webhook by an address."""
    changes = []
    for index in range(len(registration()["webhooks"])):
        at = f"/webhooks/{index}/clientConfig"
        changes.append({"op": "remove", "path": f"{at}/service"})
        changes.append({"op": "add", "path": f"{at}/url", "value": url})
    target = {"kind": "ValidatingWebhookConfiguration", "name": NAME}
    folder.mkdir(exist_ok=True)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(DEPLOY.resolve(), folder.resolve())],
        "patches": [{"target": target, "patch": yaml.safe_dump(changes)}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
    return folder


def mounted(lab: Lab, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files of the account as a pod has them, and return a kubeconfig that does not exist."""
    address = urlsplit(yaml.safe_load(lab.kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    folder.mkdir()
    (folder / "token").write_text(lab.token_for(ACCOUNT, SPACE))
    (folder / "namespace").write_text(SPACE)
    (folder / "ca.crt").write_bytes((lab.folder / "certificates" / "apiserver.crt").read_bytes())
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", str(folder))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    return folder / "absent"


def certified(folder: Path) -> Path:
    """Return a folder with a certificate, as the Secret of the Deployment has it."""
    now = datetime.now(UTC)
    authority = Authority(now)
    issued = authority.issue("127.0.0.1", now)
    folder.mkdir()
    for name, content in (("tls.crt", issued.chain), ("tls.key", issued.key), ("ca.crt", authority.certificate)):
        (folder / name).write_bytes(content)
    return folder


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
    apply(workload_lab, DEFINITIONS)
    apply(workload_lab, DEPLOY)
    yield workload_lab
    workload_lab.api.delete(HOOKS, NAME)
    workload_lab.kubectl("delete", "clusterrole,clusterrolebinding", ACCOUNT)
    workload_lab.kubectl("delete", "deployment", ACCOUNT, f"--namespace={SPACE}")


def apply(lab: Lab, folder: Path) -> None:
    lab.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(folder))


def trusted(lab: Lab) -> list[bool]:
    """Return for each webhook of the registration whether it has an authority."""
    found = lab.get(HOOKS, NAME)
    return ["caBundle" in hook["clientConfig"] for hook in found["webhooks"]] if found else []


def test_the_account_may_do_what_the_operator_does_and_nothing_else(
    deployed: Lab, operate: Operate, used: set[Permission], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = deployed
    nodes.add(lab, two_zones())
    lab.queue("default")
    operator: Operator = operate(
        lab,
        mounted(lab, tmp_path / "account", monkeypatch),
        webhook="127.0.0.1:0",
        webhook_certificates=certified(tmp_path / "certificates"),
        webhook_configuration=NAME,
    )
    assert operator._webhook is not None
    by_url = overlay(tmp_path / "by-url", operator._webhook.url)
    # The operator does not wait for its registration, and gives it the authority again when it is made anew.
    lab.api.delete(HOOKS, NAME)
    apply(lab, by_url)
    lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
    lab.wait(lambda: trusted(lab) == [True] * len(OWNABLE), 60, "every webhook trusts the authority")
    before = lab.get(HOOKS, NAME)
    apply(lab, by_url)
    assert lab.get(HOOKS, NAME) == before
    lab.wait(lambda: enforced(lab), 60, "the API server asks the webhook, and trusts it")
    lab.wait(lambda: operator.leads, 60, "it leads")
    assert lab.get("leases.coordination.k8s.io", ACCOUNT, SPACE) is not None
    for each in (declared(ZONE), topology("t")):
        lab.api.create(each)
    lab.wait(lambda: condition(lab) == ("False", "InSync", 1), 60, "a topology is followed")
    lab.wait(lambda: "t" in operator.catalog.known().found, 60, "the webhook knows the other one")
    with pytest.raises(ApiError, match="topologyName"):
        lab.api.create(here(packed("rack", "missing")))
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

    assert used == granted()


def test_the_definitions_are_those_that_the_command_prints() -> None:
    assert list(yaml.safe_load_all((DEFINITIONS / "crds.yaml").read_text("utf-8"))) == definitions()


def test_the_deployment_runs_two_replicas_behind_the_service_that_is_registered(deployed: Lab) -> None:
    found = deployed.get("deployments.apps", ACCOUNT, SPACE)
    assert found is not None
    assert found["spec"]["replicas"] == 2
    [container] = found["spec"]["template"]["spec"]["containers"]
    service = deployed.get("services", SERVICE, SPACE)
    assert service is not None
    hooks = (deployed.get(HOOKS, NAME) or {"webhooks": []})["webhooks"]
    behind = {"namespace": SPACE, "name": SERVICE, "path": PATH, "port": service["spec"]["ports"][0]["port"]}
    assert [hook["clientConfig"]["service"] for hook in hooks] == [behind] * len(OWNABLE)
    assert f"--webhook-configuration={NAME}" in container["args"]
    assert service["spec"]["selector"] == found["spec"]["template"]["metadata"]["labels"]
    assert deployed.get("networkpolicies", ACCOUNT, SPACE) is not None


def test_the_registration_of_the_manifests_judges_what_the_operator_registers_by_itself() -> None:
    def rules(found: Object) -> list[Object]:
        return [{key: value for key, value in hook.items() if key != "clientConfig"} for hook in found["webhooks"]]

    assert rules(registration()) == rules(configuration(OWNABLE, "", b""))


def test_the_certificate_of_cert_manager_is_for_the_name_of_the_service() -> None:
    file = OVERLAY / "certificate.yaml"
    found = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(file.read_text("utf-8"))}
    certificate = found["Certificate", "coterie-operator-webhook"]

    assert certificate["spec"]["dnsNames"] == [f"{SERVICE}.{SPACE}.svc"]
    volumes = next(each for each in manifests() if each["kind"] == "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"secretName": certificate["spec"]["secretName"]} in [each.get("secret") for each in volumes]
    # A renewed certificate has the same authority, which the API server trusts already.
    issuer = found["Issuer", certificate["spec"]["issuerRef"]["name"]]
    authority = found["Certificate", "coterie-operator-authority"]
    assert issuer["spec"] == {"ca": {"secretName": authority["spec"]["secretName"]}}
    assert authority["spec"]["isCA"]


def test_beside_grove_only_cluster_topologies_are_registered(workload_lab: Lab) -> None:
    text = workload_lab.kubectl("kustomize", str(ROOT / "deploy" / "operator-beside-grove"))
    (found,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "ValidatingWebhookConfiguration"]
    assert [hook["name"] for hook in found["webhooks"]] == ["clustertopologies.coterie.dev"]


def test_the_overlay_with_a_certificate_can_be_built(workload_lab: Lab) -> None:
    text = workload_lab.kubectl("kustomize", str(OVERLAY))
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]

    assert {"Certificate", "Issuer", "Deployment", "ClusterRole", "NetworkPolicy"} <= set(kinds)
