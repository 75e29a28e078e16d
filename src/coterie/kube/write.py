"""Creation, replacement and JSON patches of objects, each refused by the API where the object is in another state.

A caller that loses such a race gets `ObjectConflict`, reads again, and decides again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coterie.errors import UsageError
from coterie.kube.api import Api
from coterie.kube.kinds import ObjectKind, kind_of
from coterie.kube.reads import decoded

_DECODER = msgspec.json.Decoder(dict[str, Any])


def create(api: Api, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """Return the created object; raise `ObjectConflict` where one of its name exists."""
    kind, name, namespace = _identity(manifest)
    call = api.call_of("post", kind, name, namespace)
    answer = api.send(call, {"dryRun": "All" if dry_run else None}, dict(manifest))
    return decoded(call, answer.body, _DECODER)


def replace(api: Api, manifest: Mapping[str, Any], *, subresource: str = "") -> dict[str, Any]:
    """Return the replaced object or subresource; raise `ObjectConflict` where the given version is not the latest."""
    kind, name, namespace = _identity(manifest)
    if not manifest["metadata"].get("resourceVersion"):
        raise UsageError(f'{kind.name} "{name}" has no resourceVersion', "Replace only what was read before.")
    call = api.call_of("put", kind, name, namespace, subresource)
    return decoded(call, api.send(call, None, dict(manifest)).body, _DECODER)


def json_patch(
    api: Api, kind: ObjectKind, name: str, operations: Sequence[Mapping[str, Any]], namespace: str | None = None
) -> dict[str, Any]:
    """Return an object after JSON patch operations, of which all or none are carried out."""
    call = api.call_of("patch", kind, name, namespace)
    return decoded(call, api.send(call, None, [dict(each) for each in operations]).body, _DECODER)


def _identity(manifest: Mapping[str, Any]) -> tuple[ObjectKind, str, str | None]:
    meta = manifest.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    kind = kind_of(manifest)
    if not isinstance(meta, Mapping) or not isinstance(name, str) or not name:
        raise UsageError(f"a {kind.name} without metadata.name cannot be written", "Add metadata.name.")
    return kind, name, meta.get("namespace")
