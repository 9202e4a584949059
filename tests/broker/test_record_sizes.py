"""Ranges are weighed by looks at some of their records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import Producer

from dovetail.broker.address import BrokerAddress
from dovetail.broker.offset_ranges import OffsetRange
from dovetail.broker.record_sizes import RecordSizes

pytestmark = pytest.mark.services


@pytest.fixture
def sizes(broker: str) -> Iterator[RecordSizes]:
    made = RecordSizes(BrokerAddress(broker))
    yield made
    made.close()


@pytest.fixture
def filled(broker: str, topics: Callable[..., str]) -> Callable[..., str]:
    def fill(*partitions: Sequence[int], key: bytes | None = None, name: str = "sizes") -> str:
        topic = topics(name, partitions=len(partitions))
        producer = Producer({"bootstrap.servers": broker, "linger.ms": 20, "compression.type": "lz4"})
        for partition, lengths in enumerate(partitions):
            for length in lengths:
                producer.produce(topic, bytes(length), key, partition=partition)
        assert producer.flush(30) == 0
        return topic

    return fill


def test_records_of_one_size_have_their_weight(sizes: RecordSizes, filled: Callable[..., str]) -> None:
    topic = filled([60] * 3_000, [10] * 500, key=b"key")
    assert sizes.weigh([OffsetRange(topic, 0, 0, 3_000), OffsetRange(topic, 1, 100, 500)]) == 3_000 * 63 + 400 * 13


def test_tombstones_and_empty_ranges_weigh_nothing(sizes: RecordSizes, filled: Callable[..., str]) -> None:
    topic = filled([0] * 20)
    assert sizes.weigh([OffsetRange(topic, 0, 0, 20)]) == 0
    assert sizes.weigh([]) == 0


@pytest.mark.parametrize("large_at", ["first", "last"])
def test_what_becomes_large_on_the_way_is_found(sizes: RecordSizes, filled: Callable[..., str], large_at: str) -> None:
    lengths = [*itertools.repeat(50, 4_000), *itertools.repeat(900_000, 10)]
    topic = filled(lengths[::-1] if large_at == "first" else lengths)

    weight = sizes.weigh([OffsetRange(topic, 0, 0, len(lengths))])

    assert weight is not None
    assert weight >= sum(lengths)


def test_a_client_that_nobody_uses_is_closed(
    sizes: RecordSizes, filled: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = filled([7] * 5)
    ranges = [OffsetRange(topic, 0, 0, 5)]
    assert sizes.weigh(ranges) == 35
    sizes.rest()
    assert "_consumer" in vars(sizes)
    monkeypatch.setattr("dovetail.broker.record_sizes._UNUSED_S", -1.0)
    sizes.rest()
    assert "_consumer" not in vars(sizes)
    assert sizes.weigh(ranges) == 35


def test_a_broker_that_is_away_says_nothing() -> None:
    assert RecordSizes(BrokerAddress("127.0.0.1:1")).weigh([OffsetRange("t", 0, 0, 10)]) is None


def test_what_is_gone_weighs_nothing(sizes: RecordSizes, filled: Callable[..., str]) -> None:
    """The batch that reads it says so."""
    assert sizes.weigh([OffsetRange(filled([7] * 5), 0, 100, 200)]) == 0
