"""A topic that changes under a running view: it gets more partitions, or loses records before they are read."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import RecordsGone
from tests.spark.conftest import Queries
from tests.spark.flows import orders_clicks
from tests.spark.kafka import multiset, send, trim, values

pytestmark = pytest.mark.services
WAIT_S = 60.0


def test_partitions_that_are_added_are_read_from_their_beginning(
    broker: str, topics: Callable[..., str], queries: Queries
) -> None:
    left, right, name = topics("left"), topics("right"), queries.new_name()
    dataflow = orders_clicks(left, right)
    send(broker, right, [{"k": k, "b": "y"} for k in range(4)])
    send(broker, left, [{"k": 0, "a": "x"}])
    query = queries.start(dataflow, name)
    queries.drain(query, dataflow)

    # Written at once: before the view knows that there are more.
    topic_admin.widen(clients.admin(BrokerAddress(broker)), left, 4)
    producer = Producer({"bootstrap.servers": broker})
    for k in range(1, 4):
        producer.produce(left, b'{"k": %d, "a": "x"}' % k, partition=k)
    assert producer.flush(30) == 0

    queries.drain(query, dataflow)
    assert query.progress().offsets[left] == {0: 1, 1: 1, 2: 1, 3: 1}
    query.stop()
    again = queries.start(dataflow, name)
    queries.drain(again, dataflow)
    assert multiset(values(broker, name)) == {(k, "x", "y"): 1 for k in range(4)}


def test_records_that_go_before_they_are_read_end_the_view_with_a_statement(
    broker: str, topics: Callable[..., str], queries: Queries
) -> None:
    left, right, name = topics("left"), topics("right"), queries.new_name()
    dataflow = orders_clicks(left, right)
    send(broker, right, [{"k": 1, "b": "y"}])
    send(broker, left, [{"k": 1, "a": "x"}])
    query = queries.start(dataflow, name)
    queries.drain(query, dataflow)
    query.stop()
    send(broker, left, [{"k": 1, "a": "gone"}, {"k": 1, "a": "still there"}])
    trim(broker, left, 2)

    query = queries.start(dataflow, name)
    deadline = time.monotonic() + WAIT_S
    while (failure := query.error()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert isinstance(failure, RecordsGone), str(failure)
    assert f"records of {left}[0] are gone" in failure.what
    assert "longer retention" in failure.fix
    assert not failure.retry
    assert multiset(values(broker, name)) == {(1, "x", "y"): 1}
