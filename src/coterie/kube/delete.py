"""Deletion of exactly the intended object; the cluster's garbage collector deletes its dependents afterwards."""

from __future__ import annotations

from coterie.errors import NotFound
from coterie.kube.api import Api
from coterie.kube.errors import MissingKind, ObjectConflict
from coterie.kube.kinds import ObjectKind


def delete(
    api: Api,
    kind: ObjectKind,
    name: str,
    *,
    namespace: str | None = None,
    uid: str = "",
    version: str = "",
    grace_s: int | None = None,
) -> bool:
    """Request the deletion of an object; return False when it is already gone.

    With a `uid`, a later object of the same name is left alone, and with a `version` one that has changed since; both
    return False. The object may still exist after this returns, as long as its finalizers require.
    """
    call = api.call_of("delete", kind, name, namespace)
    options: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
    }
    if uid or version:
        known = {"uid": uid, "resourceVersion": version}
        options["preconditions"] = {name: value for name, value in known.items() if value}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    try:
        api.send(call, None, options)
    except MissingKind:
        raise
    except NotFound:
        return False
    except ObjectConflict:
        if not uid and not version:
            raise
        return False
    return True
