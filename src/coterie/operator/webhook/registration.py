"""The registration of the webhook in a cluster, its authority, and the kinds that another operator owns (pure)."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from coterie.kube.apply import MARK
from coterie.kube.kinds import GRAPH_DEPLOYMENT, ObjectKind

Object = Mapping[str, Any]

NAME = "coterie-operator"
# All versions in which a kind is served; a request arrives in the version of its client.
_VERSIONS = {GRAPH_DEPLOYMENT.name: ("v1alpha1", "v1beta1")}
_TIMEOUT_S = 5
_WRITES = frozenset({"CREATE", "UPDATE", "*"})


def configuration(kinds: Sequence[ObjectKind], url: str, authority: bytes) -> dict[str, Any]:
    """Return the registration by URL: without an answer of the webhook, nothing is admitted."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": dict([MARK])},
        "webhooks": [
            {
                "name": f"{kind.plural}.coterie.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": _TIMEOUT_S,
                "clientConfig": {"url": url, "caBundle": _bundle(authority)},
                "rules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": list(_VERSIONS.get(kind.name, (kind.api_version.rpartition("/")[2],))),
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [kind.plural],
                        "scope": "Namespaced" if kind.namespaced else "Cluster",
                    }
                ],
            }
            for kind in kinds
        ],
    }


def authority_patch(there: Object, authority: bytes) -> list[dict[str, Any]]:
    """Return the JSON patch after which every webhook of a registration trusts an authority; empty where all do."""
    operations: list[dict[str, Any]] = []
    for index, hook in enumerate(there.get("webhooks") or ()):
        if (hook.get("clientConfig") or {}).get("caBundle") != _bundle(authority):
            at = f"/webhooks/{index}"
            operations.append({"op": "test", "path": f"{at}/name", "value": hook["name"]})
            operations.append({"op": "add", "path": f"{at}/clientConfig/caBundle", "value": _bundle(authority)})
    return operations


def lacks_authority(there: Object) -> bool:
    """Return whether a webhook of a registration trusts no authority, as a manifest leaves it.

    Another authority is no lack: a replica that has the next certificate already may have written it.
    """
    return any(not (hook.get("clientConfig") or {}).get("caBundle") for hook in there.get("webhooks") or ())


def other_owner(kind: ObjectKind, configurations: Iterable[Object], own: Collection[str] = (NAME,)) -> str:
    """Return the name of a registration by which another operator judges a kind, or an empty string."""
    for each in configurations:
        name = str(each["metadata"]["name"])
        rules = (rule for hook in each.get("webhooks") or () for rule in hook.get("rules") or ())
        if name not in own and any(_covers(rule, kind) for rule in rules):
            return name
    return ""


def _bundle(authority: bytes) -> str:
    return base64.b64encode(authority).decode()


def _covers(rule: Object, kind: ObjectKind) -> bool:
    """Return whether a rule names a kind that is written; a rule for every kind, or for deletions, is a policy."""
    named = kind.group in rule.get("apiGroups", ()) and kind.plural in rule.get("resources", ())
    return named and not _WRITES.isdisjoint(rule.get("operations") or ())
