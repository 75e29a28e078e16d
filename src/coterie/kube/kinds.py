"""The kinds of objects that Coterie reads and writes, and the software that installs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lightkube.core.exceptions import LoadResourceError
from lightkube.core.resource import ApiInfo, NamespacedResource, Resource
from lightkube.core.resource_registry import resource_registry
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources import admissionregistration_v1, coordination_v1, core_v1, resource_v1, scheduling_v1

from coterie.errors import UsageError, did_you_mean

_KAI = "Install KAI Scheduler; its chart installs it."
_NVIDIA = "Install NVIDIA's DRA driver for GPUs with ComputeDomains enabled; its chart installs it."
_GROVE = "Install Grove; its operator's chart installs it."
_DYNAMO = "Install the Dynamo operator; its chart installs it."
_DRA = "Dynamic resource allocation needs Kubernetes 1.34 or newer."


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of object: lightkube's class for it, and how it is installed in a cluster that lacks it."""

    resource: type[Resource]
    install: str = ""

    @property
    def _info(self) -> ApiInfo:
        return self.resource._api_info  # noqa: SLF001 - lightkube has no public name for it

    @property
    def name(self) -> str:
        """The name in manifests: `PodGroup`."""
        return self._info.resource.kind

    @property
    def group(self) -> str:
        """The API group, empty for Kubernetes' core."""
        return self._info.resource.group

    @property
    def api_version(self) -> str:
        """Group and version as manifests write them."""
        return str(self._info.resource.api_version)

    @property
    def plural(self) -> str:
        """The name in URL paths and in RBAC rules: `podgroups`."""
        return self._info.plural

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind are namespaced."""
        return issubclass(self.resource, NamespacedResource)

    @property
    def crd(self) -> str:
        """The name of the CustomResourceDefinition, for kinds that have one."""
        return f"{self.plural}.{self.group}"


def _cluster_wide(group: str, version: str, name: str, plural: str, install: str) -> ObjectKind:
    return ObjectKind(create_global_resource(group, version, name, plural), install)


def _namespaced(group: str, version: str, name: str, plural: str, install: str) -> ObjectKind:
    return ObjectKind(create_namespaced_resource(group, version, name, plural), install)


NODE = ObjectKind(core_v1.Node)
POD = ObjectKind(core_v1.Pod)
NAMESPACE = ObjectKind(core_v1.Namespace)
CONFIG_MAP = ObjectKind(core_v1.ConfigMap)
SECRET = ObjectKind(core_v1.Secret)
SERVICE = ObjectKind(core_v1.Service)
PERSISTENT_VOLUME_CLAIM = ObjectKind(core_v1.PersistentVolumeClaim)
PRIORITY_CLASS = ObjectKind(scheduling_v1.PriorityClass)
EVENT = ObjectKind(core_v1.Event)
LEASE = ObjectKind(coordination_v1.Lease)
VALIDATING_WEBHOOKS = ObjectKind(admissionregistration_v1.ValidatingWebhookConfiguration)
RESOURCE_CLAIM = ObjectKind(resource_v1.ResourceClaim, _DRA)
RESOURCE_CLAIM_TEMPLATE = ObjectKind(resource_v1.ResourceClaimTemplate, _DRA)
RESOURCE_SLICE = ObjectKind(resource_v1.ResourceSlice, _DRA)
TOPOLOGY = _cluster_wide("kai.scheduler", "v1alpha1", "Topology", "topologies", _KAI)
QUEUE = _cluster_wide("scheduling.run.ai", "v2", "Queue", "queues", _KAI)
POD_GROUP = _namespaced("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", _KAI)
BIND_REQUEST = _namespaced("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests", _KAI)
COMPUTE_DOMAIN = _namespaced("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", _NVIDIA)
CLUSTER_TOPOLOGY = _cluster_wide("grove.io", "v1alpha1", "ClusterTopology", "clustertopologies", _GROVE)
CLUSTER_TOPOLOGY_BINDING = _cluster_wide(
    "grove.io", "v1alpha1", "ClusterTopologyBinding", "clustertopologybindings", _GROVE
)
POD_CLIQUE_SET = _namespaced("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets", _GROVE)
GRAPH_DEPLOYMENT = _namespaced("nvidia.com", "v1alpha1", "DynamoGraphDeployment", "dynamographdeployments", _DYNAMO)

_ALL = (
    *(NODE, POD, NAMESPACE, CONFIG_MAP, SECRET, SERVICE, PERSISTENT_VOLUME_CLAIM, PRIORITY_CLASS, EVENT, LEASE),
    *(VALIDATING_WEBHOOKS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE),
    *(TOPOLOGY, QUEUE, POD_GROUP, BIND_REQUEST, COMPUTE_DOMAIN),
    *(CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, GRAPH_DEPLOYMENT),
)
_KNOWN = {(kind.api_version, kind.name): kind for kind in _ALL}


def kind_of(manifest: Mapping[str, object]) -> ObjectKind:
    """Return the kind of a manifest, Coterie's or one built into Kubernetes; raise UsageError for another."""
    version, name = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        raise UsageError("a manifest needs apiVersion and kind", "Add both at its top.")
    if (known := _KNOWN.get((version, name))) is not None:
        return known
    try:
        return ObjectKind(resource_registry.load(version, name))
    except (LoadResourceError, ValueError):
        hint = did_you_mean(name, [kind for _, kind in _KNOWN]) or "Only Kubernetes' own kinds and KAI's are written."
        raise UsageError(f"kind {name} of {version} is not known", hint) from None
