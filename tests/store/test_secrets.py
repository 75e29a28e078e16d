"""Users' data never appears in error messages, which may end up in a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from coterie.store.databases import postgres, sqlite


def _sqlite(folder: Path) -> Engine:
    url = make_url(f"sqlite:///{folder / 'store.db'}")
    sqlite.created(url)
    return sqlite.engine(url, 1.0)


def test_an_error_of_the_database_does_not_tell_what_was_to_be_written(tmp_path: Path) -> None:
    engine = _sqlite(tmp_path)
    try:
        with engine.connect() as connection, pytest.raises(DBAPIError) as raised:
            connection.execute(text("INSERT INTO nowhere VALUES (:value)"), {"value": "s3cret"})
    finally:
        engine.dispose()

    assert "nowhere" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_neither_kind_of_database_tells(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    engines = [_sqlite(tmp_path), postgres.engine(make_url("postgresql://nobody@127.0.0.1:1/nothing"), 1.0)]

    assert [engine.hide_parameters for engine in engines] == [True, True]
    for engine in engines:
        engine.dispose()
