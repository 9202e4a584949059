"""The exactly-once sink: one Kafka transaction per partition and batch, which also holds the batch's number.

The **commit mark** of a partition is the number of the last batch it has written. It is kept as an offset that the
transaction commits with its records (consumer group: the query; topic: ``WriteTarget.commit_marks``; partition: that
of Spark), so either both are there or none is. A batch that Spark replays is skipped where the commit mark says that it
was written:

    batch 7   partition 0: committed, mark 7   partition 1: killed before its commit, mark 6
    batch 7   partition 0: mark 7, skipped     partition 1: written                              (the replay)

A transactional id belongs to one partition of one query. A worker that opens it fences whoever held it before: a dead
process, or a living worker that had the partition in an earlier batch and learns of it by an error at its next write.

A worker that is fenced opens its writer anew, since partitions change their worker. That must not bring back one whose
query has ended, or has started elsewhere: Spark leaves tasks at work for a while that it has cancelled. So a start and
an end of a query leave their **epoch** beside the commit mark, and a writer of another epoch refuses to write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicConsumer, TopicProducer
from dovetail.broker.errors import BrokerError, BrokerFault, answer
from dovetail.broker.producer_queue import OVERHEAD_BYTES, QUEUE_BYTES, Outgoing, OutgoingRecords, ProducerQueue
from dovetail.broker.topics import FRAME_BYTES
from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES
from dovetail.changelog.errors import CheckpointMismatch, EnvironmentFault, ServiceUnavailable
from dovetail.changelog.work.backoff import Backoff

DROPPED = 1 << 40
"""The offset that ``mark_dropped`` leaves in the place of a number of batches."""
_CALL_S = 30.0
_PENDING_S = 5.0
_PAUSES = Backoff(first_s=0.1, longest_s=5.0)
_KEPT_S = 300.0


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where a query writes: ``identity`` names the query in transactional ids and as the group of its commit marks.

    message_bytes      the largest message that the output topic takes
    dead_letter_bytes  and that of what could not be used
    late_bytes         and that of late rows
    batch_bytes        the least of these: a topic's limit is that of a batch of messages
    epoch              another one for each start of the query: a writer of an earlier one writes no more
    replayed_until     batches up to this number are run again as they were, and are skipped where they were written
    """

    brokers: BrokerAddress
    identity: str
    commit_marks: str
    transaction_timeout_s: float
    broker_wait_s: float
    message_bytes: int = MESSAGE_BYTES
    dead_letter_bytes: int = MESSAGE_BYTES
    late_bytes: int = MESSAGE_BYTES
    batch_bytes: int = MESSAGE_BYTES
    epoch: str = ""
    replayed_until: int = -1

    @property
    def call_s(self) -> float:
        """The longest a single call to the broker may take."""
        return min(_CALL_S, self.broker_wait_s)

    def transactional_id(self, partition: int) -> str:
        return f"{self.identity}-{partition}"


class TransactionalWriter:
    """An initialised transactional producer of one partition, and the partition's commit mark."""

    def __init__(self, target: WriteTarget, partition: int) -> None:
        self.target = target
        self.used_s = time.monotonic()
        self._place = TopicPartition(target.commit_marks, partition)
        self._producer = transactional_producer(target, partition)
        self._outbox = ProducerQueue(self._producer, target.call_s)
        # Aborts what a predecessor left open; only then is the commit mark final.
        self._producer.init_transactions(target.call_s)
        self._group = offsets_reader(target.brokers, target.identity, "read_committed").consumer_group_metadata()
        committed = _committed_place(target.brokers, target.identity, self._place, target.call_s)
        self.last_committed_batch = max(committed.offset, 0) - 1
        self._written_in = committed.metadata or ""

    def expect_same_life(self) -> None:
        """Raises EnvironmentFault where the query has ended since, or started again."""
        if self._written_in not in ("", self.target.epoch):
            raise EnvironmentFault(
                "the query has ended or started again elsewhere, and this is a task of before",
                where=f"transactional id {self.target.transactional_id(self._place.partition)}",
                fix="nothing is lost or written twice; run one runner for each catalog",
            )

    def take_over(self) -> None:
        """Nobody of another epoch writes from now on."""
        self.write(self.last_committed_batch, ())

    def write(self, batch_id: int, outgoing: Iterable[Outgoing | OutgoingRecords]) -> None:
        """One transaction: the commit mark first, so that a fenced writer fails before it has sent its records."""
        self._producer.begin_transaction()
        place, epoch = self._place, self.target.epoch
        self._outbox.send_offset(self._group, place.topic, place.partition, batch_id + 1, epoch)
        for part in outgoing:
            self._outbox.send(part)
        # The time of a call would otherwise be that of all that waits as well, and a large batch begin again forever.
        self._outbox.sent()
        self._producer.commit_transaction(self.target.call_s)
        self._outbox.emptied()
        self.last_committed_batch = batch_id


