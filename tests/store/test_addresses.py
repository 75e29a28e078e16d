"""Database addresses that cannot be used, and driver errors: the messages for users."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from coterie.errors import CoterieError, NotFound, Unavailable, UsageError
from coterie.store import Store
from coterie.store.databases import postgres as on_postgres
from coterie.store.databases import sqlite as on_sqlite
from coterie.store.databases.database import database


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        ("", UsageError, "the store needs a file"),
        ("sqlite://", UsageError, "the store needs a file"),
        ("sqlite:///:memory:", UsageError, "the store needs a file"),
        ("sqlite:///file:x?mode=memory&uri=true", UsageError, "the store needs a file"),
        ("mysql://u:secret@h/db", UsageError, 'the store cannot be of type "mysql"'),
        ("postgresql+asyncpg://u:secret@h/db", UsageError, r'of type "postgresql\+asyncpg"'),
        ("postgresql://u:secret@h:port/db", UsageError, "the store's URL cannot be read"),
        ("postgresql:/x", UsageError, "the store's URL cannot be read"),
        ("/nowhere/at/all.db", NotFound, "there is no folder /nowhere/at"),
        ("sqlite:////nowhere/at/all.db", NotFound, "there is no folder /nowhere/at"),
        ("/", UsageError, "/ is a folder"),
        ("/\0", UsageError, "the store's path cannot be read"),
        ("sqlite://host/x.db", UsageError, "the store's path cannot be read"),
        ("sqlite:////x.db?nonsense=1", UsageError, "the store's path cannot be read"),
        ("postgresql://u:secret@127.0.0.1:1/db", Unavailable, "the database cannot be reached"),
        ("postgresql://u@127.0.0.1:1/db?password=secret", Unavailable, "the database cannot be reached"),
        ("postgresql://u@127.0.0.1:1/db?nonsense=1", Unavailable, "nonsense"),
        ("postgresql://u@/db?host=/nowhere", Unavailable, "the database cannot be reached"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_without_its_password(
    url: str, kind: type[CoterieError], said: str
) -> None:
    with pytest.raises(kind, match=said) as raised:
        Store.open(url, patience_s=1)

    assert "secret" not in str(raised.value) + raised.value.hint
    assert raised.value.hint


def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_postgres, "find_spec", lambda _: None)

    with pytest.raises(UsageError, match="the Postgres driver is not installed") as said:
        Store.open("postgresql://h/db")

    assert said.value.hint == "Install it: pip install 'coterie[postgres]'"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("53100", "its disk is full"),
        ("57P03", "it is starting up or shutting down"),
        ("57014", "it took too long"),
        ("42501", "the user may not do this"),
        ("XX000", r"the database failed: boom \(XX000\)"),
        (None, "the database cannot be reached: boom"),
    ],
)
def test_what_a_server_says_is_put_into_words(state: str | None, said: str) -> None:
    class DriverError(Exception):
        sqlstate = state

    error = on_postgres.translated(DriverError("boom\nDETAIL: much more"), "postgresql://h/db")

    assert isinstance(error, Unavailable)
    assert str(error).startswith("postgresql://h/db: ")
    with pytest.raises(Unavailable, match=said):
        raise error
    assert error.hint


def test_what_sqlite_says_is_put_into_words_whatever_it_is() -> None:
    for code in range(256):
        error = on_sqlite.translated(SimpleNamespace(sqlite_errorcode=code | 0x300), "x.db")

        assert str(error).startswith("x.db")
        assert error.hint


def test_a_url_is_shown_without_its_password() -> None:
    made = database("postgresql://ann:secret@h:5/db?host=/run/pg&password=secret&sslmode=require", 1)

    assert made.name == "postgresql://ann@h:5/db?host=%2Frun%2Fpg"
