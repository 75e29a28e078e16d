"""Backends and pools as targets of workloads, read from `coterie.yaml` or made for one call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from coterie.backends.base import registry
from coterie.backends.base.traits import Traits
from coterie.config import pod_template
from coterie.config.model import (
    ALWAYS,
    BackendModel,
    ConfigModel,
    GpuQuotaModel,
    PoolModel,
    PoolTolerationModel,
    WorkspaceModel,
)
from coterie.document.file_kind import FileKind, expect
from coterie.document.located import Document, Path, decode, load
from coterie.document.repair import overlaps, read_repaired
from coterie.document.schema import DocumentModel, in_order, named_fields, valid
from coterie.errors import Fault, Hint, NotFound, Notice, SpecErrors, UsageError, did_you_mean
from coterie.gang.tolerations import with_resource_tolerations
from coterie.gang.tree import Shape, Toleration
from coterie.topology.levels import Topology, level_faults

Selector = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Backend:
    """A cluster, or the embedded one, and its scheduler; `task_accounts` are those of tasks on this machine."""

    name: str
    scheduler: str
    cluster: str | None = None
    context: str | None = None
    namespace: str | None = None
    task_accounts: str | None = None

    @property
    def traits(self) -> Traits:
        """The traits of its scheduler."""
        return registry.traits(self.scheduler)

    @property
    def driven(self) -> bool:
        """Whether a service can run workflows on it; it cannot on a Kubernetes cluster that only a file describes."""
        only_described = self.traits.kubernetes and self.cluster is not None and self.context is None
        return self.traits.driven and not only_described


@dataclass(frozen=True, slots=True)
class Platform:
    """A kind of node in a pool."""

    node_selector: Selector = ()
    tolerations: tuple[Toleration, ...] = ()


NO_PLATFORM = Platform()


@dataclass(frozen=True, slots=True)
class GpuQuota:
    """The GPU quota of a pool; None is no guarantee and no limit."""

    guarantee: int | None = None
    limit: int | None = None
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Workspace:
    """A PersistentVolumeClaim that the pods of a pool share, and the folder of its volume to use.

    `removal_image` is the image of pods that remove the folders of deleted workflows, empty for that of a task, which
    sees and empties only the folder of its workflow.
    """

    claim: str
    folder: str
    removal_image: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A target of submissions; a pool that names a ClusterTopology has no levels until `with_topology` adds them.

    `kai_topology` is the KAI Topology of the cluster that the levels were read from, empty where there is none.
    `pod_template` is merged into each pod; its sidecars take `sidecar_requests` beside what the task requests.
    """

    name: str
    backend: str
    scheduler: str
    node_selector: Selector = ()
    nvlink: bool = False
    nvlink_always: bool = False  # every group with GPUs gets a ComputeDomain
    topology: Topology = field(default_factory=Topology)
    guessed: bool = False  # its levels are well-known node labels, because the configuration names none
    topology_name: str | None = None
    kai_topology: str = ""
    tolerations: tuple[Toleration, ...] = ()
    resource_tolerations: bool = True
    platforms: Mapping[str, Platform] = field(default_factory=lambda: MappingProxyType({}))
    gpus: GpuQuota = GpuQuota()
    max_exec_timeout: int | None = None
    max_queue_timeout: int | None = None
    rescue_after: int | None = None
    namespace: str = ""  # that of its backend, empty where it names none
    pod_template: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    sidecar_requests: tuple[tuple[str, int], ...] = ()
    workspace: Workspace | None = None

    @property
    def traits(self) -> Traits:
        """The traits of its scheduler."""
        return registry.traits(self.scheduler)

    @staticmethod
    def for_levels(topology: Topology, name: str = "default") -> Pool:
        """Return a pool for one call that has no configuration."""
        return Pool(name, backend=registry.EMBEDDED, scheduler=registry.EMBEDDED, topology=topology)

    def with_topology(self, topology: Topology) -> Pool:
        """Return the pool with the levels of the ClusterTopology that it names."""
        return replace(self, topology=topology)

    def admitted(self, shape: Shape, platform: Platform = NO_PLATFORM) -> Shape:
        """Return the shape of a task in the pool: restricted to its nodes, with all tolerations that its pods get."""
        selector = {**dict(self.node_selector), **dict(platform.node_selector), **dict(shape.selector)}
        tolerations = dict.fromkeys((*self.tolerations, *platform.tolerations, *shape.tolerations))
        own = replace(shape, selector=tuple(sorted(selector.items())), tolerations=tuple(tolerations))
        return with_resource_tolerations(own) if self.resource_tolerations else own


