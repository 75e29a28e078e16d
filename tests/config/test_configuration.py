"""Configuration files: what is read, which faults are reported, and how a pool is chosen."""

from __future__ import annotations

import pytest

from coterie.config.configuration import (
    Backend,
    Config,
    GpuQuota,
    Platform,
    Pool,
    choose_pool,
    parse_levels,
    read_config,
)
from coterie.errors import CoterieError, NotFound, SpecErrors, UsageError
from coterie.gang.tree import Toleration
from coterie.topology.levels import Topology

GOOD = """\
backends:
  lab: {scheduler: local, cluster: clusters/two-nvl72.yaml}
  prod: {scheduler: kai, context: prod, namespace: coterie}
pools:
  gb200:
    backend: prod
    node_selector: {nvidia.com/gpu.product: NVIDIA-GB200}
    nvlink: true
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
    tolerations:
    - {key: gpu, operator: Exists}
    platforms:
      big: {node_selector: {size: 8}, tolerations: [{key: big, value: "1", effect: NoSchedule}]}
    gpus: {guarantee: 64, limit: 128, weight: 2}
    max_exec_timeout: 1d
    max_queue_timeout: 3600
  other: {backend: lab, topology: h100}
"""


def test_a_good_configuration_is_read_whole() -> None:
    config = read_config(GOOD.encode(), "coterie.yaml")
    assert config.backends == {
        "lab": Backend("lab", "local", "clusters/two-nvl72.yaml"),
        "prod": Backend("prod", "kai", context="prod", namespace="coterie"),
    }
    assert config.pools["gb200"] == Pool(
        name="gb200",
        backend="prod",
        scheduler="kai",
        node_selector=(("nvidia.com/gpu.product", "NVIDIA-GB200"),),
        nvlink=True,
        topology=Topology.of(("zone", "topology.kubernetes.io/zone"), ("rack", "topology.kubernetes.io/rack")),
        tolerations=(Toleration("gpu", "Exists"),),
        platforms={"big": Platform((("size", "8"),), (Toleration("big", "Equal", "1", "NoSchedule"),))},
        gpus=GpuQuota(64, 128, 2),
        max_exec_timeout=86400,
        max_queue_timeout=3600,
        namespace="coterie",
    )
    assert config.pools["other"].topology_name == "h100"
    assert config.pools["other"].topology == Topology()
    assert config.notices == ()


@pytest.mark.parametrize("value", ["200000-200999", "2000", "tasks", "svc-tasks"])
def test_accounts_are_kept_as_they_are_written(value: str) -> None:
    assert read_config(accounts(value).encode(), "c").backends["b"].task_accounts == value


def test_the_only_backend_needs_no_naming() -> None:
    assert read_config(b"backends: {lab: {scheduler: local}}\npools: {a: {}}\n", "c").pools["a"].backend == "lab"


def pool(body: str, scheduler: str = "kai") -> str:
    return f"backends: {{b: {{scheduler: {scheduler}}}}}\npools: {{p: {{{body}}}}}\n"


def accounts(value: str, scheduler: str = "local") -> str:
    return f"backends: {{b: {{scheduler: {scheduler}, task_accounts: {value}}}}}\npools: {{p: {{backend: b}}}}\n"


