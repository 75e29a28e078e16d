"""Unknown fields of a pod spec, mostly misspelt ones, which would change a placement.

A pod spec is passed through unchanged, so the API server would silently drop a misspelt `nodeSelector`. It is a warning
and not a fault, because a newer Kubernetes may have more fields than are known here. Known are those of Kubernetes
1.35, for the pod, its containers, and the parts of them that decide which nodes are feasible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Notice, did_you_mean


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


POD = _names(
    """activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks
    ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets
    initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates
    resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount
    serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
    topologySpreadConstraints volumes workloadRef"""
)
CONTAINER = _names(
    """args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy
    resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath
    terminationMessagePolicy tty volumeDevices volumeMounts workingDir"""
)
_RESOURCES = _names("claims limits requests")
_KINDS = _names("requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution")
# Below the pod and its containers: the path of each mapping, its description, and its fields. "*" is each item of a
# list.
BELOW: tuple[tuple[tuple[str, ...], str, frozenset[str]], ...] = (
    (("resources",), "the resources of a pod", _RESOURCES),
    (("containers", "*"), "a container", CONTAINER),
    (("containers", "*", "resources"), "the resources of a container", _RESOURCES),
    (("initContainers", "*"), "an init container", CONTAINER),
    (("initContainers", "*", "resources"), "the resources of a container", _RESOURCES),
    (("tolerations", "*"), "a toleration", _names("effect key operator tolerationSeconds value")),
    (("affinity",), "an affinity", _names("nodeAffinity podAffinity podAntiAffinity")),
    (("affinity", "nodeAffinity"), "a node affinity", _KINDS),
    (("affinity", "podAffinity"), "a pod affinity", _KINDS),
    (("affinity", "podAntiAffinity"), "a pod anti-affinity", _KINDS),
)
# The number of fields reported, each in its own warning, and the number compared with known ones, which takes time.
_MOST_NAMED = 10
_MOST_COMPARED = 100


def unknown_fields(pods: Iterable[tuple[Mapping[str, Any], Path]]) -> Iterator[Notice]:
    """Yield a warning for each unknown field of these pod specs, at its first use."""
    uses: dict[tuple[str, str], tuple[Path, frozenset[str]]] = {}
    for spec, path in pods:
        for what, known, at, fields in _mappings(spec):
            for name in (str(each) for each in fields if each not in known):
                uses.setdefault((what, name), ((*path, *at, name), known))
    found = [
        (f"{said(name)} is not a known field of {what}.", did_you_mean(name, known), path)
        for (what, name), (path, known) in islice(uses.items(), _MOST_COMPARED)
    ]
    # Probable misspellings come first: a name unlike any other may be one of a newer version.
    found.sort(key=lambda each: not each[1])
    for message, guess, path in found[:_MOST_NAMED]:
        yield Notice("UnknownField", f"{message} {guess or 'A newer Kubernetes may have it.'}", path=path)
    if (more := len(uses) - _MOST_NAMED) > 0:
        message = f"{more} more {'field of a pod spec is' if more == 1 else 'fields of pod specs are'} not known"
        yield Notice("UnknownField", message, path=found[_MOST_NAMED][2])


def _mappings(spec: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str], Path, Mapping[Any, Any]]]:
    """Yield every mapping of a pod spec whose fields are known, with its description and path."""
    yield "a pod spec", POD, (), spec
    for steps, what, known in BELOW:
        for path, value in _at(spec, steps):
            if isinstance(value, Mapping):
                yield what, known, path, value


def _at(value: object, steps: tuple[str, ...]) -> Iterator[tuple[Path, object]]:
    """Yield the values at some steps; values of the wrong shape are skipped, since other checks report them."""
    if not steps:
        yield (), value
    elif steps[0] == "*" and isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from (((index, *path), found) for path, found in _at(each, steps[1:]))
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from (((steps[0], *path), found) for path, found in _at(value[steps[0]], steps[1:]))
