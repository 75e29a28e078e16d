"""`coterie render`: read the files, call the backend, print the manifests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import typer

from coterie.backends.grove.tolerations import tolerant
from coterie.backends.kai.manifests.render import RenderedManifests, RenderRequest
from coterie.backends.kai.manifests.render import render as render_kai
from coterie.backends.kai.manifests.task_files import MOST_BYTES
from coterie.backends.shared.manifest_text import Manifest, to_json, to_yaml
from coterie.cli.commands.render import RenderOptions
from coterie.cli.handlers import render_sets
from coterie.cli.inputs.companion_files import local_files
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.source import (
    backend_cluster,
    collect,
    named_files,
    read_input,
    read_pools,
    read_source,
    shown,
    warn,
)
from coterie.config.configuration import Config, Pool
from coterie.errors import Fault, NotFound, Notice, SpecErrors, Unavailable, UsageError, did_you_mean
from coterie.frontends.grove.topology import ClusterTopology
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import Workflow
from coterie.inspection.labels import guessed_notices
from coterie.kube.kubeconfig import NoKubeconfig
from coterie.planning.inputs import (
    TopologyChoice,
    all_topologies,
    cluster_topologies,
    drift_notices,
    pool_for,
    topology_notices,
)
from coterie.planning.load import WORKFLOW, Documents, WrittenWorkload, levels_for, prepare, read_documents
from coterie.planning.snapshot_levels import kai_levels
from coterie.sources import Snapshot
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology

# Kinds that several sets share, in the order in which they are needed.
_FIRST = {"Queue": 0, "Topology": 1}
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def run(options: RenderOptions) -> None:
    """Render the files of a call and print their manifests."""
    source = options.source
    if (*options.files, *named_files(source)).count("-") > 1:
        hint = "Use - for one of FILE, --cluster, --config and --topology."
        raise UsageError("standard input can be read only once", hint)
    if options.namespace is not None and not _NAMESPACE.fullmatch(options.namespace):
        raise _no_namespace(options.namespace)
    rendered = _rendered(options, source)
    if options.output == "name":
        for manifest in rendered.manifests:
            typer.echo(_name(manifest))
    else:
        typer.echo((to_json if options.output == "json" else to_yaml)(rendered.manifests), nl=False)
    warn(rendered.notices)


@dataclass(frozen=True, slots=True)
class _Call:
    """All inputs of a call; `homes` has the file of each workload."""

    options: RenderOptions
    config: Config | None
    levels: Topology | TopologyChoice | None
    snapshot: Snapshot | None
    documents: Documents
    homes: tuple[str, ...]

    @property
    def cluster(self) -> Cluster | None:
        return self.snapshot.cluster if self.snapshot else None

    @property
    def known(self) -> Mapping[str, Topology]:
        """Every ClusterTopology of the call."""
        return all_topologies(self.levels, self.snapshot, self.documents.topologies)

    @property
    def declared(self) -> Mapping[str, ClusterTopology]:
        """The ClusterTopologies of the call as objects."""
        return cluster_topologies(self.levels, self.snapshot, self.documents.topologies)

    def pool(self, written: WrittenWorkload) -> Pool:
        """Return the pool of a workload; an unconfigured one has the scheduler that the manifests are for."""
        beside = self.documents.topologies
        kai = kai_levels(self.snapshot) if self.config is None else {}
        levels = levels_for(written, self.levels, self.known, kai)
        pool = pool_for(self.config, self.options.pools.pool, written.pool, levels, self.snapshot, beside)
        return replace(pool, scheduler=self.options.backend) if self.config is None else pool

    def topology_notices(self, pool: Pool) -> Iterator[Notice]:
        """Yield notices about the source of a pool's levels."""
        yield from topology_notices(self.config, self.levels, self.snapshot, pool)
        yield from self.drift_notices(pool)

    def drift_notices(self, pool: Pool) -> Iterator[Notice]:
        """Yield the differences between KAI's own Topology and the ClusterTopology of a pool."""
        return drift_notices(self.levels, self.snapshot, self.documents.topologies, pool)

    def namespace(self, pool: Pool, own: str = "") -> str:
        """Return the namespace of a workload's objects; `own` is the one that it names itself."""
        _check_agreement(self.options, own)
        backend = self.config.backends[pool.backend].namespace if self.config else None
        found = own or self.options.namespace or backend or "default"
        if not _NAMESPACE.fullmatch(found):
            raise _no_namespace(found)
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """A valid workload of the call: the names of its gangs, its pool, and its renderer."""

    gangs: tuple[str, ...]
    pool: Pool
    write: Callable[[Sequence[str]], RenderedManifests]


