"""Batches of bounded bytes: of the records that are there, however large they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadMaxRows

from dovetail.broker.address import BrokerAddress
from dovetail.runtime.memory import batch_bytes, memory_bytes
from dovetail.spark_jobs.source.kafka_source import KafkaReader
from dovetail.spark_jobs.stages.job import Job
from tests.spark.flows import orders_clicks
from tests.spark.jobs import job_of

MOST = 4_000_000


@pytest.fixture
def batches(broker: str, topics: Callable[..., str]) -> Callable[..., Iterator[list[int]]]:
    """The bytes of each batch's records, and how many these are, until all are read."""

    def planned(orders: list[int], clicks: list[int], most: int = MOST, limit: int = 1_000_000) -> Iterator[list[int]]:
        names = topics("orders"), topics("clicks")
        producer = Producer({"bootstrap.servers": broker, "linger.ms": 20, "compression.type": "lz4"})
        sizes = dict(zip(names, (orders, clicks), strict=True))
        for topic, length in ((topic, length) for topic, of in sizes.items() for length in of):
            producer.produce(topic, bytes(length), partition=0)
        assert producer.flush(30) == 0
        reader = KafkaReader(job(broker, names).ship(), limit, "", most)
        at = {topic: {"0": 0} for topic in names}
        while any(at[topic]["0"] < len(of) for topic, of in sizes.items()):
            end = reader.latestOffset(at, ReadMaxRows(limit))
            taken = [sizes[topic][at[topic]["0"] : end[topic]["0"]] for topic in names]
            yield [sum(map(sum, taken)), sum(map(len, taken))]
            at = end
        reader.stop()

    return planned


def job(broker: str, names: tuple[str, str]) -> Job:
    made = job_of(orders_clicks(*names))
    return replace(made, topic_ids={}, target=replace(made.target, brokers=BrokerAddress(broker)))


@pytest.mark.services
def test_large_records_come_few_at_a_time(batches: Callable[..., Iterator[list[int]]]) -> None:
    """A record of each partition comes at least."""
    found = list(batches([900_000] * 12, [900_000] * 3))
    assert sum(count for _, count in found) == 15
    assert max(size for size, _ in found) <= MOST + 2 * 900_000
    assert len(found) >= 3


@pytest.mark.services
def test_small_records_come_as_many_as_have_the_bytes(batches: Callable[..., Iterator[list[int]]]) -> None:
    found = list(batches([60] * 9_000, [40] * 3_000, most=330_000))
    assert [count for _, count in found] == [6_000, 6_000]


@pytest.mark.services
def test_the_number_of_records_is_bounded_too(batches: Callable[..., Iterator[list[int]]]) -> None:
    assert [count for _, count in batches([60] * 300, [40] * 300, limit=400)] == [400, 200]


@pytest.mark.services
def test_records_that_become_large_are_not_taken_for_small_ones(batches: Callable[..., Iterator[list[int]]]) -> None:
    found = list(batches([*itertools.repeat(60, 5_000), *itertools.repeat(900_000, 12)], [50] * 5_000))
    assert max(size for size, _ in found) <= MOST + 2 * 900_000


def test_what_a_batch_may_have_is_a_share_of_the_memory() -> None:
    assert 32 << 20 <= batch_bytes() <= 256 << 20
    assert batch_bytes() <= max(memory_bytes() // 64, 32 << 20)
