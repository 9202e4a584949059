"""Records nearly as large as their topic, none of which can be used: the view goes on, and each has its letter."""

from __future__ import annotations

import base64
import os

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from dovetail.broker import clients
from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import await_reading, input_ends
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView

pytestmark = pytest.mark.services

DIGITS = b'{"id":1,"price":0.%s}' % (b"1" * 900_000)
NOISE = b'{"id":"%s"}' % base64.b64encode(os.urandom(660_000))


def narrow(session: Session, topic: str, message_bytes: int) -> None:
    """What the query that runs does not know of."""
    entry = ConfigEntry("max.message.bytes", str(message_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = clients.admin(session.context.brokers)
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(30)


def produce(session: Session, topic: str, *values: bytes) -> None:
    producer = clients.producer(session.context.brokers, {"message.max.bytes": 2_000_000})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def settle(session: Session, view: str) -> None:
    definition = session.context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    plan = plan_query(view, definition, session.context.catalog)
    await_reading(session.context, view, input_ends(session.context, plan))


def rows_of(session: Session, query: str) -> list[tuple[object, ...]]:
    result = session.execute(parse_one(query))
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]


def test_a_view_goes_on_over_records_that_no_letter_holds(session_of_runners: Session) -> None:
    session = session_of_runners
    session.run("CREATE STREAM sums (id int64, price decimal(10, 2))")
    session.run("CREATE MATERIALIZED VIEW sold AS SELECT id, price FROM sums")
    produce(session, "sums", b'{"id":1,"price":1.5}', DIGITS, NOISE)
    settle(session, "sold")
    narrow(session, "sold.dead_letter", 20_000)
    produce(session, "sums", NOISE, b'{"id":2,"price":2.5}')
    settle(session, "sold")
    assert rows_of(session, "SELECT id FROM table(sold) ORDER BY id") == [(1,), (2,)]
    found = rows_of(session, "SELECT whole_bytes, length(value), reason FROM table(sold.dead_letter)")
    assert {row[:2] for row in found} == {(None, len(DIGITS)), (None, len(NOISE)), (len(NOISE), 0)}
    assert all(len(str(reason)) < 200 for *_, reason in found)
