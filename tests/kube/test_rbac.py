"""The permissions in deploy/ on a real API server: all that Coterie needs, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from coterie.errors import CoterieError, NotFound
from coterie.kube import kubeconfig
from coterie.kube.api import Api
from coterie.kube.apply import apply, apply_all
from coterie.kube.cache import CacheChange
from coterie.kube.delete import delete
from coterie.kube.errors import ApiForbidden
from coterie.kube.kinds import ObjectKind, kind_of
from coterie.kube.kubeconfig import choose
from coterie.kube.reads import ObjectQuery, find, list_all
from coterie.kube.watch_thread import WatchThread
from coterie.kube.wire import Identified
from coterie.planning.inputs import read_snapshot
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from lab import Lab, nodes
from tests.cli.command import ROOT, call

DEPLOY = ROOT / "deploy" / "service"
OWN, TASKS, OTHER = "coterie", "coterie-tasks", "default"
ACCOUNT = "system:serviceaccount:coterie:coterie"
PATIENCE_S = 60.0
# Objects of a service.
STORED = "coterie.dev/store"

READ = frozenset({"list", "watch"})
WRITE = frozenset({"get", "create", "patch"})
VERBS = ("get", "list", "watch", "create", "patch", "delete")
NOTHING: frozenset[str] = frozenset()

# What Coterie needs, written down a second time: in the whole cluster, and in the namespaces where tasks run.
EVERYWHERE: Mapping[tuple[str, str], frozenset[str]] = {
    ("v1", "Node"): READ,
    ("v1", "Pod"): READ,
    ("scheduling.run.ai/v2alpha2", "PodGroup"): READ,
    ("resource.k8s.io/v1", "ResourceClaim"): READ,
    ("grove.io/v1alpha1", "ClusterTopology"): frozenset({"list"}),
    ("grove.io/v1alpha1", "ClusterTopologyBinding"): frozenset({"list"}),
    ("grove.io/v1alpha1", "PodCliqueSet"): frozenset({"list"}),
    ("nvidia.com/v1alpha1", "DynamoGraphDeployment"): frozenset({"list"}),
    ("kai.scheduler/v1alpha1", "Topology"): WRITE | {"list", "delete"},
    ("scheduling.run.ai/v2", "Queue"): WRITE | {"list", "delete"},
    ("scheduling.k8s.io/v1", "PriorityClass"): WRITE,
}
FOR_TASKS: Mapping[tuple[str, str], frozenset[str]] = {
    ("v1", "Pod"): WRITE | {"delete"},
    ("v1", "Service"): WRITE | {"list", "delete"},
    ("v1", "ConfigMap"): WRITE | {"list", "delete"},
    ("v1", "Secret"): WRITE | {"list", "delete"},
    ("v1", "Event"): frozenset({"list"}),
    ("v1", "PersistentVolumeClaim"): frozenset({"get"}),
    ("scheduling.run.ai/v2alpha2", "PodGroup"): WRITE | {"delete"},
    ("resource.nvidia.com/v1beta1", "ComputeDomain"): READ | WRITE | {"delete"},
}
# A part of a pod, which is no object by itself.
LOGS = ("", "pods/log", "get")
# What would give it more power, or somebody else's secrets.
BEYOND = (
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("scheduling.run.ai/v1alpha2", "BindRequest"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("coordination.k8s.io/v1", "Lease"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
)
KINDS = tuple(dict.fromkeys((*EVERYWHERE, *FOR_TASKS, *BEYOND)))

# The least that the API takes, for what may be created.
CONTAINER = {"name": "main", "image": "work"}
LEAST: Mapping[str, Mapping[str, Any]] = {
    "Pod": {"spec": {"containers": [CONTAINER]}},
    "Service": {"spec": {"clusterIP": "None"}},
    "PodGroup": {"spec": {"minMember": 1, "queue": "q"}},
    "ComputeDomain": {"spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "t"}}}},
    "Topology": {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}},
    "Queue": {"spec": {}},
    "PriorityClass": {"value": 75},
}


@dataclass(frozen=True)
class Trial:
    """One thing that somebody might do, somewhere; no namespace is the whole cluster."""

    verb: str
    kind: tuple[str, str]
    namespace: str | None

    def needed(self) -> bool:
        found = EVERYWHERE.get(self.kind, NOTHING)
        if self.namespace == TASKS:
            found |= FOR_TASKS.get(self.kind, NOTHING)
        return self.verb in found

    def __str__(self) -> str:
        return f"{self.verb} {self.kind[1]} in {self.namespace or 'the cluster'}"


def kind(name: tuple[str, str]) -> ObjectKind:
    return kind_of({"apiVersion": name[0], "kind": name[1]})


# The verbs in rules of a request: an apply may create.
RULES = {"patch": ("create", "patch"), "post": ("create",)}
# What a service without trouble does not do: read an object and apply it again after a creation whose answer was lost,
# look up a pod that no watch shows or the claim of a workspace, delete the queue of a pool that is gone, and ask why
# somebody has deleted a pod.
SELDOM = {
    *((kind(name).group, kind(name).plural, verb) for name in (*EVERYWHERE, *FOR_TASKS) for verb in ("get", "patch")),
    ("scheduling.run.ai", "queues", "delete"),
    ("", "events", "list"),
}


def trials() -> Iterator[Trial]:
    for name in KINDS:
        for namespace in (None, OWN, TASKS, OTHER) if kind(name).namespaced else (None,):
            for verb in VERBS:
                # What is in a namespace is written and read one by one there, and nowhere else.
                if verb in READ or not kind(name).namespaced or namespace is not None:
                    yield Trial(verb, name, namespace)


def attempt(api: Api, trial: Trial) -> None:
    """Do it, as far as it goes; nothing is changed."""
    found, namespace = kind(trial.kind), trial.namespace
    match trial.verb:
        case "get":
            find(api, found, named(trial), Identified, namespace)
        case "list":
            list_all(api, ObjectQuery(found, namespace), Identified)
        case "watch":
            watch = api.call_of("watch", found, namespace=namespace)
            with api.stream(watch, {"timeoutSeconds": "1"}, quiet_s=5):
                return
        case "create" | "patch":
            apply(api, manifest(trial), dry_run=True)
        case "delete":
            delete(api, found, named(trial), namespace=namespace)


def named(trial: Trial) -> str:
    """Return a name that is not taken, or, for what is patched, one that is."""
    if trial.kind[1] == "PriorityClass":
        return "coterie-high"
    return "there" if trial.verb == "patch" else "absent"


def manifest(trial: Trial) -> dict[str, Any]:
    version, name = trial.kind
    inside = {"namespace": trial.namespace} if trial.namespace else {}
    meta = {"name": named(trial), **inside, "labels": {"tried": "yes"}}
    return {"apiVersion": version, "kind": name, "metadata": meta, **LEAST.get(name, {})}


@pytest.fixture(scope="module")
def cluster(shared_lab: Lab) -> Lab:
    """Give a cluster in which the manifests of deploy/ were applied as the documentation says."""
    shared_lab.reset(120)
    nodes.add(shared_lab, read_snapshot((ROOT / "examples/03-racks-in-one-zone/cluster.yaml").read_bytes(), "c.yaml"))
    shared_lab.kubectl("apply", "-k", str(DEPLOY), "--validate=strict")
    return shared_lab


@pytest.fixture(scope="module")
def account(cluster: Lab) -> Path:
    """Give the kubeconfig of Coterie's service account."""
    return cluster.kubeconfig_for("coterie", OWN)


