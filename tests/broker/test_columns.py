"""Records sent out of columns, beside the same records sent as objects."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from dovetail.broker import clients, columns, producer_queue
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicProducer
from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.producer_queue import OVERHEAD_BYTES, Outgoing, OutgoingRecords, ProducerQueue
from dovetail.broker.transactional_writer import (
    TransactionalWriter,
    WriteTarget,
    transactional_producer,
    write_once,
)
from dovetail.changelog.encode import Encoded
from dovetail.changelog.errors import ServiceUnavailable
from tests.spark.kafka import messages

Record = tuple[bytes | None, bytes | None]
_identities = itertools.count()
NASTY: tuple[bytes | None, ...] = (
    None,
    b"",
    b"\x00",
    b"\x00\xff\x00",
    b"null",
    b'{"k":1}',
    "\N{SNOWMAN}".encode(),
    b"\xff\xfe not a text",
    bytes(range(256)) * 40,
)
HUGE = b"\x00h" * 450_000


def test_columns_are_sent_with_the_client_that_is_installed() -> None:
    """Another release of confluent_kafka is added to ``_RELEASES`` once the tests below pass with it."""
    assert columns.library() is not None


def records_of(pairs: list[Record]) -> Encoded:
    keys, values = zip(*pairs, strict=True) if pairs else ((), ())
    return Encoded.of(keys, values)


def nasty(count: int, *, keyed: bool) -> list[Record]:
    chance = random.Random(7)
    keys = [*(key for key in NASTY if key is not None or not keyed), *(b"%d" % number for number in range(30))]
    drawn = [(chance.choice(keys), chance.choice(NASTY)) for _ in range(count)]
    return [*itertools.product(keys, NASTY), (b"huge", HUGE), *drawn]


@pytest.fixture
def target(broker: str, topics: Callable[..., str]) -> WriteTarget:
    marks = topics("marks", partitions=4)
    return WriteTarget(BrokerAddress(broker), f"columns-test-{next(_identities)}", marks, 60.0, 30.0)


@pytest.fixture
def producer(target: WriteTarget) -> Iterator[TopicProducer]:
    """With a transaction that has begun."""
    made = transactional_producer(target, 3)
    made.init_transactions(30)
    made.begin_transaction()
    yield made
    made.purge()


def written(broker: str, topic: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for message in messages(broker, topic):
        found.setdefault(message.partition() or 0, []).append((message.key(), message.value()))
    return found


pytestmark = pytest.mark.services


def test_they_are_the_same_records_in_the_same_partitions(
    broker: str, target: WriteTarget, topics: Callable[..., str]
) -> None:
    """A key of no bytes has a partition of its own, as any other; a null has any."""
    pairs = nasty(30_000, keyed=True)
    ours, theirs = topics("ours", partitions=5), topics("theirs", partitions=5)

    def outgoing() -> list[Outgoing | OutgoingRecords]:
        return [OutgoingRecords(ours, records_of(pairs)), OutgoingRecords(theirs, records_of(pairs)).as_messages()]

    write_once(target, 0, 0, outgoing)

    assert written(broker, ours) == written(broker, theirs)
    assert len(written(broker, ours)) == 5


def test_they_go_in_order_to_the_partition_that_is_told(
    broker: str, target: WriteTarget, topics: Callable[..., str]
) -> None:
    pairs = nasty(25_000, keyed=False)
    output = topics("output", partitions=3)

    write_once(target, 0, 0, lambda: [OutgoingRecords(output, records_of(pairs), partition=2)])

    assert written(broker, output) == {2: pairs}


def test_records_without_keys_are_spread(broker: str, target: WriteTarget, topics: Callable[..., str]) -> None:
    values = [value for _, value in nasty(2_000, keyed=False)]
    output = topics("output", partitions=3)
    records = Encoded(None, pa.array(values, pa.large_binary()))

    write_once(target, 0, 0, lambda: [OutgoingRecords(output, records)])

    found = [pair for pairs in written(broker, output).values() for pair in pairs]
    assert Counter(found) == Counter((None, value) for value in values)


@pytest.mark.parametrize("pairs", [[], [(b"", b"")], [(None, None)], [(b"", None)] * 3, [(None, b"")] * 3])
def test_columns_without_a_byte(
    broker: str, target: WriteTarget, topics: Callable[..., str], pairs: list[Record]
) -> None:
    output = topics("output")

    write_once(target, 0, 0, lambda: [OutgoingRecords(output, records_of(pairs))])

    assert written(broker, output).get(0, []) == pairs


def test_a_part_of_a_column(broker: str, target: WriteTarget, topics: Callable[..., str]) -> None:
    pairs = nasty(300, keyed=False)
    output, whole = topics("output"), records_of(pairs)
    parts = [whole.slice(start, 7) for start in range(0, len(pairs), 7)]

    write_once(target, 0, 0, lambda: [OutgoingRecords(output, part) for part in parts])

    assert written(broker, output) == {0: pairs}


def test_what_the_columns_hold_may_change_once_it_is_sent(
    broker: str, producer: TopicProducer, topics: Callable[..., str]
) -> None:
    output, held = topics("output"), bytearray(b"before")
    offsets = pa.py_buffer(np.array([0, 3, 6], np.int64))
    values = pa.Array.from_buffers(pa.large_binary(), 2, [None, offsets, pa.py_buffer(held)])

    ProducerQueue(producer, 30).send(OutgoingRecords(output, Encoded(None, values)))
    held[:] = b"behind"
    producer.commit_transaction(30)

    assert written(broker, output) == {0: [(None, b"bef"), (None, b"ore")]}


def test_pieces_are_bounded_by_count_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_queue, "_CHUNK", 4)
    monkeypatch.setattr(producer_queue, "_CHUNK_BYTES", 3 * OVERHEAD_BYTES)
    sizes = [0, 1, 0, 5_000, 0, 0, OVERHEAD_BYTES, 0]
    sent = OutgoingRecords("t", records_of([(None, bytes(size)) for size in sizes]))

    chunks = [([len(value or b"") for value in records.values], size) for records, size in sent.chunks()]

    assert [lengths for lengths, _ in chunks] == [[0, 1], [0], [5_000], [0, 0], [OVERHEAD_BYTES, 0]]
    assert [size for _, size in chunks] == [sum(lengths) + OVERHEAD_BYTES * len(lengths) for lengths, _ in chunks]


def test_a_full_queue_is_emptied_before_more_is_put(
    broker: str, target: WriteTarget, topics: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_queue, "QUEUE_BYTES", 1 << 20)
    monkeypatch.setattr(producer_queue, "_CHUNK_BYTES", 1 << 19)
    pairs: list[Record] = [(None, number.to_bytes(4, "big") * 25_000) for number in range(50)]
    output = topics("output")
    most = 0

    writer = TransactionalWriter(target, 0)
    queue = writer._outbox  # noqa: SLF001
    make_room = queue._make_room  # noqa: SLF001

    def watched(size: int) -> None:
        nonlocal most
        make_room(size)
        most = max(most, queue._queued_bytes)  # noqa: SLF001

    monkeypatch.setattr(queue, "_make_room", watched)
    writer.write(0, [OutgoingRecords(output, records_of(pairs))])

    assert 1 << 19 < most <= 1 << 20
    assert written(broker, output) == {0: pairs}


def test_a_queue_that_nobody_empties_is_not_waited_for_again() -> None:
    nowhere = clients.producer(BrokerAddress("127.0.0.1:1"), {})
    queue = ProducerQueue(nowhere, 0.2)
    queue.send(OutgoingRecords("t", records_of([(None, b"x")])))

    with pytest.raises(BrokerError) as refused:
        queue.sent()

    assert refused.value.fault is BrokerFault.TIMED_OUT
    nowhere.purge()


def test_one_that_is_too_large_is_refused(producer: TopicProducer, topics: Callable[..., str]) -> None:
    records = records_of([(b"k", bytes(size)) for size in (1, 3_000_000, 1)])

    with pytest.raises(BrokerError) as refused:
        ProducerQueue(producer, 30).send(OutgoingRecords(topics("output"), records))

    assert refused.value.fault is BrokerFault.TOO_LARGE


def test_what_the_topic_takes_no_more_fails_with_its_transaction(
    broker: str, target: WriteTarget, topics: Callable[..., str]
) -> None:
    """The broker finds it, after the library has taken it."""
    narrow = topics("narrow", max_message_bytes="20000")
    noise = random.Random(1).randbytes(900_000)
    large, small = ([OutgoingRecords(narrow, records_of([(None, value)]))] for value in (noise, b"small"))

    assert write_once(target, 0, 0, lambda: large, lambda: small)
    assert written(broker, narrow) == {0: [(None, b"small")]}
    with pytest.raises(ServiceUnavailable, match="refuses"):
        write_once(target, 0, 1, lambda: large, lambda: large)


def test_one_that_is_fenced_is_told(broker: str, target: WriteTarget, topics: Callable[..., str]) -> None:
    output = topics("output")
    before = TransactionalWriter(target, 0)
    TransactionalWriter(target, 0)

    with pytest.raises(BrokerError) as refused:
        before.write(0, [OutgoingRecords(output, records_of([(None, b"late")]))])

    assert refused.value.fault is BrokerFault.FENCED
    assert written(broker, output) == {}


def test_outside_of_a_transaction_nothing_is_taken(target: WriteTarget, topics: Callable[..., str]) -> None:
    made = transactional_producer(target, 2)
    made.init_transactions(30)

    with pytest.raises(BrokerError, match=r"[Ss]tate"):
        ProducerQueue(made, 30).send(OutgoingRecords(topics("output"), records_of([(None, b"early")])))


def test_what_is_taken_back_is_not_read(broker: str, producer: TopicProducer, topics: Callable[..., str]) -> None:
    output = topics("output")
    ProducerQueue(producer, 30).send(OutgoingRecords(output, records_of(nasty(1_000, keyed=False))))
    assert producer.flush(30) == 0
    producer.abort_transaction(30)

    assert written(broker, output) == {}


def test_a_topic_of_no_name_is_refused(producer: TopicProducer) -> None:
    with pytest.raises(BrokerError):
        ProducerQueue(producer, 30).send(OutgoingRecords("t" * 600, records_of([(None, b"x")])))


def test_of_a_closed_producer_nothing_is_borrowed(target: WriteTarget) -> None:
    made = transactional_producer(target, 1)
    made.close()

    with pytest.raises(RuntimeError, match="closed"):
        ProducerQueue(made, 30).send(OutgoingRecords("t", records_of([(None, b"x")])))
