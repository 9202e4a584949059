"""TPC-H: its 22 queries as materialized views over tables that change hold, after every batch, DuckDB's answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine
from tests.tpch.contents import QUOTIENTS, SCHEMA, Change, Contents, Oracle, queries, query, rows_of

YEARS = {"l_year", "o_year"}
"""EXTRACT: numeric here, as in PostgreSQL, and bigint in DuckDB."""
BATCHES = 4
FIRST = 22
"""Of the seeds, one for each query, with which every query has rows, and other ones later."""


def running(name: str) -> SqlEngine:
    """An engine with the tables of TPC-H and the view ``name``, before any row."""
    engine = SqlEngine(MemoryHost(rescaled=(3, 2)))
    for statement in SCHEMA:
        engine.create(statement)
    engine.create(f"CREATE MATERIALIZED VIEW {name} AS {query(name)}")
    return engine


def send(engine: SqlEngine, changes: list[Change]) -> None:
    for table in dict.fromkeys(change.table for change in changes):
        rows = [{**one.row, "_tp_delta": -1} if one.deleted else one.row for one in changes if one.table == table]
        engine.insert(table, rows)
    engine.drain()


def content(engine: SqlEngine, name: str) -> pa.Table:
    held = engine._content(name)  # noqa: SLF001
    return held.drop_columns([column for column in held.column_names if column.startswith("_tp_")])


@pytest.mark.parametrize("name", queries())
def test_a_view_holds_what_duckdb_answers(name: str) -> None:
    contents = Contents.of(FIRST + int(name[1:]))
    engine, answers = running(name), []
    for batch in range(BATCHES):
        changes = contents.changes(60) if batch else [*contents.fixed(), *contents.changes(1400, deletes=0.05)]
        send(engine, list(changes))
        answers.append(rows_of(Oracle(contents).answer(query(name))))
        assert rows_of(content(engine, name)) == answers[-1]
    assert any(value is not None for answer in answers for row in answer for value in row), "no rows to compare"
    assert any(answer != answers[0] for answer in answers), "the answer never changes"


@pytest.mark.parametrize("name", queries())
def test_the_types_are_those_of_duckdb_or_of_postgres(name: str) -> None:
    ours, theirs = content(running(name), name).schema, Oracle(Contents.of(0)).answer(query(name)).schema
    assert ours.names == theirs.names
    for column, kind in zip(ours, theirs.types, strict=True):
        if column.name in QUOTIENTS:
            assert (column.type, kind) == (pa.decimal128(38, 6), pa.float64())
        elif column.name in YEARS:
            assert (column.type, kind) == (pa.decimal128(19, 0), pa.int64())
        elif pa.types.is_decimal(kind) and kind.scale == 0:
            # A sum of integers: bigint in PostgreSQL, hugeint in DuckDB.
            assert column.type == pa.int64()
        else:
            assert column.type == kind
