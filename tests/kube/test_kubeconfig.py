"""The cluster of a context: several files, relative paths, plugins, pods; and every kind of mistake."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from lightkube.config.models import User

from coterie.errors import CoterieError, NotFound, UsageError
from coterie.kube.api import Api, connect
from coterie.kube.kinds import NODE
from coterie.kube.kubeconfig import ServerEntry, choose
from coterie.kube.reads import ObjectQuery, list_all
from coterie.kube.wire import Identified
from tests.kube.faulty_transport import HASTE, Script, page

TWO, FIRST = {"token": "2"}, {"token": "first"}
PLUGIN = "client.authentication.k8s.io"


def document(**users: dict[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig with a context for each user."""
    return {
        "current-context": next(iter(users), ""),
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443", "insecure-skip-tls-verify": True}}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users],
    }


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def files(*paths: Path) -> dict[str, str]:
    return {"KUBECONFIG": ":".join(map(str, paths))}


def test_the_current_context_is_meant_where_none_is_named(tmp_path: Path) -> None:
    found = files(written(tmp_path / "config", document(one={"token": "1"}, two=TWO)))

    assert choose("", found).context_name == "one"
    assert choose("two", found).user == User(token=TWO["token"])


def test_the_file_in_the_home_is_read_where_no_other_is_named(tmp_path: Path) -> None:
    written(tmp_path / ".kube" / "config", document(one={}))

    assert choose("", {"HOME": str(tmp_path)}).context_name == "one"
    assert choose("", {"HOME": str(tmp_path), "KUBECONFIG": ""}).context_name == "one"


def test_of_several_files_the_first_that_names_something_wins(tmp_path: Path) -> None:
    first = document(one=FIRST)
    del first["current-context"]
    second = {**document(one={"token": "second"}, two={"token": "second"}), "current-context": "two"}
    found = files(tmp_path / "absent", written(tmp_path / "first", first), written(tmp_path / "second", second), Path())
    found["KUBECONFIG"] = found["KUBECONFIG"].removesuffix(":.") + ":"

    assert choose("", found).context_name == "two"
    assert choose("one", found).user == User(token=FIRST["token"])


def test_paths_are_relative_to_the_file_that_has_them(tmp_path: Path) -> None:
    user = {"tokenFile": "t", "client-certificate": "c", "client-key": "/k"}
    one = written(tmp_path / "a" / "config", document(one=user))
    two = document(two={})
    two["clusters"] = [{"name": "d", "cluster": {"server": "https://d", "certificate-authority": "ca"}}]
    two["contexts"][0]["context"]["cluster"] = "d"
    found = files(one, written(tmp_path / "b" / "config", two))

    chosen = choose("one", found).user
    assert chosen is not None
    assert (chosen.token_file, chosen.client_cert, chosen.client_key) == (
        str(tmp_path / "a" / "t"),
        str(tmp_path / "a" / "c"),
        "/k",
    )
    assert choose("two", found).cluster.certificate_auth == str(tmp_path / "b" / "ca")


def test_a_proxy_is_used(tmp_path: Path) -> None:
    made = document(one={})
    made["clusters"][0]["cluster"] |= {"proxy-url": "http://proxy.invalid:3128"}
    config = choose("", files(written(tmp_path / "config", made)))

    assert isinstance(config.cluster, ServerEntry)
    assert config.cluster.proxy_url == "http://proxy.invalid:3128"
    made["clusters"][0]["cluster"]["proxy-url"] = "no proxy"
    with pytest.raises(UsageError, match="cannot be used"):
        Api(choose("", files(written(tmp_path / "config", made))))


def test_the_name_on_the_certificate_is_the_one_that_is_given(tmp_path: Path) -> None:
    made = document(one={})
    made["clusters"][0]["cluster"] |= {"tls-server-name": "kubernetes"}
    config = choose("", files(written(tmp_path / "config", made)))
    script = Script([page([])])
    list_all(Api(config, transport=httpx2.MockTransport(script)), ObjectQuery(NODE), Identified)
    assert script.asked[0].extensions["sni_hostname"] == "kubernetes"