LEVEL = "topology_keys: [{key: rack, label: rack}]"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (pool("topologyKeys: []"), 'unknown field "topologyKeys"', 'Did you mean "topology_keys"?'),
        (pool("topology_key: []"), 'unknown field "topology_key"', 'Did you mean "topology_keys"?'),
        (pool("platforms: {a: {" + LEVEL + "}}"), 'unknown field "topology_keys" in "a"', "belongs to the pool"),
        (pool("platforms: {a: {nvlink: true}}"), 'unknown field "nvlink"', "nvlink belongs to a pool"),
        (pool("scheduler: kai"), 'unknown field "scheduler"', "belongs to a backend"),
        (pool("gpus: {maximum: 3}"), 'unknown field "maximum"', "limit"),
        (pool("nvlinks: true"), 'unknown field "nvlinks"', 'Did you mean "nvlink"?'),
        (pool("topology_keys: [rack]"), 'must have a key and a label, not just "rack"', "{key: rack, label: LABEL}"),
        (pool("topology_keys: []"), "topology_keys must not be empty", "Add at least one"),
        (pool("topology_keys: rack"), 'topology_keys must be a list, not "rack"', "Begin each entry"),
        (pool("topology_keys: [{key: rack}]"), '"label" is missing', "The node label"),
        (pool("topology_keys: [{key: a, label: x/}]"), "is not a node label", "Example"),
        (pool("topology_keys: [{key: a, label: x}, {key: a, label: y}]"), 'level "a" is defined twice', ""),
        (pool("topology_keys: [{key: a, label: x}, {key: b, label: x}]"), "used by two levels", "of its own"),
        (
            pool("topology_keys: [{key: a, label: kubernetes.io/hostname}, {key: b, label: x}]"),
            "must be the last",
            "end",
        ),
        (
            pool("topology_keys: [" + ", ".join(f"{{key: k{n}, label: l{n}}}" for n in range(17)) + "]"),
            "at most 16 levels",
            "",
        ),
        (pool(LEVEL + ", topology: x"), "both topology and topology_keys", "Keep one"),
        (pool(LEVEL, "default"), "cannot honour topology", "local, kai"),
        (pool("topology: x", "default"), "cannot honour topology", "local, kai"),
        (pool("nvlink: true", "default"), "no ComputeDomain support", "local, kai"),
        (pool("nvlink: 'yes'"), 'nvlink must be true or false, not "yes"', "without quotes"),
        (pool("backend: c"), 'there is no backend "c"', "Backends are: b"),
        (
            pool("gpus: {guarantee: 5, limit: 4, weight: 1}"),
            "guarantees 5 GPUs but limits itself to 4",
            "not be larger",
        ),
        (pool("gpus: {limit: -2}"), "must not be negative", "0"),
        (pool("gpus: {limit: 1.5}"), "must be a whole number, not 1.5", "Example"),
        (pool("max_exec_timeout: 0"), "more than zero", "no limit"),
        (pool("node_selector: {'a b': c}"), "is not a label", "Example"),
        (pool("tolerations: [{operator: Exist}]"), "operator must be Equal or Exists", 'Did you mean "Exists"?'),
        ("backends: {b: {scheduler: kia}}\npools: {p: {}}\n", "scheduler must be local or kai or default", "Allowed"),
        ("backends: {b: {scheduler: local, context: c}}\npools: {p: {}}\n", "is local and has no context", "Remove"),
        ("backends: {b: {scheduler: kai}, c: {scheduler: kai}}\npools: {p: {}}\n", "names no backend", "b, c"),
        (accounts("9-2"), 'task_accounts "9-2" names no accounts', "200000-200999"),
        (accounts("0"), "names no accounts", "other than root"),
        (accounts("root"), 'task_accounts "root" names no accounts', "other than root"),
        (accounts("5", "kai"), "task_accounts apply only to local backends", "Remove the line"),
        (accounts("5", "local, task_accounts: 6}, c: {scheduler: local"), "different task_accounts", "the same"),
        ("backends: {b: {scheduler: kai}}\npools: {P_1: {}}\n", 'the name "P_1" is not allowed', "lower-case"),
        (f"backends: {{b: {{scheduler: kai}}}}\npools: {{{'p' * 64}: {{}}}}\n", "is not allowed", "1 to 63"),
        ("backends: {b: {scheduler: kai}}\npools: {p: {}, p: {}}\n", '"p" is given twice', "Keep one"),
        ("backends: {b: {scheduler: kai}}\npools: {}\n", "pools must not be empty", "Add"),
        ("pools: {p: {}}\n", '"backends" is missing', ""),
        ("backends:\npools: {p: {}}\n", "backends must be a mapping, not empty", "value"),
        ("- a\n", "the document must be a mapping, not a list", ""),
    ],
)
def test_a_bad_configuration_is_refused_with_place_and_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        read_config(text.encode(), "coterie.yaml")
    found = [fault for fault in caught.value.faults if message in fault.message]
    assert found, caught.value.faults
    assert hint in found[0].hint
    assert found[0].place is not None
    assert found[0].place.line is not None


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = "backends:\n  b: {scheduler: x}\npools:\n  P: {}\n  q:\n    nvlinks: 1\n    backend: 3\n"
    with pytest.raises(SpecErrors) as caught:
        read_config(text.encode(), "c")
    assert [fault.place.line for fault in caught.value.faults if fault.place] == [2, 4, 6, 7]


