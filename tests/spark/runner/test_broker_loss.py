"""A broker that goes away under a query's writer, and comes back at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.producer_queue import Outgoing
from dovetail.broker.transactional_writer import WriteTarget, write_once
from dovetail.services.stack import Stack, temporary_stack
from dovetail.services.stack.processes import ProcessIdentity, kill
from tests.spark.kafka import values

pytestmark = pytest.mark.services


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Stack]:
    """A broker of the test's own, since it is killed."""
    with temporary_stack(tmp_path / "stack", ("kafka",), start_timeout_s=240.0) as stack:
        yield stack


def kill_broker(stack: Stack) -> None:
    [pid] = [line.pid for line in stack.status() if line.name == "kafka"]
    assert pid is not None
    kill([ProcessIdentity.of(pid)], timeout_s=30)


def test_a_writer_goes_on_when_the_broker_comes_back(own_stack: Stack) -> None:
    broker = own_stack.endpoint("kafka")
    topics.ensure(clients.admin(BrokerAddress(broker)), {"out": 1, "marks": 1})
    target = WriteTarget(BrokerAddress(broker), "query", "marks", transaction_timeout_s=60, broker_wait_s=60)

    assert write_once(target, 0, 0, lambda: [Outgoing("out", [{"key": None, "value": b'{"n":0}'}])])
    kill_broker(own_stack)
    own_stack.up(("kafka",))
    assert own_stack.endpoint("kafka") == broker
    assert write_once(target, 0, 1, lambda: [Outgoing("out", [{"key": None, "value": b'{"n":1}'}])])

    assert values(broker, "out") == [{"n": 0}, {"n": 1}]
