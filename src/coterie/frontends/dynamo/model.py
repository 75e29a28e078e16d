"""The model of a graph deployment, one for both versions of the API.

Every rule names fields as v1beta1 does, also for a v1alpha1 file, like Dynamo's own admission. The services of a
v1alpha1 file are a mapping without an order, so its components are numbered by name. `origin` maps a path in today's
form to the place in the user's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from coterie.document.located import Path
from coterie.errors import Fault, FieldError, Notice, Reason, field_path
from coterie.frontends.dynamo.settings import DynamoSettings
from coterie.frontends.dynamo.source_paths import Origin, follow
from coterie.frontends.kubernetes.objects import Resource

Version = Literal["v1alpha1", "v1beta1"]
ALPHA: Version = "v1alpha1"
MAIN = "main"
PROVIDER = "nvidia.com/enable-grove"


@dataclass(frozen=True, slots=True)
class Override:
    """A fragment of Grove's own API, and its path in today's form."""

    api_version: str
    target: str | None
    value: Mapping[str, Any]
    path: Path


@dataclass(frozen=True, slots=True)
class Component:
    """One component. `template` is a native pod template; `nodes` is 1 unless each replica spans several."""

    index: int
    name: str
    type: str = ""
    replicas: int = 1
    min_available: int | None = None
    nodes: int = 1
    force_group: bool = False
    pack_domain: str | None = None
    template: Mapping[str, Any] = field(default_factory=dict)
    shared_memory: str = "8Gi"
    runtime_version: str = ""
    override: Override | None = None
    leader_override: Override | None = None
    worker_override: Override | None = None

    @property
    def path(self) -> Path:
        """The path of the component in today's form."""
        return ("spec", "components", self.index)

    @property
    def grouped(self) -> bool:
        """Whether the component becomes a scaling group."""
        return self.nodes > 1 or self.force_group

    @property
    def least(self) -> int:
        """The number of replicas that must be available."""
        return 1 if self.min_available is None else self.min_available

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        """The pod spec of the template."""
        return self.template.get("spec") or {}

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """The containers of the template."""
        return list(self.pod_spec.get("containers") or ())

    @property
    def main(self) -> int | None:
        """The index of the main container."""
        names = [container.get("name") for container in self.containers]
        return names.index(MAIN) if MAIN in names else None

    @property
    def overrides(self) -> Iterator[Override]:
        """All fragments of Grove's API in the component."""
        return (each for each in (self.override, self.leader_override, self.worker_override) if each)


@dataclass(frozen=True, slots=True)
class GraphConstraint:
    """The topology that a graph uses, and the level within which the whole graph is packed, if any."""

    topology: str
    pack_domain: str | None = None


@dataclass(frozen=True, slots=True)
class TransferPolicy:
    """The workers that a cache is sent to; it concerns the router, not the placement."""

    domain: str
    topology: str | None = None
    label: str | None = None
    enforcement: str = "required"
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Unused:
    """A field that Coterie ignores: its name, and its first place in the user's file."""

    name: str
    path: Path
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class GraphDeployment:
    """One DynamoGraphDeployment; `unused` are the fields without effect here."""

    resource: Resource
    version: Version
    components: tuple[Component, ...]
    constraint: GraphConstraint | None = None
    framework: str = ""
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    own_annotations: Mapping[str, str] = field(default_factory=dict)
    env: tuple[Mapping[str, Any], ...] = ()
    policy: TransferPolicy | None = None
    override: Override | None = None
    generation: int | None = None
    unused: tuple[Unused, ...] = ()
    origin: Origin = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.resource.name

    @property
    def namespace(self) -> str:
        """The namespace of the object, empty where none is set."""
        return self.resource.namespace

    @property
    def overrides(self) -> Iterator[Override]:
        """All fragments of Grove's API in the graph."""
        yield from (self.override,) if self.override else ()
        for component in self.components:
            yield from component.overrides

    @property
    def constrained(self) -> bool:
        """Whether the graph constrains any topology in Dynamo's own fields."""
        return self.constraint is not None or any(each.pack_domain is not None for each in self.components)

    def on_grove(self, settings: DynamoSettings) -> bool:
        """Return whether Grove runs the graph, which an annotation can disable."""
        return settings.grove and self.own_annotations.get(PROVIDER, "").strip().lower() != "false"

    def written(self, path: Path) -> Path:
        """Return the place in the user's file of a path of today's form."""
        return follow(self.origin, path)

    def fault(
        self,
        type_: FieldError,
        path: Path,
        message: str,
        hint: str = "",
        *,
        at: Path | None = None,
        code: Reason = Reason.INVALID_SPEC,
    ) -> Fault:
        """Return a located fault for a field of today's form; `at` is the place to point at, if it is another field."""
        written = self.written(path if at is None else at)
        name = field_path(path)
        # The names of services are keys, so a fault of a name is a fault of its key.
        place = self.resource.document.place(written, key=len(written) == 3 and written[1] == "services")
        field_ = "" if name == field_path(written) else name
        return Fault(message, code, hint, place, written, type_, field_)

    def notice(self, code: str, message: str, path: Path = ()) -> Notice:
        """Return a located warning about a field of today's form."""
        written = self.written(path)
        return Notice(code, message, self.resource.document.place(written), written)