def _rendered(options: RenderOptions, source: ClusterOptions) -> RenderedManifests:
    """Render all inputs of the call; the faults of all files are reported together."""
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    documents, homes = Documents(()), []
    for file in options.files:
        found = collect(faults, lambda file=file: _documents(options, file))  # type: ignore[misc]
        if found is not None:
            homes += [file] * len(found.workloads)
            documents = Documents(
                (*documents.workloads, *found.workloads),
                documents.topologies | found.topologies,
                (*documents.notices, *found.notices),
            )
    workflow_pool = documents.workloads[0].pool if documents.workloads else None
    snapshot, unread = _snapshot(faults, source, config, workflow_pool)
    if faults:
        raise SpecErrors(faults)
    call = _Call(options, config, levels, snapshot, documents, tuple(homes))
    before = (*(snapshot.notices if snapshot else ()), *unread, *documents.notices)
    if options.backend == "grove":
        rendered = _for_grove(call)
    elif not documents.workloads:
        hint = "Name a file with a workflow, a PodCliqueSet or a DynamoGraphDeployment."
        where = "the file" if len(options.files) == 1 else "the files"
        raise UsageError(f"there are only topologies in {where}, and nothing to render", hint)
    else:
        rendered = _for_kai(call)
    return replace(rendered, notices=(*before, *rendered.notices))


def _documents(options: RenderOptions, file: str) -> Documents:
    return read_documents(
        read_input(file), shown(file), sets=options.template.sets, set_strings=options.template.set_strings
    )


def _snapshot(
    faults: list[Fault], source: ClusterOptions, config: Config | None, workflow_pool: str | None
) -> tuple[Snapshot | None, tuple[Notice, ...]]:
    """Return the named cluster, or that of the pool; manifests can be written without the latter."""
    if (name := source.cluster) is not None:
        return collect(faults, lambda: read_source(name)), ()
    if config is None or faults:
        return None, ()
    try:
        own = backend_cluster(source, config, workflow_pool)
    except (NotFound, UsageError):
        return None, ()  # there is no such pool, which is reported later, or its backend names no cluster
    try:
        return collect(faults, lambda: read_source(own)), ()
    except (Unavailable, NoKubeconfig) as error:
        message = f"the cluster of the pool, {own}, was not read, so nothing is known about its nodes and pods: {error}"
        return None, (Notice("ClusterUnread", message),)


def _for_kai(call: _Call) -> RenderedManifests:
    """Render all workloads of the files; shared objects are written once, and first."""
    faults: list[Fault] = []
    parts = [
        part
        for file, written in zip(call.homes, call.documents.workloads, strict=True)
        if (part := collect(faults, lambda file=file, written=written: _part(call, file, written)))  # type: ignore[misc]
    ]
    groups = call.options.groups
    if not faults:
        _check_groups(call, parts)
    chosen = [(part, [name for name in groups if name in part.gangs]) for part in parts]
    chosen = [(part, own) for part, own in chosen if own or not groups]
    rendered = [
        found
        for part, own in chosen
        if (found := collect(faults, lambda part=part, own=own: part.write(own)))  # type: ignore[misc]
    ]
    if faults:
        raise SpecErrors(faults)
    pools = [part.pool for part, _ in chosen]
    notices = dict.fromkeys(
        (
            *(notice for pool in pools[:1] for notice in call.topology_notices(pool)),
            *(notice for pool in pools[1:] for notice in call.drift_notices(pool)),
            *(notice for pool in pools for notice in guessed_notices(pool)),
            *(notice for found in rendered for notice in found.notices),
        )
    )
    return RenderedManifests(tuple(_joined(rendered)), tuple(notices))


