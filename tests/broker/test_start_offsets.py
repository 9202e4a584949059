"""Where scans begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.start_offsets import least_offsets, resolved_first_offsets
from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.graph import Dataflow
from tests.spark.flows import orders_clicks
from tests.spark.kafka import messages, send, trim

pytestmark = pytest.mark.services


@pytest.fixture
def left(broker: str, topics: Callable[..., str]) -> str:
    topic = topics("left", partitions=2)
    send(broker, topic, [{"k": n, "a": "x"} for n in range(8)], keys=[b"same key"] * 8)
    return topic


def resolved(broker: str, dataflow: Dataflow, seek: str, latest: bool = False) -> dict[int, int]:
    scan = replace(dataflow.scans[0], start_offsets=seek, starts_latest=latest)
    return resolved_first_offsets(clients.admin(BrokerAddress(broker)), [scan])[0]


def test_the_beginning_the_end_offsets_and_times(broker: str, left: str) -> None:
    dataflow = orders_clicks(left, left)
    found = messages(broker, left)
    full = found[0].partition() or 0
    end = {full: 8, 1 - full: 0}

    assert resolved(broker, dataflow, "") == {0: 0, 1: 0}
    assert resolved(broker, dataflow, "", latest=True) == end
    assert resolved(broker, dataflow, "earliest", latest=True) == {0: 0, 1: 0}
    assert resolved(broker, dataflow, "latest") == end
    assert resolved(broker, dataflow, "5,3") == {0: 5, 1: 3}
    assert resolved(broker, dataflow, str(found[0].timestamp()[1]))[full] == 0
    assert resolved(broker, dataflow, "9000000000000") == end


def test_a_wish_that_does_not_fit_is_refused(broker: str, left: str) -> None:
    dataflow = orders_clicks(left, left)

    with pytest.raises(Unsupported, match="2 partitions"):
        resolved(broker, dataflow, "1,2,3")
    with pytest.raises(Unsupported, match="'yesterday'"):
        resolved(broker, dataflow, "yesterday")


def test_two_scans_of_a_topic_read_it_once_from_the_earlier_start() -> None:
    least = least_offsets(orders_clicks("same", "same").scans, [{0: 7, 1: 0}, {0: 4, 1: 9}])

    assert least == {"same": {0: 4, 1: 0}}


def test_a_first_record_that_is_gone_is_skipped(broker: str, topics: Callable[..., str]) -> None:
    topic = topics("trimmed", partitions=1)
    send(broker, topic, [{"k": n, "a": "x"} for n in range(5)])
    trim(broker, topic, 3)

    assert resolved(broker, orders_clicks(topic, topic), "") == {0: 3}
    assert resolved(broker, orders_clicks(topic, topic), "2") == {0: 3}
    assert resolved(broker, orders_clicks(topic, topic), "4") == {0: 4}
