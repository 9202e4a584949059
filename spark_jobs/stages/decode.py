"""The first stage: Kafka records in, blocks of rows by bucket out."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.registry.client import schemas_of
from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import REJECTED as REJECTED_RECORDS
from dovetail.changelog.decode import Decoder, parted, recorded
from dovetail.changelog.event_times import greatest_ms, stamped, unusable
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, Kind
from dovetail.joins.dataflow import failed_calls
from dovetail.joins.dataflow.graph import Dataflow, TopicScan
from dovetail.joins.dataflow.ports import Transform, transformed
from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.host.exchange import KEYLESS, dealt
from dovetail.joins.inputs.watermarks import UNSHOWN
from dovetail.spark_jobs.exchange.arrow_ipc import pack
from dovetail.spark_jobs.exchange.report import FAILED_CALLS, ROWS_IN, BatchReport
from dovetail.spark_jobs.exchange.report import REJECTED_RECORDS as REJECTED_COUNT
from dovetail.spark_jobs.exchange.sequence_check import Sender
from dovetail.spark_jobs.exchange.shuffle_block import PARTITION_TIMES, REJECTED, REPORT, TOPIC, ShuffleBlock, to_batch
from dovetail.spark_jobs.stages.job import QUERIES_KEPT, Job, opened, snapshots

ROWS_PER_PARCEL = 500_000
PARTITION_TIME_SCHEMA = pa.schema([("edge", pa.int32()), ("partition", pa.int32()), ("event_ms", pa.int64())])


@dataclass(frozen=True)
class Silence:
    """A partition has given no record for ``idle_ms`` or longer."""

    topic: str
    partition: int
    idle_ms: int


def blocks_of(
    shipped: bytes,
    pieces: Iterable[tuple[str, int, pa.Table]],
    silences: Iterable[Silence] = (),
    name: str = "share 0",
    *,
    to_every_bucket: bool = False,
) -> Iterator[pa.RecordBatch]:
    """``pieces`` (topic, partition, records of it in order) decoded, cut by bucket and packed.

    A heartbeat makes a partition time, and counts as no record; a silence does, too. ``name`` is that of the task among
    those of the batch; ``to_every_bucket``: it sends something to each bucket of each level, so that all take part.
    """
    failed_calls.taken()  # those of an attempt that did not come to its end
    job, sender = opened(shipped), Sender(name)
    decoding = Decoding(job, readers_of(shipped))
    for silence in silences:
        decoding.fall_silent(silence)
    for topic, partition, piece in pieces:
        decoding.read(topic, partition, piece)
        if decoding.outbox.rows >= ROWS_PER_PARCEL:
            yield to_batch(sender.numbered(decoding.outbox.blocks()), job.bucket_keys)
    closing = decoding.outbox.closing_blocks(to_every_bucket=to_every_bucket)
    last = [*sender.numbered(decoding.outbox.blocks()), *sender.numbered(closing)]
    yield to_batch([*last, *sender.block_counts()], job.bucket_keys)


class Decoding:
    """The part of a task in one job: records in, blocks in the outbox.

    readers    of the job, by topic
    """

    def __init__(self, job: Job, readers: Mapping[str, Sequence[StreamReader]]) -> None:
        self.outbox = Outbox(job)
        self._readers = readers

    def fall_silent(self, silence: Silence) -> None:
        for reader in self._readers.get(silence.topic, ()):
            reader.fall_silent(silence, self.outbox)

    def read(self, topic: str, partition: int, piece: pa.Table) -> None:
        self.outbox.origin = partition
        records, heartbeats = parted(piece)
        self.outbox.report.counts[ROWS_IN] += records.num_rows
        for reader in self._readers.get(topic, ()):
            reader.hear(partition, heartbeats, self.outbox)
            reader.read(topic, partition, records, self.outbox)


class OutboxRows(NamedTuple):
    """bucket  the receiving one
    edge    that they travel on, or REJECTED
    origin  the partition that they came from
    """

    bucket: int
    edge: int
    origin: int
    rows: pa.Table


class Outbox:
    """Rows on their way to buckets, gathered over the Arrow batches of a task so that few large blocks leave it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._tables: dict[tuple[int, int, int], list[pa.Table]] = defaultdict(list)
        self._times: dict[tuple[int, int], int | None] = {}
        self.report = BatchReport(member=job.key)
        self.origin = 0
        self.rows = 0

    def put(self, edge: int, rows: pa.Table) -> None:
        one = self._job.dataflow.edge(edge)
        # Rows on their way to the sink may go anywhere; by partition they share the work and keep their order.
        anywhere = not one.keys and one.level == self._job.sink_level
        parts = [(self._home, rows)] if anywhere else dealt(rows, one, self._job.buckets)
        for bucket, part in parts:
            self._tables[bucket, edge, self.origin].append(part)
            self.rows += part.num_rows

    def reject(self, records: pa.Table) -> None:
        self._tables[self._home, REJECTED, self.origin].append(records)

    def note(self, scan: int, work: NodeWork) -> None:
        """What a scan, by its number, did of a piece."""
        self.report.activity = Activity.of_batch([self.report.activity, Activity(scans={scan: work})])

    def note_time(self, scan: TopicScan, partition: int, event_ms: int | None) -> None:
        """``event_ms``: the greatest event time of some rows; None: the partition is idle."""
        for edge in self._job.dataflow.beyond(scan.edge):
            before = self._times.get((edge, partition))
            known = [value for value in (before, event_ms) if value is not None]
            self._times[edge, partition] = max(known, default=None)

    @property
    def _home(self) -> int:
        return self.origin % self._job.buckets

    def drain(self) -> list[OutboxRows]:
        """The rows that have gathered, handed over: in the order of their edges, and of where they came from."""
        found = [OutboxRows(*place, pa.concat_tables(tables)) for place, tables in sorted(self._tables.items())]
        self._tables.clear()
        self.rows = 0
        return [one for one in found if one.rows.num_rows]

    def blocks(self) -> Iterator[ShuffleBlock]:
        """The same, packed."""
        for one in self.drain():
            level = self._job.sink_level if one.edge == REJECTED else self._job.dataflow.edge(one.edge).level
            yield ShuffleBlock(one.bucket, level, one.edge, one.origin, pack(one.rows))

    def closing_blocks(self, *, to_every_bucket: bool = False) -> Iterator[ShuffleBlock]:
        """What is known only at the end of a task: partition times, and its report."""
        self.report.counts[FAILED_CALLS] += failed_calls.taken()
        yield from self._time_blocks()
        # Empty blocks: without one a level would not be asked before it has rows.
        nothing, flow = pack(PARTITION_TIME_SCHEMA.empty_table()), self._job.dataflow
        if to_every_bucket:
            for level, bucket in itertools.product(range(1, flow.levels + 1), range(self._job.buckets)):
                yield ShuffleBlock(bucket, level, PARTITION_TIMES, self.origin, nothing)
        else:
            for level in sorted(flow.opening_levels):
                yield ShuffleBlock(KEYLESS, level, PARTITION_TIMES, self.origin, nothing)
        if not self.report.is_empty:
            yield ShuffleBlock(self._home, self._job.sink_level, REPORT, self.origin, self.report.packed)

    def times_by_level(self) -> dict[int, list[tuple[int, int, int | None]]]:
        """What each level is to hear: edge, partition, and the greatest event time or None."""
        by_level: dict[int, list[tuple[int, int, int | None]]] = defaultdict(list)
        for (edge, partition), event_ms in sorted(self._times.items()):
            for level in self._job.dataflow.listening(edge):
                by_level[level].append((edge, partition, event_ms))
        return dict(sorted(by_level.items()))

    def _time_blocks(self) -> Iterator[ShuffleBlock]:
        for level, times in self.times_by_level().items():
            rows = pack(pa.table(list(zip(*times, strict=True)), schema=PARTITION_TIME_SCHEMA))
            for bucket in range(self._job.buckets):
                yield ShuffleBlock(bucket, level, PARTITION_TIMES, self.origin, rows)