@pytest.fixture
def api(cluster: Lab, account: Path) -> Iterator[Api]:
    """Connect as Coterie's service account, once the permissions count."""
    with Api(choose("", {"KUBECONFIG": str(account)})) as connection:
        # The API server learns of roles in a namespace and of those of the cluster one by one.
        for trial in (Trial("list", ("v1", "Secret"), TASKS), Trial("list", ("v1", "Node"), None)):
            cluster.wait(partial(allowed, connection, trial), PATIENCE_S, "the roles count")
        yield connection


def allowed(api: Api, trial: Trial) -> bool:
    """Tell whether the API lets it happen."""
    try:
        attempt(api, trial)
    except ApiForbidden as error:
        assert_clear(error, trial)
        return False
    except NotFound:
        # Nothing of that name, or no such kind: for those who only look, that is an answer.
        if trial.verb in {"create", "patch"}:
            raise
    return True


def assert_clear(error: ApiForbidden, trial: Trial) -> None:
    """Check that a refusal says who may not do what and where, and which rule would allow it."""
    found = kind(trial.kind)
    verb = "patch" if trial.verb == "create" else trial.verb
    where = f'in namespace "{trial.namespace}"' if trial.namespace else "in the whole cluster"
    assert str(error) == f'user "{ACCOUNT}" may not {verb} {found.plural} {where}'
    rule = f'{{apiGroups: ["{found.group}"], resources: ["{found.plural}"], verbs: ["{verb}"]}}'
    role = "Role" if trial.namespace else "ClusterRole"
    assert error.hint == f"Add this rule to a {role} that is bound to the user: {rule}"


