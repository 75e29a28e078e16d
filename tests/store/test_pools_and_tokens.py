"""Stored pools and tokens: versions, conflicts, uniqueness and deletion."""

from __future__ import annotations

import pytest

from coterie.errors import Conflict, NotFound
from coterie.store import PoolRecord, Store, Token
from tests.store.builders import NOW, finish, leading, submitted


def test_a_pool_is_created_changed_and_listed(store: Store) -> None:
    store.put_pool("b", {"backend": "lab"}, NOW)
    made, changed = store.put_pool("a", {"backend": "lab"}, NOW)
    assert (made, changed) == (PoolRecord("a", {"backend": "lab"}, 1, NOW, NOW), True)

    now, changed = store.put_pool("a", {"backend": "prod"}, NOW + 5)

    assert (now, changed) == (PoolRecord("a", {"backend": "prod"}, 2, NOW, NOW + 5), True)
    assert store.pool("a") == now
    assert [one.name for one in store.pools()] == ["a", "b"]


def test_an_identical_update_changes_nothing(store: Store) -> None:
    first, _ = store.put_pool("a", {"x": [1, {"y": 2}]}, NOW)

    assert store.put_pool("a", {"x": [1, {"y": 2}]}, NOW + 5) == (first, False)


def test_a_change_of_a_pool_may_name_the_version_it_is_based_on(store: Store) -> None:
    store.put_pool("a", {"n": 1}, NOW, version=0)
    store.put_pool("a", {"n": 2}, NOW, version=1)

    with pytest.raises(Conflict, match=r'^pool "a" is at version 2, not version 1$'):
        store.put_pool("a", {"n": 3}, NOW, version=1)
    with pytest.raises(Conflict, match=r'^pool "a" is at version 2, not a new pool$'):
        store.put_pool("a", {"n": 3}, NOW, version=0)
    with pytest.raises(Conflict, match=r'^pool "b" does not exist, not version 4$'):
        store.put_pool("b", {"n": 3}, NOW, version=4)
    with pytest.raises(Conflict, match=r'^pool "a" is at version 2, not version 1$'):
        store.delete_pool("a", version=1)

    assert store.pool("a").spec == {"n": 2}


def test_a_pool_in_use_cannot_be_deleted(store: Store) -> None:
    lease = leading(store)
    store.put_pool("gb200", {}, NOW)
    users = [submitted(store) for _ in range(5)]

    with pytest.raises(
        Conflict, match=r'^pool "gb200" is in use by train-1, train-2, train-3, train-4, train-5$'
    ) as caught:
        store.delete_pool("gb200")
    assert caught.value.details == {"workflows": [user.id for user in users]}
    for user in users:
        finish(store, user, lease)
    store.delete_pool("gb200")

    assert store.pools() == ()


def test_an_unknown_pool_is_not_found_and_a_near_one_named(store: Store) -> None:
    with pytest.raises(NotFound, match=r'^there is no pool "gb20"$') as nothing:
        store.pool("gb20")
    store.put_pool("gb200", {}, NOW)
    with pytest.raises(NotFound) as near:
        store.delete_pool("gb20")

    assert nothing.value.hint == "No pools are stored."
    assert near.value.hint == 'Did you mean "gb200"?'


def test_a_token_is_found_by_its_hash_until_it_is_deleted(store: Store) -> None:
    ann = Token("t1", "ann's laptop", "ab12", "user", "ann", NOW, NOW + 60)
    root = Token("t2", "root", "cd34", "admin", "root", NOW + 1)
    for token in (root, ann):
        store.add_token(token)

    assert store.tokens() == (ann, root)
    assert store.token_by_hash("ab12") == ann
    assert store.token_by_hash("AB12") is None

    store.delete_token("t1")

    assert store.token_by_hash("ab12") is None
    with pytest.raises(NotFound, match=r'there is no token "t1"'):
        store.delete_token("t1")


def test_tokens_share_neither_id_nor_name_nor_hash(store: Store) -> None:
    store.add_token(Token("t", "n", "h", "user", "ann", NOW))

    for same in (("t", "n2", "h2"), ("t2", "n", "h2"), ("t2", "n2", "h")):
        with pytest.raises(Conflict):
            store.add_token(Token(*same, "user", "ann", NOW))
