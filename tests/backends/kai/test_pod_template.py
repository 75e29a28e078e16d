"""The merge of a pool's partial pod into the pods of its tasks."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.kai.manifests.pod_template import merged
from coterie.config.configuration import Pool, read_config
from coterie.topology.cluster import MEMORY
from tests.backends.kai.builders import POOL, faults_of, of_kind, rendered
from tests.config.test_pod_template import GOOD, HEAD
from tests.frontends.workflow.samples import grouped, resource, task

TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "task", "volumeMounts": [{"mountPath": "/scratch"}]}]}}
NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from([1, 2, "x", True])


def named(identity: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    entries = st.fixed_dictionaries({identity: NAMES}, optional=fields)
    return st.lists(entries, unique_by=lambda entry: entry[identity], max_size=3)


CONTAINERS = named(
    "name",
    env=named("name", value=SCALARS, valueFrom=SCALARS),
    volumeMounts=named("mountPath", name=SCALARS, readOnly=SCALARS),
    securityContext=st.dictionaries(NAMES, SCALARS, max_size=2),
    workingDir=SCALARS,
)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(NAMES, SCALARS, max_size=2)}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "runtimeClassName": SCALARS,
                "securityContext": st.dictionaries(NAMES, SCALARS, max_size=2),
                "volumes": named("name", emptyDir=SCALARS, hostPath=SCALARS),
                "tolerations": named("key", value=SCALARS),
                "hostAliases": st.lists(SCALARS, max_size=2),
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
            },
        ),
    },
)


@given(PODS, PODS)
def test_a_pod_keeps_all_of_its_own_and_gets_all_else_of_the_template(pod: Any, template: Any) -> None:
    before = copy.deepcopy((pod, template))
    found = merged(pod, template)
    assert (pod, template) == before
    assert merged(pod, {}) == pod
    assert merged({}, template) == template
    assert merged(found, template) == found
    kept(pod, found)
    gained(pod, template, found)


def kept(own: Any, found: Any) -> None:
    """Check that everything of a pod is in the merged one."""
    for key, value in own.items():
        if key in ("metadata", "spec", "labels", "securityContext"):
            kept(value, found[key])
        elif key in ("containers", "initContainers"):
            for entry in value:
                kept(entry, by("name", found[key])[entry["name"]])
        elif isinstance(value, list) and key != "hostAliases":
            assert all(entry in found[key] for entry in value)
        else:
            assert found[key] == value


def gained(own: Any, template: Any, found: Any) -> None:
    """Check that everything of a template is in the merged pod, but for what the pod has itself."""
    identities = {"env": "name", "volumes": "name", "volumeMounts": "mountPath", "tolerations": "key"}
    for key, value in template.items():
        if key not in own:
            assert found[key] == value
        elif key in ("metadata", "spec", "labels", "securityContext"):
            gained(own[key], value, found[key])
        elif key in ("containers", "initContainers"):
            mine = by("name", own[key])
            for entry in value:
                gained(mine.get(entry["name"], {}), entry, by("name", found[key])[entry["name"]])
        elif key == "tolerations":
            assert all(entry in found[key] for entry in value)
        elif key in identities:
            mine = by(identities[key], own[key])
            assert all(entry in found[key] for entry in value if entry[identities[key]] not in mine)


def by(identity: str, entries: Any) -> dict[Any, Any]:
    return {entry[identity]: entry for entry in entries}


def pool_of(template: str) -> Pool:
    return replace(read_config((HEAD + template).encode(), "c").pools["p"], topology=POOL.topology)


def test_pods_of_a_workflow_have_the_template_of_their_pool() -> None:
    text = grouped(("g", task("a", "environment: {HTTPS_PROXY: mine}"))) + resource("cpu: 2, memory: 4Gi")
    (pod,) = of_kind(rendered(text, pool_of(GOOD)), "Pod")
    spec = pod["spec"]
    assert pod["metadata"]["labels"]["team"] == "research"
    assert pod["metadata"]["annotations"]["example.com/note"] == "3"
    assert pod["metadata"]["annotations"]["kai.scheduler/skip-podgrouper"] == "true"
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("trainer", False)
    assert [one["name"] for one in spec["initContainers"]] == ["fetch", "agent", "proxy"]
    (container,) = spec["containers"]
    assert container["env"] == [{"name": "HTTPS_PROXY", "value": "mine"}]
    # The sidecars take their part beside the task's, and not of it.
    assert container["resources"]["requests"] == {"cpu": "2", MEMORY: "4Gi"}
    (toleration,) = spec["tolerations"]
    assert (toleration["key"], toleration["tolerationSeconds"]) == ("example.com/maintenance", 60)


def test_a_token_is_mounted_only_where_the_template_says_so() -> None:
    text = grouped(("g", task("a")))
    (pod,) = of_kind(rendered(text, pool_of("      spec: {automountServiceAccountToken: true}\n")), "Pod")
    assert pod["spec"]["automountServiceAccountToken"] is True


def test_a_path_of_a_task_that_the_template_takes_is_a_fault() -> None:
    text = grouped(("g", task("a", "volumeMounts: [/scratch]")))
    (message,) = faults_of(text, replace(POOL, pod_template=TEMPLATE))
    assert message == '/scratch of task "a" is taken by the pod_template of the pool'
