"""The webhook as a real API server calls it: over TLS, fail closed, and with the errors that users see."""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lab.api import ApiError

from coterie.errors import UsageError
from coterie.frontends.admission import KnownTopologies
from coterie.kube.kinds import CLUSTER_TOPOLOGY, POD_CLIQUE_SET
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.operator import Operator
from coterie.operator.settings import OWNABLE
from coterie.operator.webhook.certificates import Authority
from coterie.operator.webhook.registration import NAME, other_owner
from coterie.operator.webhook.server import Reviewer, Webhook, webhook_app
from lab import Lab
from tests.cli.sample_files import packed as packed_anywhere
from tests.cli.sample_files import topology
from tests.eventually import eventually
from tests.frontends.dynamo.objects import beta
from tests.frontends.grove.objects import LEVELS
from tests.operator.conftest import Operate
from tests.operator.etcd import unreadable
from tests.operator.topologies.test_topologies_on_lab import TOPOLOGY, condition, declared
from tests.operator.workloads.test_workloads_on_lab import told


def packed(level: str = "rack", to: str = "t") -> Object:
    """Return a set in a namespace that exists."""
    found = packed_anywhere(level, to)
    found["metadata"]["namespace"] = "default"
    return found


Object = dict[str, Any]
HOOKS = "validatingwebhookconfigurations"


@pytest.fixture
def admitting(workload_lab: Lab, operate: Operate) -> Iterator[tuple[Lab, Operator]]:
    """Run an operator with its webhook registered."""
    workload_lab.reset(120.0)
    operator = operate(workload_lab, webhook="127.0.0.1:0", webhook_cleanup=True)
    workload_lab.wait(lambda: operator.readiness() == "", 60, "the webhook is registered")
    yield workload_lab, operator
    # A reset of the lab could not delete anything past a webhook that is gone.
    workload_lab.api.delete(HOOKS, NAME)


def refused(lab: Lab, manifest: dict[str, Any]) -> str:
    def answered() -> ApiError | None:
        with pytest.raises(ApiError) as caught:
            lab.api.create(manifest)
        # On a busy machine an API server may not wait for the answer of the webhook, and admits nothing.
        return None if caught.value.status >= 500 and "deadline exceeded" in str(caught.value) else caught.value

    error = lab.wait(answered, 30, "the webhook answers in time")
    assert error is not None
    assert error.status == 422
    return str(error)


def test_users_get_the_field_errors_of_the_rules_from_the_api_server(admitting: tuple[Lab, Operator]) -> None:
    lab, _ = admitting
    lab.wait(lambda: enforced(lab), 60, "the API server calls the webhook")
    twice = topology("b", schedulerTopologyBindings=[{"schedulerName": "kai-scheduler", "topologyReference": "x"}] * 2)
    assert "spec.schedulerTopologyReferences[1].schedulerName" in refused(lab, twice)
    levels = [{"domain": "a", "key": "x"}, {"domain": "a", "key": "x"}]
    said = refused(lab, {**topology("b"), "spec": {"levels": levels}})
    assert "spec.levels[1].domain" in said
    assert "spec.levels[1].key" in said
    assert "spec.template.topologyConstraint.topologyName" in refused(lab, packed("rack"))

    lab.api.create(topology("t"))
    lab.wait(lambda: _admitted(lab, packed("rack")), 60, "the webhook knows the topology")
    assert "spec.template.topologyConstraint.pack.required" in refused(
        lab, {**packed("rak"), "metadata": {**packed()["metadata"], "name": "other"}}
    )
    made = packed("rack")["metadata"]
    change = {"spec": {"template": {"topologyConstraint": {"pack": {"required": "zone"}}}}}

    def patched() -> int:
        with pytest.raises(ApiError) as caught:
            lab.api.patch("podcliquesets", made["name"], change, made["namespace"])
        return caught.value.status

    lab.wait(lambda: patched() == 422, 60, "a change of the constraint is refused by the rules")


def enforced(lab: Lab) -> bool:
    """Return whether a set that the rules forbid is refused by them, and not for want of an answer."""
    try:
        lab.api.create(packed("rack"))
    except ApiError as error:
        return "topologyName" in str(error)
    made = packed()["metadata"]
    lab.api.delete("podcliquesets", made["name"], made["namespace"])
    return False


def _admitted(lab: Lab, manifest: dict[str, Any]) -> bool:
    try:
        lab.api.create(manifest)
    except ApiError:
        return False
    return True


