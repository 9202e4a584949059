"""Clients that wait for a broker, or for one partition of it, that does not answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition

from dovetail.broker import clients, following, offset_ranges, reader
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.following import TakenRecords, TopicFollower
from dovetail.broker.offset_ranges import OffsetRange
from dovetail.broker.reader import TopicReader
from dovetail.broker.timed_call import within
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.services.stack import Stack, temporary_stack
from tests.repeated import repeated
from tests.spark.kafka import send

BEYOND = 1 << 40
"""An offset that no partition reaches."""


def test_what_a_call_gives_or_raises_is_passed_on() -> None:
    def refuse() -> None:
        raise BrokerError("no", BrokerFault.FENCED)

    assert within(10, lambda: 3) == 3
    with pytest.raises(BrokerError, match="no"):
        within(10, refuse)


def test_a_time_below_0_is_no_bound() -> None:
    """As the library has it."""
    assert within(-1.0, lambda: threading.Event().wait(0.05)) is False


def test_a_call_that_does_not_end_is_left_behind() -> None:
    released = threading.Event()

    with pytest.raises(TimeoutError):
        within(0.05, released.wait)

    released.set()


@contextmanager
def stopped(stack: Stack) -> Iterator[None]:
    """The broker is there, and does nothing: its connections stay open."""
    [pid] = [line.pid for line in stack.status() if line.name == "kafka"]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.services
def test_every_call_of_a_transaction_ends_in_its_time(tmp_path: Path) -> None:
    with temporary_stack(tmp_path, components=("kafka",)) as stack:
        brokers = BrokerAddress(stack.endpoint("kafka"))
        TopicAdmin(brokers, 20).create("taken", TopicShape(1))
        place = TopicPartition("taken", 0, 1)
        committed = clients.consumer(brokers, "group", clients.QUICK_RETURN)
        group = committed.consumer_group_metadata()

        def opened(name: str) -> clients.TopicProducer:
            producer = clients.producer(brokers, {"transactional.id": name, **clients.QUICK_RETURN})
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce("taken", b"{}")
            producer.flush(30)
            return producer

        sending, committing, aborting = opened("sending"), opened("committing"), opened("aborting")
        calls: Mapping[str, Callable[[], object]] = {
            "init": lambda: clients.producer(brokers, {"transactional.id": "new"}).init_transactions(1),
            "send offsets": lambda: sending.send_offsets_to_transaction([place], group, 1),
            "commit": lambda: committing.commit_transaction(1),
            "abort": lambda: aborting.abort_transaction(1),
            "committed": lambda: committed.committed([place], timeout=1),
        }
        with stopped(stack):
            for name, call in calls.items():
                begun_s = time.monotonic()
                with pytest.raises(BrokerError) as failure:
                    call()
                assert failure.value.fault is BrokerFault.TIMED_OUT, name
                # Far from the minute after which the library gives up a request.
                assert time.monotonic() - begun_s < 20, name


def growing(broker: str, topic: str, partition: int) -> AbstractContextManager[None]:
    """Records that keep coming."""
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 0})

    def one_more() -> None:
        producer.produce(topic, b"{}", partition=partition)
        producer.flush(1)

    return repeated(one_more, 0.01)


@pytest.mark.services
def test_records_of_other_partitions_are_no_sign_of_those_that_are_awaited(
    broker: str, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, brokers = topics("growing", partitions=2), BrokerAddress(broker)
    monkeypatch.setattr(offset_ranges, "_SILENCE_S", 1.0)
    monkeypatch.setattr(reader, "_SILENCE_S", 1.0)

    with growing(broker, topic, 0):
        ranges = [OffsetRange(topic, 0, 0, 3), OffsetRange(topic, 1, 0, BEYOND)]
        with pytest.raises(ServiceUnavailable, match=rf"gave no record(?s:.)*{topic}\[1\]"):
            list(offset_ranges.read(brokers, ranges))
        with pytest.raises(ServiceUnavailable, match="partitions 1"):
            list(TopicReader(brokers, topic).until({0: 3, 1: BEYOND}))


@pytest.mark.services
def test_the_time_that_is_taken_over_records_is_no_silence(
    broker: str, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, brokers = topics("slow"), BrokerAddress(broker)
    send(broker, topic, [{"n": n} for n in range(5)])
    for module in (offset_ranges, reader):
        monkeypatch.setattr(module, "_SILENCE_S", 0.3)
        monkeypatch.setattr(module, "_BATCH", 1)

    def slowly(tables: Iterable[pa.Table]) -> int:
        read = 0
        for table in tables:
            read += table.num_rows
            time.sleep(0.4)
        return read

    ranges = [OffsetRange(topic, 0, 0, 5)]
    assert slowly(records for _, _, records in offset_ranges.read(brokers, ranges)) == 5
    assert slowly(TopicReader(brokers, topic).until({0: 5})) == 5


class Counted:
    """A sink that counts, of a follower that it is given."""

    follower: TopicFollower

    def __init__(self) -> None:
        self.records = 0

    def take(self, records: TakenRecords, ended: Mapping[int, int]) -> None:
        self.records += len(records)
        self.follower.move({**records.ends, **ended})

    def after_poll(self) -> bool:
        return False

    def missed(self) -> None:
        raise AssertionError

    def unavailable(self, why: str) -> ServiceUnavailable:
        return ServiceUnavailable(why)


@pytest.mark.services
def test_a_topic_whose_records_are_overdue_is_opened_again(
    broker: str, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, brokers, sink = topics("followed", partitions=1), BrokerAddress(broker), Counted()
    opened: list[object] = []

    def consumer(*given: object) -> clients.TopicConsumer:
        opened.append(given)
        return made(*given)  # type: ignore[arg-type]

    made = clients.consumer
    monkeypatch.setattr(clients, "consumer", consumer)
    sink.follower = TopicFollower(brokers, topic, sink, group="followed", reset="error", batch=10)
    sink.follower.place({0: 0})
    sink.follower.start()
    try:
        with growing(broker, topic, 0):
            sink.follower.await_reached({0: 5})
        monkeypatch.setattr(following, "_WAIT_S", 0.2)
        with pytest.raises(ServiceUnavailable, match="not read to its end"):
            sink.follower.await_reached({0: BEYOND})
        monkeypatch.setattr(following, "_WAIT_S", 60.0)
        read = sink.follower.reached[0]
        with growing(broker, topic, 0):
            sink.follower.await_reached({0: read + 5})
    finally:
        sink.follower.close()

    assert len(opened) == 2
    # Nothing is taken twice, nor left out.
    assert sink.records == sink.follower.reached[0]
