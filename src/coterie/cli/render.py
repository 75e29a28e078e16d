"""`coterie render`: read the file, ask the back end, print the manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import typer

from coterie.backends.kai.files import MOST_BYTES
from coterie.backends.kai.render import Ask as Wanted
from coterie.backends.kai.render import Rendered
from coterie.backends.kai.render import render as render_kai
from coterie.backends.writing import Manifest, to_json, to_yaml
from coterie.cli import render_sets
from coterie.cli.beside import local_files
from coterie.cli.source import Source, collect, read_input, read_pools, read_source, shown, warn
from coterie.errors import Fault, Notice, SpecErrors, UsageError
from coterie.frontends.config import Config, Pool
from coterie.frontends.grove.topology import ClusterTopology
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import Workflow
from coterie.planning.documents import WORKFLOW, Documents, Written, levels_for, prepare, read_documents
from coterie.planning.inputs import (
    Chart,
    all_topologies,
    cluster_topologies,
    drift_notices,
    pool_for,
    topology_notices,
)
from coterie.planning.kai_levels import kai_levels
from coterie.planning.labels import guessed_notices
from coterie.sources import Snapshot
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology

# Kinds that several sets share, in the order in which they are needed.
_FIRST = {"Queue": 0, "Topology": 1}
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
    """Render the file of a call and print its manifests."""
    source = Source(ask.cluster, ask.config, ask.pool, ask.levels, ask.topology)
    if (ask.file, *source.files).count("-") > 1:
        hint = "Use - for one of FILE, --cluster, --config and --topology."
        raise UsageError("standard input can be read once only", hint)
    if ask.namespace is not None and not _NAMESPACE.fullmatch(ask.namespace):
        raise _no_namespace(ask.namespace)
    rendered = _rendered(ask, source)
    if ask.output == "name":
        for manifest in rendered.manifests:
            typer.echo(_name(manifest))
    else:
        typer.echo((to_json if ask.output == "json" else to_yaml)(rendered.manifests), nl=False)
    warn(rendered.notices)


@dataclass(frozen=True, slots=True)
class _Call:
    """All that a call names, read."""

    ask: Ask
    config: Config | None
    levels: Topology | Chart | None
    snapshot: Snapshot | None
    documents: Documents

    @property
    def cluster(self) -> Cluster | None:
        return self.snapshot.cluster if self.snapshot else None

    @property
    def known(self) -> Mapping[str, Topology]:
        """Every ClusterTopology of the call."""
        return all_topologies(self.levels, self.snapshot, self.documents.topologies)

    @property
    def declared(self) -> Mapping[str, ClusterTopology]:
        """The same as objects."""
        return cluster_topologies(self.levels, self.snapshot, self.documents.topologies)

    def pool(self, written: Written) -> Pool:
        """Return the pool of a workload; one that nobody configured is of the scheduler that manifests are for."""
        beside = self.documents.topologies
        kai = kai_levels(self.snapshot) if self.config is None else {}
        levels = levels_for(written, self.levels, self.known, kai)
        pool = pool_for(self.config, self.ask.pool, written.pool, levels, self.snapshot, beside)
        return replace(pool, scheduler=self.ask.backend) if self.config is None else pool

    def topology_notices(self, pool: Pool) -> Iterator[Notice]:
        """Yield what the user should know of where the levels of a pool come from."""
        yield from topology_notices(self.config, self.levels, self.snapshot, pool)
        yield from self.drift_notices(pool)

    def drift_notices(self, pool: Pool) -> Iterator[Notice]:
        """Yield where KAI's own Topology differs from the ClusterTopology of a pool."""
        return drift_notices(self.levels, self.snapshot, self.documents.topologies, pool)

    def namespace(self, pool: Pool, own: str = "") -> str:
        """Return the namespace of a workload's objects; `own` is the one that it names itself."""
        _check_agreement(self.ask, own)
        backend = self.config.backends[pool.backend].namespace if self.config else None
        found = own or self.ask.namespace or backend or "default"
        if not _NAMESPACE.fullmatch(found):
            raise _no_namespace(found)
        return found


