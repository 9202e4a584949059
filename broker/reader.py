"""A topic read from one place to another, and what it holds."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pyarrow as pa
from confluent_kafka import Message, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicConsumer
from dovetail.broker.errors import BrokerFault, fault_of
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.decode import HEADERS, Decoder
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.formats.heartbeat import said
from dovetail.changelog.formats.record_parts import HEADERS_TYPE
from dovetail.changelog.schema import TIME, StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.changelog.work.interruption import expect_wanted

RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
HEADED = RECORDS.append(pa.field(HEADERS, HEADERS_TYPE))
"""RECORDS with their headers."""
Places = Mapping[int, np.ndarray]
"""Partition → offsets of some of its records."""
_BATCH = 20_000
_POLL_S = 0.05
"""A poll lasts so long, unless it fills a batch before."""
_SILENCE_S = 30.0


@dataclass
class TopicReader:
    """The committed records of a topic, batch by batch.

    first_offsets   where partitions begin, if not at their first record
    headed          whether their headers are read too: tables are HEADED then, and RECORDS otherwise
    """

    brokers: BrokerAddress
    topic: str
    first_offsets: PartitionOffsets = field(default_factory=dict)
    headed: bool = False

    def until(self, ends: PartitionOffsets) -> Generator[pa.Table, None, None]:
        """The records before ``ends``. Raises ServiceUnavailable where the broker falls silent on the way."""
        waiting = {partition: end for partition, end in ends.items() if end > self.first_offsets.get(partition, 0)}
        if not waiting:
            return
        with closing(self._consumer(waiting)) as consumer:
            heard = time.monotonic()
            read_out: set[int] = set()
            while waiting:
                expect_wanted()
                messages = consumer.consume(_BATCH, _POLL_S)
                # Records that come after an end are no sign that those of other partitions are on their way.
                if not read_out.issuperset(map(Message.partition, messages)):
                    yield self._table(_before(waiting, messages, self.topic))
                    read_out = ends.keys() - waiting.keys()
                    # What is made of the records takes a time that the broker has nothing to do with.
                    heard = time.monotonic()
                elif time.monotonic() - heard > _SILENCE_S:
                    raise self._silent(waiting)

    def follow(self, partitions: Iterable[int]) -> Generator[pa.Table, None, None]:
        """The records as they come, forever; an empty table whenever there was none for a moment."""
        with closing(self._consumer(partitions)) as consumer:
            while True:
                messages = consumer.consume(_BATCH, _POLL_S)
                yield self._table([message for message in messages if not _is_end(message, self.topic)])

    def _table(self, messages: list[Message]) -> pa.Table:
        return as_records(messages, headed=self.headed)

    def _consumer(self, partitions: Iterable[int]) -> TopicConsumer:
        settings = {
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
        consumer = clients.consumer(self.brokers, "dovetail-reader", settings)
        consumer.assign(
            [TopicPartition(self.topic, partition, self.first_offsets.get(partition, 0)) for partition in partitions]
        )
        return consumer

    def _silent(self, waiting: PartitionOffsets) -> ServiceUnavailable:
        return ServiceUnavailable(
            f'Kafka gave no record of "{self.topic}" for {_SILENCE_S:g} s',
            where=f"brokers {self.brokers}, partitions {', '.join(str(partition) for partition in waiting)}",
            fix="dovetail status shows whether the broker runs; dovetail up starts it",
        )


def _before(waiting: dict[int, int], messages: list[Message], topic: str) -> list[Message]:
    """The messages before the ends; a partition that has reached its end waits no longer.

    The last offsets before an end may be the marks of transactions, which no reader sees: then the notice that the
    partition is read to its end is what tells.
    """
    kept = []
    for message in messages:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        ended = _is_end(message, topic)
        if not ended and offset < waiting.get(partition, 0):
            kept.append(message)
        if partition in waiting and offset + (not ended) >= waiting[partition]:
            del waiting[partition]
    return kept


def _is_end(message: Message, topic: str) -> bool:
    """Whether this is the notice of a partition's end. Raises for the notice of a fault."""
    error = message.error()
    if error is None:
        return False
    if fault_of(error) is BrokerFault.END_OF_PARTITION:
        return True
    raise ServiceUnavailable(f'"{topic}" cannot be read: {error.str()}', fix="dovetail status shows what runs")


def as_records(messages: list[Message], *, headed: bool = False) -> pa.Table:
    """What a decoder takes: RECORDS, or HEADED. The time of a heartbeat is the one that it tells."""
    count = len(messages)
    values = list(map(Message.value, messages))
    times_ms = np.fromiter(map(itemgetter(1), map(Message.timestamp, messages)), np.int64, count)
    if None in values:
        for place, value in enumerate(values):
            if value is None:
                times_ms[place] = _time_of_tombstone(messages[place])
    columns = [
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(times_ms).cast(RECORDS.field("timestamp").type),
        pa.array(np.fromiter(map(Message.partition, messages), np.int32, count)),
        pa.array(np.fromiter(map(Message.offset, messages), np.int64, count)),
    ]
    records = pa.table(columns, schema=RECORDS)
    if not headed:
        return records
    return records.append_column(HEADED.field(HEADERS), pa.array([of.headers() or [] for of in messages], HEADERS_TYPE))


def _time_of_tombstone(message: Message) -> int:
    """The time of a record without value."""
    watermark_ms = None if message.key() else said(dict(message.headers() or ()))
    return int(message.timestamp()[1]) if watermark_ms is None else watermark_ms


@dataclass(frozen=True)
class TopicContent:
    """``rows``: what the topic adds up to. ``records``: how many were read; ``rejected`` of them could not be used."""

    rows: pa.Table
    records: int
    rejected: int


def read_topic(
    brokers: BrokerAddress,
    schema: StreamSchema,
    topic: str,
    ends: PartitionOffsets,
    *,
    columns: tuple[str, ...] | None = None,
    first_offsets: PartitionOffsets | None = None,
    without: Places | None = None,
) -> TopicContent:
    """What ``topic`` holds between ``first_offsets`` (default: its beginning) and ``ends``, but for some records.

    ``columns`` defaults to the declared and included ones and ``_tp_time``.
    """
    decoder = Decoder(schema, columns or all_columns(schema), schemas_of(brokers))
    read = TopicReader(brokers, topic, first_offsets or {}, headed=decoder.headed).until(ends)
    decoded = [decoder.decode(_without(records, without or {})) for records in read]
    empty = decoder.decode(HEADED.empty_table())
    rows = pa.concat_tables([empty.rows, *(part.rows for part in decoded)]).combine_chunks()
    rejected = sum(part.rejected.num_rows for part in decoded)
    return TopicContent(content(schema, rows), rows.num_rows + rejected, rejected)


def _without(records: pa.Table, places: Places) -> pa.Table:
    """The records at none of ``places``."""
    partitions, offsets = (records.column(name).to_numpy() for name in ("partition", "offset"))
    gone = np.zeros(len(offsets), dtype=np.bool_)
    for partition, of_partition in places.items():
        gone |= (partitions == partition) & np.isin(offsets, of_partition)
    return records.filter(pa.array(~gone)) if gone.any() else records


def all_columns(schema: StreamSchema) -> tuple[str, ...]:
    declared = tuple(column.name for column in schema.readable)
    return declared if TIME in declared else (*declared, TIME)
