"""ClusterTopology and ClusterTopologyBinding: the levels of a cluster, declared by an admin under a name.

Both kinds are one model here. They differ in the names of some fields and in two limits: a ClusterTopology has at most
16 levels and accepts label keys of any legal length, a ClusterTopologyBinding has no limit on levels and keys of at
most 63 characters. An object that the kind admits but KAI rejects gets a notice.

No cluster is queried: `coterie check` reports whether nodes carry the labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from coterie.document.schema import DocumentModel, said
from coterie.errors import Fault, FieldError, Notice, SpecErrors, did_you_mean
from coterie.frontends.grove.scheduler_labels import PREFIX, label_faults, scheduler_labels
from coterie.frontends.grove.topology_model import (
    BindingModel,
    BindingSpec,
    ClusterTopologyBindingModel,
    ClusterTopologyModel,
    ReferenceModel,
    TopologyLevelModel,
    TopologySpec,
)
from coterie.frontends.kubernetes.draft import draft, independent
from coterie.frontends.kubernetes.objects import Resource, field_fault, shaped
from coterie.topology.levels import HOSTNAME, MAX_LEVELS, Level, Topology, label_fault

KINDS = ("ClusterTopology", "ClusterTopologyBinding")
DEFAULT_SCHEDULER = "default-scheduler"
KAI = "kai-scheduler"
# The schedulers that can be enabled, and those of them that have a topology resource of their own.
SCHEDULERS = frozenset({DEFAULT_SCHEDULER, KAI, "volcano", "lpx-scheduler"})
TOPOLOGY_AWARE = frozenset({KAI})

# The definitions of both kinds state the same limits; a key has at most so many characters, its prefix included.
DOMAIN_PATTERN = "[a-z][a-z0-9-]*"
KEY_PATTERN = (
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
)
KEY_LIMITS = {KINDS[0]: 316, KINDS[1]: 63}

_DOMAIN = re.compile(rf"(?=.{{1,63}}\Z){DOMAIN_PATTERN}")
_ALIASES = ("schedulerReferences", "schedulerTopologyReferences", "schedulerTopologyBindings")


@dataclass(frozen=True, slots=True)
class Reference:
    """A scheduler's own topology resource that is managed elsewhere: compared, never written."""

    scheduler: str
    name: str


