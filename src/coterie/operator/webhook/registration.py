"""The registration of the webhook in a cluster, and the kinds that another operator owns (pure)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.kube.apply import MARK
from coterie.kube.kinds import GRAPH_DEPLOYMENT, ObjectKind

Object = Mapping[str, Any]

NAME = "coterie-operator"
# All versions in which a kind is served; a request arrives in the version of its client.
_VERSIONS = {GRAPH_DEPLOYMENT.name: ("v1alpha1", "v1beta1")}
_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class WebhookService:
    """A Service in front of the webhooks of all replicas; a name of it is in their certificates."""

    namespace: str
    name: str

    @property
    def host(self) -> str:
        """The name by which API servers reach the Service."""
        return f"{self.name}.{self.namespace}.svc"


def configuration(
    kinds: Sequence[ObjectKind], url: str, authority: bytes, service: WebhookService | None = None
) -> dict[str, Any]:
    """Return the registration by URL, or by Service: without an answer of the webhook, nothing is admitted."""
    client: dict[str, Any] = {"url": url}
    if service is not None:
        path = f"/{url.partition('://')[2].partition('/')[2]}"
        client = {"service": {"namespace": service.namespace, "name": service.name, "path": path, "port": 443}}
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
                "clientConfig": {**client, "caBundle": base64.b64encode(authority).decode()},
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


def other_owner(kind: ObjectKind, configurations: Iterable[Object]) -> str:
    """Return the name of a registration by which another operator judges a kind, or an empty string."""
    for each in configurations:
        name = str(each["metadata"]["name"])
        if name != NAME and any(_covers(rule, kind) for hook in each.get("webhooks") or () for rule in hook["rules"]):
            return name
    return ""


def _covers(rule: Object, kind: ObjectKind) -> bool:
    """Return whether a rule names a kind; a rule for every kind is a policy, not an owner."""
    return kind.group in rule.get("apiGroups", ()) and kind.plural in rule.get("resources", ())
