"""All queries as views of one stack, over Kafka: Spark and a lookup worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from dovetail.services.session import Session
from dovetail.services.session.input_progress import await_caught_up
from dovetail.services.stack.components import COMPONENT_NAMES
from dovetail.services.stack.temporary import temporary_stack
from dovetail.sql.planner import plan_query
from tests.nexmark.inputs import EVENTS, INPUTS, STREAM, records
from tests.nexmark.queries import QUERIES, TABLES, WINDOWED, once
from tests.oracles.batch import answer, near
from tests.spark.changelog import summed
from tests.spark.kafka import send

pytestmark = pytest.mark.services
VIEWS = QUERIES | {f"{name}_once": once(name) for name in WINDOWED}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with (
        temporary_stack(tmp_path, COMPONENT_NAMES) as stack,
        Session.open(stack.connected_settings()) as opened,
    ):
        yield opened


def test_every_view_holds_the_batch_result(session: Session) -> None:
    """Half of the events are there before the views are, the others come while they run."""
    half = EVENTS // 2
    session.run(TABLES)
    write(session, "side_input", INPUTS["side_input"], key="key")
    for table, rows in STREAM.events(0, half).items():
        write(session, table, rows)
    for name, query in VIEWS.items():
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {query} SETTINGS buckets = 1")
    for table, rows in STREAM.events(half, EVENTS).items():
        write(session, table, rows)
        close_windows(session, table)
    differing = [name for name in VIEWS if held(session, name) != expected(name)]
    assert differing == []


def held(session: Session, view: str) -> object:
    context = session.context
    definition = context.catalog.get(view).materialized_view
    assert definition is not None
    await_caught_up(context, plan_query(view, definition, context.catalog))
    return near(summed(context.brokers.servers, view).elements())


def expected(view: str) -> object:
    return near(answer(INPUTS, QUERIES[view.removesuffix("_once")]).elements())


def write(session: Session, table: str, rows: pa.Table, key: str | None = None) -> None:
    keys, values = zip(*records(rows, key), strict=True)
    send(session.context.brokers.servers, table, values, keys)


def close_windows(session: Session, table: str) -> None:
    """A heartbeat in each partition, when all windows have ended."""
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    end_ms = STREAM.base_ms + EVENTS * 1_000 // STREAM.rate + 60_000
    for partition in range(session.context.topics.partitions()[table]):
        producer.produce(table, partition=partition, timestamp=end_ms)
    assert producer.flush(30) == 0
