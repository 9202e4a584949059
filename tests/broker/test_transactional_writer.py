"""The exactly-once sink against a real broker, without Spark."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from dovetail.broker import transactional_writer as sink
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.producer_queue import Outgoing
from dovetail.broker.transactional_writer import (
    TransactionalWriter,
    WriteTarget,
    fence,
    transactional_producer,
    write_once,
)
from dovetail.changelog.errors import CheckpointMismatch, EnvironmentFault, ServiceUnavailable
from tests.spark.kafka import messages

pytestmark = pytest.mark.services
_identities = itertools.count()


@pytest.fixture
def target(broker: str, topics: Callable[..., str]) -> WriteTarget:
    return WriteTarget(
        BrokerAddress(broker), f"sink-test-{next(_identities)}", topics("marks", partitions=4), 60.0, 30.0
    )


@pytest.fixture
def output(topics: Callable[..., str]) -> str:
    return topics("output")


def batch(output: str, *words: str) -> list[Outgoing]:
    return [Outgoing(output, [{"key": b"k", "value": word.encode()} for word in words])]


def read(broker: str, output: str) -> list[bytes | None]:
    return [message.value() for message in messages(broker, output)]


def test_a_batch_that_was_written_is_skipped(broker: str, target: WriteTarget, output: str) -> None:
    assert write_once(target, 0, 0, lambda: batch(output, "a"))
    assert not write_once(target, 0, 0, lambda: batch(output, "a"))
    assert write_once(target, 0, 1, lambda: batch(output, "b"))

    assert read(broker, output) == [b"a", b"b"]


def test_the_mark_outlives_the_process(broker: str, target: WriteTarget, output: str) -> None:
    write_once(target, 0, 6, lambda: batch(output, "a"))
    sink.writers.clear()

    assert not write_once(target, 0, 6, lambda: batch(output, "a"))
    assert read(broker, output) == [b"a"]


def test_a_writer_that_nobody_asks_for_any_more_is_forgotten(broker: str, target: WriteTarget, output: str) -> None:
    """As those of dropped queries, where the worker serves others. It is opened again where it is asked for."""
    sink.writers.clear()
    kept, unused = target.transactional_id(0), target.transactional_id(1)
    write_once(target, 1, 0, lambda: batch(output, "a"))
    write_once(target, 0, 0, lambda: batch(output, "b"))
    write_once(target, 0, 1, lambda: batch(output, "c"))
    assert list(sink.writers) == [unused, kept]

    sink.writers[unused].used_s -= 3_600.0
    write_once(target, 0, 2, lambda: batch(output, "d"))

    assert list(sink.writers) == [kept]
    assert not write_once(target, 1, 0, lambda: batch(output, "a"))
    assert write_once(target, 1, 1, lambda: batch(output, "e"))
    assert read(broker, output) == [b"a", b"b", b"c", b"d", b"e"]


def test_half_a_batch_is_completed_by_the_replay(broker: str, target: WriteTarget, output: str) -> None:
    """Partition 0 committed batch 7; partition 1 was killed with its records sent and its transaction open."""
    write_once(target, 0, 7, lambda: batch(output, "p0"))
    _sent_and_killed(target, 1, output, b"p1")
    sink.writers.clear()

    assert not write_once(target, 0, 7, lambda: batch(output, "p0"))
    assert write_once(target, 1, 7, lambda: batch(output, "p1"))
    assert read(broker, output) == [b"p0", b"p1"]


def test_a_start_aborts_what_a_dead_process_left_open(broker: str, target: WriteTarget, output: str) -> None:
    """Until then, read_committed readers of the topic would wait."""
    _sent_and_killed(target, 0, output, b"never committed")
    write_once(target, 1, 0, lambda: batch(output, "committed"))

    fence(target, 2)

    assert read(broker, output) == [b"committed"]


def test_a_fenced_writer_reads_the_mark_again(broker: str, target: WriteTarget, output: str) -> None:
    """The worker of batch 0 gets the partition back at batch 2; another one had it in between."""
    write_once(target, 0, 0, lambda: batch(output, "zero"))
    other = TransactionalWriter(target, 0)
    other.write(1, batch(output, "one"))

    assert not write_once(target, 0, 1, lambda: batch(output, "one"))
    assert write_once(target, 0, 2, lambda: batch(output, "two"))
    with pytest.raises(BrokerError) as refused:
        other.write(3, batch(output, "three"))

    assert refused.value.fault is BrokerFault.FENCED
    assert read(broker, output) == [b"zero", b"one", b"two"]


def test_a_fenced_writer_has_sent_nothing(broker: str, target: WriteTarget, output: str) -> None:
    before = TransactionalWriter(target, 0)
    TransactionalWriter(target, 0)
    calls: list[str] = []

    def outgoing() -> list[Outgoing]:
        calls.append("once")
        return batch(output, "a")

    with pytest.raises(BrokerError):
        before.write(0, (part for part in outgoing()))
    assert write_once(target, 0, 0, outgoing)
    assert read(broker, output) == [b"a"]


@pytest.mark.parametrize("call", ["flush", "commit_transaction"])
def test_a_producer_that_waits_for_its_messages_says_that_it_is_fenced(
    target: WriteTarget, output: str, call: str
) -> None:
    """Also where somebody is called back for each of them."""
    producer = transactional_producer(target, 0)
    producer.init_transactions(target.call_s)
    producer.begin_transaction()
    TransactionalWriter(target, 0)
    errors: list[object] = []
    # It may hear of it while it still takes messages.
    with suppress(KafkaException):
        for _ in range(2000):
            producer.produce(output, b"v", on_delivery=lambda error, _message: errors.append(error))

    with pytest.raises(BrokerError) as refused:
        getattr(producer, call)(target.call_s)

    assert refused.value.fault is BrokerFault.FENCED


def test_a_task_of_a_query_that_has_ended_writes_no_more(broker: str, target: WriteTarget, output: str) -> None:
    """Whether its writer was open before, or is opened now; also where its query had not written yet."""
    epoch, ended = replace(target, epoch="first"), replace(target, epoch="ended")
    write_once(epoch, 0, 0, lambda: batch(output, "in its life"))
    fence(ended, 2)

    for partition in (0, 1, 0):
        with pytest.raises(EnvironmentFault, match="has ended or started again elsewhere"):
            write_once(epoch, partition, 1, lambda: batch(output, "after its end"))

    next_life = replace(target, epoch="second")
    assert fence(next_life, 2) == 0
    assert not write_once(next_life, 0, 0, lambda: batch(output, "in its life"))
    assert write_once(next_life, 1, 0, lambda: batch(output, "in the next life"))
    assert read(broker, output) == [b"in its life", b"in the next life"]


def test_a_task_that_is_about_to_commit_when_its_query_ends_has_written_nothing(
    broker: str, target: WriteTarget, output: str
) -> None:
    epoch = replace(target, epoch="first")
    write_once(epoch, 0, 0, lambda: batch(output, "before"))

    def outgoing() -> list[Outgoing]:
        fence(replace(target, epoch="ended"), 1)
        return batch(output, "meanwhile")

    with pytest.raises(EnvironmentFault, match="has ended or started again elsewhere"):
        write_once(epoch, 0, 1, outgoing)

    assert read(broker, output) == [b"before"]


def test_a_lost_broker_is_waited_for_and_then_named(target: WriteTarget, output: str) -> None:
    nobody = replace(target, brokers=BrokerAddress("127.0.0.1:1"), broker_wait_s=0.5)

    with pytest.raises(ServiceUnavailable, match=r"within 0.5 s.*\n.*127.0.0.1:1"):
        write_once(nobody, 0, 0, lambda: batch(output, "a"))


@pytest.mark.parametrize("with_headers", [False, True])
def test_a_record_too_large_is_refused_at_once(target: WriteTarget, output: str, with_headers: bool) -> None:
    huge = [Outgoing(output, [{"key": b"k", "value": bytes(size)} for size in (1, 3_000_000, 1)], with_headers)]

    with pytest.raises(ServiceUnavailable, match="refuses"):
        write_once(target, 0, 0, lambda: huge)


def test_what_the_topic_takes_no_more_is_written_smaller(
    broker: str, target: WriteTarget, topics: Callable[..., str]
) -> None:
    narrow = topics("narrow", max_message_bytes="20000")
    large, small = ([Outgoing(narrow, [{"value": os.urandom(size)}], with_headers=True)] for size in (900_000, 5))
    assert write_once(target, 0, 0, lambda: large, lambda: small)
    assert [len(value or b"") for value in read(broker, narrow)] == [5]
    with pytest.raises(ServiceUnavailable, match="refuses"):
        write_once(target, 0, 1, lambda: large, lambda: large)


def test_equal_keys_meet_the_records_of_a_java_client(
    broker: str, target: WriteTarget, topics: Callable[..., str]
) -> None:
    spread = topics("spread", partitions=5)
    java = Producer({"bootstrap.servers": broker, "partitioner": "murmur2_random"})
    for key in range(20):
        java.produce(spread, key=str(key), value=b"theirs")
    java.flush(10)

    write_once(
        target, 0, 0, lambda: [Outgoing(spread, [{"key": str(k).encode(), "value": b"ours"} for k in range(20)])]
    )

    places: dict[bytes | None, set[int | None]] = {}
    for message in messages(broker, spread):
        places.setdefault(message.key(), set()).add(message.partition())
    assert all(len(partitions) == 1 for partitions in places.values())


def _sent_and_killed(target: WriteTarget, partition: int, output: str, value: bytes) -> None:
    """A process that dies between sending and committing: its records are in the log, its transaction is open."""
    producer = sink.transactional_producer(target, partition)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(output, key=b"k", value=value)
    assert producer.flush(30) == 0


def test_a_batch_before_the_last_written_one_is_refused(broker: str, target: WriteTarget, output: str) -> None:
    """A restored backup of the checkpoint would leave out what it has not read of batch 8."""
    write_once(target, 0, 8, lambda: batch(output, "a"))
    sink.writers.clear()

    with pytest.raises(CheckpointMismatch, match="at batch 7, and batch 8 is written already"):
        write_once(target, 0, 7, lambda: batch(output, "b"))
    assert read(broker, output) == [b"a"]
    assert fence(target, 2) == 8


def test_two_that_fence_each_other_pause_and_give_up(target: WriteTarget, output: str) -> None:
    impatient = replace(target, broker_wait_s=1.0)

    def outgoing() -> list[Outgoing]:
        TransactionalWriter(impatient, 0)
        return batch(output, "a")

    with pytest.raises(ServiceUnavailable, match="did not take the output"):
        write_once(impatient, 0, 0, outgoing)


def test_an_offset_that_stays_pending_is_passed_over(target: WriteTarget, output: str) -> None:
    """As a killed broker may leave one: in a transaction that nobody will decide."""
    write_once(target, 0, 3, lambda: batch(output, "a"))
    sink.writers.clear()
    hanging = sink.transactional_producer(replace(target, identity=f"{target.identity}-of-nobody"), 0)
    hanging.init_transactions(20)
    hanging.begin_transaction()
    group = sink.offsets_reader(target.brokers, target.identity, "read_committed").consumer_group_metadata()
    hanging.send_offsets_to_transaction([TopicPartition(target.commit_marks, 0, 99)], group, 20)

    assert TransactionalWriter(target, 0).last_committed_batch == 3
    assert write_once(target, 0, 4, lambda: batch(output, "b"))