def test_a_faulty_field_of_a_backend_hides_no_unknown_backend() -> None:
    text = "backends:\n  b: {scheduler: local, clustr: x}\npools:\n  p: {backend: zz}\n  q: {backend: b}\n"
    with pytest.raises(SpecErrors) as caught:
        read_config(text.encode(), "c")
    assert [fault.message for fault in caught.value.faults] == [
        'unknown field "clustr" in "b"',
        'there is no backend "zz"',
    ]


def test_minus_one_is_no_limit() -> None:
    text = pool("gpus: {guarantee: -1, limit: -1, weight: 1}")
    assert read_config(text.encode(), "c").pools["p"].gpus == GpuQuota(None, None, 1)


def test_a_partial_quota_is_noticed() -> None:
    (notice,) = read_config(pool("gpus: {guarantee: 4}").encode(), "c").notices
    assert notice.code == "QuotaIncomplete"
    assert notice.message == 'pool "p": there is no limit and its weight is 1'
    assert notice.place is not None


def test_levels_are_read_from_one_word() -> None:
    assert parse_levels("zone=a/z, rack=r") == Topology.of(("zone", "a/z"), ("rack", "r"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '"" is not NAME=LABEL'),
        ("rack", '"rack" is not NAME=LABEL'),
        ("rack=", '"" is not a node label: it is empty'),
        ("=x", "level name"),
        ("a=x,a=y", "defined twice"),
        ("a=x,b=x", "used by two levels"),
        ("a=kubernetes.io/hostname,b=x", "must be the last level"),
    ],
)
def test_bad_levels_are_refused(text: str, message: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        parse_levels(text)
    assert any(message in fault.message and fault.message.startswith("--levels") for fault in caught.value.faults)


def test_a_pool_can_be_made_for_one_call() -> None:
    topology = parse_levels("rack=r")
    assert Pool.for_levels(topology).topology == topology
    assert Pool("p", "b", "kai", topology_name="t").with_topology(topology).topology == topology


def config_of(*names: str) -> Config:
    return Config({}, {name: Pool(name, "b", "kai") for name in names}, "coterie.yaml")


def test_the_named_pool_wins_then_the_workflows_then_the_only_one() -> None:
    config = config_of("a", "b")
    assert choose_pool(config, "b", "a").name == "b"
    assert choose_pool(config, None, "a").name == "a"
    assert choose_pool(config_of("a")).name == "a"


@pytest.mark.parametrize(
    ("names", "asked", "kind", "hint"),
    [
        (("a1", "b1"), (None, None), UsageError, "a1, b1"),
        (("research", "b"), ("reserch", None), NotFound, 'Did you mean "research"?'),
        (("a",), (None, "z"), NotFound, "Pools are: a."),
    ],
)
def test_no_pool_is_a_clear_error_that_lists_pools(
    names: tuple[str, ...], asked: tuple[str | None, str | None], kind: type[CoterieError], hint: str
) -> None:
    with pytest.raises(kind) as caught:
        choose_pool(config_of(*names), *asked)
    assert hint in caught.value.hint
