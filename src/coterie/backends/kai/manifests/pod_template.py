"""The merge of a pool's partial pod into the pod of a task.

| part | where both have it |
|---|---|
| mappings | merged key by key |
| lists of things with a name or a path | united; of one name or path, the pod's entry counts |
| containers, tolerations | merged by name or taint, by these rules |
| everything else | the pod's value counts |

Entries of the template come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.backends.shared.manifest_text import Manifest
from coterie.config.pod_template import TASK_CONTAINER

_IDENTITIES = {
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "envFrom": ("prefix", "configMapRef", "secretRef"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "tolerations": ("key", "operator", "value", "effect"),
}
_DEEP = frozenset({"containers", "initContainers", "tolerations"})
# Kubernetes takes a missing field of a toleration for its default.
_DEFAULTS = {"operator": "Equal", "key": "", "value": "", "effect": ""}


def merged(pod: Manifest, template: Mapping[str, Any]) -> Manifest:
    """Return a pod with the template of its pool, by the rules of this module; neither is changed."""
    return _mapping(pod, template)


def template_mounts(template: Mapping[str, Any]) -> list[str]:
    """Return the paths at which a template mounts volumes into the task's container."""
    containers: Sequence[Mapping[str, Any]] = template.get("spec", {}).get("containers", ())
    return [
        str(mount.get("mountPath", ""))
        for container in containers
        if container["name"] == TASK_CONTAINER
        for mount in container.get("volumeMounts", ())
    ]


def _mapping(own: Mapping[str, Any], given: Mapping[str, Any]) -> Manifest:
    result = dict(own)
    for key, value in given.items():
        result[key] = _field(key, own[key], value) if key in own else value
    return result


def _field(key: str, own: Any, given: Any) -> Any:  # noqa: ANN401 - values of manifests
    if isinstance(own, Mapping) and isinstance(given, Mapping):
        return _mapping(own, given)
    if isinstance(own, list) and isinstance(given, list) and key in _IDENTITIES:
        return _united(key, own, given)
    return own


def _united(key: str, own: Sequence[Manifest], given: Sequence[Manifest]) -> list[Manifest]:
    mine = {_identity(key, entry): entry for entry in own}
    theirs = {_identity(key, entry): entry for entry in given}
    if key in _DEEP:
        mine = {name: _mapping(entry, theirs.get(name, {})) for name, entry in mine.items()}
    return [*(entry for name, entry in theirs.items() if name not in mine), *mine.values()]


def _identity(key: str, entry: Manifest) -> tuple[str, ...]:
    return tuple(repr(entry.get(name, _DEFAULTS.get(name))) for name in _IDENTITIES[key])
