"""Queries of TPC-H as views of one stack, over the same topics, through Kafka and Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import await_caught_up
from dovetail.services.stack.temporary import temporary_stack
from dovetail.sql.planner import plan_query
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateStream
from tests.conformance.records import Record, deleted, inserted
from tests.spark.kafka import send
from tests.tpch.contents import SCHEMA, Change, Contents, Oracle, query, rows_of

pytestmark = pytest.mark.services

VIEWS = ("q01", "q04", "q06", "q11", "q12", "q13", "q15", "q16", "q17", "q18", "q20", "q21", "q22")
"""Those with few joins: subqueries of every sort, and groups."""
SEED = 3
"""With it every one of them has rows, and others at the end than in the beginning."""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with (
        temporary_stack(tmp_path, ("kafka", "spark"), start_timeout_s=240.0) as stack,
        Session.open(stack.connected_settings()) as opened,
    ):
        yield opened


def test_every_view_holds_what_duckdb_answers(session: Session) -> None:
    """Some rows are there before the views are, others come, change and go while they run."""
    contents = Contents.of(SEED)
    for statement in SCHEMA:
        session.run(statement)
    write(session, [*contents.fixed(), *contents.changes(900, deletes=0.05)])
    early = answers_of(contents)
    for name in VIEWS:
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {query(name)} SETTINGS buckets = 1")
    for _ in range(3):
        write(session, contents.changes(150))
    answers = answers_of(contents)
    assert [name for name in VIEWS if rows_of(held(session, name)) != answers[name]] == []
    assert [name for name in VIEWS if answers[name] == early[name]] == []


def answers_of(contents: Contents) -> dict[str, Counter[tuple[object, ...]]]:
    oracle = Oracle(contents)
    return {name: rows_of(oracle.answer(query(name))) for name in VIEWS}


def write(session: Session, changes: Iterable[Change]) -> None:
    """Each change as a record of its table, those of a table in their order."""
    records: dict[str, list[Record]] = {}
    for change in changes:
        definition = session.context.catalog.get(change.table).definition
        assert isinstance(definition, CreateStream)
        made = deleted if change.deleted else inserted
        records.setdefault(change.table, []).extend(made(Stream.declared(definition).schema, [change.row]))
    for table, of_table in records.items():
        keys, values = [one.key for one in of_table], [one.value for one in of_table]
        send(session.context.brokers.servers, table, values, keys)


def held(session: Session, name: str) -> pa.Table:
    context = session.context
    definition = context.catalog.get(name).materialized_view
    assert definition is not None
    await_caught_up(context, plan_query(name, definition, context.catalog))
    (answer,) = session.run(f"SELECT * FROM table({name})")
    assert isinstance(answer, Rows)
    return answer.table
