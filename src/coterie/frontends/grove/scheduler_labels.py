"""The labels of levels for a scheduler that names them otherwise, in an annotation of a topology.

`labels.coterie.dev/kai-scheduler: rack=example.com/nvl-rack` makes KAI find racks by that label. Users go on writing
domains, and other levels keep the keys of the topology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.schema import said
from coterie.errors import Fault, FieldError, did_you_mean
from coterie.frontends.kubernetes.objects import Resource, field_fault
from coterie.topology.levels import label_fault

PREFIX = "labels.coterie.dev/"
_EXAMPLE = "Example: rack=example.com/nvl-rack,host=kubernetes.io/hostname"


def scheduler_labels(resource: Resource) -> dict[str, dict[str, str]]:
    """Return the label of each level by the name of its scheduler; only for annotations without faults."""
    return {
        key.removeprefix(PREFIX): {domain: label for domain, _, label in _pairs(text)}
        for key, text in _written(resource).items()
    }


def label_faults(resource: Resource, levels: Mapping[str, str], schedulers: frozenset[str]) -> Iterator[Fault]:
    """Yield the faults of the annotations of a topology; `levels` are its keys by domain."""
    domains = list(levels)
    for key, text in _written(resource).items():
        path = ("metadata", "annotations", key)
        scheduler = key.removeprefix(PREFIX)
        if scheduler not in schedulers:
            hint = f"{did_you_mean(scheduler, schedulers)} Schedulers are: {', '.join(sorted(schedulers))}.".lstrip()
            yield field_fault(FieldError.INVALID, path, f"there is no scheduler {said(scheduler)}", hint)
            continue
        mapped = {domain for domain, _, _ in _pairs(text)}
        kept = {levels[domain]: domain for domain in domains if domain not in mapped}
        seen: set[str] = set()
        labels: set[str] = set()
        for domain, equals, label in _pairs(text):
            message, hint = "", _EXAMPLE
            if not equals:
                message = f"{said(domain)} is not DOMAIN=LABEL"
            elif domain not in domains:
                hint = f"{did_you_mean(domain, domains)} Its levels are: {', '.join(domains)}.".lstrip()
                message = f"the topology has no level {said(domain)}"
            elif problem := label_fault(label):
                message = f"{said(label)} cannot be the label of {said(domain)}: {problem}"
            elif domain in seen or label in labels:
                message = f"{said(domain if domain in seen else label)} occurs twice"
            elif label in kept:
                message = f"{said(label)} cannot be the label of {said(domain)}: it is the key of {said(kept[label])}"
                hint = f"Each level needs a label of its own: map {kept[label]} to another one, too."
            if message:
                yield field_fault(FieldError.INVALID, path, message, hint)
            seen.add(domain)
            labels.add(label)


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    for part in text.split(","):
        domain, equals, label = part.partition("=")
        yield domain.strip(), equals, label.strip()


def _written(resource: Resource) -> Mapping[str, str]:
    found = resource.get("metadata", "annotations")
    if not isinstance(found, Mapping):
        return {}
    return {key: str(text) for key, text in found.items() if isinstance(key, str) and key.startswith(PREFIX)}