class UnknownPool(NotFound):
    """An unknown pool; `written` is true if the workflow names it and not the call."""

    def __init__(self, name: str, file: str, hint: str, *, written: bool) -> None:
        source = ", which the workflow names" if written else ""
        super().__init__(f'there is no pool "{name}"{source} in {file}', hint)
        self.written = written


@dataclass(frozen=True, slots=True)
class Config:
    """A validated configuration."""

    backends: Mapping[str, Backend]
    pools: Mapping[str, Pool]
    file: str
    notices: tuple[Notice, ...] = ()


def read_config(data: bytes, file: str) -> Config:
    """Return the configuration in a file; raise `SpecErrors` with every fault."""
    expect(FileKind.CONFIGURATION, data, file)
    document = load(decode(data, file), file)
    own, repaired = read_repaired(document.data, lambda data: valid(ConfigModel, data, document, _advice))
    if repaired is None:
        raise SpecErrors(own)
    model = repaired.content
    further = [
        fault.at(document.place(fault.path))
        for found in (
            *(_backend_faults(name, backend) for name, backend in model.backends.items()),
            _account_faults(model.backends),
            *(_pool_faults(name, pool, model.backends) for name, pool in model.pools.items()),
        )
        for fault in found
        if not _follows_from(fault, repaired.gone)
    ]
    if faults := sorted((*own, *further), key=in_order) if own else further:
        raise SpecErrors(faults)
    backends = {
        name: Backend(name, found.scheduler, found.cluster, found.context, found.namespace, found.task_accounts)
        for name, found in model.backends.items()
    }
    pools = {name: _pool(name, pool, backends) for name, pool in model.pools.items()}
    return Config(MappingProxyType(backends), MappingProxyType(pools), file, tuple(_notices(model.pools, document)))


def parse_levels(text: str) -> Topology:
    """Return the topology of `zone=LABEL,rack=LABEL`, coarsest first; raise `SpecErrors` for faults."""
    pairs: list[tuple[str, str]] = []
    faults: list[Fault] = []
    for part in text.split(","):
        name, equals, label = (word.strip() for word in part.partition("="))
        if equals:
            pairs.append((name, label))
        else:
            hint = "Example: --levels zone=topology.kubernetes.io/zone,rack=topology.kubernetes.io/rack"
            faults.append(Fault(f'--levels: "{part}" is not NAME=LABEL', hint=hint))
    faults.extend(
        replace(fault, message=f"--levels: {fault.message}", path=()) for fault in level_faults(pairs) if pairs
    )
    if faults:
        raise SpecErrors(faults)
    return Topology.of(*pairs)


def choose_pool(config: Config, name: str | None = None, workflow_pool: str | None = None) -> Pool:
    """Return the pool that the call names, else the one the workflow names, else the only one."""
    known = ", ".join(config.pools)
    wanted = name or workflow_pool
    if wanted is not None:
        if (found := config.pools.get(wanted)) is None:
            hint = f"Pools are: {known}. {did_you_mean(wanted, config.pools)}".strip()
            raise UnknownPool(wanted, config.file, hint, written=not name)
        return found
    if len(config.pools) > 1:
        raise UsageError(
            f"{config.file} has {len(config.pools)} pools, so one must be named",
            Hint(f"Add --pool with one of: {known}.", "--pool"),
        )
    return next(iter(config.pools.values()))


