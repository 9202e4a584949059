"""The Python interface against a real broker: what goes in by any frame comes out as any, and changes as they come."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dovetail
from dovetail import Connection, RowChange
from dovetail.changelog.errors import SqlError, StackError, UnknownName, Unsupported
from dovetail.services.stack import Stack

pytestmark = pytest.mark.services


NUMBERS = itertools.count(1)


def connected(stack: Stack, folder: Path, **more: Any) -> Connection:
    """To the brokers of ``stack``, with a catalog of its own in ``folder``."""
    catalog = f"sqlite:///{folder / 'catalog.db'}"
    return dovetail.connect(data_dir=folder, brokers=stack.endpoint("kafka"), catalog_url=catalog, **more)


@pytest.fixture
def db(stack: Stack, tmp_path: Path) -> Iterator[Connection]:
    """One whose stream ``orders`` is over a topic of its own."""
    topic = f"python-{next(NUMBERS)}"
    with connected(stack, tmp_path) as connection:
        connection.sql(f"CREATE STREAM orders (id int64, name string DEFAULT '-') SETTINGS topic = '{topic}'")
        yield connection
        connection.sql("DROP STREAM orders")


def test_a_drop_of_what_others_use_is_agreed_to(db: Connection, stack: Stack, tmp_path: Path) -> None:
    db.sql("CREATE VIEW ids AS SELECT id FROM orders")
    with pytest.raises(Unsupported, match="also drops view ids") as refused:
        db.sql("DROP STREAM orders CASCADE")
    assert "dovetail.connect(confirm=dovetail.agreed)" in refused.value.fix
    with connected(stack, tmp_path, confirm=dovetail.agreed) as agreeing:
        agreeing.sql("DROP STREAM orders CASCADE")
    db.sql("CREATE STREAM orders (id int64)")


ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


@pytest.mark.parametrize(
    "frame",
    [
        ROWS,
        iter(ROWS),
        pa.Table.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
    ],
    ids=["dictionaries", "iterator", "arrow", "pandas", "polars", "batch"],
)
def test_a_frame_goes_in_and_comes_out(db: Connection, frame: Any) -> None:
    assert db.insert("orders", frame) == 2
    answer = db.sql("SELECT id, name FROM table(orders) ORDER BY id")
    assert answer.rows() == list(answer) == ROWS
    assert len(answer) == 2
    assert answer.arrow().to_pylist() == answer.pandas().to_dict("records") == answer.polars().to_dicts() == ROWS
    assert db.stream("orders").table().polars().sort("id").to_dicts() == ROWS


def test_values_are_given_beside_the_text(db: Connection) -> None:
    nasty = "O'Brien'; DROP STREAM orders; --"
    db.sql("INSERT INTO orders (id, name) VALUES (?, ?), (2, 'x')", [1, nasty])
    assert db.sql("SELECT id FROM table(orders) WHERE name = :name", {"name": nasty}).rows() == [{"id": 1}]
    with pytest.raises(SqlError, match="a SELECT over streams has no parameters"):
        db.sql("SELECT id FROM orders WHERE id = ?", [1])


def test_the_defaults_are_those_of_the_stream(db: Connection) -> None:
    assert db.insert("orders", pd.DataFrame({"id": [3]})) == 1
    assert db.sql("SELECT name FROM table(orders)").rows() == [{"name": "-"}]
    assert db.insert("orders", []) == 0


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([{"id": 1, "nmae": "a"}], UnknownName, 'did you mean "name"'),
        ([{"id": "x"}], SqlError, "does not fit column id"),
        ([{"id": 1}, {"id": "x"}], SqlError, "the values of id cannot be read"),
        (pd.DataFrame({"id": [1.0, 1.5]}), SqlError, "column id, row 1"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["id", "id"]), SqlError, '"id" is there twice'),
        ([{"id": 1, "_tp_time": "soon"}], SqlError, "soon does not fit column _tp_time"),
        ({"id": 1}, SqlError, "dict has no rows"),
        (7, SqlError, "int has no rows"),
    ],
)
def test_what_is_no_row_is_refused_whole(db: Connection, rows: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        db.insert("orders", rows)
    assert len(db.stream("orders").table()) == 0


def test_changes_come_as_they_are_written(db: Connection) -> None:
    db.sql("CREATE MUTABLE STREAM prices (id int64, price float64) PRIMARY KEY id")
    db.insert("prices", [{"id": 1, "price": 1.0}])
    db.sql("DELETE FROM prices WHERE id = 1")
    prices = db.stream("prices")
    there = prices.changes(from_beginning=True, until_idle=True)
    assert list(there) == [RowChange({"id": 1, "price": 1.0}, 1), RowChange({"id": 1, "price": None}, -1)]
    assert list(there) == list(there)
    assert [batch.column_names for batch in there.batches()] == [["id", "price", "_tp_delta"]]
    db.sql("DROP STREAM prices")


def test_they_come_to_a_coroutine_and_it_can_be_cancelled(db: Connection) -> None:
    async def first(count: int) -> list[RowChange]:
        found = []
        async for change in db.stream("orders").changes(from_beginning=True):
            found.append(change)
            if len(found) == count:
                return found
        raise AssertionError

    async def cancelled() -> None:
        task = asyncio.create_task(first(3))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    db.insert("orders", ROWS)
    assert sorted(asyncio.run(first(2)), key=lambda change: change.row["id"]) == [RowChange(row, 1) for row in ROWS]
    asyncio.run(cancelled())


def test_what_does_not_end_is_not_asked_for_its_end(db: Connection) -> None:
    with pytest.raises(SqlError, match="this has an end"):
        db.changes("SELECT id FROM table(orders)")
    with pytest.raises(UnknownName, match='did you mean "orders"'):
        next(iter(db.stream("order").changes()))


def test_a_statement_without_rows_says_what_it_did(db: Connection) -> None:
    assert str(db.sql("SHOW STREAMS; INSERT INTO orders (id) VALUES (1)")) == "inserted 1 row"
    assert "int64" in str(db.sql("DESCRIBE orders"))


def test_times_keep_their_instant(db: Connection) -> None:
    db.sql("CREATE STREAM at_times (at datetime64(6))")
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    db.insert("at_times", [{"at": moment}])
    assert db.stream("at_times").table().rows() == [{"at": moment}]
    db.sql("DROP STREAM at_times")


def test_settings_are_known_and_a_stack_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match='did you mean "brokers"'):
        dovetail.connect(broker="x")
    with pytest.raises(StackError, match="no stack is running"):
        dovetail.connect(data_dir=tmp_path)
