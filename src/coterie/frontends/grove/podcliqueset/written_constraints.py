"""The topology constraints of a PodCliqueSet in a cluster, read leniently.

An operator of another version may have admitted fields that are not known here; they must not hide a constraint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.document.located import Path
from coterie.frontends.grove.podcliqueset.model import TEMPLATE, TopologyConstraint

# The lists below the template whose items have constraints, in the order in which Grove looks for a topology's name.
_LISTS = ("podCliqueScalingGroups", "cliques")


def set_constraints(data: Mapping[str, Any]) -> tuple[TopologyConstraint, ...]:
    """Return all constraints: of the set, of its scaling groups, and of its cliques."""
    template = mapping_at(data, *TEMPLATE)
    found = [constraint_at(template, TEMPLATE)]
    for name in _LISTS:
        found += [constraint_at(each, path) for path, each in items_of(template, name, TEMPLATE)]
    return tuple(each for each in found if each is not None)


def constraint_at(owner: Mapping[str, Any], path: Path) -> TopologyConstraint | None:
    """Return the constraint of a part of an object, if it has one."""
    written = owner.get("topologyConstraint")
    if not isinstance(written, Mapping):
        return None
    pack = written.get("pack")
    domains = pack if isinstance(pack, Mapping) else {}
    return TopologyConstraint(
        path=(*path, "topologyConstraint"),
        topology=text_of(written, "topologyName"),
        required=text_of(domains, "required"),
        preferred=text_of(domains, "preferred"),
        legacy=text_of(written, "packDomain"),
        pack=isinstance(pack, Mapping),
    )


def mapping_at(data: Mapping[str, Any], *path: str | int) -> Mapping[str, Any]:
    """Return the mapping at a path; an empty one where there is none."""
    found: Any = data
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items_of(owner: Mapping[str, Any], name: str, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the mappings in a list, with their paths."""
    found = owner.get(name)
    for index, each in enumerate(found if isinstance(found, list) else ()):
        if isinstance(each, Mapping):
            yield (*path, name, index), each


def text_of(owner: Mapping[str, Any], name: str) -> str:
    """Return a text field; empty where it is missing or something else."""
    found = owner.get(name)
    return found if isinstance(found, str) else ""