def _advice(model: type[DocumentModel] | None, word: str) -> str:
    if found := pod_template.advice(model, word):
        return found
    folded = word.replace("_", "").casefold()
    if folded in ("topologykeys", "topologykey"):
        if model is PoolModel:
            return 'Did you mean "topology_keys"?'
        return "topology_keys belongs to the pool itself: pools.NAME.topology_keys."
    if model is not PoolModel and model is not BackendModel and word in named_fields(PoolModel):
        return f"{word} belongs to a pool: pools.NAME.{word}."
    if model is PoolModel and word in named_fields(BackendModel):
        return f"{word} belongs to a backend: backends.NAME.{word}."
    return "The limit is called limit here." if model is GpuQuotaModel and word == "maximum" else ""


def _follows_from(fault: Fault, gone: Collection[Path]) -> bool:
    """Return whether a fault concerns a repaired value; without its backend, a pool's faults are not reliable."""
    lost = [path for path in gone if path[0] == "backends"]
    if fault.path[-1] == "backend":  # the name of a backend with a faulty field is known
        lost = [path for path in lost if len(path) <= 2]
    unreliable = lost and fault.path[-1] in ("backend", "topology", "topology_keys", "nvlink")
    return overlaps(fault.path, gone) or bool(unreliable)


def _backend_faults(name: str, backend: BackendModel) -> Iterator[Fault]:
    if registry.traits(backend.scheduler).embedded:
        for key, value in (("context", backend.context), ("namespace", backend.namespace)):
            if value is not None:
                yield Fault(
                    f'backend "{name}" is local and has no {key}',
                    path=("backends", name, key),
                    hint="Remove the line, or give the backend the scheduler of a Kubernetes cluster.",
                )


def _account_faults(backends: Mapping[str, BackendModel]) -> Iterator[Fault]:
    """Yield the faults of accounts: only this machine has them, and all local backends are this machine."""
    first: str | None = None
    for name, backend in backends.items():
        if backend.task_accounts is None:
            continue
        path = ("backends", name, "task_accounts")
        if not registry.traits(backend.scheduler).embedded:
            hint = "Remove the line: pods run under the accounts of their images."
            yield Fault(f'task_accounts apply only to local backends, and "{name}" is not one', path=path, hint=hint)
        elif first is not None and backends[first].task_accounts != backend.task_accounts:
            hint = "All local backends run on the service's machine: give them the same accounts, or only one of them."
            yield Fault(f'backends "{first}" and "{name}" have different task_accounts', path=path, hint=hint)
        else:
            first = name


def _pool_faults(name: str, pool: PoolModel, backends: Mapping[str, BackendModel]) -> Iterator[Fault]:
    path = ("pools", name)
    known = ", ".join(backends)
    backend = _backend_of(pool, backends)
    if backend is None:
        message = f'pool "{name}" names no backend' if pool.backend is None else f'there is no backend "{pool.backend}"'
        hint = f"Backends are: {known}. {did_you_mean(pool.backend or '', backends)}".strip()
        yield Fault(message, path=(*path, "backend"), hint=hint)
    if pool.topology_keys is not None:
        pairs = [(level.key, level.label) for level in pool.topology_keys]
        for fault in level_faults(pairs):
            yield replace(fault, path=(*path, "topology_keys", *fault.path))
    if pool.topology_keys is not None and pool.topology is not None:
        yield Fault(
            f'pool "{name}" has both topology and topology_keys', path=(*path, "topology"), hint="Keep one of the two."
        )
    if backend is not None:
        yield from _unsupported(name, pool, backends[backend].scheduler)
    quota = pool.gpus
    if quota and quota.guarantee is not None and quota.limit is not None and quota.guarantee > quota.limit:
        yield Fault(
            f'pool "{name}" guarantees {quota.guarantee} GPUs but limits itself to {quota.limit}',
            path=(*path, "gpus", "guarantee"),
            hint="The guarantee must not be larger than the limit.",
        )


