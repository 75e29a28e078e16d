"""The schema of a DynamoGraphDeployment, in its two versions; fields that are not read may have any shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from coterie.document.schema import DocumentModel, Many, Wrong, wrong
from coterie.frontends.dynamo import shared_fields
from coterie.frontends.dynamo.shared_fields import Texts
from coterie.frontends.kubernetes.objects import KubernetesObject

MOST_COMPONENTS = 25


class ComponentFields(DocumentModel):
    """The fields of a component in both versions."""

    replicas: shared_fields.Replicas | None = Field(None, description="How many copies run; 1 if not given.")
    min_available: shared_fields.MinAvailable | None = Field(
        None, alias="minAvailable", description="How many copies must run for the graph to count as running."
    )
    multinode: shared_fields.Multinode | None = Field(None, description="Set where one copy spans several nodes.")
    roles: Many[shared_fields.NamedRole] | None = Field(
        None, description="Leader and workers of a multinode component."
    )
    topology_constraint: shared_fields.ComponentConstraint | None = Field(
        None, alias="topologyConstraint", description="The level within which each copy is packed."
    )
    provider_override: shared_fields.ProviderOverride | None = Field(
        None, alias="providerOverride", description="A piece of Grove's API for the component."
    )
    runtime_version_override: shared_fields.RuntimeVersion | None = Field(
        None,
        alias="runtimeVersionOverride",
        description="The version of Dynamo in the image, if its tag does not tell.",
    )
    global_dynamo_namespace: bool = Field(default=False, alias="globalDynamoNamespace", description="Discovery scope.")
    model_ref: Any = Field(None, alias="modelRef", description="The model that is served.")
    scaling_adapter: Any = Field(None, alias="scalingAdapter", description="Lets an autoscaler set replicas.")
    epp_config: Any = Field(None, alias="eppConfig", description="Settings of an endpoint picker.")
    experimental: shared_fields.ComponentExperimental | None = Field(None, description="Preview features.")
    lpx: Any = Field(None, description="Engines on other accelerators.")

    @model_validator(mode="after")
    def _agreeing_roles(self) -> Self:
        if found := tuple(_role_problems(self)):
            raise wrong(*found)
        return self


def _role_problems(shared: ComponentFields) -> Iterator[Wrong]:
    """Yield the faults of the list of roles in combination with the rest of a component."""
    seen: set[str] = set()
    for index, role in enumerate(shared.roles or ()):
        if role.name in seen:
            yield Wrong(f'the role "{role.name}" is listed twice', "Keep one of them.", ("roles", index, "name"))
        elif role.provider_override and shared.multinode and getattr(shared.multinode, role.name) is not None:
            hint = "Keep one of the two."
            yield Wrong(f"the {role.name} is described in multinode and in roles", hint, ("roles", index, "name"))
        seen.add(role.name)
        nodes = shared.multinode.node_count if shared.multinode else 1
        pods = 1 if role.name == "leader" else nodes - 1
        if role.replicas not in (None, pods):
            message = f"the {role.name} of {nodes} nodes has {pods} replicas, not {role.replicas}"
            yield Wrong(message, "Remove the line: it follows from nodeCount.", ("roles", index, "replicas"))


class ComponentModel(ComponentFields):
    """One component of v1beta1."""

    name: shared_fields.ComponentName = Field(
        description="The component's name, unique in the graph whatever its case."
    )
    type: Literal["frontend", "worker", "prefill", "decode", "planner", "epp"] | None = Field(
        None, description="The component's role."
    )
    pod_template: shared_fields.PodTemplate | None = Field(
        None, alias="podTemplate", description="The pods, with a container called main."
    )
    shared_memory_size: shared_fields.Amount | None = Field(
        None, alias="sharedMemorySize", description="Size of /dev/shm; 8Gi if not given, 0 for none."
    )
    frontend_sidecar: Any = Field(None, alias="frontendSidecar", description="A container that serves as frontend.")
    dynamo_sidecar: Any = Field(None, alias="dynamoSidecar", description="An init container with the runtime.")
    compilation_cache: Any = Field(None, alias="compilationCache", description="A volume for compiled code.")


class Amounts(DocumentModel):
    """Requests or limits in v1alpha1."""

    cpu: str | None = Field(None, description="Processors, such as 4 or 500m, in quotes.")
    memory: str | None = Field(None, description="Memory, such as 16Gi.")
    gpu: str | None = Field(None, description="How many GPUs, in quotes.")
    gpu_type: str | None = Field(None, alias="gpuType", description="The GPU resource; nvidia.com/gpu if empty.")
    custom: Texts | None = Field(None, description="Further resources by name.")


class AlphaResources(DocumentModel):
    """The resources of a service of v1alpha1."""

    requests: Amounts | None = Field(None, description="What each pod needs.")
    limits: Amounts | None = Field(None, description="What each pod may use.")
    claims: Many[dict[str, Any]] | None = Field(None, description="Claims on devices.")


class VolumeMount(DocumentModel):
    """A volume of the graph in a service of v1alpha1."""

    name: str = Field(description="The name of the PersistentVolumeClaim.")
    mount_point: str | None = Field(None, alias="mountPoint", description="Where it is mounted.")
    use_as_compilation_cache: bool = Field(
        default=False, alias="useAsCompilationCache", description="Keeps compiled code."
    )


class SharedMemory(DocumentModel):
    """The size of /dev/shm in v1alpha1."""

    disabled: bool = Field(default=False, description="Whether it is turned off.")
    size: shared_fields.Amount | None = Field(None, description="Its size; 8Gi if not given.")


class ExtraPodSpec(shared_fields.PodSpecFields):
    """A pod spec with the main container beside it."""

    main_container: shared_fields.MainContainer | None = Field(
        None, alias="mainContainer", description="Settings of the main container."
    )


class AlphaService(ComponentFields):
    """One service of v1alpha1."""

    component_type: str | None = Field(None, alias="componentType", description="The service's role.")
    sub_component_type: str | None = Field(None, alias="subComponentType", description="Prefill or decode.")
    service_name: str | None = Field(None, alias="serviceName", description="The name of the service, repeated.")
    annotations: Texts | None = Field(None, description="Annotations of all that is generated.")
    labels: Texts | None = Field(None, description="Labels of all that is generated.")
    resources: AlphaResources | None = Field(None, description="What each pod asks for.")
    envs: Many[shared_fields.EnvVar] | None = Field(None, description="Environment variables.")
    env_from_secret: str | None = Field(None, alias="envFromSecret", description="A Secret as environment.")
    volume_mounts: Many[VolumeMount] | None = Field(None, alias="volumeMounts", description="Volumes of the graph.")
    extra_pod_metadata: shared_fields.PodMetadata | None = Field(
        None, alias="extraPodMetadata", description="Labels and annotations of the pods."
    )
    extra_pod_spec: ExtraPodSpec | None = Field(None, alias="extraPodSpec", description="A native pod spec.")
    shared_memory: SharedMemory | None = Field(None, alias="sharedMemory", description="The size of /dev/shm.")
    liveness_probe: dict[str, Any] | None = Field(None, alias="livenessProbe", description="Restarts the container.")
    readiness_probe: dict[str, Any] | None = Field(None, alias="readinessProbe", description="Lets traffic in.")
    dynamo_namespace: str | None = Field(None, alias="dynamoNamespace", description="Discovery scope, deprecated.")
    autoscaling: Any = Field(None, description="Deprecated; Dynamo ignores it too.")
    ingress: Any = Field(None, description="Access from outside the cluster.")
    checkpoint: Any = Field(None, description="Snapshots of containers.")
    frontend_sidecar: Any = Field(None, alias="frontendSidecar", description="A frontend in each pod.")
    gpu_memory_service: Any = Field(None, alias="gpuMemoryService", description="Sharing of GPU memory.")
    failover: Any = Field(None, description="A standby engine beside each engine.")


class GraphShared(DocumentModel):
    """The fields of a graph in both versions."""

    annotations: Texts | None = Field(None, description="Annotations of all that is generated.")
    labels: Texts | None = Field(None, description="Labels of all that is generated.")
    backend_framework: shared_fields.Framework | None = Field(
        None, alias="backendFramework", description="The engine in the images."
    )
    priority_class_name: str | None = Field(None, alias="priorityClassName", description="The PriorityClass.")
    restart: Any = Field(None, description="A request to restart.")
    provider_override: shared_fields.ProviderOverride | None = Field(
        None, alias="providerOverride", description="A piece of Grove's API for the PodCliqueSet."
    )
    experimental: shared_fields.GraphExperimental | None = Field(None, description="Preview features.")


class GraphConstraintModel(DocumentModel):
    """The topology of a graph, and the level that the whole graph shares."""

    cluster_topology_name: shared_fields.TopologyName = Field(
        alias="clusterTopologyName", description="The ClusterTopology that defines the levels."
    )
    pack_domain: shared_fields.Domain | None = Field(
        None, alias="packDomain", description="The level within which the whole graph is packed."
    )


class AlphaConstraint(DocumentModel):
    """The topology of a graph in v1alpha1."""

    topology_profile: shared_fields.TopologyName = Field(
        alias="topologyProfile", description="The ClusterTopology that defines the levels."
    )
    pack_domain: shared_fields.Domain | None = Field(
        None, alias="packDomain", description="The level within which the whole graph is packed."
    )


class BetaSpec(GraphShared):
    """The spec of v1beta1."""

    components: Many[ComponentModel] | None = Field(None, description="The components of the graph, at most 25.")
    env: Many[shared_fields.EnvVar] | None = Field(None, description="Environment variables of every component.")
    topology_constraint: GraphConstraintModel | None = Field(
        None, alias="topologyConstraint", description="The topology, and the level for the whole graph."
    )


class AlphaSpec(GraphShared):
    """The spec of v1alpha1."""

    services: dict[shared_fields.ComponentName, AlphaService] | None = Field(
        None, description="The services of the graph by name, at most 25."
    )
    envs: Many[shared_fields.EnvVar] | None = Field(None, description="Environment variables of every service.")
    pvcs: Any = Field(None, description="Volumes for the services.")
    topology_constraint: AlphaConstraint | None = Field(
        None, alias="topologyConstraint", description="The topology, and the level for the whole graph."
    )


class BetaGraph(KubernetesObject):
    """A DynamoGraphDeployment of v1beta1."""

    metadata: shared_fields.ObjectMetadata = Field(description="Name, labels and annotations.")
    spec: BetaSpec = Field(description="The graph.")


class AlphaGraph(KubernetesObject):
    """A DynamoGraphDeployment of v1alpha1."""

    metadata: shared_fields.ObjectMetadata = Field(description="Name, labels and annotations.")
    spec: AlphaSpec = Field(description="The graph.")
