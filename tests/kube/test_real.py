"""The client against a real API server: its real answers, and the effects of its restart."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.nodes import node_object, pod_object

from coterie.errors import FieldError, NotFound, SpecErrors, Unavailable
from coterie.kube.api import Api
from coterie.kube.apply import apply
from coterie.kube.cache import ChangeType
from coterie.kube.delete import delete
from coterie.kube.errors import ApiForbidden, ApiUnauthorized, MissingKind, ObjectConflict
from coterie.kube.kinds import COMPUTE_DOMAIN, NODE, POD_GROUP, TOPOLOGY, kind_of
from coterie.kube.kubeconfig import choose
from coterie.kube.reads import ObjectQuery, find, get, list_all, list_served, serves
from coterie.kube.retry import RetryLimits
from coterie.kube.watch import Follower, WatchTiming
from coterie.kube.watch_thread import WatchThread
from coterie.kube.wire import Identified
from coterie.planning.inputs import read_snapshot
from lab import GoMissingError, Lab
from tests.cli.command import ROOT, Done, call
from tests.kube.faulty_transport import Json

CONFIG_MAP = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
HASTE = WatchTiming(first_wait_s=0.02, longest_wait_s=0.2)
EXAMPLE = ROOT / "examples/06-training-4x4x4"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def plain() -> Iterator[Lab]:
    """Give a cluster without KAI and without NVIDIA's driver, filled with the nodes and pods of an example."""
    lab = Lab(schedulers=(), compute_domain=False)
    try:
        lab.start()
    except GoMissingError as error:
        pytest.skip(f"NO CLUSTER: {error}. {error.hint}")
    try:
        path = EXAMPLE / "cluster.yaml"
        cluster = read_snapshot(path.read_bytes(), str(path)).cluster
        # Whether the pods run does not matter here: they are on their nodes.
        lab.api.each(lab.api.create, [node_object(cluster, index) for index in range(len(cluster))])
        lab.api.each(lab.api.create, [pod_object(pod, None) for pod in cluster.pods])
        yield lab
    finally:
        lab.stop()


def connected(lab: Lab, kubeconfig: Path | None = None, patience: RetryLimits | None = None) -> Api:
    return Api(choose("", {"KUBECONFIG": str(kubeconfig or lab.kubeconfig)}), patience=patience)


@pytest.fixture
def api(plain: Lab) -> Iterator[Api]:
    """Connect as somebody who may do anything."""
    with connected(plain) as connection:
        yield connection