def _unsupported(name: str, pool: PoolModel, scheduler: str) -> Iterator[Fault]:
    traits = registry.traits(scheduler)
    for key in ("topology_keys", "topology"):
        if getattr(pool, key) is not None and not traits.topology:
            able = registry.schedulers(lambda one: one.topology)
            yield Fault(
                f'pool "{name}" has {key}, but its scheduler "{scheduler}" cannot honour topology',
                path=("pools", name, key),
                hint=f"Use a backend with one of these schedulers: {', '.join(able)}.",
            )
    for key in ("pod_template", "workspace"):
        if getattr(pool, key) is not None and not traits.kubernetes:
            yield Fault(
                f'pool "{name}" has {key}, but its tasks run as processes, not as pods',
                path=("pools", name, key),
                hint="Remove it, or use a backend with the scheduler of a Kubernetes cluster.",
            )
    if pool.nvlink and not traits.compute_domains:
        able = registry.schedulers(lambda one: one.compute_domains)
        yield Fault(
            f'pool "{name}" has nvlink, but its scheduler "{scheduler}" has no ComputeDomain support',
            path=("pools", name, "nvlink"),
            hint=f"Use a backend with one of these schedulers: {', '.join(able)}.",
        )


def _backend_of(pool: PoolModel, backends: Mapping[str, object]) -> str | None:
    if pool.backend is not None:
        return pool.backend if pool.backend in backends else None
    return next(iter(backends)) if len(backends) == 1 else None


def _pool(name: str, model: PoolModel, backends: Mapping[str, Backend]) -> Pool:
    backend = backends[_backend_of(model, backends) or ""]
    quota = model.gpus or GpuQuotaModel()
    return Pool(
        name=name,
        backend=backend.name,
        scheduler=backend.scheduler,
        node_selector=tuple(sorted(model.node_selector.items())),
        nvlink=bool(model.nvlink),
        nvlink_always=model.nvlink == ALWAYS,
        topology=Topology.of(*((level.key, level.label) for level in model.topology_keys or ())),
        topology_name=model.topology,
        tolerations=(*_tolerations(model.tolerations), *pod_template.template_tolerations(model.pod_template)),
        resource_tolerations=model.resource_tolerations,
        platforms=MappingProxyType(
            {
                key: Platform(tuple(sorted(found.node_selector.items())), _tolerations(found.tolerations))
                for key, found in model.platforms.items()
            }
        ),
        gpus=GpuQuota(quota.guarantee, quota.limit, quota.weight),
        max_exec_timeout=model.max_exec_timeout,
        max_queue_timeout=model.max_queue_timeout,
        rescue_after=model.rescue_after,
        namespace=backend.namespace or "",
        pod_template=MappingProxyType(pod_template.template_data(model.pod_template)),
        workspace=_workspace(model.workspace),
        sidecar_requests=pod_template.sidecar_requests(model.pod_template),
    )


def _workspace(model: WorkspaceModel | None) -> Workspace | None:
    return Workspace(model.claim, model.folder, model.removal_image) if model is not None else None


def _tolerations(found: Sequence[PoolTolerationModel]) -> tuple[Toleration, ...]:
    return tuple(Toleration(each.key, each.operator, each.value, each.effect) for each in found)


def _notices(pools: Mapping[str, PoolModel], document: Document) -> Iterator[Notice]:
    for name, pool in pools.items():
        if pool.gpus is None:
            continue
        unset = [key for key in named_fields(GpuQuotaModel) if key not in pool.gpus.model_fields_set]
        if unset:
            path = ("pools", name, "gpus")
            meaning = {"guarantee": "nothing is guaranteed", "limit": "there is no limit", "weight": "its weight is 1"}
            words = " and ".join(meaning[key] for key in unset)
            yield Notice("QuotaIncomplete", f'pool "{name}": {words}', document.place(path, key=True), path)
