"""The definitions of ClusterTopology and ClusterTopologyBinding, made from the models that read them.

An API server takes only structural schemas, so references of the models' JSON schema are resolved and optional fields
are written as such. Limits that the API server can check by itself are added, with rules whose cost stays within its
budget; the webhook has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.document.schema import DocumentModel
from coterie.frontends.grove.topology import DOMAIN_PATTERN, KEY_LIMITS, KEY_PATTERN, KINDS
from coterie.frontends.grove.topology_model import ClusterTopologyBindingModel, ClusterTopologyModel
from coterie.kube.kinds import CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, ObjectKind
from coterie.topology.levels import MAX_LEVELS

Schema = dict[str, Any]

_DROPPED = frozenset({"title", "default", "additionalProperties", "$defs"})


def definitions(*, beside_grove: bool = False) -> list[dict[str, Any]]:
    """Return both definitions as manifests, or the one that Grove lacks, without the short name that Grove uses."""
    if beside_grove:
        found = _definition(CLUSTER_TOPOLOGY, ClusterTopologyModel, "reference")
        del found["spec"]["names"]["shortNames"]
        return [found]
    return [
        _definition(CLUSTER_TOPOLOGY, ClusterTopologyModel, "reference"),
        _definition(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBindingModel, "topologyReference"),
    ]


def _definition(kind: ObjectKind, model: type[DocumentModel], reference: str) -> dict[str, Any]:
    whole = model.model_json_schema()
    spec = _structural(whole["properties"]["spec"], whole["$defs"])
    _limit(spec["properties"], kind.name)
    group, version = kind.api_version.split("/")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd, "labels": {"app.kubernetes.io/managed-by": "coterie"}},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": ["ct"] if kind.name == KINDS[0] else ["ctb"],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(),
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": _line(model.__doc__),
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": spec,
                                "status": _status(reference),
                            },
                        }
                    },
                }
            ],
        },
    }


def _structural(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Schema:
    """Return a schema without references and without alternatives to null."""
    if "$ref" in schema:
        return _structural({**parts[schema["$ref"].rpartition("/")[2]], **_without(schema, "$ref")}, parts)
    if "anyOf" in schema:
        kept = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _structural({**kept[0], **_without(schema, "anyOf")}, parts)
    found = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "properties" in found:
        found["properties"] = {name: _structural(each, parts) for name, each in found["properties"].items()}
    if "items" in found:
        found["items"] = _structural(found["items"], parts)
    return found


def _limit(fields: Schema, kind: str) -> None:
    """Add the limits of a kind to the fields of its spec."""
    levels = fields["levels"]
    level = levels["items"]["properties"]
    level["domain"] |= {"minLength": 1, "maxLength": 63, "pattern": f"^{DOMAIN_PATTERN}$"}
    level["key"] |= {"minLength": 1, "maxLength": KEY_LIMITS[kind], "pattern": f"^{KEY_PATTERN}$"}
    levels |= {"minItems": 1, "x-kubernetes-list-type": "atomic"}
    if kind == KINDS[0]:
        # Without a limit on the items, the API server estimates the cost of these rules as unlimited.
        levels["maxItems"] = MAX_LEVELS
        levels["x-kubernetes-validations"] = [_unique("domain"), _unique("key")]
    references = next(value for name, value in fields.items() if name != "levels")
    references["x-kubernetes-list-type"] = "atomic"
    for field in references["items"]["properties"].values():
        field["minLength"] = 1


def _unique(field: str) -> dict[str, str]:
    return {
        "rule": f"self.all(x, self.exists_one(y, x.{field} == y.{field}))",
        "message": f"each level needs a {field} of its own",
    }


def _status(reference: str) -> Schema:
    condition = {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    }
    entry = {
        "type": "object",
        "required": ["schedulerName", "inSync"],
        "properties": {
            "schedulerName": {"type": "string"},
            reference: {"type": "string", "description": "The name of the scheduler's topology resource."},
            "inSync": {"type": "boolean", "description": "Whether that resource has these levels in this order."},
            "schedulerBackendTopologyObservedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The generation of that resource when it was compared; 0 where there is none.",
            },
            "message": {"type": "string"},
        },
    }
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "conditions": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": condition,
            },
            "schedulerTopologyStatuses": {"type": "array", "x-kubernetes-list-type": "atomic", "items": entry},
        },
    }


def _columns() -> list[dict[str, str]]:
    drift = '.status.conditions[?(@.type=="SchedulerTopologyDrift")]'
    return [
        # An API server shows only the first of several results, so a column with all domains is not possible.
        {"name": "Coarsest", "type": "string", "jsonPath": ".spec.levels[0].domain"},
        {"name": "Finest", "type": "string", "jsonPath": ".spec.levels[-1:].domain"},
        {"name": "Drift", "type": "string", "jsonPath": f"{drift}.status"},
        {"name": "Reason", "type": "string", "jsonPath": f"{drift}.reason"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def _without(schema: Mapping[str, Any], key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
