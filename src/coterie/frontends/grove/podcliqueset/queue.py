"""The scheduler and the queue of a PodCliqueSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError
from coterie.frontends.grove.podcliqueset.model import QUEUE, PodCliqueSet
from coterie.frontends.grove.podcliqueset.settings import WITHOUT_TOPOLOGY, GroveSettings
from coterie.frontends.grove.topology import KAI
from coterie.frontends.kubernetes.objects import field_fault


def scheduler_of(pcs: PodCliqueSet, settings: GroveSettings) -> str:
    """Return the scheduler of the set's pods, which all name the same one."""
    return (pcs.cliques[0].scheduler if pcs.cliques else "") or settings.default_scheduler


def resolve_queue(pcs: PodCliqueSet) -> str:
    """Return KAI's queue: of the set, else the only one of its cliques; empty where none or several are named."""
    found = dict.fromkeys(name for _, name in _named(pcs))
    return next(iter(found)) if len(found) == 1 else ""


def scheduler_faults(pcs: PodCliqueSet, settings: GroveSettings) -> Iterator[Fault]:
    """Yield the reasons why the scheduler would reject the set; its API names the whole spec."""
    scheduler = scheduler_of(pcs, settings)
    if scheduler in WITHOUT_TOPOLOGY and (first := next(pcs.constraints(), None)) is not None:
        message = f"the scheduler {said(scheduler)} does not support topology constraints"
        yield field_fault(FieldError.INVALID, first.path, message, f"Use {KAI}, or remove the constraints.", "spec")
    if scheduler != KAI:
        return
    named = list(_named(pcs))
    for path, name in named[1:]:
        if name != named[0][1]:
            message = f"the set names two queues, {said(named[0][1])} and {said(name)}"
            yield field_fault(FieldError.INVALID, path, message, "Name one queue, best on the set itself.", "spec")
            break
    if not named and settings.strict:
        message, hint = no_queue()
        yield field_fault(FieldError.INVALID, ("metadata", "name"), message, hint, "spec")


def no_queue() -> tuple[str, str]:
    """Return the fault and the hint for a set that names no queue."""
    return "KAI needs a queue, and the set names none", f"Give it the label {QUEUE}."


def _named(pcs: PodCliqueSet) -> Iterator[tuple[Path, str]]:
    """Yield every named queue with its path: on the set first, then on its cliques; a label wins."""
    yield from _on(pcs.labels, pcs.annotations, ("metadata",))
    for clique in pcs.cliques:
        yield from _on(clique.labels, clique.annotations, clique.path)


def _on(labels: Mapping[str, str], annotations: Mapping[str, str], owner: Path) -> Iterator[tuple[Path, str]]:
    for field, found in (("labels", labels), ("annotations", annotations)):
        if found.get(QUEUE):
            yield (*owner, field, QUEUE), found[QUEUE]
            return