def test_the_account_may_do_what_coterie_needs_and_nothing_else(cluster: Lab, api: Api) -> None:
    for trial in trials():
        if trial.verb == "patch" and trial.needed():
            cluster.apply(manifest(trial))

    found = {str(trial): allowed(api, trial) for trial in trials()}

    assert found == {str(trial): trial.needed() for trial in trials()}
    assert sum(found.values()) > 50
    assert sum(not may for may in found.values()) > 300


def test_a_priority_of_another_name_is_out_of_reach(api: Api) -> None:
    trial = manifest(Trial("create", ("scheduling.k8s.io/v1", "PriorityClass"), None))
    with pytest.raises(ApiForbidden, match="may not patch priorityclasses"):
        apply(api, {**trial, "metadata": {"name": "other"}})


def test_the_status_of_a_node_is_out_of_reach(api: Api) -> None:
    status = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": "1"}}}
    with pytest.raises(ApiForbidden, match="may not patch nodes/status in the whole cluster"):
        apply(api, status, subresource="status")


def granted() -> dict[str, set[tuple[str, str, str]]]:
    """Return the rules of each role in deploy/service."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for file in sorted(DEPLOY.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            for rule in document.get("rules", ()):
                assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
                found.setdefault(document["metadata"]["name"], set()).update(
                    (group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                )
    return found


def test_the_manifests_grant_no_more_than_what_is_tested() -> None:
    def flat(needs: Mapping[tuple[str, str], frozenset[str]]) -> set[tuple[str, str, str]]:
        return {(kind(name).group, kind(name).plural, verb) for name, verbs in needs.items() for verb in verbs}

    documented = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    for _, resource, _ in set.union(*granted().values()):
        assert f"`{resource}`" in documented
    assert granted() == {"coterie-cluster": flat(EVERYWHERE), "coterie-tasks": flat(FOR_TASKS) | {LOGS}}


def test_the_manifests_with_postgres_are_accepted(cluster: Lab) -> None:
    found = cluster.kubectl("kustomize", str(DEPLOY.with_name("service-postgres")))
    # The accessModes of a claim that exists cannot be changed; everything else is.
    others = [one for one in yaml.safe_load_all(found) if one["kind"] != "PersistentVolumeClaim"]
    assert {"Deployment", "PodDisruptionBudget", "NetworkPolicy"} <= {one["kind"] for one in others}
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=yaml.safe_dump_all(others))


@pytest.fixture
def token(cluster: Lab, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this process find the files of a pod of Coterie's service account, and give that of its token."""
    assert api.context  # the roles count
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(cluster.token_for("coterie", OWN))
    (folder / "ca.crt").write_bytes((cluster.folder / "certificates" / "apiserver.crt").read_bytes())
    (folder / "namespace").write_text(OWN)
    host, _, port = cluster.url.rpartition("/")[2].partition(":")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", str(folder))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name, value in (("HOME", str(tmp_path)), ("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port)):
        monkeypatch.setenv(name, value)
    return folder / "token"