def committed_offset(brokers: BrokerAddress, group: str, topic: str, partition: int, timeout_s: float) -> int:
    """The offset that the transactions of ``group`` have committed of a partition, below 0 if there is none."""
    return int(_committed_place(brokers, group, TopicPartition(topic, partition), timeout_s).offset)


def first_offset(brokers: BrokerAddress, group: str, topic: str, partition: int, timeout_s: float) -> int:
    """Of the records of a partition that are there still."""
    reader = offsets_reader(brokers, group, "read_committed")
    return int(reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)[0])


def _committed_place(brokers: BrokerAddress, group: str, place: TopicPartition, timeout_s: float) -> TopicPartition:
    """To be asked by the one writer of the partition, once ``init_transactions`` has decided what its predecessor left
    open. So an offset that is still pending after a while belongs to no transaction any more: a broker that is killed
    twice in the midst of a commit may keep one forever, and never answer who waits for it. It is passed over.
    """
    try:
        return _committed(offsets_reader(brokers, group, "read_committed"), place, min(timeout_s, _PENDING_S))
    except BrokerError as failure:
        if failure.fault is not BrokerFault.TIMED_OUT:
            raise
    return _committed(offsets_reader(brokers, group, "read_uncommitted"), place, timeout_s)


def _committed(reader: TopicConsumer, place: TopicPartition, timeout_s: float) -> TopicPartition:
    [found] = reader.committed([place], timeout=timeout_s)
    # An answer about one partition may be an error, and has then the offset of one that was never committed.
    if found.error is not None:
        raise BrokerError.of(found.error)
    return found


@lru_cache(maxsize=16)
def offsets_reader(brokers: BrokerAddress, group: str, isolation: str) -> TopicConsumer:
    """Kept, since a partition that changes its worker back and forth asks in every batch."""
    return clients.consumer(brokers, group, {**clients.QUICK_RETURN, "isolation.level": isolation})


writers: dict[str, TransactionalWriter] = {}
"""By transactional id, those used last come last. They live as long as the Python worker, which serves many batches and
queries; but one that has not been asked for in ``_KEPT_S``, as is that of a dropped query, is closed.
"""


def forget_unused(now_s: float) -> None:
    """Each has threads, connections and some MiB."""
    while writers and now_s - (oldest := next(iter(writers.items())))[1].used_s > _KEPT_S:
        del writers[oldest[0]]


def write_once(
    target: WriteTarget,
    partition: int,
    batch_id: int,
    outgoing: Callable[[], Iterable[Outgoing | OutgoingRecords]],
    smaller: Callable[[], Iterable[Outgoing | OutgoingRecords]] | None = None,
) -> bool:
    """Write a batch's records of one partition, exactly once; False if an earlier attempt did.

    ``outgoing`` is called once an attempt; ``smaller`` in its place, once the broker finds a message too large: a topic
    may take less than it did when the query began. A lost broker is waited for, up to ``target.broker_wait_s``. Raises
    CheckpointMismatch where a later batch is written already: only the last one can be a replay, or those up to
    ``target.replayed_until``; EnvironmentFault where the query has ended or started again.
    """
    name = target.transactional_id(partition)
    waited = BrokerWait(target)
    while True:
        try:
            writer = writers.pop(name, None)
            if writer is None or writer.target.epoch != target.epoch:
                writer = TransactionalWriter(target, partition)
                writer.expect_same_life()
            writer.used_s = time.monotonic()
            writers[name] = writer
            forget_unused(writer.used_s)
            if writer.last_committed_batch > max(batch_id, target.replayed_until):
                raise behind_its_output(target, batch_id, writer.last_committed_batch)
            if writer.last_committed_batch >= batch_id:
                return False
            writer.write(batch_id, outgoing())
            return True
        except BrokerError as failure:
            # Whatever happened, a new writer is right: opening it settles the open transaction, and the commit mark it
            # reads says whether a commit that was not answered took place.
            writers.pop(name, None)
            if smaller is not None and failure.fault is BrokerFault.TOO_LARGE:
                outgoing, smaller = smaller, None
            else:
                waited.after(failure)


