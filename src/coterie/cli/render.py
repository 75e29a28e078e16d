"""`coterie render`: read the workflow, ask the back end, print the manifests."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from coterie.backends.kai.files import MOST_BYTES
from coterie.backends.kai.render import Ask as Wanted
from coterie.backends.kai.render import Rendered
from coterie.backends.kai.render import render as render_kai
from coterie.backends.writing import Manifest, to_json, to_yaml
from coterie.cli.source import Source, collect, read_input, read_pools, shown, warn
from coterie.errors import CoterieError, Fault, SpecErrors, UsageError
from coterie.frontends.config import Config, Pool
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import Workflow, located, read_workflow
from coterie.planning.inputs import Chart, pool_for, read_snapshot, topology_notices
from coterie.sources import Snapshot
from coterie.sources.limits import read_bytes
from coterie.topology.levels import Topology

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of `coterie render` as it was written."""

    file: str
    backend: str
    config: str | None
    pool: str | None
    levels: str | None
    topology: str | None
    cluster: str | None
    sets: tuple[str, ...]
    set_strings: tuple[str, ...]
    namespace: str | None
    groups: tuple[str, ...]
    output: str


def run(ask: Ask) -> None:
    """Render the workflow of a call and print its manifests."""
    source = Source(ask.cluster, ask.config, ask.pool, ask.levels, ask.topology)
    if (ask.file, *source.files).count("-") > 1:
        hint = "Use - for one of FILE, --cluster, --config and --topology."
        raise UsageError("standard input can be read once only", hint)
    rendered = _rendered(ask, source)
    if ask.output == "name":
        for manifest in rendered.manifests:
            typer.echo(_name(manifest))
    else:
        typer.echo((to_json if ask.output == "json" else to_yaml)(rendered.manifests), nl=False)
    warn(rendered.notices)


def _rendered(ask: Ask, source: Source) -> Rendered:
    """Read everything the call names; the faults of all files are reported together."""
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    name = ask.cluster
    snapshot = None if name is None else collect(faults, lambda: read_snapshot(read_input(name), shown(name)))
    workflow = collect(faults, lambda: _workflow(ask))
    if faults or workflow is None:
        raise SpecErrors(faults)
    pool = _pool(ask, config, workflow, levels, snapshot)
    namespace = _namespace(ask, config, pool)
    wanted = Wanted(namespace, snapshot.cluster if snapshot else None, _local_files(ask, workflow), ask.groups)
    rendered = render_kai(workflow, lower(workflow, pool), pool, wanted)
    before = (*(snapshot.notices if snapshot else ()), *topology_notices(config, levels, snapshot, pool))
    return replace(rendered, notices=(*before, *rendered.notices))


def _workflow(ask: Ask) -> Workflow:
    return read_workflow(read_input(ask.file), shown(ask.file), sets=ask.sets, set_strings=ask.set_strings)


def _pool(
    ask: Ask, config: Config | None, workflow: Workflow, levels: Topology | Chart | None, snapshot: Snapshot | None
) -> Pool:
    pool = pool_for(config, ask.pool, workflow.pool, levels, snapshot)
    # A pool that nobody configured is one of the scheduler that the manifests are for.
    return replace(pool, scheduler=ask.backend) if config is None else pool


def _namespace(ask: Ask, config: Config | None, pool: Pool) -> str:
    found = ask.namespace or (config.backends[pool.backend].namespace if config else None) or "default"
    if not _NAMESPACE.fullmatch(found):
        raise UsageError(
            f'"{found}" cannot be the name of a namespace',
            'Use 1 to 63 lower-case letters, digits and "-", beginning and ending with a letter or digit.',
        )
    return found


def _local_files(ask: Ask, workflow: Workflow) -> Mapping[str, bytes]:
    """Read the files that stand beside the workflow; all that cannot be read are reported together."""
    folder = Path.cwd() if ask.file == "-" else Path(ask.file).parent
    found: dict[str, bytes] = {}
    faults: dict[str, Fault] = {}
    for member in (member for team in workflow.teams for member in team.members):
        for number, file in enumerate(member.spec.files):
            name = file.localpath
            if name is None or name in found or name in faults:
                continue
            path = (*member.path, "files", number, "localpath")
            try:
                found[name] = _inside(folder, name)
            except CoterieError as error:
                faults[name] = Fault(f"localpath: {error}", path=path, hint=error.hint)
    if faults:
        raise SpecErrors(located(list(faults.values()), workflow.document))
    return found


def _inside(folder: Path, name: str) -> bytes:
    """Read a file below a folder; a link that leads out of it is refused, for the workflow may be a stranger's."""
    target = folder / name
    try:
        outside = not target.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        outside = False  # reading it says what is wrong
    if outside:
        raise UsageError(f"{name} leads out of the folder of the workflow file", "Copy the file into the folder.")
    return read_bytes(str(target), sys.stdin.buffer, limit=MOST_BYTES)


def _name(manifest: Manifest) -> str:
    group, _, _ = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"].lower()
    return f"{kind}.{group}/{manifest['metadata']['name']}" if group else f"{kind}/{manifest['metadata']['name']}"
