"""The selection of a cluster and user: kubeconfig files as kubectl reads them.

`$KUBECONFIG` may list several files; the first entry of a name wins, and missing files are skipped. Paths in a file are
relative to it. In a pod without such a file, the service account's cluster is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig, SingleConfig
from lightkube.config.models import Cluster, Context, NameValue, User
from lightkube.core.exceptions import ConfigError

from coterie.document.json_faults import field_problem
from coterie.errors import CoterieError, NotFound, UsageError, did_you_mean

SNAPSHOT_HINT = "take a snapshot instead: kubectl get nodes,pods -A -o json > snapshot.json"
_EXEC_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_EXEC_GROUP = "client.authentication.k8s.io"
_SHOWN = 8

T = TypeVar("T")


class ServerEntry(Cluster, kw_only=True):
    """A cluster's entry, with the two fields that lightkube's own leaves out."""

    proxy_url: str | None = msgspec.field(name="proxy-url", default=None)
    tls_server_name: str | None = msgspec.field(name="tls-server-name", default=None)


@dataclass(slots=True)
class Merged:
    """The merged content of all kubeconfig files, with absolute paths in each cluster and user."""

    files: list[Path] = field(default_factory=list)
    current: str = ""
    contexts: dict[str, Context] = field(default_factory=dict)
    clusters: dict[str, ServerEntry] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)


class NoKubeconfig(UsageError):  # noqa: N818 - the leaf says what is missing
    """Raised where there is neither a kubeconfig nor a service account."""


def choose(name: str = "", environment: Mapping[str, str] | None = None) -> SingleConfig:
    """Return the cluster and user of a context, by default the current one.

    Raises NotFound for a context that does not exist, UsageError for files that cannot be read or are empty.
    """
    variables = os.environ if environment is None else environment
    paths = list(_paths(variables))
    merged = _merged(paths)
    if not merged.files:
        inside = None if name else _service_account()
        if inside is not None:
            return inside
        where = ", ".join(map(str, paths))
        raise NoKubeconfig(
            f"there is no kubeconfig, and so no context: {where} does not exist",
            f"Set KUBECONFIG to the right file, or {SNAPSHOT_HINT}",
        )
    wanted = name or merged.current
    if not wanted:
        raise UsageError("the kubeconfig has no current context", f"Name one: context:NAME. {_listed(merged)}")
    context = merged.contexts.get(wanted)
    if context is None:
        raise NotFound(f'there is no context "{wanted}" in {_shown(merged.files)}', _contexts_hint(wanted, merged))
    cluster = merged.clusters.get(context.cluster)
    if cluster is None:
        raise _dangling(wanted, "cluster", context.cluster, merged.clusters)
    user = merged.users.get(context.user) if context.user else User()
    if user is None:
        raise _dangling(wanted, "user", context.user or "", merged.users)
    return SingleConfig(wanted, context, cluster, user, merged.files[0])


def _paths(variables: Mapping[str, str]) -> Iterator[Path]:
    listed = [part for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = variables.get("HOME") or str(Path.home())
    yield from map(Path, listed or [f"{home}/.kube/config"])


def _merged(paths: list[Path]) -> Merged:
    merged = Merged()
    for path in paths:
        document = _document(path)
        if document is None:
            continue
        merged.files.append(path)
        current = document.get("current-context")
        merged.current = merged.current or (current if isinstance(current, str) else "")
        contexts = _entries(path, document, "contexts", "context", Context)
        clusters = _entries(path, document, "clusters", "cluster", ServerEntry)
        users = _entries(path, document, "users", "user", User)
        for cluster in clusters.values():
            cluster.certificate_auth = _absolute(path, cluster.certificate_auth)
        for user in users.values():
            _settle(path, user)
        merged.contexts = contexts | merged.contexts
        merged.clusters = clusters | merged.clusters
        merged.users = users | merged.users
    return merged


def _document(path: Path) -> dict[str, object] | None:
    """Return the content of a file; None for a file that does not exist."""
    try:
        text = path.expanduser().read_bytes()
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, (error.strerror or str(error)).lower()) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise _unreadable(path, f"it is not YAML{line}") from None
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise _unreadable(path, "it is not YAML") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _unreadable(path, "it is not a mapping")
    return document


def _entries(path: Path, document: Mapping[str, object], key: str, inner: str, shape: type[T]) -> dict[str, T]:
    """Return a list of named entries; the first of two with one name wins, as in kubectl."""
    listed = document.get(key) or []
    if not isinstance(listed, list):
        raise _unreadable(path, f'"{key}" is not a list')
    found: dict[str, T] = {}
    for index, entry in enumerate(listed):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise _unreadable(path, f"{key}[{index}] has no name")
        try:
            made = msgspec.convert(entry.get(inner) or {}, shape)
        except msgspec.ValidationError as error:
            raise _unreadable(path, f'{inner} "{entry["name"]}": {field_problem(error)[1]}') from None
        found.setdefault(entry["name"], made)
    return found


def _settle(path: Path, user: User) -> None:
    """Return a user with absolute paths, and with a credential plugin that lightkube can run."""
    user.token_file = _absolute(path, user.token_file)
    user.client_cert = _absolute(path, user.client_cert)
    user.client_key = _absolute(path, user.client_key)
    plugin = user.exec
    if plugin is None:
        return
    group, _, version = plugin.apiVersion.partition("/")
    if group != _EXEC_GROUP or version not in _EXEC_VERSIONS:
        raise _unreadable(path, f"the plugin {plugin.command} uses {plugin.apiVersion}, which is not supported")
    # All versions have the same answer format; this variable tells the plugin which version is requested.
    info = {"apiVersion": plugin.apiVersion, "kind": "ExecCredential", "spec": {"interactive": False}}
    known = NameValue("KUBERNETES_EXEC_INFO", msgspec.json.encode(info).decode())
    plugin.env = [*(plugin.env or ()), known]
    plugin.apiVersion = f"{_EXEC_GROUP}/v1beta1"
    if os.sep in plugin.command:
        plugin.command = str(path.expanduser().parent / plugin.command)


def _absolute(path: Path, file: str | None) -> str | None:
    return str((path.expanduser().parent / file).absolute()) if file else None


def _service_account() -> SingleConfig | None:
    """Return the cluster that this process runs in, if any."""
    try:
        return KubeConfig.from_service_account(SERVICE_ACCOUNT).get()
    except (ConfigError, KeyError, OSError):
        return None


def _dangling(context: str, what: str, name: str, known: Mapping[str, object]) -> CoterieError:
    message = f'context "{context}" names the {what} "{name}", which the kubeconfig does not have'
    return UsageError(message, did_you_mean(name, known) or f"Add it under {what}s, or correct the context.")


def _contexts_hint(wanted: str, merged: Merged) -> str:
    return " ".join(filter(None, (did_you_mean(wanted, merged.contexts), _listed(merged))))


def _listed(merged: Merged) -> str:
    names = sorted(merged.contexts)
    if not names:
        return "It has no contexts at all."
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Contexts: {', '.join(names[:_SHOWN])}{more}."


def _shown(files: list[Path]) -> str:
    return ", ".join(map(str, files))


def _unreadable(path: Path, problem: str) -> CoterieError:
    return UsageError(f"the kubeconfig {path} cannot be read: {problem}", "Compare: kubectl config view")