def mark_dropped(brokers: BrokerAddress, identity: str, commit_marks: str) -> None:
    """Leave a mark that no checkpoint follows, until the broker forgets it: what is restored of a dropped query would
    find none, and write all of its rows again. A silent broker is no matter.
    """
    place = TopicPartition(commit_marks, 0, DROPPED)
    request = ConsumerGroupTopicPartitions(identity, [place])
    client = clients.admin(brokers)
    for altered in client.alter_consumer_group_offsets([request], request_timeout=_CALL_S).values():
        with suppress(BrokerError):
            answer(altered, _CALL_S)


def refuse_dropped(target: WriteTarget, last_committed_batch: int) -> None:
    """Raises CheckpointMismatch where ``mark_dropped`` was the last to write."""
    if last_committed_batch == DROPPED - 1:
        raise CheckpointMismatch(
            "the query of this checkpoint was dropped, or rescaled, and what was written since is not known",
            where=f"transactional id {target.identity}",
            fix="drop the query and create it again, which starts over",
        )


def behind_its_output(target: WriteTarget, batch_id: int, last_committed_batch: int) -> CheckpointMismatch:
    return CheckpointMismatch(
        f"the checkpoint is at batch {batch_id}, and batch {last_committed_batch} is written already; what was read"
        " in between is not known any more: to go on would leave out rows",
        where=f"transactional id {target.identity}",
        fix="restore the newest backup of the checkpoint; or drop the query and create it again, which starts over",
    )


class BrokerWait:
    """The pauses between attempts to write, and their end."""

    def __init__(self, target: WriteTarget) -> None:
        self._target = target
        self._start = time.monotonic()
        self._pauses = _PAUSES.pauses()
        self._fenced = False

    def after(self, failure: BrokerError) -> None:
        if failure.fault is BrokerFault.FENCED and not self._fenced:
            # By its own successor, or by a predecessor that was slow. Two that go on are two runners, or two epochs.
            self._fenced = True
            return
        if failure.is_hopeless:
            raise ServiceUnavailable(
                f"the broker refuses the output: {failure.reason}",
                where=f"brokers {self._target.brokers}, transactional id {self._target.identity}",
                fix="see the broker's limits and rights; the batch is written again when the query is resumed",
            ) from failure
        pause_s = next(self._pauses)
        if time.monotonic() - self._start + pause_s > self._target.broker_wait_s:
            raise ServiceUnavailable(
                f"the broker did not take the output within {self._target.broker_wait_s:g} s: {failure.reason}",
                where=f"brokers {self._target.brokers}, transactional id {self._target.identity}",
                fix="start the broker and resume the query, or raise broker_wait_s; nothing is lost or written twice",
            ) from failure
        time.sleep(pause_s)


def fence(target: WriteTarget, partitions: int) -> int:
    """Abort what any earlier epoch of this query left open, and bar it from writing on; the greatest commit mark."""
    batches = [-1]
    for partition in range(partitions):
        waited = BrokerWait(target)
        while True:
            try:
                writer = TransactionalWriter(target, partition)
                writer.take_over()
                batches.append(writer.last_committed_batch)
                break
            except BrokerError as failure:
                waited.after(failure)
    return max(batches)


def transactional_producer(target: WriteTarget, partition: int) -> TopicProducer:
    """The producer of one partition; its transactions are not initialised yet."""
    timeout_ms = int(target.transaction_timeout_s * 1000)
    settings = {
        "transactional.id": target.transactional_id(partition),
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": timeout_ms,
        "linger.ms": 5,
        # A transaction that follows at once finds the one before still completing.
        "retry.backoff.ms": 20,
        "compression.type": "lz4",
        "message.max.bytes": max(target.message_bytes, target.dead_letter_bytes, target.late_bytes) + FRAME_BYTES,
        "batch.size": min(target.batch_bytes, MESSAGE_BYTES),
        "queue.buffering.max.messages": 2 * QUEUE_BYTES // OVERHEAD_BYTES,
        "queue.buffering.max.kbytes": 2 * QUEUE_BYTES // 1024 - 1,
        **clients.QUICK_RETURN,
    }
    return clients.producer(target.brokers, settings)