def _joined(rendered: Sequence[RenderedManifests]) -> list[Manifest]:
    """Return the manifests of several workloads, with shared ones once; raise where two claim the same name."""
    manifests: dict[tuple[str, str, str], Manifest] = {}
    for manifest in (manifest for found in rendered for manifest in found.manifests):
        metadata = manifest["metadata"]
        key = manifest["kind"], metadata.get("namespace", ""), metadata["name"]
        if manifests.setdefault(key, manifest) != manifest:
            raise UsageError(
                f"two workloads make the same {_name(manifest)}",
                "Workloads of one name in one namespace are the same to the cluster: rename one of them.",
            )
    return sorted(manifests.values(), key=lambda manifest: _FIRST.get(manifest["kind"], len(_FIRST)))


def _part(call: _Call, file: str, written: WrittenWorkload) -> _Part:
    pool = call.pool(written)
    if not isinstance(written.content, Workflow):
        namespace = call.namespace(pool, render_sets.own_namespace(written))
        prepared = prepare(written, pool, call.known, configured=call.config is not None)
        ready = render_sets.RenderableSet(written, prepared, namespace)
        return _Part(
            ready.gangs, prepared.pool, lambda groups: render_sets.for_kai(ready, call.cluster, groups, call.declared)
        )
    workflow, namespace = written.content, call.namespace(pool)
    files, lowered = local_files(file, workflow, limit=MOST_BYTES), lower(workflow, pool)
    return _Part(
        tuple(gang.name for gang in lowered.gangs),
        pool,
        lambda groups: render_kai(
            workflow, lowered, pool, RenderRequest(namespace, call.cluster, files, groups, topologies=call.declared)
        ),
    )


def _check_groups(call: _Call, parts: Sequence[_Part]) -> None:
    """Raise `NotFound` for a group or gang that none of the workloads has."""
    known = [name for part in parts for name in part.gangs]
    kind = "group" if all(each.kind == WORKFLOW for each in call.documents.workloads) else "gang"
    where = "the file" if len(call.options.files) == 1 else "the files"
    for name in call.options.groups:
        if name not in known:
            listed = ", ".join(known[:10]) + (" …" if len(known) > 10 else "")
            hint = did_you_mean(name, known) or f"Known: {listed}"
            raise NotFound(f'there is no {kind} "{name}" in {where}', hint)


def _for_grove(call: _Call) -> RenderedManifests:
    options = call.options
    if options.groups:
        raise UsageError("--group is for KAI: Grove makes the gangs of a set itself", "Leave out --group.")
    for written in call.documents.workloads:
        _check_agreement(options, render_sets.own_namespace(written))
    rendered = render_sets.for_grove(call.documents, call.known, options.namespace)
    return replace(rendered, manifests=tuple(map(tolerant, rendered.manifests))) if _tolerates(call) else rendered


def _tolerates(call: _Call) -> bool:
    """Return whether pods tolerate the taints of resources they request; Grove needs no pool, so there may be many."""
    pools = call.config.pools if call.config else {}
    own = pools.get(call.options.pools.pool or "")
    return all(pool.resource_tolerations for pool in ([own] if own else pools.values()))


def _check_agreement(options: RenderOptions, own: str) -> None:
    """Refuse a namespace that differs from the one a document names, as kubectl does."""
    if own and options.namespace not in (None, own):
        message = f'the file names the namespace "{own}", and --namespace is "{options.namespace}"'
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