@pytest.mark.usefixtures("token")
def test_a_service_in_a_pod_is_refused_nothing_and_uses_all_that_is_granted(
    cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[tuple[str, str, str]] = set()
    call_of = Api.call_of

    def noted(self: Api, verb: str, kind: ObjectKind, *more: Any, **named: Any) -> Any:
        found = call_of(self, verb, kind, *more, **named)
        resource = f"{kind.plural}/{found.subresource}" if found.subresource else kind.plural
        used.update((kind.group, resource, one) for one in RULES.get(verb, (verb,)))
        return found

    monkeypatch.setattr(Api, "call_of", noted)
    settings = _settings(tmp_path)
    problems: list[str] = []
    with Service(settings) as service:
        cluster.wait(lambda: not service._catalog().unreached, PATIENCE_S, "the cluster is known")
        ident = service.submit(Submission(WORKFLOW.encode()))["id"]
        # The service itself has to see its containers: it reads the logs of those that have begun.
        cluster.wait(lambda: service.workflow(ident)["status"] == "RUNNING", PATIENCE_S, "the gang runs")
        cluster.wait(lambda: phases(cluster) == ["Running"] * 2, PATIENCE_S, "all its pods run")
        # As for the users of a ClusterTopology.
        assert service._catalogue.live.referring_objects("lab") == []
        service.cancel(ident)
        cluster.wait(lambda: service.store.workflow(ident).finished, 60, "the workflow is over")
        problems += [each.message for each in service._problems.all()]
    before = topologies(cluster)
    # Other levels make another topology, and the first one goes.
    file = tmp_path / "coterie.yaml"
    file.write_text(file.read_text().replace("zone, label", "region, label"), encoding="utf-8")
    with Service(settings) as service:
        cluster.wait(lambda: len(levels := topologies(cluster)) == 1 and levels != before, 90, "the first one is gone")
        problems += [each.message for each in service._problems.all()]
    assert [one for one in problems if "may not" in one] == []
    assert phases(cluster) == []
    assert set.union(*granted().values()) - used - SELDOM == set()


def _settings(folder: Path) -> Settings:
    """Return settings of a service that connects as a pod does, without a context."""
    file = folder / "coterie.yaml"
    file.write_text(CONFIGURATION.replace("context: coterie-lab, ", ""), encoding="utf-8")
    return Settings(store=str(folder / "store.db"), state=folder / "state", config=file, poll_s=0.05, grace_s=1)


def test_a_service_in_a_pod_takes_a_rotated_token_and_loses_nothing_meanwhile(
    cluster: Lab, token: Path, tmp_path: Path
) -> None:
    # Deleted, this Secret takes the token along; a client that has read it would use it until then.
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "session", "namespace": OWN}})
    token.write_text(cluster.token_for("coterie", OWN, bound_to="session"))
    with Service(_settings(tmp_path)) as service:
        cluster.wait(lambda: not service._catalog().unreached, PATIENCE_S, "the cluster is known")
        token.write_text("no-longer-valid")
        cluster.api.delete("secrets", "session", OWN)

        def told() -> str:
            return " | ".join(each.message for each in service._problems.all())

        def refused() -> bool:
            return "does not accept the credentials" in told()

        def ran(ident: str) -> bool:
            return bool(service.workflow(ident)["status"] == "RUNNING")

        def ended(ident: str) -> bool:
            return service.store.workflow(ident).finished

        def refused_or(holds: Callable[[str], bool], ident: str) -> bool:
            return refused() or holds(ident)

        # The API server accepts a token that it knows for some seconds, so a workflow may still get its pods.
        while not refused():
            early = service.submit(Submission(WORKFLOW.encode()))["id"]
            cluster.wait(partial(refused_or, ran, early), PATIENCE_S, "the token is refused")
            service.cancel(early)
            cluster.wait(partial(refused_or, ended, early), PATIENCE_S, "the early workflow is over")
        ident = service.submit(Submission(WORKFLOW.encode()))["id"]
        cluster.wait(refused, PATIENCE_S, "the token is refused")
        assert not ran(ident)
        token.write_text(cluster.token_for("coterie", OWN))
        cluster.wait(lambda: ran(ident), PATIENCE_S, "the gang runs")
        service.cancel(ident)
        cluster.wait(lambda: service.store.workflow(ident).finished, 60, "the workflow is over")
        assert service.workflow(ident)["status"] == "FAILED_CANCELED"
        cluster.wait(lambda: not told(), PATIENCE_S, "no problem is left")


def topologies(cluster: Lab) -> list[str]:
    return [one["metadata"]["name"] for one in cluster.objects("topologies", selector=STORED)]


def phases(cluster: Lab) -> list[str]:
    return [one["status"].get("phase") for one in cluster.objects("pods", TASKS, selector=STORED)]


