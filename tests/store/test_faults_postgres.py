"""A Postgres server that is gone, frozen, full or closed is reported and survived without loss."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import psycopg
import pytest

from coterie.errors import Unavailable, UsageError
from coterie.store import NewWorkflow, Store, WorkflowRecord
from coterie.store.group_commit import _Pending
from tests.eventually import eventually
from tests.store.builders import change, leading, new, submitted
from tests.store.postgres_server import Postgres


def test_a_server_that_is_gone_for_a_while_is_said_and_nothing_is_lost(postgres: Postgres, postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        lease = leading(store)
        one = submitted(store)
        try:
            postgres.stop()
            calls: list[Callable[[], object]] = [
                store.last_event,
                lambda: store.submit(new()),
                lambda: store.save([change(one)], lease.fence),
                store.events,
            ]
            for call in calls * 2:
                with pytest.raises(Unavailable, match=r"the database cannot be reached|it was shut down") as said:
                    call()
                assert said.value.hint
            with pytest.raises(Unavailable):
                Store.open(postgres_url)
        finally:
            postgres.start()

        assert store.unfinished() == (one,)
        store.save([change(one)], lease.fence)
        assert submitted(store).id == "train-2"


def test_a_server_that_restarted_between_two_calls_is_not_noticed(postgres: Postgres, postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        submitted(store)
        postgres.stop()
        postgres.start()

        assert submitted(store).id == "train-2"


def test_a_connection_that_breaks_in_the_middle_of_a_change_undoes_it(postgres: Postgres, postgres_url: str) -> None:
    def change_and_break(store: Store) -> None:
        with store._database.writing() as tx:
            tx.exec_driver_sql("UPDATE workflows SET status = 'RUNNING'")
            postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'")
            tx.exec_driver_sql("SELECT 1")

    with Store.open(postgres_url) as store:
        one = submitted(store)

        with pytest.raises(Unavailable, match="it was shut down"):
            change_and_break(store)

        assert store.workflow(one.id) == one


def test_a_replica_that_is_frozen_in_the_middle_of_a_change_loses_its_turn(postgres_url: str) -> None:
    def freeze(frozen: Store, other: Store) -> None:
        with frozen._database.writing() as tx:
            with pytest.raises(Unavailable, match="another replica has been writing for too long"):
                submitted(other)
            eventually(lambda: _can_submit(other), lambda: "the frozen replica keeps its turn")
            tx.exec_driver_sql("SELECT 1")

    # The frozen one keeps its turn for twice as long as the other waits for it.
    with Store.open(postgres_url, patience_s=2) as frozen, Store.open(postgres_url, patience_s=2) as other:
        with pytest.raises(Unavailable, match="the connection was idle for too long in the middle of a change"):
            freeze(frozen, other)

        assert submitted(frozen).id == "train-2"


def test_a_database_that_may_only_be_read_is_said(postgres: Postgres, postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    Store.open(postgres_url).close()
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    with Store.open(postgres_url) as store, pytest.raises(Unavailable, match="it cannot be written: it is read-only"):
        submitted(store)


def test_a_server_without_a_free_connection_is_said(postgres: Postgres, postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    Store.open(postgres_url).close()
    postgres.run(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
    postgres.run("CREATE ROLE guest LOGIN")

    try:
        with pytest.raises(Unavailable, match="too many connections"):
            Store.open(postgres_url.replace("coterie@", "guest@"))
    finally:
        postgres.run("DROP ROLE guest")


def test_a_value_that_is_too_large_fails_alone(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        large = _Pending[NewWorkflow, tuple[WorkflowRecord, bool]](new(files={secrets.token_hex(6000): b""}))
        store._submit._waiting = [large]

        assert submitted(store).id == "train-1"
        assert isinstance(large.error, UsageError)
        assert "index row" in str(large.error)


def _can_submit(store: Store) -> bool:
    try:
        submitted(store)
    except Unavailable:
        return False
    return True
