"""Server-side apply of objects with one field manager, so that a repeated apply changes nothing.

Fields that another manager owns are left alone and reported. They are taken back only on an object that carries
Coterie's label, and only when the caller requests it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from coterie.errors import UsageError
from coterie.kube.api import MANAGER, Api
from coterie.kube.errors import ObjectConflict, RequestDescription
from coterie.kube.kinds import ObjectKind, kind_of
from coterie.kube.reads import decoded, find
from coterie.kube.wire import Identified, Meta

MARK = ("app.kubernetes.io/managed-by", "coterie")
_DECODER = msgspec.json.Decoder(Identified)


@dataclass(frozen=True, slots=True)
class AppliedObject:
    """An object after it was applied."""

    kind: ObjectKind
    meta: Meta
    created: bool


def apply(
    api: Api,
    manifest: Mapping[str, Any],
    *,
    reclaim: bool = False,
    subresource: str = "",
    namespace: str | None = None,
    dry_run: bool = False,
) -> AppliedObject:
    """Apply a manifest: set the fields that it states and leave all others alone.

    Raises Conflict with the names of the other managers when one of them owns a field. With `reclaim`, such fields are
    taken over if the object in the cluster is Coterie's.
    """
    kind, call = _call(api, manifest, subresource, namespace)
    try:
        return _apply(api, kind, call, manifest, force=False, dry_run=dry_run)
    except ObjectConflict as conflict:
        if not (reclaim and conflict.managers and _ours(api, kind, call)):
            raise
    return _apply(api, kind, call, manifest, force=True, dry_run=dry_run)


def apply_all(
    api: Api, manifests: Sequence[Mapping[str, Any]], *, reclaim: bool = False, namespace: str | None = None
) -> Iterable[AppliedObject]:
    """Apply manifests in order, yielding each once it is applied; the first failure ends the sequence.

    Every manifest is checked before the first is sent, so that an error in the last one leaves nothing half applied.
    """
    for manifest in manifests:
        _call(api, manifest, "", namespace)
    for manifest in manifests:
        yield apply(api, manifest, reclaim=reclaim, namespace=namespace)


def _call(
    api: Api, manifest: Mapping[str, Any], subresource: str, namespace: str | None
) -> tuple[ObjectKind, RequestDescription]:
    kind = kind_of(manifest)
    meta = manifest.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    if not isinstance(name, str) or not name:
        raise UsageError(f"a {kind.name} without metadata.name cannot be applied", "Add metadata.name.")
    inside = meta.get("namespace") if isinstance(meta, Mapping) else None
    if inside and namespace and inside != namespace:
        message = f'{kind.name} "{name}" is in namespace "{inside}", not "{namespace}"'
        raise UsageError(message, "Remove one of the two.")
    return kind, api.call_of("patch", kind, name, inside or namespace, subresource)


def _apply(
    api: Api, kind: ObjectKind, call: RequestDescription, manifest: Mapping[str, Any], *, force: bool, dry_run: bool
) -> AppliedObject:
    params = {"fieldManager": MANAGER, "force": str(force).lower(), "dryRun": "All" if dry_run else None}
    answer = api.send(call, params, dict(manifest))
    meta = decoded(call, answer.body, _DECODER).metadata
    return AppliedObject(kind, meta, created=answer.code == 201)


def _ours(api: Api, kind: ObjectKind, call: RequestDescription) -> bool:
    found = find(api, kind, call.name, Identified, call.namespace or None)
    return found is not None and (found.metadata.labels or {}).get(MARK[0]) == MARK[1]
