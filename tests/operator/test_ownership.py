"""Kinds that another operator judges, as registrations come and go."""

from __future__ import annotations

from typing import Any

from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, CacheEntry, ChangeType
from coterie.kube.kinds import CLUSTER_TOPOLOGY, POD_CLIQUE_SET, VALIDATING_WEBHOOKS
from coterie.kube.watch import Batch
from coterie.kube.wire import Meta
from coterie.operator.ownership import Ownership
from coterie.operator.watches import SharedWatch
from coterie.operator.webhook.registration import NAME

Object = dict[str, Any]
KINDS = (CLUSTER_TOPOLOGY, POD_CLIQUE_SET)


def change(name: str, *plurals: str, gone: bool = False) -> CacheChange[Object]:
    return registration(name, "CREATE", *plurals, gone=gone)


def registration(name: str, operation: str, *plurals: str, gone: bool = False) -> CacheChange[Object]:
    rules = [{"apiGroups": ["grove.io"], "operations": [operation], "resources": [*plurals]}]
    value = {"metadata": {"name": name}, "webhooks": [{"name": "a.example.com", "rules": rules}]}
    did = ChangeType.DELETED if gone else ChangeType.ADDED
    return CacheChange(did, CacheEntry(Meta(name=name), value))


def names(ownership: Ownership) -> list[str]:
    return [kind.name for kind in ownership.kinds]


def test_kinds_are_left_to_another_operator_for_as_long_as_it_judges_them(api: Api) -> None:
    watch = SharedWatch(api, VALIDATING_WEBHOOKS)
    ownership = Ownership(KINDS, (NAME,), watch)
    told: list[frozenset[str]] = []
    ownership.subscribe(told.append)
    assert names(ownership) == []

    watch._take(Batch((change(NAME, "clustertopologies", "podcliquesets"),), whole=True))
    assert names(ownership) == ["ClusterTopology", "PodCliqueSet"]
    watch._take(Batch((registration("policy-for-deletions", "DELETE", "podcliquesets"),)))
    assert names(ownership) == ["ClusterTopology", "PodCliqueSet"]
    watch._take(Batch((change("grove", "podcliquesets"), change("policy", "*"))))
    assert names(ownership) == ["ClusterTopology"]
    watch._take(Batch((change("grove", "podcliquesets", gone=True),)))
    assert names(ownership) == ["ClusterTopology", "PodCliqueSet"]
    assert told == [frozenset({kind.name for kind in KINDS}), frozenset({"PodCliqueSet"}), frozenset({"PodCliqueSet"})]


def test_without_registrations_every_kind_is_owned(api: Api) -> None:
    watch = SharedWatch(api, VALIDATING_WEBHOOKS)
    ownership = Ownership(KINDS, (NAME,), watch)
    watch._take(Batch((), whole=True))

    assert names(ownership) == ["ClusterTopology", "PodCliqueSet"]


def test_kinds_that_were_named_are_owned_whoever_else_judges_them() -> None:
    ownership = Ownership((POD_CLIQUE_SET,), (NAME,), None)

    assert ownership.owns("PodCliqueSet")
    assert not ownership.owns("ClusterTopology")
