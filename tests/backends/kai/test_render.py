"""The KAI objects of a workflow, one rule per test."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.objects import pod_group, shared
from coterie.backends.kai.pod_group import pod_group_of
from coterie.backends.shared.manifest_text import to_yaml
from coterie.config.configuration import GpuQuota, Pool
from coterie.errors import NotFound
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.levels import Topology
from tests.backends.kai.builders import (
    GPUS,
    NVLINK,
    PAIR,
    POOL,
    RACKS,
    cluster,
    codes,
    faults_of,
    of_kind,
    rendered,
)
from tests.backends.kai.test_golden import check
from tests.backends.shared.test_names import DNS_LABEL, user_names
from tests.frontends.workflow.samples import LEVELS, grouped, plain, task
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds
from tests.random_examples import examples

# Queues and topology


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (GpuQuota(), {"quota": -1, "limit": -1, "overQuotaWeight": 1}),
        (GpuQuota(64, 128, 2), {"quota": 64, "limit": 128, "overQuotaWeight": 2}),
        (GpuQuota(None, 16), {"quota": 0, "limit": 16, "overQuotaWeight": 1}),
        (GpuQuota(64), {"quota": 64, "limit": -1, "overQuotaWeight": 1}),
        (GpuQuota(0, 0, 0), {"quota": 0, "limit": 0, "overQuotaWeight": 0}),
    ],
)
def test_a_pool_without_quota_is_unlimited_and_one_with_quota_guarantees_what_it_says(
    quota: GpuQuota, expected: dict[str, int]
) -> None:
    parent, leaf, *_ = shared(ManifestContext("default", "w", replace(POOL, gpus=quota)))

    assert parent["spec"]["resources"]["gpu"] == {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    assert leaf["spec"]["parentQueue"] == parent["metadata"]["name"]
    assert leaf["spec"]["resources"]["gpu"] == expected


def test_a_pool_without_levels_has_no_topology() -> None:
    assert [found["kind"] for found in rendered(PAIR, Pool("p", "b", "kai")).manifests[:3]] == [
        "Queue",
        "Queue",
        "PodGroup",
    ]


def test_other_levels_are_another_topology() -> None:
    fewer = replace(POOL, topology=Topology(LEVELS.levels[1:]))

    assert ManifestContext("n", "w", POOL).topology != ManifestContext("n", "w", fewer).topology


# PodGroups


@settings(deadline=None)
@given(small_worlds())
def test_subgroups_of_any_gang_are_a_tree_whose_leaves_count_its_tasks(world: EngineQuestion) -> None:
    scene = ManifestContext("ns", "w", replace(POOL, topology=world.topology))
    root = pod_group_of(world.gang, world.topology)
    found = pod_group(scene, world.gang, root)
    subgroups = {one["name"]: one for one in found["spec"].get("subGroups", ())}
    for one in subgroups.values():
        above = [one["name"]]
        while parent := subgroups[above[-1]].get("parent"):
            above.append(parent)
            assert len(above) <= len(subgroups)
    members = [one["minMember"] for one in subgroups.values() if "minMember" in one]

    assert found["spec"]["minMember"] == len(world.gang.all_tasks())
    assert sum(members) == (len(world.gang.all_tasks()) if subgroups else 0)
    assert pod_group(scene, world.gang, root) == found


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_any_workflow_of_groups_renders_to_sound_manifests(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    names = data.draw(
        st.lists(user_names, min_size=count * 3, max_size=count * 3, unique_by=lambda n: n.lower().replace("_", "-"))
    )
    groups = []
    for index in range(count):
        own = names[index * 3 : index * 3 + 2]
        resources = [f"r{data.draw(st.integers(1, 4))}" for _ in own]
        groups.append(
            (
                f'"{names[index * 3 + 2]}"',
                *(
                    task(
                        f'"{name}"',
                        f"lead: {str(not n).lower()}",
                        f"resource: {used}",
                        f"args: ['{{{{host:{name}}}}}']",
                    )
                    for n, (name, used) in enumerate(zip(own, resources, strict=True))
                ),
            )
        )
    text = grouped(*groups).replace("name: w", f'name: "{data.draw(user_names)}"') + RACKS
    found = rendered(text)

    check(list(found.manifests))
    assert to_yaml(rendered(text).manifests) == to_yaml(found.manifests)
    for manifest in found.manifests:
        assert DNS_LABEL.fullmatch(manifest["metadata"]["name"])
        for value in manifest["metadata"].get("labels", {}).values():
            assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)


def test_groups_are_rendered_one_after_the_other_with_all_that_is_theirs() -> None:
    text = (
        plain(
            task("a", "files: [{path: /a, contents: x}]"),
            task("b", "command: ['{{host:a}}']").replace("command: [run], ", ""),
        )
        + GPUS
    )
    kinds = [found["kind"] for found in rendered(text, replace(NVLINK, nvlink_always=True)).manifests]

    assert kinds == [
        "Queue", "Queue", "Topology",
        "ComputeDomain", "ConfigMap", "Service", "PodGroup", "Pod",
        "ComputeDomain", "PodGroup", "Pod",
    ]  # fmt: skip


def test_one_group_can_be_rendered_alone_and_is_what_it_is_among_the_others() -> None:
    text = grouped(("one", task("a", "args: ['{{host:b}}']")), ("two", task("b", "inputs: [{task: a}]")))
    both, alone = rendered(text), rendered(text, groups=("two",))

    assert codes(both) == ["ApplyInOrder", "NotCarriedOut"]
    assert codes(alone) == ["NotCarriedOut"]
    assert [pod["metadata"]["labels"]["coterie.dev/task"] for pod in of_kind(alone, "Pod")] == ["b"]
    assert [found for found in both.manifests if found in alone.manifests] == list(alone.manifests)


def test_an_unknown_group_is_not_found_and_those_there_are_named() -> None:
    with pytest.raises(NotFound, match='no group "other"') as caught:
        rendered(PAIR, groups=("other",))

    assert caught.value.hint == "Known: g."


def test_another_attempt_has_other_pods_and_the_same_hosts() -> None:
    text = PAIR.replace("command: [run]", "command: ['{{host:a}}']")
    first, second = (of_kind(rendered(text, attempt=attempt), "Pod")[0] for attempt in (1, 2))

    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["spec"] == second["spec"]
    assert second["metadata"]["labels"]["coterie.dev/attempt"] == "2"


def test_a_plain_task_with_the_longest_name_has_a_group_label_that_is_not_too_long() -> None:
    (pod,) = of_kind(rendered(plain(task("a" * 63))), "Pod")

    assert len(pod["metadata"]["labels"]["coterie.dev/group"]) == 63


def test_a_users_label_cannot_take_the_place_of_ours() -> None:
    text = PAIR.replace("name: w\n", "name: w\n  labels: {kai.scheduler/queue: mine, team: research}\n", 1)
    labels = of_kind(rendered(text), "Pod")[0]["metadata"]["labels"]

    assert labels["team"] == "research"
    assert labels["kai.scheduler/queue"] != "mine"


# NVLink


def test_labels_of_nvlink_name_groups_and_cannot_decline_what_a_pool_always_gives() -> None:
    def labelled(labels: str) -> str:
        return PAIR.replace("name: w\n", f"name: w\n  labels: {{{labels}}}\n", 1) + GPUS

    assert faults_of(labelled('nvlink.h: "true"'), NVLINK) == ['the label nvlink.h names no group "h"']
    assert faults_of(labelled("nvlink.g: maybe"), NVLINK) == [
        'the label nvlink.g is "maybe", which is neither "true" nor "false"'
    ]
    assert faults_of(labelled('nvlink.g: "true"')) == ['the workflow asks for NVLink, but pool "pool" has none']
    always = replace(NVLINK, nvlink_always=True)
    assert len(of_kind(rendered(PAIR + GPUS, always, cluster=cluster(8)), "ComputeDomain")) == 1
    assert faults_of(labelled('nvlink: "false"'), always) == [
        'the workflow wants no ComputeDomain, but pool "pool" gives one to every group (nvlink: always)'
    ]


def test_whole_nodes_are_assumed_without_a_cluster_and_that_is_said() -> None:
    found = rendered(PAIR + GPUS, NVLINK)

    assert len(of_kind(found, "ComputeDomain")) == 1
    assert codes(found) == ["WholeNodesAssumed"]


@pytest.mark.parametrize(
    ("label", "gpus", "domains", "said"),
    [
        ("", (4, 4), 1, []),
        ("", (4, 8), 0, ["NoComputeDomain"]),
        ("", (2,), 1, []),
        ('nvlink: "true"', (8,), 1, []),
        ('nvlink: "false"', (4,), 0, []),
        ('nvlink: "false", nvlink.g: "true"', (8,), 1, []),
        ('nvlink: "true", nvlink.g: "false"', (4,), 0, []),
    ],
)
def test_a_cluster_tells_whether_tasks_take_whole_nodes_and_the_user_overrules_it(
    label: str, gpus: tuple[int, ...], domains: int, said: list[str]
) -> None:
    text = PAIR.replace("name: w\n", f"name: w\n  labels: {{{label}}}\n", 1) + GPUS
    found = rendered(text, NVLINK, cluster=cluster(*gpus))

    assert len(of_kind(found, "ComputeDomain")) == domains
    assert codes(found) == said
    assert all(("resourceClaims" in pod["spec"]) == bool(domains) for pod in of_kind(found, "Pod"))


def test_only_tasks_with_gpus_have_a_claim() -> None:
    big = task("a", "lead: true", "resource: big"), task("b", "resource: big")
    text = grouped(("g", *big, task("c"))) + "resources:\n  big: {gpu: 4}\n"
    pods = of_kind(rendered(text, NVLINK), "Pod")

    assert ["resourceClaims" in pod["spec"] for pod in pods] == [True, True, False]


def test_a_group_without_gpus_has_no_compute_domain() -> None:
    found = rendered(PAIR, NVLINK)

    assert not of_kind(found, "ComputeDomain")
    assert not codes(found)


def test_a_pool_without_nvlink_has_no_compute_domains_and_refuses_who_asks_for_them() -> None:
    asked = PAIR.replace("name: w\n", 'name: w\n  labels: {nvlink: "true"}\n', 1) + GPUS

    assert not of_kind(rendered(PAIR + GPUS), "ComputeDomain")
    assert faults_of(asked) == ['the workflow asks for NVLink, but pool "pool" has none']


def test_a_wish_that_is_neither_yes_nor_no_is_a_fault() -> None:
    text = PAIR.replace("name: w\n", "name: w\n  labels: {nvlink: flase}\n", 1)

    assert faults_of(text, NVLINK) == ['the label nvlink is "flase", which is neither "true" nor "false"']


# What KAI does with it


def siblings(*gpus: int) -> str:
    return (
        grouped(
            (
                "g",
                *(task(f"t{n}", f"lead: {str(not n).lower()}", f"resource: r{count}") for n, count in enumerate(gpus)),
            )
        )
        + RACKS
    )


@pytest.mark.parametrize(("gpus", "said"), [((3, 4, 5), ["GreedySiblings"]), ((3, 5), [])])
def test_three_siblings_of_different_sizes_may_wait_for_no_reason(gpus: tuple[int, ...], said: list[str]) -> None:
    assert codes(rendered(siblings(*gpus))) == said


def test_different_sizes_under_one_constraint_may_wait_for_no_reason() -> None:
    topology = "topology: [{key: rack}]"
    text = grouped(("g", task("a", "lead: true", "resource: x"), task("b", "resource: y")))
    mixed = rendered(text + f"resources:\n  x: {{gpu: 8, {topology}}}\n  y: {{gpu: 4, {topology}}}\n")
    other = rendered(text + f"resources:\n  x: {{gpu: 8, {topology}}}\n  y: {{cpu: 4, {topology}}}\n")
    cpus = rendered(text + f"resources:\n  x: {{gpu: 8, cpu: 9, {topology}}}\n  y: {{gpu: 8, {topology}}}\n")
    free = rendered(text + "resources:\n  x: {gpu: 8}\n  y: {gpu: 4}\n")

    assert codes(mixed) == ["MixedSizes"]
    assert "(8, 4 GPUs)" in mixed.notices[0].message
    assert codes(cpus) == ["MixedSizes"]
    assert not codes(other)
    assert not codes(free)


def test_label_values_that_join_to_the_same_text_are_told() -> None:
    topology = Topology.of(("zone", "z"), ("rack", "r"))
    nodes = [Node("n1", {"z": "a.b", "r": "c"}, {GPU: 1}), Node("n2", {"z": "a", "r": "b.c"}, {GPU: 1})]
    found = rendered(PAIR, replace(POOL, topology=topology), cluster=Cluster.of(nodes))

    assert codes(found) == ["DomainsMerged"]
    assert "the rack a/b.c and the rack a.b/c" in found.notices[0].message


def test_a_pool_of_another_scheduler_is_rendered_with_a_warning() -> None:
    assert codes(rendered(PAIR, replace(POOL, scheduler="local"))) == ["OtherScheduler"]


def test_what_manifests_cannot_do_is_said_once() -> None:
    text = plain(task("a", "exitActions: {FAIL: '3'}"), task("b", "inputs: [{task: a}]"))
    text = text.replace("name: w\n", "name: w\n  timeout: {queue_timeout: 1h}\n", 1)
    (notice,) = [found for found in rendered(text).notices if found.code == "NotCarriedOut"]

    assert all(word in notice.message for word in ("inputs", "exitActions", "queue_timeout"))


def test_an_object_too_large_for_a_plain_apply_is_told() -> None:
    found = rendered(plain(task("a", "files: [{path: /x, localpath: x}]")), local={"x": b"y" * 300_000})

    assert codes(found) == ["ServerSideApply"]


def test_a_gang_whose_constraints_do_not_fit_an_annotation_is_a_fault() -> None:
    text = grouped(("g", *(task(f"{'t' * 55}{n}", f"lead: {str(not n).lower()}") for n in range(4500))))

    assert 'group "g" is too large' in faults_of(text)[0]
