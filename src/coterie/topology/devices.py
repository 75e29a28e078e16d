"""Device claims: recognition of claims to NVLink channels, by the objects available or by well-known names.

A claim template is recognised through a ComputeDomain, which creates one under the name given in its spec, or by the
device class that the template itself requests. Where neither object is available, the names of NVIDIA's examples and of
Grove are used.
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
    """The kind of device that a claim requests."""

    CHANNEL = "channel"
    GPU = "gpu"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClaimTemplates:
    """The devices of known claim templates by namespace and name; an empty namespace matches any."""

    found: Mapping[tuple[str, str], Device] = field(default_factory=dict)

    def __or__(self, other: ClaimTemplates) -> ClaimTemplates:
        return ClaimTemplates({**other.found, **self.found})

    def device(self, claim: str, template: str, namespace: str) -> Device:
        """Return the device that a pod's claim requests; without a namespace, templates of all namespaces count."""
        spaces = (namespace, "") if namespace else dict.fromkeys(space for space, _ in self.found)
        known = (self.found.get((space, template)) for space in spaces)
        if template and (device := next(filter(None, known), None)):
            return device
        return Device.CHANNEL if names_channel(claim, template) else Device.UNKNOWN


NO_TEMPLATES = ClaimTemplates()


def claim_templates(objects: Iterable[Mapping[str, Any]]) -> ClaimTemplates:
    """Return the claim templates that the ComputeDomains and ResourceClaimTemplates among some objects define."""
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
    """Yield the device classes that a template requests, in the notation of each version of its API."""
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