def test_without_the_webhook_nothing_is_admitted_and_the_controllers_go_on(admitting: tuple[Lab, Operator]) -> None:
    lab, operator = admitting
    lab.wait(lambda: enforced(lab), 60, "the API server calls the webhook")
    lab.api.create(declared("zone"))
    lab.wait(lambda: condition(lab) == ("False", "InSync", 1), 60, "it is followed")
    assert operator._webhook is not None
    operator._webhook.stop()

    with pytest.raises(ApiError) as caught:
        lab.api.create(declared("zone", name="other"))
    assert "webhook" in str(caught.value)
    lab.api.delete(TOPOLOGY, "racks")
    lab.wait(lambda: lab.get(TOPOLOGY, "racks") is not None, 60, "the controller makes it again")


def test_a_topology_that_the_api_server_cannot_read_is_an_internal_error(admitting: tuple[Lab, Operator]) -> None:
    lab, _ = admitting
    lab.wait(lambda: enforced(lab), 60, "the API server calls the webhook")
    graph = {**beta(), "metadata": {**beta()["metadata"], "namespace": "default"}}
    graph["spec"]["topologyConstraint"]["clusterTopologyName"] = "broken"
    with unreadable(lab, "clustertopologybindings", "broken"):
        with pytest.raises(ApiError) as caught:
            lab.get("clustertopologybindings", "broken")
        assert caught.value.status == 500
        said = refused(lab, packed("rack", "broken"))
        assert 'spec.template.topologyConstraint.topologyName: the ClusterTopology "broken" cannot be read' in said
        said = refused(lab, graph)
        assert 'spec.topologyConstraint.clusterTopologyName: the ClusterTopology "broken" cannot be read' in said
    assert "there is no ClusterTopology" in refused(lab, packed("rack", "broken"))


def test_kinds_of_an_operator_that_is_installed_later_are_left_to_it_and_taken_back(
    admitting: tuple[Lab, Operator],
) -> None:
    lab, operator = admitting
    bindings, other = "clustertopologybindings", declared("zone", name="other")
    lab.wait(lambda: judged_kinds(lab) == {kind.plural for kind in OWNABLE}, 60, "all kinds are judged")
    lab.api.create(declared("zone", kind="ClusterTopologyBinding"))
    lab.wait(lambda: condition(lab, kind=bindings) == ("False", "InSync", 1), 60, "it is followed")
    lab.apply(theirs("podcliquesets", bindings))
    left = {"clustertopologies", "dynamographdeployments"}
    lab.wait(lambda: judged_kinds(lab) == left, 60, "the kinds of the other operator are left to it")

    lab.api.delete(TOPOLOGY, "racks")
    lab.api.create(other)
    lab.wait(lambda: condition(lab, "other") == ("False", "InSync", 1), 60, "own kinds are followed")
    assert lab.get(TOPOLOGY, "racks") is None
    lab.wait(lambda: 'topology="racks"' not in operator.metrics.text().decode(), 60, "it is not counted")
    lab.wait(lambda: _admitted(lab, packed("rack", "missing")), 60, "the API server asks this webhook no more")

    lab.api.delete(HOOKS, "theirs")
    lab.wait(lambda: lab.get(TOPOLOGY, "racks") is not None, 60, "the topology is followed again")
    lab.wait(lambda: told(lab, "podcliquesets", "set")[1] == "ClusterTopologyNotFound", 60, "the set is told")
    everything = {kind.plural for kind in OWNABLE}
    lab.wait(lambda: judged_kinds(lab) == everything, 60, "all kinds are judged again")
    lab.api.delete(HOOKS, NAME)
    lab.wait(lambda: judged_kinds(lab) == everything, 60, "a registration that was deleted is made again")


def theirs(*plurals: str) -> Object:
    """Return the registration of another operator, which nobody answers."""
    rule = {"apiGroups": ["grove.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"], "resources": [*plurals]}
    hook = {
        "name": "theirs.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [rule],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "theirs"},
        "webhooks": [hook],
    }


def judged_kinds(lab: Lab) -> set[str]:
    """Return the kinds in the operator's registration."""
    found = lab.get(HOOKS, NAME) or {}
    return {name for hook in found.get("webhooks") or () for rule in hook["rules"] for name in rule["resources"]}


def test_a_graceful_end_removes_the_registration_when_told(workload_lab: Lab, operate: Operate) -> None:
    workload_lab.reset(120.0)
    operator = operate(workload_lab, webhook="127.0.0.1:0", webhook_cleanup=True)
    workload_lab.wait(lambda: workload_lab.get(HOOKS, NAME) is not None, 60, "it is registered")
    operator.__exit__()

    assert workload_lab.get(HOOKS, NAME) is None