def _rendered(ask: Ask, source: Source) -> Rendered:
    """Read everything the call names and render it; the faults of all files are reported together."""
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    name = ask.cluster
    snapshot = None if name is None else collect(faults, lambda: read_source(name))
    documents = collect(faults, lambda: _documents(ask))
    if faults or documents is None:
        raise SpecErrors(faults)
    call = _Call(ask, config, levels, snapshot, documents)
    before = (*(snapshot.notices if snapshot else ()), *documents.notices)
    if ask.backend == "grove":
        rendered = _for_grove(call)
    elif not documents.workloads:
        hint = "Name a file with a workflow, a PodCliqueSet or a DynamoGraphDeployment."
        raise UsageError("there are only topologies in the file, and nothing to render", hint)
    else:
        rendered = _workflow(call) if documents.workloads[0].kind == WORKFLOW else _sets(call)
    return replace(rendered, notices=(*before, *rendered.notices))


def _documents(ask: Ask) -> Documents:
    return read_documents(read_input(ask.file), shown(ask.file), sets=ask.sets, set_strings=ask.set_strings)


def _workflow(call: _Call) -> Rendered:
    """Render a workflow, which is always the only document of its file."""
    (written,) = call.documents.workloads
    workflow = written.content
    if not isinstance(workflow, Workflow):
        raise TypeError(written.kind)
    ask, pool = call.ask, call.pool(written)
    namespace = call.namespace(pool)
    local = local_files(ask.file, workflow, limit=MOST_BYTES)
    wanted = Wanted(namespace, call.cluster, local, ask.groups, topologies=call.declared)
    rendered = render_kai(workflow, lower(workflow, pool), pool, wanted)
    return replace(rendered, notices=(*call.topology_notices(pool), *guessed_notices(pool), *rendered.notices))


def _sets(call: _Call) -> Rendered:
    """Render all sets and graph deployments of a file; what several of them need is written once, and first."""
    faults: list[Fault] = []
    ready = [
        one
        for written in call.documents.workloads
        if (one := collect(faults, lambda written=written: _ready(call, written)))  # type: ignore[misc]
    ]
    if not faults:
        render_sets.check_groups(call.ask.groups, ready)
    groups = call.ask.groups
    chosen = [one for one in ready if not groups or set(groups) & set(one.gangs)]
    declared = call.declared
    rendered = [
        found
        for one in chosen
        if (found := collect(faults, lambda one=one: render_sets.for_kai(one, call.cluster, groups, declared)))  # type: ignore[misc]
    ]
    if faults:
        raise SpecErrors(faults)
    manifests: dict[tuple[str, str, str], Manifest] = {}
    for manifest in (manifest for found in rendered for manifest in found.manifests):
        metadata = manifest["metadata"]
        manifests.setdefault((manifest["kind"], metadata.get("namespace", ""), metadata["name"]), manifest)
    ordered = sorted(manifests.values(), key=lambda manifest: _FIRST.get(manifest["kind"], len(_FIRST)))
    notices = dict.fromkeys(notice for found in rendered for notice in found.notices)
    taken = dict.fromkeys(notice for one in chosen[:1] for notice in call.topology_notices(one.prepared.pool))
    drift = dict.fromkeys(notice for one in chosen[1:] for notice in call.drift_notices(one.prepared.pool))
    guessed = dict.fromkeys(notice for one in chosen for notice in guessed_notices(one.prepared.pool))
    return Rendered(tuple(ordered), (*(taken | drift), *guessed, *notices))


def _ready(call: _Call, written: Written) -> render_sets.Ready:
    pool = call.pool(written)
    namespace = call.namespace(pool, render_sets.own_namespace(written))
    prepared = prepare(written, pool, call.known, configured=call.config is not None)
    return render_sets.Ready(written, prepared, namespace)


def _for_grove(call: _Call) -> Rendered:
    ask = call.ask
    if ask.groups:
        raise UsageError("--group is for KAI: Grove makes the gangs of a set itself", "Leave out --group.")
    for written in call.documents.workloads:
        _check_agreement(ask, render_sets.own_namespace(written))
    return render_sets.for_grove(call.documents, call.known, ask.namespace)


def _check_agreement(ask: Ask, own: str) -> None:
    """Refuse a namespace that is not the one a document names, as kubectl does."""
    if own and ask.namespace not in (None, own):
        message = f'the file names the namespace "{own}", and the call "{ask.namespace}"'
        raise UsageError(message, "Leave out --namespace, or remove metadata.namespace from the file.")


def _no_namespace(name: str) -> UsageError:
    return UsageError(
        f'"{name}" cannot be the name of a namespace',
        'Use 1 to 63 lower-case letters, digits and "-", beginning and ending with a letter or digit.',
    )


def _name(manifest: Manifest) -> str:
    group, _, _ = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"].lower()
    return f"{kind}.{group}/{manifest['metadata']['name']}" if group else f"{kind}/{manifest['metadata']['name']}"
