"""The validation of files of any kind by the rules alone, for `coterie validate` and admission webhooks.

Texts and known topologies go in, a `Validation` comes out: one judgement per object, with separate faults and warnings.
Objects of `old` texts are the earlier forms; an object that both have is judged as an update, by kind, namespace and
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from coterie.config.configuration import Config
from coterie.document.repair import overlaps
from coterie.document.schema import by_file
from coterie.errors import CoterieError, Fault, FieldError, NotFound, Notice, Place, SpecErrors, UsageError, field_path
from coterie.frontends.admission import (
    KnownTopologies,
    ObjectVerdict,
    TargetCluster,
    judge_graph,
    judge_set,
    judge_topology,
    judged,
    removed,
)
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.topology import KINDS as TOPOLOGY_KINDS
from coterie.frontends.grove.topology import read_cluster_topology
from coterie.frontends.grove.topology_set import Topologies, topologies_of
from coterie.frontends.kubernetes.draft import draft, independent
from coterie.frontends.kubernetes.objects import DEFAULT_NAMESPACE, Resource, draft_resources, is_kubernetes
from coterie.frontends.workflow.lower import lower, pool_faults
from coterie.frontends.workflow.read import Draft, Workflow, draft_workflow
from coterie.planning.inputs import TopologyChoice, all_topologies, pool_for
from coterie.planning.load import POD_CLIQUE_SET, POOL, WORKFLOW, faults_in, pool_fault
from coterie.planning.report import fault_json
from coterie.sources import Snapshot
from coterie.topology.levels import Topology

VERSION = 1
# The file name of judgements about the call itself.
CALL = "the call"

Json = dict[str, Any]
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class InputText:
    """A file that was read."""

    file: str
    data: bytes

    @property
    def blank(self) -> bool:
        """Whether it is blank."""
        return not self.data.strip()


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """The context of a validation; a missing part means fewer checks, with a warning.

    Where it is `unread`, because it has faults itself, files are judged by the rules that need no pool and no topology.
    """

    site: TargetCluster = field(default_factory=TargetCluster)
    config: Config | None = None
    pool: str | None = None
    levels: Topology | TopologyChoice | None = None
    snapshot: Snapshot | None = None
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    unread: bool = False


class ObjectChange(StrEnum):
    """The change that an object would undergo."""

    CREATED = "created"
    UPDATED = "updated"
    REMOVED = "removed"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one object; `kind` and `name` are empty for a file as a whole."""

    file: str
    kind: str = ""
    name: str = ""
    namespace: str = ""
    change: ObjectChange = ObjectChange.NONE
    faults: tuple[Fault, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Validation:
    """The judgements of all files, in their order."""

    judgements: tuple[Judgement, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Every fault."""
        return tuple(fault for each in self.judgements for fault in each.faults)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Every warning."""
        return tuple(notice for each in self.judgements for notice in each.notices)

    @property
    def valid(self) -> bool:
        """Whether nothing is refused; warnings do not count."""
        return not self.faults


def validate(
    texts: Sequence[InputText], against: ValidationContext, old: Sequence[InputText] | None = None
) -> Validation:
    """Judge files by the rules for new objects, and with `old` by those for updates."""
    files = [_read(text) for text in texts]
    before = [_read_old(text) for text in old or ()]
    judge = _Judge(files, before, against)
    judgements = [judgement for file in files for judgement in judge.file(file)]
    judgements += (file.whole for file in before if file.whole.faults or file.text.blank)
    judgements += judge.gone()
    found = Validation(tuple(judgements))
    if judge.errors and not found.faults:
        raise next(iter(judge.errors.values()))
    called = Judgement(CALL, faults=tuple(judge.errors))
    return replace(found, judgements=(*([called] if called.faults else ()), *found.judgements))


def validation_json(found: Validation) -> Json:
    """Return the object that `coterie validate -o json` prints."""
    return {
        "version": VERSION,
        "valid": found.valid,
        "files": [
            {
                "file": each.file,
                "kind": each.kind or None,
                "name": each.name or None,
                "namespace": each.namespace or None,
                "change": each.change.value or None,
                "errors": [_fault(fault) for fault in each.faults],
                "warnings": [_notice(notice, each.file) for notice in each.notices],
            }
            for each in found.judgements
        ],
        "errors": [_fault(fault) for fault in found.faults],
        "warnings": [_notice(notice, each.file) for each in found.judgements for notice in each.notices],
    }


@dataclass(frozen=True, slots=True)
class _File:
    """A text: its objects, or its bytes where it is a workflow, and the judgement of it as a whole."""

    text: InputText
    resources: tuple[Resource, ...] = ()
    whole: Judgement = field(default_factory=lambda: Judgement(""))
    workflow: bool = False


def _read(text: InputText) -> _File:
    if not is_kubernetes(text.data):
        return _File(text, workflow=True)
    try:
        bundle = draft_resources(text.data, text.file)
    except SpecErrors as error:
        return _File(text, whole=Judgement(text.file, faults=error.faults))
    notices = bundle.notices
    if not bundle.resources and not bundle.others and not bundle.faults:
        notices = (Notice("NothingToJudge", "there is no object in it", Place(text.file)),)
    return _File(text, bundle.resources, Judgement(text.file, faults=bundle.faults, notices=notices))


def _read_old(text: InputText) -> _File:
    """Return the old form of a text; a blank text has no objects, and a workflow has no rules for updates."""
    if text.blank:
        notice = Notice("NothingBefore", "the old file is empty, so every object counts as new", Place(text.file))
        return _File(text, whole=Judgement(text.file, notices=(notice,)))
    file = _read(text)
    if file.workflow and b"workflow:" not in text.data:
        hint = "The old file holds the same kinds of objects as the new ones."
        fault = Fault("there are no objects in it", hint=hint, place=Place(text.file))
        return _File(text, whole=Judgement(text.file, faults=(fault,)))
    return file


class _Judge:
    """The objects of all files, and the known topologies."""

    def __init__(self, files: Sequence[_File], before: Sequence[_File], against: ValidationContext) -> None:
        self.against = against
        self.site = against.site
        self.errors: dict[Fault, CoterieError] = {}
        self.before: dict[Key, Resource] = {}
        for file in before:
            self.before |= {_key(resource): resource for resource in file.resources}
        self.now = {_key(resource) for file in files for resource in file.resources}
        self.updating = bool(before)
        self.beside = {file.text.file: self._topologies(file) for file in files}
        self.all = Topologies()
        for found in self.beside.values():
            self.all |= found

    def file(self, file: _File) -> Iterator[Judgement]:
        """Yield the judgement of a file as a whole, and of each of its objects."""
        if file.workflow:
            yield self._workflow(file.text)
            return
        if file.whole.faults or file.whole.notices:
            yield file.whole
        knowledge = self._knowledge(self.beside[file.text.file] | self.all)
        for resource in file.resources:
            old = self.before.get(_key(resource))
            said = judged(lambda resource=resource, old=old: self._object(resource, old, knowledge))  # type: ignore[misc]
            if said.faults and old is None and resource.kind not in TOPOLOGY_KINDS:
                said = self._with_further(resource, knowledge, said)
            if resource.kind in TOPOLOGY_KINDS and not said.faults:
                said = self._alone(resource, file, said)
            change = ObjectChange.UPDATED if old else ObjectChange.CREATED if self.updating else ObjectChange.NONE
            yield _judgement(file.text.file, resource, change, said)

    def gone(self) -> Iterator[Judgement]:
        """Yield the objects that only the old files have."""
        for key, resource in self.before.items():
            if key not in self.now:
                said = ObjectVerdict((), (removed(resource),))
                yield _judgement(resource.document.page.file, resource, ObjectChange.REMOVED, said)

    def _object(self, resource: Resource, old: Resource | None, knowledge: KnownTopologies) -> ObjectVerdict:
        if resource.kind in TOPOLOGY_KINDS:
            return judge_topology(resource, old, self.site)
        judge = judge_set if resource.kind == POD_CLIQUE_SET else judge_graph
        return judge(resource, old, knowledge, self.site)

    def _with_further(self, resource: Resource, knowledge: KnownTopologies, said: ObjectVerdict) -> ObjectVerdict:
        """Add to the faults of an object's shape those that the rules find besides."""
        read = read_podcliqueset if resource.kind == POD_CLIQUE_SET else read_graph

        def shaped(found: Resource) -> Resource:
            read(found)
            return found

        own, repaired = draft(resource, shaped)
        if not own or repaired is None:
            return said
        further = judged(lambda: self._object(repaired.content, None, knowledge))
        return ObjectVerdict(tuple(by_file((*own, *independent(further.faults, repaired.gone)))))

    def _topologies(self, file: _File) -> Topologies:
        """Return the topologies of a file; of two that differ under one name, the first."""
        known = Topologies()
        for resource in file.resources:
            if resource.kind in TOPOLOGY_KINDS:
                try:
                    known |= Topologies({resource.name: read_cluster_topology(resource, self.site.schedulers)})
                except SpecErrors as error:
                    known |= Topologies(wrong={resource.name: error.faults})
        return known

    def _alone(self, resource: Resource, file: _File, said: ObjectVerdict) -> ObjectVerdict:
        """Add that another topology has the same name: a fault in the same file, a warning in another."""
        own = self.beside[file.text.file].found.get(resource.name)
        if own is not None and own.resource is not resource:
            twins = judged(
                lambda: ObjectVerdict((), topologies_of((own.resource, resource), self.site.schedulers).notices)
            )
            return replace(said, faults=twins.faults)
        first = self.all.found.get(resource.name)
        if own is not None and first is not None and first != own:
            place = first.resource.document.page.file
            message = f"{resource} differs from the one in {place}; each file is checked against its own"
            path = ("metadata", "name")
            notice = Notice("TopologyDiffers", message, resource.document.place(path), path)
            return replace(said, notices=(*said.notices, notice))
        return said

    def _knowledge(self, beside: Topologies) -> KnownTopologies:
        if self.against.unread:
            return KnownTopologies()
        levels, snapshot = self.against.levels, self.against.snapshot
        charted = levels.topologies.wrong if isinstance(levels, TopologyChoice) else {}
        wrong = {*beside.wrong, *charted, *(snapshot.wrong_topologies if snapshot else ())}
        found = all_topologies(levels, snapshot, beside)
        before = any(resource.kind in TOPOLOGY_KINDS for resource in self.before.values())
        return KnownTopologies(found, frozenset(wrong), bool(found or wrong or before), self._stand_in(beside))

    def _stand_in(self, beside: Topologies) -> Topology:
        """Return the levels used in place of a missing topology: those of the call, its pool or cluster."""
        config, levels, snapshot = self.against.config, self.against.levels, self.against.snapshot
        if isinstance(levels, Topology):
            return levels
        if self.against.pool is not None or (config is not None and len(config.pools) == 1):
            given = levels.topologies | beside if isinstance(levels, TopologyChoice) else beside
            try:
                return pool_for(config, self.against.pool, None, None, snapshot, given).topology
            except (NotFound, UsageError) as error:
                self._refusal(error, None)
                return Topology()
        return (snapshot.topology if snapshot else None) or Topology()

    def _workflow(self, text: InputText) -> Judgement:
        against = self.against
        try:
            found = draft_workflow(text.data, text.file, sets=against.sets, set_strings=against.set_strings)
        except SpecErrors as error:
            return Judgement(text.file, WORKFLOW, faults=error.faults)
        workflow = found.workflow
        if workflow is None:
            return Judgement(text.file, WORKFLOW, faults=found.faults)
        said = judged(lambda: self._in_pool(workflow, found))
        if found.faults:
            return Judgement(text.file, WORKFLOW, faults=tuple(by_file((*found.faults, *said.faults))))
        return Judgement(text.file, WORKFLOW, workflow.name, "", ObjectChange.NONE, said.faults, said.notices)

    def _in_pool(self, workflow: Workflow, found: Draft) -> ObjectVerdict:
        """Judge a workflow against its pool; without any levels only by the rules that need no pool."""
        against = self.against
        if against.unread or (against.pool is None and overlaps(POOL, found.gone)):
            return ObjectVerdict()
        try:
            pool = pool_for(against.config, against.pool, workflow.pool, against.levels, against.snapshot, self.all)
        except (NotFound, UsageError) as error:
            return self._refusal(error, workflow)
        if against.config is None and (pool.guessed or not pool.topology.levels):
            return ObjectVerdict((), (*workflow.notices, *_unchecked(workflow)))
        faults = faults_in(workflow, pool, found.gone) if against.config else pool_faults(workflow, pool, found.gone)
        return ObjectVerdict(tuple(faults), () if faults or found.faults else lower(workflow, pool).notices)

    def _refusal(self, error: CoterieError, workflow: Workflow | None) -> ObjectVerdict:
        """Keep an error about a pool; where a file names that pool, it is a fault of the file."""
        fault = pool_fault(error, workflow)
        if fault.place:
            return ObjectVerdict((fault,))
        self.errors[fault] = error
        return ObjectVerdict()


def _unchecked(workflow: Workflow) -> Iterator[Notice]:
    for resource in workflow.resources.values():
        if resource.spec.topology:
            path = (*resource.path, "topology")
            message = "no levels are known here, so topology was not checked; pass --levels, --topology or --config"
            yield Notice("TopologyNotChecked", message, workflow.place(path, key=True), path)
            return


def _key(resource: Resource) -> Key:
    """Return the identity of an object; the two kinds of topology are one, and have no namespace."""
    if resource.kind in TOPOLOGY_KINDS:
        return TOPOLOGY_KINDS[0], "", resource.name
    return resource.kind, resource.namespace or DEFAULT_NAMESPACE, resource.name


def _judgement(file: str, resource: Resource, change: ObjectChange, said: ObjectVerdict) -> Judgement:
    faults = tuple(fault if fault.place else fault.at(Place(file)) for fault in said.faults)
    return Judgement(file, resource.kind, resource.name, resource.namespace, change, faults, said.notices)


def _fault(fault: Fault) -> Json:
    return {
        "code": fault.code.value,
        "type": fault.type.value if fault.type else FieldError.INVALID.value,
        "field": fault.field or field_path(fault.path),
        **fault_json(fault),
    }


def _notice(notice: Notice, file: str) -> Json:
    place = notice.place
    return {
        "code": notice.code,
        "message": notice.message,
        "file": place.file if place else file,
        "line": place.line if place else None,
    }
