"""What `coterie run` runs, and on what: its options become a submission, and pools with their nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from coterie.cli.beside import local_files
from coterie.cli.source import Source, collect, read_cluster, read_input, read_pools, shown, warn
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.frontends.config import Backend, Config, Pool
from coterie.frontends.workflow.read import Workflow
from coterie.planning.inputs import pool_for, topology_notices
from coterie.service.building import read
from coterie.service.settings import DEFAULT_FILES, Given, Submission
from coterie.sources import Snapshot

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Call:
    """The options that say what runs where, as they were written."""

    file: str
    source: Source
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    priority: str = "NORMAL"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workflow that is ready to be submitted, and where to: a configuration file, or what the call gave."""

    submission: Submission
    config: Path | None = None
    given: Given | None = None


def read_submission(
    call: Call, *, pool: str | None, labels: dict[str, str] | None = None, key: str | None = None
) -> tuple[Submission, Workflow]:
    """Read the workflow of a call with the files beside it; raise `SpecErrors` with every fault."""
    submission = Submission(
        source=read_input(call.file),
        file=shown(call.file),
        pool=pool,
        sets=call.sets,
        set_strings=call.set_strings,
        priority=call.priority,
        labels=labels or {},
        client_key=key,
    )
    workflow = read(submission)
    return replace(submission, local_files=local_files(call.file, workflow, limit=DEFAULT_FILES)), workflow


def prepare(call: Call) -> Prepared:
    """Read everything that a call of `coterie run` names; faults of all files are reported together."""
    source = call.source
    if (call.file, *source.files).count("-") > 1:
        raise UsageError("standard input can be read once only", "Use - for FILE or for --cluster, not for both.")
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    found = collect(faults, lambda: read_submission(call, pool=source.pool))
    wished = found[1].pool if found else None
    snapshot = None
    changed = source.levels is not None or source.topology is not None
    if source.cluster or (config and found and changed):
        snapshot = read_cluster(faults, source, config, wished)
    if faults or found is None:
        raise SpecErrors(faults)
    submission, workflow = found
    if config is not None and snapshot is None:
        warn(config.notices)
        return Prepared(submission, config=Path(source.config or ""))
    pool = pool_for(config, source.pool, workflow.pool, levels, snapshot)
    if snapshot is not None:
        warn((*snapshot.notices, *topology_notices(config, levels, snapshot, pool)))
    return Prepared(replace(submission, pool=pool.name), given=_given(pool, snapshot, source))


def _given(pool: Pool, snapshot: Snapshot | None, source: Source) -> Given:
    """Return a configuration of this one pool, whose backend is this machine in the guise of the nodes given."""
    here = replace(pool, backend=LOCAL, scheduler=LOCAL)
    config = Config({LOCAL: Backend(LOCAL, LOCAL)}, {pool.name: here}, source.config or "the call")
    return Given(config, {} if snapshot is None else {LOCAL: snapshot})
