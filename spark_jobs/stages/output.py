"""The last stage: changes, rejected records and late rows become messages, one transaction per partition and batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.producer_queue import Outgoing, OutgoingMessage, OutgoingRecords
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.transactional_writer import WriteTarget, write_once
from dovetail.changelog.changes import Changes
from dovetail.changelog.dead_letter import BRIEF, row_too_large, to_dead_letters
from dovetail.changelog.encode import Encoded, Forms, encode
from dovetail.changelog.encodings.message_sizes import message_size
from dovetail.changelog.schema import JSON
from dovetail.joins.dataflow.graph import Sink
from dovetail.spark_jobs.exchange import report
from dovetail.spark_jobs.exchange.arrow_ipc import unpack
from dovetail.spark_jobs.exchange.report import REJECTED_RECORDS, ROWS_OUT, BatchReport
from dovetail.spark_jobs.exchange.sequence_check import complete
from dovetail.spark_jobs.exchange.shuffle_block import LATE, REJECTED, REPORT, TOPIC, ShuffleBlock, from_batch, in_order
from dovetail.spark_jobs.stages import heartbeats
from dovetail.spark_jobs.stages.at_fault import working_for
from dovetail.spark_jobs.stages.job import Job, opened
from dovetail.spark_jobs.stages.late import late_messages
from dovetail.spark_jobs.stages.task import batch_id, partition

_SLICE_ROWS = 50_000


@dataclass
class SinkBatch:
    """What one partition of a batch has to write."""

    changes: list[pa.Table] = field(default_factory=list)
    rejected: list[pa.Table] = field(default_factory=list)
    late: list[pa.Table] = field(default_factory=list)
    report: BatchReport = field(default_factory=BatchReport)
    """Of who writes."""
    reports: list[str] = field(default_factory=list)
    """Those of earlier stages."""
    output_watermark: int | None = None
    """The watermark that heartbeats are to tell behind the rows."""

    @property
    def speaks(self) -> bool:
        return bool(self.changes or self.rejected or self.late) or self.output_watermark is not None

    def take(self, blocks: Iterable[ShuffleBlock]) -> None:
        for block in in_order(blocks):
            if block.edge == REPORT:
                self.reports.append(block.rows.decode())
            elif block.edge == REJECTED:
                self.rejected.append(unpack(block.rows))
            elif block.edge == LATE:
                self.late.append(unpack(block.rows))
            else:
                self.changes.append(unpack(block.rows))


@dataclass(frozen=True)
class SinkStage:
    """For ``mapInArrow``: blocks of one bucket to reports of the batch, which was written on the way."""

    shipped: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = opened(self.shipped)
        output = SinkBatch()
        output.take(complete(block for batch in batches for block in from_batch(batch, job.bucket_keys)))
        yield report.to_batch(write_batch(job, partition(), batch_id(), output))


def write_batch(job: Job, partition: int, batch_id: int, output: SinkBatch) -> list[str]:
    """Write what ``output`` holds, unless an earlier attempt did; the reports that this partition has."""
    return write_together(job.target, partition, batch_id, [(job, output)])


def write_together(
    target: WriteTarget, partition: int, batch_id: int, outputs: Sequence[tuple[Job, SinkBatch]]
) -> list[str]:
    """Write what several jobs have to write in one transaction, that of ``target``; the reports of all."""
    written = [Counter[str]() for _ in outputs]

    def outgoing(*, brief: bool = False) -> Iterator[Outgoing | OutgoingRecords]:
        for (job, output), counted in zip(outputs, written, strict=True):
            counted.clear()
            with working_for(job.key):
                yield from _outgoing(_brief(job) if brief else job, output, counted)

    if any(output.speaks for _, output in outputs):
        write_once(target, partition, batch_id, outgoing, lambda: outgoing(brief=True))
    reports = []
    for (_, output), counted in zip(outputs, written, strict=True):
        own = replace(output.report, counts=output.report.counts + counted)
        reports += [own.text, *output.reports]
    return reports


def _brief(job: Job) -> Job:
    """The same, whose dead letters tell place and reason only."""
    return replace(job, target=replace(job.target, dead_letter_bytes=BRIEF))


def _outgoing(job: Job, output: SinkBatch, written: Counter[str]) -> Iterator[Outgoing | OutgoingRecords]:
    dead_letters: list[OutgoingMessage] = []
    for records in output_records(job, output.changes):
        taken, others = fitting_records(records, job)
        written[ROWS_OUT] += len(taken)
        dead_letters += others
        yield OutgoingRecords(job.output_topic, taken)
    for rows in output.late:
        messages = list(late_messages(job, rows))
        fitting, others = within(messages, list(map(_late_size, messages)), job.late_topic, job.target.late_bytes, job)
        dead_letters += others
        yield Outgoing(job.late_topic, fitting, with_headers=True)
    written[REJECTED_RECORDS] += len(dead_letters)
    for some in (dead_letters, *(dead_letter_messages(job, rows) for rows in output.rejected)):
        yield Outgoing(job.dead_letter_topic, list(some), with_headers=True)
    if output.output_watermark is not None:
        yield from heartbeats.outgoing(job, output.output_watermark)


def fitting_records(records: Encoded, job: Job) -> tuple[Encoded, list[OutgoingMessage]]:
    """The records that the output topic takes, and dead letters of those that are too large for it."""
    topic, largest = job.output_topic, job.target.message_bytes
    doubtful = np.flatnonzero(records.sizes() > largest)
    if not len(doubtful):
        return records, []
    messages = OutgoingRecords(topic, records.take(doubtful)).as_messages().messages
    sizes = [_size(message, job.dataflow.sink) for message in messages]
    _, dead_letters = within(messages, sizes, topic, largest, job)
    too_large = doubtful[np.array(sizes) > largest]
    return records.take(np.delete(np.arange(len(records)), too_large)), dead_letters


def within(
    messages: list[OutgoingMessage], sizes: list[int], topic: str, largest: int, job: Job
) -> tuple[list[OutgoingMessage], list[OutgoingMessage]]:
    """The messages that ``topic`` takes, and dead letters of those that are too large for it."""
    if max(sizes, default=0) <= largest:
        return messages, []
    sized = list(zip(messages, sizes, strict=True))
    fitting = [message for message, size in sized if size <= largest]
    return fitting, [_too_large(message, size, topic, job) for message, size in sized if size > largest]


def _size(message: OutgoingMessage, sink: Sink) -> int:
    """Without the sign of a retraction in JSON, so that it is that of its insertion."""
    value = message["value"] or b""
    signed = sink.updating and sink.format == "changelog" and sink.value_format == JSON
    return message_size(message["key"], value) - (signed and value[-3:-2] == b"-")


def _late_size(message: OutgoingMessage) -> int:
    return len(message["value"]) + sum(len(name) + len(header) for name, header in message["headers"])


def _too_large(message: OutgoingMessage, size: int, topic: str, job: Job) -> OutgoingMessage:
    reason = f"a row of {size:,} bytes is more than {topic} takes: raise its max.message.bytes, or select less"
    return row_too_large(
        message.get("key"),
        message["value"],
        topic=topic,
        query=job.name,
        reason=reason,
        dead_letter_bytes=job.target.dead_letter_bytes,
    ).message


def output_records(job: Job, parts: list[pa.Table]) -> Iterator[Encoded]:
    """The records of the output topic, in the order of writing, encoded while those before are being sent."""
    sink = job.dataflow.sink
    key = tuple(zip(sink.key, sink.key_names, strict=True))
    forms = Forms(sink.value_format, sink.key_format, schemas_of(job.target.brokers))
    for rows in _encoded_together(sink, parts):
        yield encode(rows, sink.columns, key, sink.updating, sink.format, forms)


def _encoded_together(sink: Sink, parts: list[pa.Table]) -> Iterator[pa.Table]:
    """All rows at once, where retractions must come before their replacements; else slices, which take less memory.

    Rows that meet here from several buckets are consolidated.
    """
    if sink.format == "changelog" and all(Changes(rows).only_insertions for rows in parts):
        for rows in parts:
            yield from (rows.slice(start, _SLICE_ROWS) for start in range(0, rows.num_rows, _SLICE_ROWS))
    elif parts:
        changes = Changes(pa.concat_tables(parts).combine_chunks())
        yield (changes.consolidated() if sink.exchanged else changes).table


def dead_letter_messages(job: Job, rejected: pa.Table) -> Iterator[OutgoingMessage]:
    """The dead letters of rejected records, which come with the topic they were read from."""
    for topic in pc.unique(rejected.column(TOPIC)).to_pylist():
        records = rejected.filter(pc.equal(rejected.column(TOPIC), topic))
        dead_letters = to_dead_letters(
            records, topic=topic, query=job.name, dead_letter_bytes=job.target.dead_letter_bytes
        )
        yield from (dead_letter.message for dead_letter in dead_letters)
