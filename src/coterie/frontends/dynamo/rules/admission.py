"""The admission rules of a graph deployment, and its warnings.

`topologies` are those known by name; None means that they are not known: then the rules that need them are skipped, and
a warning says so. Faults name fields as v1beta1 does and point at the user's own text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import in_order
from coterie.errors import Fault, FieldError, Notice, Reason
from coterie.frontends.dynamo.manifest import MOST_COMPONENTS
from coterie.frontends.dynamo.model import ALPHA, MAIN, PROVIDER, Component, GraphDeployment
from coterie.frontends.dynamo.names import BUDGET, clique_names, set_name, share
from coterie.frontends.dynamo.rules.overrides import override_faults
from coterie.frontends.dynamo.rules.topology import live_faults, needs_topologies, shape_faults
from coterie.frontends.dynamo.rules.update import change_faults
from coterie.frontends.dynamo.settings import DEFAULTS, DynamoSettings
from coterie.frontends.kubernetes.pod_affinity import UNSUPPORTED_HINT
from coterie.topology.levels import Topology

Topologies = Mapping[str, Topology] | None

_VERSIONED = re.compile(
    r"v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z.-]+)?"
)


def create_faults(graph: GraphDeployment, topologies: Topologies, settings: DynamoSettings = DEFAULTS) -> list[Fault]:
    """Return every fault that forbids the creation of a graph deployment."""
    found = [*_general(graph, settings), *live_faults(graph, topologies, settings)]
    if settings.strict:
        found += (_runtime_fault(graph, component) for component in _unversioned(graph))
    return sorted(found, key=in_order)


def update_faults(
    old: GraphDeployment, new: GraphDeployment, topologies: Topologies, settings: DynamoSettings = DEFAULTS
) -> list[Fault]:
    """Return every fault that forbids the update of a graph deployment to a new form.

    Topologies are checked again only while the spec has never changed since its creation, as in Dynamo.
    """
    found = [*_general(new, settings), *change_faults(old, new)]
    if new.generation is not None and new.generation <= 1 and old.resource.get("spec") == new.resource.get("spec"):
        found += live_faults(new, topologies, settings)
    if settings.strict:
        before = {component.name: _image(component) for component in old.components}
        changed = (each for each in _unversioned(new) if before.get(each.name) != _image(each))
        found += (_runtime_fault(new, component) for component in changed)
    return sorted(found, key=in_order)


def planning_faults(graph: GraphDeployment, settings: DynamoSettings = DEFAULTS) -> list[Fault]:
    """Return the faults of an allowed graph that would make its placement wrong."""
    found = [
        Fault(
            f"{each.name} is not supported by a plan: {each.blocks}",
            Reason.UNSUPPORTED,
            UNSUPPORTED_HINT,
            place=graph.resource.document.place(each.path, key=True),
            path=each.path,
        )
        for each in graph.unused
        if each.blocks
    ]
    if not graph.on_grove(settings):
        message = "without Grove the pods of the graph are placed one by one, and no constraint holds"
        hint = f'Remove the annotation {PROVIDER}: "false".' if settings.grove else "Grove is needed for topologies."
        path: Path = ("metadata", "annotations", PROVIDER)
        found.append(Fault(message, hint=hint, place=graph.resource.document.place(path), path=path))
    if graph.components and not any(component.replicas for component in graph.components):
        path = graph.written((*graph.components[0].path, "replicas"))
        message = "every component has 0 replicas, so there is nothing to place"
        hint = "Give a component that is to run at least one replica."
        found.append(Fault(message, hint=hint, place=graph.resource.document.place(path), path=path))
    return sorted(found, key=in_order)


def warnings(graph: GraphDeployment, topologies: Topologies, settings: DynamoSettings = DEFAULTS) -> list[Notice]:
    """Return the warnings about a graph deployment."""
    return list(_warnings(graph, topologies, settings))


def _general(graph: GraphDeployment, settings: DynamoSettings) -> Iterator[Fault]:
    yield from _names(graph, settings)
    for component in graph.components:
        yield from _replicas(graph, component, settings)
        yield from _main_container(graph, component)
    if graph.priority_class and not graph.on_grove(settings):
        yield graph.fault(
            FieldError.FORBIDDEN, ("spec", "priorityClassName"), "priorityClassName needs Grove", "Remove the line."
        )
    yield from shape_faults(graph, settings)
    yield from override_faults(graph, settings)


def _names(graph: GraphDeployment, settings: DynamoSettings) -> Iterator[Fault]:
    listed: Path = ("spec", "components")
    if not graph.components:
        yield graph.fault(FieldError.REQUIRED, listed, "the graph has no components", "Add at least one.")
    if len(graph.components) > MOST_COMPONENTS:
        message = f"a graph has at most {MOST_COMPONENTS} components, not {len(graph.components)}"
        yield graph.fault(FieldError.INVALID, listed, message, "Split it into several graphs.")
    seen: dict[str, Component] = {}
    for component in graph.components:
        names = dict.fromkeys((component.name.lower(), *clique_names(component)))
        if (clash := next((name for name in names if name in seen), None)) is not None:
            yield _clash(graph, component, seen[clash], clash)
        for name in names:
            seen.setdefault(name, component)
    pickers = [component for component in graph.components if component.type == "epp"]
    for component in pickers[1:]:
        message = f'a graph has at most one component of type epp; the first is "{pickers[0].name}"'
        yield graph.fault(FieldError.INVALID, listed, message, at=(*component.path, "type"))
    if graph.on_grove(settings):
        yield from _budget(graph)


def _clash(graph: GraphDeployment, component: Component, other: Component, clique: str) -> Fault:
    message = f'"{component.name}" and "{other.name}" would both need the clique "{clique}"'
    if component.name.lower() == other.name.lower():
        message = f'the name "{component.name}" is taken by "{other.name}": Grove makes names lower case'
    return graph.fault(FieldError.DUPLICATE, (*component.path, "name"), message, "Rename one of them.")


def _budget(graph: GraphDeployment) -> Iterator[Fault]:
    name = set_name(graph.name, graph.components)
    for component in graph.components:
        if (length := len(name) + share(component)) > BUDGET:
            parts = " and ".join(f'"{each}"' for each in clique_names(component))
            message = f'"{component.name}" is too long: Grove has {BUDGET} characters for the set, the scaling group'
            message = f"{message} and the clique together, and {length} are needed (for {parts})"
            # In a scaling group the name counts twice: for the group and in its cliques.
            excess = math.ceil((length - BUDGET) / (2 if component.grouped else 1))
            hint = f"Shorten it by {excess} character{'s' if excess > 1 else ''}."
            yield graph.fault(FieldError.INVALID, (*component.path, "name"), message, hint)


def _replicas(graph: GraphDeployment, component: Component, settings: DynamoSettings) -> Iterator[Fault]:
    if component.min_available is None:
        return
    path = (*component.path, "minAvailable")
    if not graph.on_grove(settings):
        yield graph.fault(FieldError.FORBIDDEN, path, "minAvailable needs Grove", "Remove the line.")
    elif component.replicas and component.min_available > component.replicas:
        message = f"minAvailable {component.min_available} is more than the {component.replicas} replicas there are"
        yield graph.fault(FieldError.INVALID, path, message, f"At most {component.replicas} is allowed here.")


def _main_container(graph: GraphDeployment, component: Component) -> Iterator[Fault]:
    path: Path = (*component.path, "podTemplate", "spec", "containers")
    if component.main is None:
        message = f'component "{component.name}" has no container called {MAIN}'
        yield graph.fault(FieldError.REQUIRED, path, message, f"Dynamo runs in the container called {MAIN}.")
    elif not _image(component):
        message = f'the main container of "{component.name}" has no image'
        yield graph.fault(FieldError.REQUIRED, (*path, component.main, "image"), message, "Name the image to run.")


def _image(component: Component) -> str:
    return "" if component.main is None else str(component.containers[component.main].get("image") or "")


def _unversioned(graph: GraphDeployment) -> Iterator[Component]:
    """Yield the components whose runtime version cannot be determined."""
    for component in graph.components:
        tag = _image(component).partition("@")[0].rpartition("/")[2].partition(":")[2]
        if _image(component) and not component.runtime_version and not _VERSIONED.fullmatch(tag):
            yield component


def _runtime_fault(graph: GraphDeployment, component: Component) -> Fault:
    path = (*component.path, "runtimeVersionOverride")
    message = f'the image of "{component.name}" does not say which version of Dynamo it holds: {_image(component)}'
    fault = graph.fault(FieldError.REQUIRED, path, message, "Set runtimeVersionOverride, such as 1.4.0.")
    if graph.version == ALPHA:
        # The only rule that names a field as the user's version does.
        field = f"spec.services[{component.name}].runtimeVersionOverride"
        return Fault(fault.message, hint=fault.hint, place=fault.place, path=fault.path, type=fault.type, field=field)
    return fault


def _warnings(graph: GraphDeployment, topologies: Topologies, settings: DynamoSettings) -> Iterator[Notice]:
    if graph.version == ALPHA:
        message = "nvidia.com/v1alpha1 is deprecated in favour of v1beta1; in messages that count components, services"
        yield graph.notice("Deprecated", f"{message} are counted in the order of their names", ("apiVersion",))
    if ignored := [each for each in graph.unused if not each.blocks]:
        place = graph.resource.document.place(ignored[0].path, key=True)
        names = ", ".join(each.name for each in ignored)
        message = f"Coterie ignores {names}; the placement does not depend on that"
        yield Notice("FieldIgnored", message, place, ignored[0].path)
    if topologies is None and needs_topologies(graph):
        message = "which ClusterTopologies there are is not known, so names and levels were not checked"
        yield graph.notice("TopologyNotChecked", message, ("spec", "topologyConstraint"))
    if graph.constrained and not graph.on_grove(settings):
        message = "without Grove no topologyConstraint has any effect"
        yield graph.notice("NoEffect", message, ("spec", "topologyConstraint"))
    if not settings.strict:
        for component in _unversioned(graph):
            message = f'the image of "{component.name}" has no version as its tag: Dynamo\'s operator will ask for'
            message = f"{message} runtimeVersionOverride"
            main = component.main or 0
            path = (*component.path, "podTemplate", "spec", "containers", main, "image")
            yield graph.notice("RuntimeVersionUnknown", message, path)
    for component in graph.components:
        if not component.replicas:
            message = f'"{component.name}" has 0 replicas and is left out'
            yield graph.notice("NoReplicas", message, (*component.path, "replicas"))
