"""Claims for devices: which of them are claims to NVLink channels, by the objects at hand or by well-known names.

A claim template is known from a ComputeDomain, which makes one under the name that its spec gives, or from itself by
the class of devices that it asks for. Where neither is at hand, the names of NVIDIA's examples and of Grove tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from coterie.topology.channels import names_channel

KINDS = frozenset({"ComputeDomain", "ResourceClaimTemplate"})
_CHANNEL_CLASS = re.compile(r"compute-domain-.*channel\..*")
_GPU_CLASS = re.compile(r"(.*[.-])?(gpu|mig|vfio)\..*")


class Device(StrEnum):
    """What a claim is for."""

    CHANNEL = "channel"
    GPU = "gpu"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClaimTemplates:
    """What claims of known templates are for, by namespace and name; an empty namespace is any."""

    found: Mapping[tuple[str, str], Device] = field(default_factory=dict)

    def __or__(self, other: ClaimTemplates) -> ClaimTemplates:
        return ClaimTemplates({**other.found, **self.found})

    def device(self, claim: str, template: str, namespace: str) -> Device:
        """Return what a claim of a pod in a namespace is for; in no namespace, templates of all of them count."""
        spaces = (namespace, "") if namespace else dict.fromkeys(space for space, _ in self.found)
        known = (self.found.get((space, template)) for space in spaces)
        if template and (device := next(filter(None, known), None)):
            return device
        return Device.CHANNEL if names_channel(claim, template) else Device.UNKNOWN


NO_TEMPLATES = ClaimTemplates()


def claim_templates(objects: Iterable[Mapping[str, Any]]) -> ClaimTemplates:
    """Return the templates that ComputeDomains and claim templates among some objects stand for."""
    return ClaimTemplates(dict(each for one in objects for each in _templates(one)))


def _templates(one: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Device]]:
    space = _text(_at(one, "metadata", "namespace"))
    if one.get("kind") == "ComputeDomain":
        if name := _text(_at(one, "spec", "channel", "resourceClaimTemplate", "name")):
            yield (space, name), Device.CHANNEL
    elif one.get("kind") == "ResourceClaimTemplate" and (name := _text(_at(one, "metadata", "name"))):
        requests = _at(one, "spec", "spec", "devices", "requests")
        classes = list(_classes(requests if isinstance(requests, list) else []))
        if any(_CHANNEL_CLASS.fullmatch(each) for each in classes):
            yield (space, name), Device.CHANNEL
        else:
            gpus = any(_GPU_CLASS.fullmatch(each) for each in classes)
            yield (space, name), Device.GPU if gpus else Device.OTHER


def _classes(requests: Iterable[Any]) -> Iterator[str]:
    """Yield the classes of devices that a template asks for, as each version of its API writes them."""
    for request in requests:
        alternatives = _at(request, "firstAvailable")
        for each in (request, _at(request, "exactly"), *(alternatives if isinstance(alternatives, list) else ())):
            if name := _text(_at(each, "deviceClassName")):
                yield name


def _at(data: object, *path: str) -> object:
    for step in path:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
