"""The rules for the names, labels and annotations of a PodCliqueSet and its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, field_path
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.kubernetes.objects import field_fault, is_subdomain
from coterie.topology.levels import is_label_value, label_fault

# Names of pods are composed of these names; the rest of 63 characters is for indices and a random suffix.
NAME_BUDGET = 45


def name_faults(name: str, path: Path, what: str) -> Iterator[Fault]:
    """Yield the faults of the name of a clique or scaling group, which is a DNS subdomain."""
    if not name:
        yield field_fault(FieldError.REQUIRED, path, f"the {what} has no name", "Give it a short name, such as worker.")
    elif not is_subdomain(name):
        hint = 'Use lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit.'
        yield field_fault(FieldError.INVALID, path, f"{said(name)} cannot be the name of a {what}", hint)


def repeated(names: Mapping[Path, str], what: str) -> Iterator[Fault]:
    """Yield a fault for every repeated name; `names` is in the order of the file, by path."""
    seen: set[str] = set()
    for path, name in names.items():
        if name in seen:
            hint = "Each name may be used once; rename or remove one of them."
            yield field_fault(FieldError.DUPLICATE, path, f"{what} {said(name)} is listed twice", hint)
        seen.add(name)


def label_faults(labels: Mapping[str, str], path: Path) -> Iterator[Fault]:
    """Yield the faults of labels by Kubernetes' syntax; its API names the whole mapping."""
    for key, value in labels.items():
        if problem := label_fault(key):
            yield _metadata_fault(path, key, f"{said(key)} is not a label: {problem}", "Example: team: research")
        elif value and not is_label_value(value):
            hint = 'At most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit.'
            yield _metadata_fault(path, key, f"{said(value)} cannot be the value of label {said(key)}", hint)


def annotation_faults(annotations: Mapping[str, str], path: Path) -> Iterator[Fault]:
    """Yield the faults of annotation keys."""
    for key in annotations:
        if problem := label_fault(key.lower()):
            hint = "Example: example.com/owner: research"
            yield _metadata_fault(path, key, f"{said(key)} is not the key of an annotation: {problem}", hint)


def budget_faults(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield a fault at every name that makes the names of pods too long, each once and for the longest of them."""
    longest: dict[Path, int] = {}

    def count(total: int, *paths: Path) -> None:
        if total > NAME_BUDGET:
            longest.update({path: max(total, longest.get(path, 0)) for path in (*paths, ("metadata", "name"))})

    for clique in pcs.standalone:
        count(len(pcs.name) + len(clique.name), (*clique.path, "name"))
    for group in pcs.groups:
        for index, name in enumerate(group.clique_names):
            total = len(pcs.name) + len(group.name) + len(name)
            count(total, (*group.path, "cliqueNames", index), (*group.path, "name"))
    for path, total in longest.items():
        message = f"the names of the set, its scaling group and its clique have {total} characters together"
        yield field_fault(FieldError.INVALID, path, message, f"At most {NAME_BUDGET} are allowed; shorten one of them.")


def _metadata_fault(path: Path, key: str, message: str, hint: str) -> Fault:
    return field_fault(FieldError.INVALID, (*path, key), message, hint, field_path(path))
