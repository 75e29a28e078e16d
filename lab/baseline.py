"""The baseline of a lab, to which it is reset between tests; that is much faster than starting a new one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from lab.api import Api, ApiError, Object, Resource
from lab.errors import TimeoutExpiredError
from lab.nodes import HOLD

Baseline = Mapping[str, frozenset[tuple[str, str]]]
Entry = tuple[Resource, Object]

# What a test may make beside objects of the kinds that the lab itself defines. Owners come before what they own.
_BUILT_IN = {
    "": (
        "services",
        "configmaps",
        "secrets",
        "serviceaccounts",
        "pods",
        "persistentvolumeclaims",
        "persistentvolumes",
        "nodes",
        "events",
    ),
    "admissionregistration.k8s.io": ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
    "coordination.k8s.io": ("leases",),
    "rbac.authorization.k8s.io": ("clusterroles", "clusterrolebindings", "roles", "rolebindings"),
    "resource.k8s.io": ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    "scheduling.k8s.io": ("workloads", "compositepodgroups", "podgroups", "priorityclasses"),
}
# A finalizer that nobody lifts in this time is not waited for.
_PATIENCE = 3.0
# So many objects of a kind are deleted with one call.
_MANY = 10
_AT_ONCE = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
# Kinds of which Kubernetes makes objects by itself.
_OF_KUBERNETES = frozenset({"leases", "serviceaccounts"})


def current(api: Api) -> Baseline:
    """Return the names of all existing objects by kind, which a reset leaves alone."""
    resources = _resettable(api)
    found = api.each(partial(_items, api), resources)
    return {
        _key(resource): frozenset(_identity(item) for item in items)
        for resource, items in zip(resources, found, strict=True)
    }


def reset(api: Api, kept: Baseline, timeout: float) -> None:
    """Delete all that is not in the baseline, and return when it is gone."""
    began = time.monotonic()
    while True:
        left = _left(api, kept)
        if not left:
            return
        waited = time.monotonic() - began
        by_force = waited > _PATIENCE
        if waited > timeout:
            names = ", ".join(f"{resource.plural}/{item['metadata']['name']}" for resource, item in left[:5])
            raise TimeoutExpiredError(f"{len(left)} objects were not gone after {timeout:g} s: {names}")
        api.each(partial(_delete, api, by_force=by_force), _without_collections(api, kept, left))
        time.sleep(0.05)


def _left(api: Api, kept: Baseline) -> list[Entry]:
    """Return the objects outside the baseline, owners first."""
    resources = _resettable(api)
    found = api.each(partial(_items, api), resources)
    return [
        (resource, item)
        for resource, items in zip(resources, found, strict=True)
        for item in items
        if _identity(item) not in kept.get(_key(resource), frozenset()) and not _belongs_to_kubernetes(resource, item)
    ]


def _without_collections(api: Api, kept: Baseline, left: list[Entry]) -> list[Entry]:
    """Delete all objects of a kind in a namespace with one call where they are many; return what else is left."""
    counts = Counter(_place(entry) for entry in left if _is_plain(entry))
    whole = {place for place, count in counts.items() if count >= _MANY and _is_disposable(kept, *place)}
    api.each(partial(_delete_collection, api), whole)
    return [entry for entry in left if not _is_plain(entry) or _place(entry) not in whole]


def _is_plain(entry: Entry) -> bool:
    """Whether nothing but its deletion is needed for an object to go."""
    meta = entry[1]["metadata"]
    return not meta.get("finalizers") and not meta.get("deletionTimestamp")


def _is_disposable(kept: Baseline, resource: Resource, namespace: str) -> bool:
    """Whether nothing of a kind is to be kept in a namespace, and the API server deletes all of it with one call."""
    return (
        "deletecollection" in resource.verbs
        and resource.plural not in _OF_KUBERNETES
        and all(namespace != there for there, _ in kept.get(_key(resource), ()))
    )


def _belongs_to_kubernetes(resource: Resource, item: Object) -> bool:
    """Whether Kubernetes made an object by itself, at whatever time."""
    namespace, name = _identity(item)
    if resource.plural == "leases":
        return namespace.startswith("kube-")
    return resource.plural == "serviceaccounts" and name == "default"


def _resettable(api: Api) -> list[Resource]:
    # The name of a definition is that of its kind and of its group.
    definitions = _list(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    defined = {item["metadata"]["name"].partition(".")[2] for item in definitions}
    chosen = [
        resource
        for resource in api.resources()
        if {"list", "delete"} <= resource.verbs
        and (resource.group in defined or resource.plural in _BUILT_IN.get(resource.group, ()))
    ]
    return sorted(chosen, key=lambda resource: (resource.group not in defined, resource.group == "", resource.plural))


def _items(api: Api, resource: Resource) -> list[Object]:
    try:
        return _list(api, resource.path())
    except ApiError as error:
        # A definition may be gone by now.
        if error.status == 404:
            return []
        raise


def _list(api: Api, path: str) -> list[Object]:
    """Return objects without their specs, which may be large."""
    return list(api.request("GET", path, accept=_METADATA)["items"] or ())


def _delete_collection(api: Api, place: tuple[Resource, str]) -> None:
    resource, namespace = place
    # What is left is found by the next look.
    with suppress(ApiError):
        api.request("DELETE", resource.path(namespace=namespace), params=_AT_ONCE)


def _delete(api: Api, entry: Entry, *, by_force: bool) -> None:
    resource, item = entry
    meta = item["metadata"]
    path = resource.path(meta["name"], meta.get("namespace", ""))
    with suppress(ApiError):
        if meta.get("finalizers") and (by_force or meta["finalizers"] == [HOLD]):
            lifted = {"metadata": {"finalizers": None}}
            api.request("PATCH", path, lifted, content_type="application/merge-patch+json")
        if not meta.get("deletionTimestamp") or resource.plural == "pods":
            api.request("DELETE", path, params=_AT_ONCE)


def _place(entry: Entry) -> tuple[Resource, str]:
    resource, item = entry
    return resource, item["metadata"].get("namespace", "")


def _identity(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _key(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"
