"""The compilation of a submission: the validated workflow, its gangs, and the spec of its life cycle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache

from pydantic import TypeAdapter, ValidationError

from coterie.backends.base.settings import DEFAULT_PROCESSES
from coterie.config.configuration import Pool
from coterie.document.file_kind import FileKind, expect, mismatch
from coterie.document.located import decode
from coterie.document.schema import said
from coterie.errors import Notice, Reason, SpecErrors, UsageError, did_you_mean
from coterie.frontends.kubernetes.objects import is_kubernetes
from coterie.frontends.template.render import RenderedText, render
from coterie.frontends.workflow.lower import LoweredWorkflow, lower
from coterie.frontends.workflow.model import Labels
from coterie.frontends.workflow.read import Workflow, read_workflow
from coterie.frontends.workflow.values import LONGEST_PATH, by_action, codes
from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang
from coterie.lifecycle import ExitAction, GroupRules, Priority, Spec, TaskRules
from coterie.placement.capacity import Capacity
from coterie.placement.engine import NoPlacement, place
from coterie.placement.explain.decision import SIDE_BUDGET
from coterie.placement.whatif import changed_gang
from coterie.rendering.text import count
from coterie.service.settings import Settings, Submission
from coterie.service.submission.amendments import amended
from coterie.topology.cluster import Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

_REMEMBERED = 4096
_LABELS: TypeAdapter[dict[str, str]] = TypeAdapter(Labels)


@dataclass(frozen=True)
class CompiledWorkflow:
    """A workflow compiled for a pool, with its gangs."""

    workflow: Workflow
    lowered: LoweredWorkflow
    pool: Pool

    def gang(self, group: str) -> Gang:
        """Return the gang of a group."""
        return self._gangs[group]

    @cached_property
    def _gangs(self) -> Mapping[str, Gang]:
        return {gang.name: gang for gang in self.lowered.gangs}

    @property
    def gpus(self) -> int:
        """The number of GPUs that all its tasks request."""
        return sum(task.shape.gpus for gang in self.lowered.gangs for task in gang.all_tasks())

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The notices for the user."""
        check = self.pool.traits.submission
        return (*self.lowered.notices, *(check().notices(self.workflow) if check else ()))


def is_template(source: bytes) -> bool:
    """Return whether a text may be a template."""
    return any(mark in source for mark in (b"{{", b"{%", b"{#"))


def rendered(submission: Submission) -> Submission:
    """Return a submission with its template rendered, so that its size is known; raise `SpecErrors` for its faults."""
    if submission.rendered is not None or is_kubernetes(submission.source) or not is_template(submission.source):
        return submission
    expect(FileKind.WORKFLOW, submission.source, submission.file)
    text = decode(submission.source, submission.file)
    return replace(submission, rendered=render(text, submission.file, submission.sets, submission.set_strings))


def size_of(submission: Submission) -> int:
    """Return the size of the text that is parsed."""
    known = submission.rendered
    if known is None:
        return len(submission.source)
    return len(known.text if isinstance(known, RenderedText) else known["text"])


def read(submission: Submission) -> Workflow:
    """Return the workflow in a file; raise `SpecErrors` with every fault, and for a kind that does not run here."""
    if is_kubernetes(submission.source):
        raise mismatch(FileKind.KUBERNETES, FileKind.WORKFLOW, submission.file)
    found = read_workflow(
        submission.source,
        submission.file,
        sets=submission.sets,
        set_strings=submission.set_strings,
        rendered=submission.rendered,
    )
    return amended(found, submission.amendment) if submission.amendment else found


def build(workflow: Workflow, pool: Pool) -> CompiledWorkflow:
    """Return a workflow compiled for its pool; raise `SpecErrors` with every fault."""
    lowered = lower(workflow, pool)
    gangs = lowered.gangs
    for change in workflow.changes:
        gangs = tuple(changed_gang(change, gang, pool.topology) or gang for gang in gangs)
    return CompiledWorkflow(workflow, replace(lowered, gangs=gangs), pool)


def rehearse(workflow: Workflow, pool: Pool, files: Mapping[str, bytes], processes: int = DEFAULT_PROCESSES) -> None:
    """Raise `SpecErrors` for every fault that would otherwise appear only when tasks are started.

    `processes` is the number of tasks that run at a time.
    """
    check = pool.traits.submission
    if faults := list(check().faults(workflow, pool, files, processes)) if check else []:
        raise SpecErrors(faults)


