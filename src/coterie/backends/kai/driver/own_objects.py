"""Writes that only touch objects of this store: one of the same name that is somebody else's stays as it is.

A server-side apply would merge into any object of that name. So an object is created, which fails where there is one,
and only an object that the store wrote itself is applied again, by its uid.
"""

from __future__ import annotations

from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta
from coterie.backends.kai.manifests.metadata import MANAGED, STORE
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import SpecErrors, Unavailable, UsageError
from coterie.kube.api import Api
from coterie.kube.apply import apply
from coterie.kube.errors import ApiForbidden, ObjectConflict
from coterie.kube.kinds import kind_of
from coterie.kube.reads import find
from coterie.kube.write import create

_OWNERSHIP = (*MANAGED, STORE)


def create_own(api: Api, manifest: Manifest) -> str:
    """Create an object, or apply the one that an earlier try has created; return its uid."""
    try:
        return str(create(api, manifest)["metadata"]["uid"])
    except (ObjectConflict, ApiForbidden, SpecErrors) as error:
        # A try whose answer was lost may have used up the quota by which this one is refused; a role that lacks a rule
        # refuses every try, and `user` says whose.
        lacks_rule = isinstance(error, ApiForbidden) and error.user
        found = None if lacks_rule else _found(api, manifest)
        if found is None:
            raise
    return _applied(api, manifest, found)


def apply_own(api: Api, manifest: Manifest, uid: str = "") -> str:
    """Apply an object that may exist already, and return its uid; with the `uid` of an own object, apply to that alone.

    One without a store, such as a PriorityClass, belongs to all services of a cluster, and `kubectl apply` of rendered
    manifests may have written it.
    """
    if STORE not in manifest["metadata"]["labels"]:
        # Roles that name objects allow their creation only by an apply, whose request has the name.
        return apply(api, manifest, reclaim=True).meta.uid
    if not uid:
        found = _found(api, manifest)
        # Somebody else may take the name at this moment. All fields are then those of an apply, as after any later one.
        uid = found.uid if found is not None else create_own(api, manifest)
    return apply(api, _identified(manifest, uid), reclaim=True).meta.uid


def _applied(api: Api, manifest: Manifest, found: ObjectMeta) -> str:
    try:
        return apply(api, _identified(manifest, found.uid), reclaim=True).meta.uid
    except SpecErrors:
        # Immutable fields differ: it was created before something else changed, and stays as it is.
        return found.uid


def _identified(manifest: Manifest, uid: str) -> Manifest:
    """Return a manifest that the API refuses to apply to any other object."""
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}


def _found(api: Api, manifest: Manifest) -> ObjectMeta | None:
    """Return the object of a manifest's name, if there is one; raise `UsageError` where it is somebody else's."""
    meta = manifest["metadata"]
    found = find(api, kind_of(manifest), meta["name"], AnyObject, meta.get("namespace"))
    if found is None:
        return None
    if found.metadata.deletion_timestamp:
        raise Unavailable(f'the {manifest["kind"]} "{meta["name"]}" is still being deleted', "It will be retried.")
    wanted = {key: meta["labels"][key] for key in _OWNERSHIP if key in meta["labels"]}
    if not found.metadata.own or any(found.metadata.label(key) != value for key, value in wanted.items()):
        message = f'there is a {manifest["kind"]} "{meta["name"]}" of somebody else'
        raise UsageError(message, f"Remove it, or use another {'namespace' if 'namespace' in meta else 'name'}.")
    return found.metadata