def test_in_a_pod_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "secret"), ("namespace", "team"), ("ca.crt", "")):
        written(tmp_path / name, text)
    monkeypatch.setattr("coterie.kube.kubeconfig.SERVICE_ACCOUNT", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    config = choose("", {"HOME": "/nonexistent"})

    assert (config.cluster.server, config.namespace) == ("https://10.0.0.1:443", "team")
    with pytest.raises(UsageError):
        choose("prod", {"HOME": "/nonexistent"})


@pytest.mark.parametrize(
    ("name", "content", "error", "said", "hint"),
    [
        ("", None, UsageError, "there is no kubeconfig", "kubectl get nodes,pods -A -o json"),
        ("prd", document(prod={}, lab={}), NotFound, 'no context "prd"', 'Did you mean "prod"? Contexts: lab, prod.'),
        ("x", document(**{f"c{n}": {} for n in range(20)}), NotFound, "no context", "and 12 more"),
        ("x", {}, NotFound, "no context", "no contexts at all"),
        ("", {**document(a={}), "current-context": ""}, UsageError, "no current context", "Contexts: a."),
        ("", "", UsageError, "no current context", "no contexts"),
        ("", "a: [", UsageError, "not YAML in line", "kubectl config view"),
        ("", "a\0b", UsageError, "it is not YAML", ""),
        ("", "- a", UsageError, "not a mapping", ""),
        ("", {"contexts": {"a": 1}}, UsageError, '"contexts" is not a list', ""),
        ("", {"contexts": [{"context": {}}]}, UsageError, "contexts[0] has no name", ""),
        ("", {"contexts": [1]}, UsageError, "contexts[0] has no name", ""),
        (
            "",
            {"contexts": [{"name": "a", "context": {}}]},
            UsageError,
            'required field "cluster" is missing',
            "",
        ),
        ("", {"users": [{"name": "u", "user": {"token": 5}}]}, UsageError, 'user "u": token: expected text', ""),
        ("", {**document(a={}), "users": []}, UsageError, 'names the user "a"', "Add it under users"),
        ("", {**document(a={}), "clusters": []}, UsageError, 'names the cluster "c"', "Add it under clusters"),
        (
            "",
            document(a={"exec": {"apiVersion": f"{PLUGIN}/v2", "command": "login"}}),
            UsageError,
            "the plugin login uses",
            "",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_kubeconfig_that_does_not_help_says_why(
    tmp_path: Path, name: str, content: object, error: type[CoterieError], said: str, hint: str
) -> None:
    path = tmp_path / "config"
    if content is not None:
        written(path, content)

    with pytest.raises(error) as caught:
        choose(name, files(path))

    assert said in str(caught.value)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value) + caught.value.hint


def test_a_directory_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"):
        choose("", files(tmp_path))


@pytest.mark.parametrize(
    "user",
    [
        {"client-certificate-data": "not base64!", "client-key-data": "eA=="},
        {"client-certificate-data": base64.b64encode(b"no pem").decode(), "client-key-data": "eA=="},
        {"client-certificate": "/nonexistent", "client-key": "/nonexistent"},
        {"client-certificate-data": "eA=="},
        {"auth-provider": {"name": "gcp"}},
    ],
    ids=str,
)
def test_credentials_that_cannot_be_used_say_so(
    tmp_path: Path, user: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "config", document(a=user))))

    with pytest.raises(UsageError, match='credentials of context "a" cannot be used'):
        connect()


def test_an_authority_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = document(a={})
    made["clusters"][0]["cluster"] = {"server": "https://c", "certificate-authority": "ca.pem"}
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path / "config", made)))

    with pytest.raises(UsageError, match="cannot be used"):
        connect()


def plugin(tmp_path: Path, body: str, version: str = "v1") -> Api:
    """Return a connection whose token comes from a program."""
    program = written(tmp_path / "login", f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    made = document(a={"exec": {"apiVersion": f"{PLUGIN}/{version}", "command": "./login", "args": ["x"]}})
    config = choose("", files(written(tmp_path / "config", made)))
    return Api(config, transport=httpx2.MockTransport(Script([page([])])), patience=HASTE)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plugin_gives_the_token_and_knows_in_which_version_it_is_asked(tmp_path: Path, version: str) -> None:
    seen = tmp_path / "seen"
    connection = plugin(
        tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {seen}; echo \'{{"status": {{"token": "t"}}}}\'', version
    )

    list_all(connection, ObjectQuery(NODE), Identified)

    assert json.loads(seen.read_text())["apiVersion"] == f"{PLUGIN}/{version}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo expired >&2; exit 3", "login returned 3: expired"),
        ("echo no json", "it printed no token"),
        ("echo '{}'", "it printed no token"),
        ("echo '{\"status\": null}'", "it printed no token"),
    ],
)
def test_a_plugin_that_fails_says_so(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        list_all(plugin(tmp_path, body), ObjectQuery(NODE), Identified)

    assert said in str(caught.value)


def test_a_plugin_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    exec_ = {"apiVersion": f"{PLUGIN}/v1", "command": "no-such-login", "installHint": "Get it\nfrom there."}
    config = choose("", files(written(tmp_path / "config", document(a={"exec": exec_}))))
    connection = Api(config, transport=httpx2.MockTransport(Script([page([])])), patience=HASTE)

    with pytest.raises(UsageError, match="plugin no-such-login is not installed") as caught:
        list_all(connection, ObjectQuery(NODE), Identified)

    assert caught.value.hint == "Get it from there."


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = choose("", files(written(tmp_path / "config", document(a={"tokenFile": "gone"}))))
    connection = Api(config, transport=httpx2.MockTransport(Script([page([])])), patience=HASTE)

    with pytest.raises(UsageError, match="gone not found"):
        list_all(connection, ObjectQuery(NODE), Identified)