def never_fits(built: CompiledWorkflow, cluster: Cluster) -> Iterator[Notice]:
    """Yield warnings of groups that do not fit even the empty pool: they wait until it changes."""
    empty = _empty(cluster, built.pool.topology)
    limit, name = built.pool.gpus.limit, built.pool.name
    for gang in built.lowered.gangs:
        place = built.lowered.group_places.get(gang.name)
        gpus = sum(task.shape.gpus for task in gang.all_tasks() if task.needed)
        if limit is not None and gpus > limit:
            message = f'group "{gang.name}" asks for {count(gpus, "GPU")}, but the limit of pool "{name}" is {limit}'
            yield Notice(Reason.OVER_QUOTA.value, message, place)
        elif empty.shuts_out(gang):
            message = f'group "{gang.name}" does not fit pool "{name}" even when nothing else runs there'
            yield Notice(Reason.NEVER_FITS.value, message, place)


class _Empty:
    """An empty cluster, and a cache of the gangs that fit it, since many are alike."""

    def __init__(self, cluster: Cluster, topology: Topology) -> None:
        self._capacity = Capacity.empty(Domains.of(cluster, topology))
        self._known: dict[object, bool] = {}

    def shuts_out(self, gang: Gang) -> bool:
        """Return whether a gang is proved not to fit."""
        kind = kind_of(gang)
        known = self._known.get(kind)
        if known is None:
            found = place(gang, self._capacity, budget=SIDE_BUDGET)
            known = isinstance(found, NoPlacement) and found.proved
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[kind] = known
        return known


_empty = lru_cache(maxsize=16)(_Empty)


def spec_of(built: CompiledWorkflow, priority: str, settings: Settings) -> Spec:
    """Return the life-cycle spec of a workflow."""
    lowered = built.lowered
    return Spec(
        groups=tuple(
            GroupRules(
                name=team.name,
                needs=tuple(sorted(lowered.needs[team.name])),
                barrier=team.spec.barrier,
                ignore_nonlead_status=team.spec.ignore_nonlead_status,
                queue_timeout_s=_seconds(lowered.queue_timeout),
                exec_timeout_s=_seconds(lowered.exec_timeout),
                tasks=tuple(
                    TaskRules(
                        member.name,
                        lead=member.name == team.lead,
                        exits=tuple(
                            (code, ExitAction(action))
                            for action, listed in by_action(member.spec.exit_actions).items()
                            for code in codes(listed)
                        ),
                    )
                    for member in team.members
                ),
            )
            for team in built.workflow.teams
        ),
        priority=Priority(priority),
        max_reschedules=settings.max_reschedules,
        max_infrastructure_retries=settings.max_infrastructure_retries,
        grace_s=settings.grace_s,
    )


def check_call(submission: Submission, limit: int) -> None:
    """Raise `UsageError` for faults of a submission apart from its file."""
    known = [priority.value for priority in Priority]
    if submission.priority not in known:
        hint = f"Priorities are: {', '.join(known)}. {did_you_mean(submission.priority.upper(), known)}"
        raise UsageError(f'there is no priority "{submission.priority[:80]}"', hint.strip())
    for path in submission.local_files:
        length = len(path.encode("utf-8", "surrogatepass"))
        if length > LONGEST_PATH:
            hint = f"At most {LONGEST_PATH:,} are allowed. Choose shorter names."
            raise UsageError(f"the path {said(path)} of a file has {length:,} bytes", hint)
    size = sum(map(len, submission.local_files.values()))
    if size > limit:
        raise UsageError(
            f"the files of the workflow are too large: {size:,} bytes, at most {limit:,} are allowed",
            "Put large files where tasks can read them, and mount that folder.",
        )
    if submission.client_key is not None and not 0 < len(submission.client_key) <= 200:
        raise UsageError("a client key has 1 to 200 characters", "Use any text that is new for each request.")


def labels_of(workflow: Workflow, submission: Submission) -> dict[str, str]:
    """Return the labels of the file and of the call; raise `UsageError` for those that are not allowed."""
    merged = {**workflow.spec.labels, **submission.labels}
    try:
        return dict(_LABELS.validate_python(merged))
    except ValidationError as error:
        message, hint = next(_label_words(error))
        raise UsageError(f"labels: {message}", hint) from None


def _label_words(error: ValidationError) -> Iterator[tuple[str, str]]:
    for detail in error.errors(include_url=False):
        for each in detail.get("ctx", {}).get("found", ()):
            yield each.message.replace("{field}", "labels"), each.hint
        yield "a label is not text", "A label is a key and a value, both text."


def fingerprint(submission: Submission, pool: str) -> str:
    """Return a value that two submissions share exactly when they request the same.

    `pool` is the one that it goes to, or went to when it was first sent: a call that names no pool requests the same
    again, whichever pool is the default by then.
    """
    said = {
        "file": submission.file,
        "pool": pool,
        "sets": list(submission.sets),
        "set_strings": list(submission.set_strings),
        "priority": submission.priority,
        "labels": dict(submission.labels),
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in submission.local_files.items()},
        "source": hashlib.sha256(submission.source).hexdigest(),
        **({"what_if": asdict(submission.what_if)} if submission.what_if else {}),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _seconds(whole: int | None) -> float | None:
    return None if whole is None else float(whole)
