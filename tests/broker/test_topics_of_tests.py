"""Two tests that name a topic alike: neither meets the records of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.services.session import Session
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Catalog
from tests.spark.kafka import messages, send

pytestmark = pytest.mark.services


@pytest.mark.parametrize("value", [1, 2])
def test_records_go_with_their_test(broker: str, value: int) -> None:
    assert TopicAdmin(BrokerAddress(broker), 10.0).create("of-one-name", TopicShape(1))
    send(broker, "of-one-name", [{"n": value}])
    assert [message.value() for message in messages(broker, "of-one-name")] == [b'{"n":%d}' % value]


@pytest.mark.parametrize("value", [1, 2])
def test_so_do_those_of_a_session(broker: str, tmp_path: Path, value: int) -> None:
    """Which drops nothing."""
    settings = temporary_settings(tmp_path, brokers=broker)
    with Session(settings, Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}"), BrokerAddress(broker)) as session:
        session.run(f"CREATE STREAM of_one_name (n int); INSERT INTO of_one_name VALUES ({value})")
    assert [message.value() for message in messages(broker, "of_one_name")] == [b'{"n":%d}' % value]