def test_kinds_that_another_operator_judges_are_left_to_it() -> None:
    rule = {"apiGroups": ["grove.io"], "operations": ["UPDATE"], "resources": ["podcliquesets"]}
    theirs = {"metadata": {"name": "grove"}, "webhooks": [{"rules": [rule]}]}
    policy = {"metadata": {"name": "policy"}, "webhooks": [{"rules": [{"apiGroups": ["*"], "resources": ["*"]}]}]}

    assert other_owner(POD_CLIQUE_SET, [policy, theirs]) == "grove"
    assert other_owner(CLUSTER_TOPOLOGY, [policy, theirs]) == ""
    assert other_owner(POD_CLIQUE_SET, [{**theirs, "metadata": {"name": NAME}}]) == ""


class Moment:
    """A clock that a test sets."""

    def __init__(self) -> None:
        # A client believes a certificate only by the real time, so the second one must not lie in the future.
        self.now = datetime.now(UTC) - timedelta(hours=20)

    def __call__(self) -> datetime:
        return self.now


def test_certificates_are_renewed_while_the_server_runs_and_a_new_authority_is_told_first() -> None:
    clock = Moment()
    told: list[bytes] = []
    known = KnownTopologies({"t": LEVELS}, told=True)
    app = webhook_app(Reviewer(lambda: known), OperatorMetrics())
    webhook = Webhook(app, "127.0.0.1", 0, told.append, check_s=0.05, now=clock)
    webhook.start()
    try:
        eventually(lambda: webhook.registered)
        first = served(webhook, told[-1])
        clock.now += timedelta(hours=17)
        eventually(lambda: served(webhook, told[-1]) != first)
        assert len(told) == 1
        clock.now += timedelta(days=300)
        eventually(lambda: len(told) == 2)
        assert told[0] in told[1]
        eventually(lambda: webhook._next is None)
    finally:
        webhook.stop()


def written(folder: Path, authority: Authority, host: str = "127.0.0.1") -> None:
    """Write a certificate as a kubelet writes a secret: all files change at once."""
    issued = authority.issue(host, datetime.now(UTC))
    fresh = folder.parent / f"{folder.name}-{secrets.token_hex(4)}"
    fresh.mkdir()
    (fresh / "tls.crt").write_bytes(issued.chain)
    (fresh / "tls.key").write_bytes(issued.key)
    (fresh / "ca.crt").write_bytes(authority.certificate)
    link = folder.parent / f"link-{secrets.token_hex(4)}"
    link.symlink_to(fresh)
    link.replace(folder)


def test_certificates_in_a_folder_are_read_again_and_a_bad_one_never_replaces_a_good_one(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    first, second = Authority(datetime.now(UTC)), Authority(datetime.now(UTC))
    written(folder, first)
    told: list[bytes] = []
    app = webhook_app(Reviewer(lambda: KnownTopologies({}, told=True)), OperatorMetrics())
    clock = [datetime.now(UTC)]
    webhook = Webhook(app, "127.0.0.1", 0, told.append, folder=folder, check_s=0.05, now=lambda: clock[0])
    webhook.start()
    try:
        eventually(lambda: told == [first.certificate])
        shown = served(webhook, first.certificate)
        # A key of another certificate, and no certificate at all: what was good is still served.
        good = (folder / "tls.key").read_bytes()
        (folder / "tls.key").write_bytes(second.issue("127.0.0.1", datetime.now(UTC)).key)
        checks = webhook.checks
        eventually(lambda: webhook.checks > checks + 2)
        assert served(webhook, first.certificate) == shown
        (folder / "tls.key").write_bytes(good)
        # Renewed by the same authority, and then by another one, without a restart.
        written(folder, first)
        eventually(lambda: served(webhook, first.certificate) != shown)
        written(folder, second)
        # Another replica may serve a certificate of the former authority for some time, and not for ever.
        eventually(lambda: told == [first.certificate, second.certificate + first.certificate])
        assert served(webhook, second.certificate) != shown
        clock[0] += timedelta(minutes=11)
        eventually(lambda: told[-1] == second.certificate)
    finally:
        webhook.stop()


def test_a_folder_without_a_certificate_is_said_at_the_start(tmp_path: Path) -> None:
    app = webhook_app(Reviewer(lambda: None), OperatorMetrics())
    with pytest.raises(UsageError, match="cannot be used"):
        Webhook(app, "127.0.0.1", 0, lambda _: None, folder=tmp_path)


def served(webhook: Webhook, authority: bytes) -> bytes:
    """Return the certificate that the server shows, after a request that is answered."""
    context = ssl.create_default_context(cadata=authority.decode())
    with httpx2.Client(verify=context, trust_env=False, timeout=10) as client:
        assert client.post(webhook.url, content=b"{").status_code == 400
        answer = client.post(webhook.url, content=json.dumps({"request": {"uid": "1", "operation": "DELETE"}}))
    assert answer.json()["response"]["allowed"]
    host, port = webhook.url.removeprefix("https://").partition("/")[0].split(":")
    return ssl.get_server_certificate((host, int(port))).encode()
