"""The objects of a cluster that declare topologies or refer to them: of a live cluster, or of kubectl's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from coterie.document.json_faults import not_json, utf8
from coterie.errors import Place, SpecErrors
from coterie.kube.api import Api
from coterie.kube.kinds import (
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_BINDING,
    GRAPH_DEPLOYMENT,
    POD_CLIQUE_SET,
    POD_GROUP,
    ObjectKind,
)
from coterie.kube.reads import ObjectQuery, list_served

Object = dict[str, Any]

KINDS = (CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, GRAPH_DEPLOYMENT, POD_GROUP)
COMMAND = f"kubectl get {','.join(kind.plural for kind in KINDS)} -A -o json"
HOW = f"Use: {COMMAND}. kubectl refuses the whole command if the server lacks one of the kinds: leave those out."
_NAMES = frozenset(kind.name for kind in KINDS)


class _Kind(msgspec.Struct):
    kind: str = ""


class _List(msgspec.Struct):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


def live_objects(api: Api, kinds: Sequence[ObjectKind] = KINDS) -> list[Object]:
    """Return the objects of a live cluster; kinds that it lacks have none."""
    listed = ((kind, list_served(api, ObjectQuery(kind), Object)) for kind in kinds)
    return [
        {**item, "apiVersion": kind.api_version, "kind": kind.name}
        for kind, found in listed
        for item in (found.items if found else ())
    ]


def json_objects(data: bytes, file: str) -> list[Object]:
    """Return the objects in JSON that kubectl wrote: a list, or a single object; others are skipped undecoded."""
    try:
        text = utf8(data, Place(file))
        whole = msgspec.json.decode(text, type=_List)
        items = [msgspec.Raw(text)] if whole.items is None else whole.items
        wanted = [item for item in items if msgspec.json.decode(item, type=_Kind).kind in _NAMES]
        found = [msgspec.json.decode(item, type=Object) for item in wanted]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SpecErrors([replace(not_json(data, error, Place(file)), hint=HOW)]) from None
    return named_objects(found)


def named_objects(found: Iterable[Object]) -> list[Object]:
    """Return the objects that have a name."""
    return [each for each in found if isinstance(each.get("metadata"), dict) and each["metadata"].get("name")]