@dataclass(frozen=True)
class ScanReader:
    """One scan of a topic: what becomes of its decoded rows. ``number`` is its own in the dataflow.

    partitions   of the topic, where its watermark is told: each has to have been told one; else 0
    """

    number: int
    scan: TopicScan
    transforms: tuple[Transform, ...]
    first_offsets: dict[int, int]
    ordered: bool
    refusable: bool
    partitions: int = 0

    def send(self, decoded: pa.Table, records: pa.RecordBatch, partition: int, outbox: Outbox) -> pa.Table:
        """Put the rows; REJECTED: the records of those whose event time cannot be used."""
        begun_ns = time.perf_counter_ns()
        rows = decoded.select([*self.scan.columns, ARRIVAL, DELTA])
        start = self.first_offsets.get(partition, 0)
        if start:
            offsets = np.bitwise_and(rows.column(ARRIVAL).to_numpy(), (1 << OFFSET_BITS) - 1)
            rows = rows.filter(pa.array(offsets >= start))
        came = rows.num_rows
        rows, rejected = self._timed(rows, records)
        usable = rows.num_rows
        self._note_time(rows, partition, outbox)
        rows = transformed(rows, self.transforms)
        if self.refusable:
            rows = recorded(rows, records)
        if self.ordered:
            rows = stamped(rows, records)
        elif ARRIVAL in rows.column_names:
            rows = rows.drop_columns([ARRIVAL])
        outbox.put(self.scan.edge, rows)
        outbox.note(self.number, NodeWork((came,), usable, rows.num_rows, time.perf_counter_ns() - begun_ns))
        return rejected

    def _timed(self, rows: pa.Table, records: pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
        """The rows without those whose event time cannot be used, and these."""
        watermark = self.scan.watermark
        if watermark is None:
            return rows, REJECTED_RECORDS.empty_table()
        nullable = self.scan.stream.kind is not Kind.APPEND
        bad, rejected = unusable(
            rows, records, watermark.column, nullable=nullable, max_future_ms=watermark.max_future_ms
        )
        return rows.filter(pa.array(~bad)) if rejected.num_rows else rows, rejected

    def _note_time(self, rows: pa.Table, partition: int, outbox: Outbox) -> None:
        if self.scan.watermark is not None and not self.scan.watermark.from_heartbeats:
            event_ms = greatest_ms(rows.column(self.scan.watermark.column))
            if event_ms is not None:
                outbox.note_time(self.scan, partition, event_ms)

    def hear(self, partition: int, heartbeats: pa.Table, outbox: Outbox) -> None:
        if self.scan.watermark is not None:
            heard = heartbeats.filter(pc.field("offset") >= self.first_offsets.get(partition, 0)).column("event_ms")
            if len(heard):
                for other in range(self.partitions):
                    outbox.note_time(self.scan, other, UNSHOWN)
                outbox.note_time(self.scan, partition, pc.max(heard).as_py())

    def fall_silent(self, silence: Silence, outbox: Outbox) -> None:
        watermark = self.scan.watermark
        if watermark is not None and watermark.idle_ms is not None and silence.idle_ms >= watermark.idle_ms:
            outbox.note_time(self.scan, silence.partition, None)


@dataclass(frozen=True)
class StreamReader:
    """One reading of a topic's records, for all its scans: they are decoded, and rejected, once."""

    decoder: Decoder
    scans: tuple[ScanReader, ...]

    def read(self, topic: str, partition: int, records: pa.RecordBatch, outbox: Outbox) -> None:
        decoded = self.decoder.decode(records)
        unusable_times = [scan.send(decoded.rows, records, partition, outbox) for scan in self.scans]
        rejected = _once(pa.concat_tables([decoded.rejected, *unusable_times]))
        if rejected.num_rows:
            outbox.report.counts[REJECTED_COUNT] += rejected.num_rows
            topics = pa.array([topic] * rejected.num_rows, pa.string())
            outbox.reject(rejected.append_column(TOPIC, topics))

    def hear(self, partition: int, heartbeats: pa.Table, outbox: Outbox) -> None:
        for scan in self.scans:
            scan.hear(partition, heartbeats, outbox)

    def fall_silent(self, silence: Silence, outbox: Outbox) -> None:
        for scan in self.scans:
            scan.fall_silent(silence, outbox)


def _once(rejected: pa.Table) -> pa.Table:
    """A record that several scans reject is one dead letter, with the first reason."""
    _, first = np.unique(rejected.column("offset").to_numpy(), return_index=True)
    return rejected.take(pa.array(first))


@lru_cache(maxsize=QUERIES_KEPT)
def readers_of(shipped: bytes, member: int | None = None) -> Mapping[str, tuple[StreamReader, ...]]:
    """Of a job, or of a member of it, by topic. Scans that see a topic as the same stream share its decoding."""
    job = opened(shipped) if member is None else opened(shipped).members[member]
    shared: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, scan in enumerate(job.dataflow.scans):
        shared[scan.topic][repr(scan.stream)].append(index)
    return {
        topic: tuple(_reader(job, indexes) for indexes in by_stream.values()) for topic, by_stream in shared.items()
    }


def _reader(job: Job, indexes: list[int]) -> StreamReader:
    scans = [job.dataflow.scans[index] for index in indexes]
    columns = tuple(dict.fromkeys(name for scan in scans for name in scan.columns))
    tables = snapshots(job)
    return StreamReader(
        Decoder(scans[0].stream, columns, schemas_of(job.target.brokers)),
        tuple(
            ScanReader(
                index,
                scan,
                tuple(step.bound(tables) for step in scan.transforms),
                dict(job.scan_starts[index]),
                _is_ordered(job.dataflow, scan.edge),
                _is_refusable(job.dataflow, scan.edge),
                job.partitions[scan.topic] if scan.watermark is not None and scan.watermark.from_heartbeats else 0,
            )
            for index, scan in zip(indexes, scans, strict=True)
        ),
    )


def _is_ordered(dataflow: Dataflow, edge: int) -> bool:
    return any(
        port.ordered
        for node in dataflow.nodes
        for edge_in, port in zip(node.inputs, node.operator.ports, strict=True)
        if edge_in == edge
    )


def _is_refusable(dataflow: Dataflow, edge: int) -> bool:
    """Whether its records may become dead letters at the operator: they go there with their rows."""
    port = dataflow.ports.get(edge)
    return port is not None and port.max_rows_per_key is not None