@dataclass(frozen=True, slots=True)
class ClusterTopology:
    """A valid topology of either kind; levels run from the coarsest to the finest.

    `labels` are the node labels of levels for a scheduler that has others than the topology itself, by its name.
    """

    name: str
    levels: tuple[Level, ...]
    references: tuple[Reference, ...]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    resource: Resource = field(compare=False, kw_only=True)
    notices: tuple[Notice, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def kind(self) -> str:
        """The kind under which it was written."""
        return self.resource.kind

    @property
    def generation(self) -> int:
        """The generation of its spec, as the API server counts it; 0 for an object from a file."""
        found = self.resource.get("metadata", "generation")
        return found if isinstance(found, int) else 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The node labels, coarsest first."""
        return tuple(level.label for level in self.levels)

    def for_scheduler(self, scheduler: str) -> ClusterTopology:
        """Return the topology as a scheduler sees it: with its own labels where it has some."""
        own = self.labels.get(scheduler)
        if not own:
            return self
        levels = tuple(Level(level.name, own.get(level.name, level.label)) for level in self.levels)
        return replace(self, levels=levels, labels={})

    def reference(self, scheduler: str) -> str | None:
        """Return the name of a scheduler's resource that is managed elsewhere, if there is one."""
        return next((each.name for each in self.references if each.scheduler == scheduler), None)


def read_cluster_topology(resource: Resource, enabled: frozenset[str] | None = SCHEDULERS) -> ClusterTopology:
    """Return a topology, checked as on its creation or on any update; raise `SpecErrors` with every fault.

    `enabled` are the schedulers in use. None skips references to schedulers: an object that is already in a cluster may
    refer to one that was disabled later.
    """
    own, repaired = draft(resource, _shaped)
    if repaired is None:
        raise SpecErrors(own)
    spec = repaired.content
    field_name = "schedulerReferences" if resource.kind == KINDS[0] else "schedulerTopologyBindings"
    found = [
        *_count_faults(spec.levels, resource.kind),
        *_level_faults(spec.levels, resource.kind),
        *_reference_faults(spec.references or (), field_name, enabled),
        *label_faults(resource, {level.domain: level.key for level in spec.levels}, SCHEDULERS),
    ]
    if faults := [*own, *independent(found, repaired.gone)]:
        raise SpecErrors(resource.located(faults))
    return ClusterTopology(
        name=resource.name,
        levels=tuple(Level(level.domain, level.key) for level in spec.levels),
        references=tuple(Reference(each.scheduler, each.reference) for each in spec.references or ()),
        labels=scheduler_labels(resource),
        resource=resource,
        notices=tuple(_notices(spec.levels, resource)) if enabled is None or KAI in enabled else (),
    )


def is_domain(text: str) -> bool:
    """Return whether a text can be the domain of a level."""
    return _DOMAIN.fullmatch(text) is not None


def topology_of(found: ClusterTopology) -> Topology:
    """Return the levels as placement uses them: a level's name is its domain, its label is its key.

    A label that is only for KAI replaces the key, since no other scheduler places work by levels.
    """
    return Topology(found.for_scheduler(KAI).levels)


def update_notices(old: ClusterTopology, new: ClusterTopology) -> Iterator[Notice]:
    """Return notices of what an update removes from workloads that use the topology; no update is refused for that."""
    after = [level.name for level in new.levels]
    if lost := [level.name for level in old.levels if level.name not in after]:
        message = (
            f'{new.kind} "{new.name}" loses {_listed(lost)}: workloads that require a lost level '
            "are no longer placed; running pods stay"
        )
        yield Notice("LevelsRemoved", message, new.resource.document.place(("spec", "levels")), ("spec", "levels"))
    kept = [after.index(level.name) for level in old.levels if level.name in after]
    if any(above > below for above, below in pairwise(kept)):
        message = f'{new.kind} "{new.name}" changes the order of its levels: constraints may no longer nest'
        yield Notice("LevelsReordered", message, new.resource.document.place(("spec", "levels")), ("spec", "levels"))


def kai_refuses(keys: Sequence[str]) -> str:
    """Return why KAI rejects a Topology with these labels, or an empty string."""
    if len(keys) > MAX_LEVELS:
        return f"KAI takes at most {MAX_LEVELS} levels, not {len(keys)}"
    if HOSTNAME in keys[:-1]:
        return f"KAI takes {HOSTNAME} only as the last level"
    return ""


def _shaped(resource: Resource) -> TopologySpec | BindingSpec:
    if resource.kind == KINDS[0]:
        return shaped(ClusterTopologyModel, resource, _advice).spec
    return shaped(ClusterTopologyBindingModel, resource, _advice).spec


def _advice(model: type[DocumentModel] | None, word: str) -> str:
    """Return the name in this kind of a field that has another name in the other one."""
    if model in {TopologySpec, BindingSpec} and word in _ALIASES:
        kind, name = (
            ("ClusterTopology", _ALIASES[0]) if model is TopologySpec else ("ClusterTopologyBinding", _ALIASES[2])
        )
        return f"In a {kind} the field is called {name}."
    if model is ReferenceModel and word == "topologyReference":
        return "In a ClusterTopology the field is called reference."
    if model is BindingModel and word == "reference":
        return "In a ClusterTopologyBinding the field is called topologyReference."
    if model is TopologyLevelModel and word in {"name", "level"}:
        return "The name of a level is its domain."
    if model is TopologyLevelModel and word in {"label", "nodeLabel"}:
        return "The node label of a level is its key."
    return ""


def _count_faults(levels: Sequence[TopologyLevelModel], kind: str) -> Iterator[Fault]:
    path = ("spec", "levels")
    if not levels:
        hint = "List levels from the coarsest to the finest, each {domain: NAME, key: LABEL}."
        yield field_fault(FieldError.INVALID, path, f"a {kind} needs at least one level", hint)
    if len(levels) > MAX_LEVELS and kind == KINDS[0]:
        message = f"a {kind} has at most {MAX_LEVELS} levels, not {len(levels)}"
        yield field_fault(FieldError.INVALID, path, message, "Leave out levels that no workload names.")


def _level_faults(levels: Sequence[TopologyLevelModel], kind: str) -> Iterator[Fault]:
    domains: dict[str, int] = {}
    keys: dict[str, int] = {}
    for index, level in enumerate(levels):
        path = ("spec", "levels", index, "domain")
        if not is_domain(level.domain):
            hint = 'Use 1 to 63 lower-case letters, digits and "-", beginning with a letter.'
            yield field_fault(FieldError.INVALID, path, f"{said(level.domain)} cannot be the domain of a level", hint)
        elif level.domain in domains:
            message = f"domain {said(level.domain)} is already used by spec.levels[{domains[level.domain]}]"
            yield field_fault(FieldError.DUPLICATE, path, message, "Each level needs a domain of its own.")
        domains.setdefault(level.domain, index)
        path = ("spec", "levels", index, "key")
        if problem := _key_problem(level.key, kind):
            message = f"{said(level.key)} cannot be the key of a level: {problem}"
            yield field_fault(FieldError.INVALID, path, message, "Example: topology.kubernetes.io/rack")
        elif level.key in keys:
            message = f"key {said(level.key)} is already used by spec.levels[{keys[level.key]}]"
            yield field_fault(FieldError.DUPLICATE, path, message, "Each level needs a label of its own.")
        keys.setdefault(level.key, index)


def _key_problem(key: str, kind: str) -> str:
    limit = KEY_LIMITS[kind]
    if len(key) > limit:
        return f"it has {len(key)} characters, and a {kind} takes at most {limit}, the prefix included"
    return label_fault(key)


def _reference_faults(
    references: Sequence[ReferenceModel | BindingModel], name: str, enabled: frozenset[str] | None
) -> Iterator[Fault]:
    first: dict[str, int] = {}
    # An API server still names the list of a ClusterTopologyBinding as before its kind was renamed.
    shown = name if name == _ALIASES[0] else _ALIASES[1]
    for index, each in enumerate(references):
        path = ("spec", name, index, "schedulerName")
        field_name = "" if shown == name else f"spec.{shown}[{index}].schedulerName"
        if each.scheduler in first:
            message = f"{said(each.scheduler)} is already used by spec.{name}[{first[each.scheduler]}]"
            hint = "A scheduler has one topology resource: keep one of the two."
            yield field_fault(FieldError.DUPLICATE, path, message, hint, field_name)
        elif enabled is not None and (problem := _scheduler_problem(each.scheduler, enabled)):
            yield field_fault(FieldError.INVALID, path, *problem, field_name)
        first.setdefault(each.scheduler, index)
        if not each.reference:
            key = "reference" if name == _ALIASES[0] else "topologyReference"
            message = f"{key} is empty"
            hint = "Name the topology resource, or remove the entry to have one created."
            yield field_fault(FieldError.REQUIRED, ("spec", name, index, key), message, hint)


def _scheduler_problem(scheduler: str, enabled: frozenset[str]) -> tuple[str, str] | None:
    usable = ", ".join(sorted(enabled & TOPOLOGY_AWARE)) or "none"
    if scheduler not in enabled:
        known = "not enabled" if scheduler in SCHEDULERS else "not known"
        hint = f"Schedulers with a topology resource are: {usable}. {did_you_mean(scheduler, enabled)}".strip()
        return f"scheduler {said(scheduler)} is {known}", hint
    if scheduler not in TOPOLOGY_AWARE:
        hint = f"Remove the entry. Schedulers that have one are: {usable}."
        return f"scheduler {said(scheduler)} has no topology resource that could be referred to", hint
    return None


def _notices(levels: Sequence[TopologyLevelModel], resource: Resource) -> Iterator[Notice]:
    own = scheduler_labels(resource).get(KAI, {})
    keys = [own.get(level.domain, level.key) for level in levels]
    if problem := kai_refuses(keys):
        at: tuple[str | int, ...] = ("spec", "levels")
        if len(keys) <= MAX_LEVELS:
            index = keys.index(HOSTNAME)
            at = ("metadata", "annotations", f"{PREFIX}{KAI}") if levels[index].domain in own else (*at, index, "key")
        message = f"{resource} is admitted, but {problem}, so work with topology does not run there"
        yield Notice("RefusedByKai", message, resource.document.place(at), at)


def _listed(names: Sequence[str]) -> str:
    words = ", ".join(f'"{name}"' for name in names)
    return f"level {words}" if len(names) == 1 else f"levels {words}"