def note(name: str, labels: dict[str, str] | None = None, **data: str) -> Json:
    meta = {"name": name, "namespace": "default", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def coterie(lab: Lab, *arguments: str | Path, kubeconfig: Path | None = None) -> Done:
    return call(*arguments, KUBECONFIG=str(kubeconfig or lab.kubeconfig))


def changed(path: Path, to: Path, **user: str) -> Path:
    """Write a kubeconfig with another user."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["users"][0]["user"] = user
    to.write_text(yaml.safe_dump(document), encoding="utf-8")
    return to


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "SRC"),
        ("map", "SRC"),
        ("fit", "--gpus", "4", "--level", "zone", "SRC"),
        ("plan", EXAMPLE / "workflow.yaml", "--cluster", "SRC"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_a_context_and_what_kubectl_prints_are_the_same_cluster(
    plain: Lab, tmp_path: Path, arguments: tuple[str | Path, ...]
) -> None:
    shot = tmp_path / "shot.json"
    shot.write_text(plain.kubectl("get", "nodes,pods", "-A", "-o", "json"), encoding="utf-8")
    levels = yaml.safe_load((EXAMPLE / "cluster.yaml").read_text(encoding="utf-8"))["topology_keys"]
    option = ",".join(f"{level['key']}={level['label']}" for level in levels)

    def answered(source: str) -> tuple[int, Any]:
        words = [source if word == "SRC" else word for word in arguments]
        done = coterie(plain, *words, "--levels", option, "-o", "json")
        found = json.loads(done.out)
        found.pop("stats", None)
        return done.code, found

    assert answered("context:") == answered(str(shot))
    assert answered("context:coterie-lab") == answered(str(shot))


def test_pages_make_the_whole_list(api: Api) -> None:
    whole, paged = list_all(api, ObjectQuery(NODE), Identified), list_all(api, ObjectQuery(NODE), Identified, page=3)

    assert len(whole.items) > 3
    assert [item.metadata.name for item in paged.items] == [item.metadata.name for item in whole.items]


def test_applying_twice_changes_nothing(api: Api) -> None:
    first = apply(api, note("twice", a="1"))
    again = apply(api, note("twice", a="1"))
    other = apply(api, note("twice", b="2"))

    assert (first.created, again.created) == (True, False)
    assert again.meta.resource_version == first.meta.resource_version
    assert other.meta.uid == first.meta.uid
    # A field that is no longer said is given up.
    assert get(api, CONFIG_MAP, "twice", dict[str, Any], "default")["data"] == {"b": "2"}


def test_a_field_of_another_manager_is_left_alone_and_its_manager_named(plain: Lab, api: Api) -> None:
    theirs = json.dumps(note("shared", a="theirs"))
    plain.kubectl("apply", "--server-side", "--field-manager=argo", "-f", "-", input=theirs)

    with pytest.raises(ObjectConflict) as caught:
        apply(api, note("shared", a="ours"), reclaim=True)

    assert caught.value.managers == ("argo",)
    assert caught.value.fields == (".data.a",)
    assert get(api, CONFIG_MAP, "shared", dict[str, Any], "default")["data"] == {"a": "theirs"}


def test_a_field_of_our_own_object_is_taken_back(plain: Lab, api: Api) -> None:
    ours = note("own", {"app.kubernetes.io/managed-by": "coterie"}, a="ours")
    apply(api, ours)
    plain.kubectl("patch", "configmap", "own", "--type=merge", "-p", '{"data": {"a": "theirs"}}')

    with pytest.raises(ObjectConflict):
        apply(api, ours)
    apply(api, ours, reclaim=True)

    assert get(api, CONFIG_MAP, "own", dict[str, Any], "default")["data"] == {"a": "ours"}


def test_a_dry_run_changes_nothing(api: Api) -> None:
    apply(api, note("dry"), dry_run=True)

    assert find(api, CONFIG_MAP, "dry", Identified, "default") is None


def test_fields_that_the_server_refuses_come_back_as_faults(api: Api) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {"containers": [{"name": "UPPER", "image": "i"}], "restartPolicy": "Sometimes"},
    }

    with pytest.raises(SpecErrors) as caught:
        apply(api, pod)

    assert {(fault.field, fault.type) for fault in caught.value.faults} == {
        ("spec.containers[0].name", FieldError.INVALID),
        ("spec.restartPolicy", FieldError.NOT_SUPPORTED),
    }


def test_what_is_absent_is_told_apart(api: Api) -> None:
    with pytest.raises(NotFound, match='no namespace "nowhere"') as caught:
        apply(api, {**note("a"), "metadata": {"name": "a", "namespace": "nowhere"}})
    assert type(caught.value) is NotFound
    with pytest.raises(NotFound, match='no ConfigMap "default/absent"') as caught:
        get(api, CONFIG_MAP, "absent", Identified, "default")
    assert type(caught.value) is NotFound


@pytest.mark.parametrize("kind", [TOPOLOGY, POD_GROUP, COMPUTE_DOMAIN], ids=lambda kind: kind.name)
def test_a_kind_that_is_not_installed_is_named(plain: Lab, api: Api, kind: Any) -> None:
    manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": {}}

    with pytest.raises(MissingKind, match=kind.name):
        apply(api, manifest)
    with pytest.raises(MissingKind, match=kind.name):
        list_all(api, ObjectQuery(kind), Identified)
    with pytest.raises(MissingKind):
        find(api, kind, "x", Identified)
    assert not serves(api, kind)
    # Somebody who may do nothing is told "forbidden", and learns by asking that there is nothing.
    with connected(plain, plain.kubeconfig_for("nobody")) as nobody:
        assert list_served(nobody, ObjectQuery(kind), Identified) is None


def test_only_the_object_that_was_meant_is_deleted(plain: Lab, api: Api) -> None:
    first = apply(api, note("meant")).meta
    assert delete(api, CONFIG_MAP, "meant", namespace="default", uid=first.uid)
    second = apply(api, note("meant")).meta

    assert not delete(api, CONFIG_MAP, "meant", namespace="default", uid=first.uid)
    assert get(api, CONFIG_MAP, "meant", Identified, "default").metadata.uid == second.uid
    assert delete(api, CONFIG_MAP, "meant", namespace="default")
    plain.wait(lambda: not delete(api, CONFIG_MAP, "meant", namespace="default"), PATIENCE_S, "it is gone")


def test_an_unknown_token_is_not_accepted(plain: Lab, tmp_path: Path) -> None:
    wrong = changed(plain.kubeconfig, tmp_path / "wrong", token="expired")  # noqa: S106 - opens nothing

    with connected(plain, wrong) as stranger, pytest.raises(ApiUnauthorized):
        list_all(stranger, ObjectQuery(NODE), Identified)
    done = coterie(plain, "check", "context:", kubeconfig=wrong)

    assert (done.code, len(done.err.splitlines())) == (1, 2)
    assert "does not accept the credentials" in done.err


def test_whoever_may_not_read_is_told_the_rule_and_with_it_may(plain: Lab) -> None:
    account = plain.kubeconfig_for("planner", "team")

    done = coterie(plain, "map", "context:", kubeconfig=account)

    assert done.code == 1
    assert 'user "system:serviceaccount:team:planner" may not list nodes in the whole cluster' in done.err
    assert '{apiGroups: [""], resources: ["nodes"], verbs: ["list"]}' in done.err
    manual = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    role = next(block for block in re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL) if "kind: ClusterRole" in block)
    plain.apply(role)
    binding = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coterie-reader"}
    subject = {"kind": "ServiceAccount", "name": "planner", "namespace": "team"}
    plain.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "planner"},
            "roleRef": binding,
            "subjects": [subject],
        }
    )

    def may() -> bool:
        return coterie(plain, "map", "context:", kubeconfig=account).code == 0

    plain.wait(may, PATIENCE_S, "the role counts")
    with connected(plain, account) as planner, pytest.raises(ApiForbidden, match="may not patch configmaps"):
        apply(planner, note("not-allowed"))


def test_a_server_without_a_known_authority_is_not_trusted(plain: Lab, tmp_path: Path) -> None:
    document = yaml.safe_load(plain.kubeconfig.read_text(encoding="utf-8"))
    del document["clusters"][0]["cluster"]["certificate-authority-data"]
    path = tmp_path / "untrusting"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")

    done = coterie(plain, "check", "context:", kubeconfig=path)

    assert done.code == 2
    assert "is not trusted" in done.err
    assert "certificate-authority-data" in done.err


def test_a_watch_is_stopped_at_once_also_over_tls(api: Api) -> None:
    watching = WatchThread(api, ObjectQuery(NODE), Identified, pace=HASTE)
    with watching:
        watching.wait_known(PATIENCE_S)
        count = len(watching.entries())
        begun = time.monotonic()

    assert count == len(list_all(api, ObjectQuery(NODE), Identified).items)
    # By itself it would last two minutes.
    assert time.monotonic() - begun < 60
    assert not watching.running


def restart(lab: Lab, down_s: float = 0.3) -> None:
    """Kill the API server, and start it again."""
    lab.programs["kube-apiserver"].stop()
    threading.Event().wait(down_s)
    lab.programs["kube-apiserver"].start()


def told(watching: WatchThread[Identified]) -> dict[str, str]:
    return {name: entry.meta.resource_version for (_, name), entry in watching.entries().items()}


def there(api: Api, query: ObjectQuery) -> dict[str, str]:
    items = list_all(api, query, Identified).items
    return {item.metadata.name: item.metadata.resource_version for item in items}


def test_a_watch_survives_restarts_of_the_server_and_loses_nothing(plain: Lab) -> None:
    query = ObjectQuery(CONFIG_MAP, "default", labels="watched=yes")
    seen: list[tuple[ChangeType, str]] = []
    labels = {"watched": "yes"}
    patience = RetryLimits(attempts=1000, total_s=300, first_wait_s=0.1, longest_wait_s=0.5)
    with connected(plain, patience=patience) as api:
        for number in range(10):
            apply(api, note(f"w{number}", labels))
        with WatchThread(
            api,
            query,
            Identified,
            on_change=lambda change: seen.append((change.did, change.entry.meta.name)),
            pace=HASTE,
        ) as watching:
            watching.wait_known(PATIENCE_S)
            for round_ in range(2):
                apply(api, note(f"w{round_}", labels, changed="yes"))
                delete(api, CONFIG_MAP, f"w{5 + round_}", namespace="default")
                restart(plain)
                # The first of these wait until the server is back.
                apply(api, note(f"new{round_}", labels))
                delete(api, CONFIG_MAP, f"w{7 + round_}", namespace="default")
                apply(api, note(f"w{2 + round_}", labels, changed="yes"))
            plain.wait(lambda: told(watching) == there(api, query), PATIENCE_S, "the watch is up to date")
            assert watching.error is None

    assert {name for did, name in seen if did is ChangeType.DELETED} == {"w5", "w6", "w7", "w8"}
    assert len(seen) == len([did for did, _ in seen if did is not ChangeType.MODIFIED]) + 4


def test_a_watch_that_slept_through_a_restart_learns_what_was_deleted(plain: Lab) -> None:
    """The new server does not remember the old version (410): everything is listed, and deletions are told."""
    query = ObjectQuery(CONFIG_MAP, "default", labels="slept=yes")
    patience = RetryLimits(attempts=1000, total_s=300, first_wait_s=0.1, longest_wait_s=0.5)
    with connected(plain, patience=patience) as api:
        for name in ("s1", "s2", "s3"):
            apply(api, note(name, {"slept": "yes"}))
        follower = Follower(api, query, Identified, pace=HASTE)
        batches = follower.batches()
        assert len(next(batches).changes) == 3
        delete(api, CONFIG_MAP, "s1", namespace="default")
        for number in range(150):
            apply(api, note("busy", {"slept": "yes"}, n=str(number)))
        delete(api, CONFIG_MAP, "busy", namespace="default")
        restart(plain)
        apply(api, note("s4", {"slept": "yes"}))

        names, listed = {"s1", "s2", "s3"}, 0
        while names != {"s2", "s3", "s4"}:
            batch = next(batches)
            listed += batch.whole
            for change in batch.changes:
                name = change.entry.meta.name
                names = names - {name} if change.did is ChangeType.DELETED else names | {name}
        follower.stop()
        assert listed == 1


def test_an_unreachable_server_means_try_again(plain: Lab) -> None:
    plain.programs["kube-apiserver"].stop()
    try:
        done = coterie(plain, "check", "context:")
        with connected(plain, patience=RetryLimits(attempts=1)) as api, pytest.raises(Unavailable):
            list_all(api, ObjectQuery(NODE), Identified)
    finally:
        plain.programs["kube-apiserver"].start()

    assert done.code == 75
    assert "cannot be reached: connection refused" in done.err
    plain.wait(lambda: coterie(plain, "map", "context:").code == 0, PATIENCE_S, "the server is back")