def test_another_namespace_is_for_tasks_by_the_command_of_the_manual(cluster: Lab, api: Api) -> None:
    manual = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^kubectl (create rolebinding .*)$", manual, re.MULTILINE)
    cluster.kubectl("create", "namespace", "team")
    trial = Trial("create", ("v1", "Pod"), "team")
    assert not allowed(api, trial)

    cluster.kubectl(*command.replace("NAMESPACE", "team").split())

    cluster.wait(partial(allowed, api, trial), PATIENCE_S, "the binding counts")
    assert not allowed(api, Trial("create", ("v1", "ServiceAccount"), "team"))


CONFIGURATION = """
backends:
  lab: {scheduler: kai, context: coterie-lab, namespace: coterie-tasks}
pools:
  gb200:
    nvlink: true
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: gpu-clique, label: nvidia.com/gpu.clique}
"""
WORKFLOW = """
workflow:
  name: everything
  resources:
    default: {gpu: 4, topology: [{key: gpu-clique}]}
  groups:
  - name: train
    tasks:
    - name: leader
      lead: true
      image: work
      command: [run, "--master={{host:leader}}"]
      files:
      - {path: /opt/run.sh, contents: "echo hello"}
      - {path: /opt/blob.bin, contents: AAEC/w==, base64: true}
    - {name: follower, image: work, command: [run]}
"""


def test_a_gang_lives_and_ends_by_the_hand_of_the_account(
    cluster: Lab, account: Path, api: Api, tmp_path: Path
) -> None:
    (tmp_path / "coterie.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "workflow.yaml").write_text(WORKFLOW, encoding="utf-8")
    options = ("--config", tmp_path / "coterie.yaml", "--cluster", "context:")
    planned = call("plan", tmp_path / "workflow.yaml", *options, KUBECONFIG=str(account))
    rendered = call("render", tmp_path / "workflow.yaml", *options, KUBECONFIG=str(account))
    manifests = list(yaml.safe_load_all(rendered.out))

    assert (planned.code, rendered.code) == (0, 0), planned.err + rendered.err
    assert {found["kind"] for found in manifests} == {
        *("Queue", "Topology", "ComputeDomain", "PodGroup", "Service", "ConfigMap", "Secret", "Pod")
    }

    bound: set[str] = set()

    def note(change: CacheChange[dict[str, Any]]) -> None:
        if change.entry.value["spec"].get("nodeName"):
            bound.add(change.entry.meta.name)

    labels = "coterie.dev/workflow=everything"
    with WatchThread(api, ObjectQuery(kind(("v1", "Pod")), TASKS, labels), dict[str, Any], on_change=note) as watching:
        watching.wait_known(PATIENCE_S)
        made = list(apply_all(api, manifests, reclaim=True))
        cluster.wait(lambda: len(bound) == 2, PATIENCE_S, "both pods are bound")
        again = list(apply_all(api, manifests, reclaim=True))
        for applied in reversed(made):
            if applied.kind.namespaced:
                assert delete(
                    api, applied.kind, applied.meta.name, namespace=applied.meta.namespace, uid=applied.meta.uid
                )
        cluster.wait(lambda: not watching.entries(), PATIENCE_S, "both pods are gone")

    assert all(applied.created for applied in made)
    assert not any(applied.created for applied in again)


def test_a_field_that_somebody_changed_is_taken_back(cluster: Lab, api: Api) -> None:
    ours = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {
            "name": "ours",
            "labels": {"app.kubernetes.io/managed-by": "coterie"},
            "annotations": {"note": "ours"},
        },
        "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
    }
    apply(api, ours)
    cluster.kubectl("annotate", "topologies.kai.scheduler", "ours", "note=theirs", "--overwrite")

    apply(api, ours, reclaim=True)

    found = cluster.get("topology.kai.scheduler", "ours")
    assert found
    assert found["metadata"]["annotations"] == {"note": "ours"}


def test_a_renewed_token_is_used_once_the_old_one_is_refused(cluster: Lab, account: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("expired", encoding="utf-8")
    config = yaml.safe_load(account.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"tokenFile": str(token)}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with Api(choose("", {"KUBECONFIG": str(file)})) as api:
        with pytest.raises(CoterieError, match="does not accept the credentials"):
            list_all(api, ObjectQuery(kind(("v1", "Node"))), Identified)
        token.write_text(cluster.token_for("coterie", OWN), encoding="utf-8")
        assert len(list_all(api, ObjectQuery(kind(("v1", "Node"))), Identified).items) == 12
