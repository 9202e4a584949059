"""A lookup query from Kafka records to Kafka records, a batch at a time: what every host calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import REJECTED, Decoder
from dovetail.changelog.encode import Encoded, Forms, encode
from dovetail.changelog.encodings.interface import SchemaSource
from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES
from dovetail.changelog.errors import InternalError, RecordRejected
from dovetail.changelog.formats import json_text
from dovetail.changelog.hashing import row_hashes
from dovetail.changelog.lookup import Lookup
from dovetail.changelog.rows import numpy_column
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, StreamSchema
from dovetail.enrichment.lookup_join.flow_operator import FlowOperator
from dovetail.enrichment.lookup_join.stage_operator import RowsRejected
from dovetail.enrichment.memo.memo import LeftRows, Memo
from dovetail.enrichment.memo.memo_store import Update
from dovetail.enrichment.memo.net_changes import Emitted
from dovetail.joins.dataflow import failed_calls
from dovetail.joins.dataflow.graph import Sink
from dovetail.joins.dataflow.lookup import Access, LookupFlow
from dovetail.joins.dataflow.ports import Ingest

ROWS_IN = "rows_in"
ROWS_OUT = "rows_out"
REJECTED_RECORDS = "rejected"
DANGLING = "dangling"
FAILED_CALLS = "failed"


@dataclass(frozen=True, slots=True)
class AnsweredBatch:
    """What a batch has to write, all of it in one transaction with the offsets of its records.

    messages   records of the output topic, in order
    updates    records of the memo's topic; to be given to ``Enricher.confirm`` when the transaction is committed
    rejected   REJECTED: records that could not be read, or that a lookup rejects
    counts     ROWS_IN, ROWS_OUT, REJECTED_RECORDS, DANGLING, FAILED_CALLS
    """

    messages: Encoded
    updates: list[Update]
    rejected: pa.Table
    counts: Counter[str] = field(default_factory=Counter)


_Answer = tuple[Encoded, list[Update], int]
"""Messages, updates of the memo, dangling retractions."""


class Enricher:
    """The flow with its lookups and, where the left side is updating, the memo of one input partition.

    start_offsets  the first offset of each partition that counts; 0 where none is given
    memo_ttl_ms    so long after its last change, in the time of the records, a row is remembered; 0: until it is gone
    largest_bytes  the largest message that the topics of the output and of the memo take
    schemas        of formats that have theirs by id

    One thread at a time. A step that raises has changed nothing. After a step either ``confirm`` or ``discard``.
    """

    def __init__(
        self,
        flow: LookupFlow,
        lookups: Mapping[Access, Lookup],
        memo: Memo | None = None,
        snapshots: Mapping[str, pa.Table] | None = None,
        start_offsets: Mapping[int, int] | None = None,
        memo_ttl_ms: int = 0,
        largest_bytes: int = MESSAGE_BYTES,
        schemas: SchemaSource | None = None,
    ) -> None:
        self._memo_ttl_ms = memo_ttl_ms
        self._largest_bytes = largest_bytes
        self._time_ms = 0
        self._flow = flow
        self._operator = FlowOperator(flow, lookups, snapshots)
        self._decoder = Decoder(flow.scan.stream, flow.scan.columns, schemas)
        self._forms = Forms(flow.sink.value_format, flow.sink.key_format, schemas)
        self._start_offsets = dict(start_offsets or {})
        self._memo = memo
        if (memo is None) != (flow.ingest is Ingest.APPEND):
            raise InternalError(f"a left side of {flow.ingest} rows {'needs a' if memo is None else 'has no'} memo")

    def step(self, records: pa.Table | pa.RecordBatch, now_ms: int) -> AnsweredBatch:
        """``records``: key, value, timestamp, partition, offset, in order of arrival."""
        decoded = self._decoder.decode(records)
        self._time_ms = max(self._time_ms, _greatest_ms(records))
        (messages, updates, dangling), reasons = self._answered(self._from_start_offsets(decoded.rows), now_ms)
        rejected = decoded.rejected
        if reasons:
            rejected = pa.concat_tables([rejected, _rejected(records, reasons)])
        counts = Counter(
            {
                ROWS_IN: records.num_rows - decoded.heartbeats.num_rows,
                ROWS_OUT: len(messages),
                REJECTED_RECORDS: rejected.num_rows,
                DANGLING: dangling,
                FAILED_CALLS: failed_calls.taken(),
            }
        )
        return AnsweredBatch(messages, updates, rejected, counts)

    def _answered(self, rows: pa.Table, now_ms: int) -> tuple[_Answer, dict[int, str]]:
        """The answer to all rows but those that a lookup rejects, and the reasons of these, by arrival."""
        reasons: dict[int, str] = {}
        while True:
            failed_calls.taken()  # those of an attempt that did not come to its end
            try:
                if self._memo is None:
                    return (self._appended(rows, now_ms), [], 0), reasons
                return self._updated(self._memo, rows, now_ms), reasons
            except RowsRejected as rejection:
                reasons |= dict.fromkeys(rejection.arrivals, rejection.reason)
                gone = pa.array(rejection.arrivals, pa.int64())
                rows = rows.filter(pc.invert(pc.is_in(rows.column(ARRIVAL), gone)))

    def confirm(self, updates: Sequence[Update], offset: int | None = None) -> None:
        """The transaction of these updates is committed."""
        if self._memo is not None:
            self._memo.confirm(updates, offset, self._time_ms)

    def discard(self) -> None:
        """The transaction of all steps since the last ``confirm`` is aborted: they will be made again."""
        if self._memo is not None:
            self._memo.discard()

    def _from_start_offsets(self, rows: pa.Table) -> pa.Table:
        """The rows from the start offsets on."""
        if self._start_offsets and rows.num_rows:
            arrivals = numpy_column(rows, ARRIVAL)
            partitions, offsets = arrivals >> OFFSET_BITS, arrivals & ((1 << OFFSET_BITS) - 1)
            before = np.zeros(len(arrivals), dtype=np.bool_)
            for partition, start in self._start_offsets.items():
                before |= (partitions == partition) & (offsets < start)
            rows = rows.filter(pa.array(~before)) if before.any() else rows
        return rows

    def _appended(self, rows: pa.Table, now_ms: int) -> Encoded:
        answered = self._operator.answer(rows, now_ms)
        sink = self._flow.sink
        messages = _encoded(sink, answered, sink.updating, sink.format, self._forms)
        check_sizes(messages, self._largest_bytes)
        return messages

    def _updated(self, memo: Memo, decoded: pa.Table, now_ms: int) -> tuple[Encoded, list[Update], int]:
        rows = self._operator.scan(decoded)
        question = memo.ask(self._left_rows(decoded, rows))
        positions = np.array(question.positions, dtype=np.int64)
        # The place among those asked stands in for the arrival: it is what ties an answer to its row.
        insertions = _with_column(
            rows.take(pa.array(positions)), ARRIVAL, pa.array(np.arange(len(positions)), pa.int64())
        )
        try:
            answered = self._operator.run_stages(insertions, now_ms)
        except RowsRejected as rejection:
            places = pa.array([question.positions[place] for place in rejection.arrivals])
            raise RowsRejected(frozenset(rows.column(ARRIVAL).take(places).to_pylist()), rejection.reason) from None
        step = memo.settle(question, self._answers(answered, len(positions)))
        messages = step.changes.records(self._flow.sink.format)
        check_sizes(messages, self._largest_bytes)
        updates = Encoded.of([key for key, _ in step.updates], [run for _, run in step.updates])
        check_sizes(updates, self._largest_bytes)
        if self._memo_ttl_ms:
            step.updates.extend(memo.expired(self._time_ms - self._memo_ttl_ms))
        memo.keep(step)
        return messages, step.updates, step.dangling

    def _left_rows(self, decoded: pa.Table, rows: pa.Table) -> LeftRows:
        identities = _texts(rows, self._flow.identity)
        deltas = rows.column(DELTA).to_pylist()
        if self._flow.ingest is not Ingest.CHANGELOG_KV:
            return LeftRows(identities, deltas, [None] * rows.num_rows)
        return LeftRows(identities, deltas, _prints(self._flow.scan.stream, decoded, rows))

    def _answers(self, answered: pa.Table, count: int) -> list[tuple[Emitted, ...]]:
        sink = self._flow.sink
        encoded = _encoded(sink, answered, updating=False, output_format="changelog", forms=self._forms)
        answers: list[list[Emitted]] = [[] for _ in range(count)]
        for place, key, value in zip(answered.column(ARRIVAL).to_pylist(), encoded.keys, encoded.values, strict=True):
            answers[place].append((key, value or b""))
        return [tuple(records) for records in answers]


def _encoded(sink: Sink, rows: pa.Table, updating: bool, output_format: str, forms: Forms) -> Encoded:
    key = tuple(zip(sink.key, sink.key_names, strict=True))
    return encode(rows, sink.columns, key, updating, output_format, forms)


def _greatest_ms(records: pa.Table | pa.RecordBatch) -> int:
    greatest = pc.max(records.column("timestamp")).cast(pa.int64()).as_py() if records.num_rows else None
    return greatest or 0


def check_sizes(messages: Encoded, largest_bytes: int) -> None:
    """Raises RecordRejected for what no message holds."""
    largest = max(messages.sizes().tolist(), default=0)
    if largest > largest_bytes:
        raise RecordRejected(
            f"an answer to it takes {largest:,} bytes, and its topic takes {largest_bytes:,}: raise its"
            " max.message.bytes, or select less"
        )


def _rejected(records: pa.Table | pa.RecordBatch, reasons: Mapping[int, str]) -> pa.Table:
    """The records of the arrivals, with their reasons, as REJECTED."""
    arrivals = numpy_column(records, "partition").astype(np.int64) << OFFSET_BITS | numpy_column(records, "offset")
    chosen = pa.array(np.flatnonzero(np.isin(arrivals, list(reasons))))
    row_reasons = [reasons[arrival] for arrival in arrivals[chosen.to_numpy()].tolist()]
    columns = [records.column(name).take(chosen) for name in REJECTED.names[:-1]]
    return pa.table([*columns, pa.array(row_reasons, pa.string())], names=REJECTED.names).cast(REJECTED)


def _texts(rows: pa.Table, columns: Sequence[str]) -> list[bytes]:
    """The identity of each row: a JSON object."""
    if not columns:
        return [b"{}"] * rows.num_rows
    return [text.encode() for text in json_text.objects(rows.select(list(columns))).to_list()]


def _prints(stream: StreamSchema, decoded: pa.Table, rows: pa.Table) -> list[int | None]:
    """The hash of the record of each row in all columns but those of the record, which a retraction has of its own.

    None for a row that became a delete because a condition rejected it: it ends whatever its primary key holds.
    """
    compared = [name for name in decoded.column_names if name not in (ARRIVAL, DELTA) and not stream.of_record(name)]
    hashes = row_hashes(decoded, compared)
    by_arrival = np.argsort(numpy_column(decoded, ARRIVAL))
    places = by_arrival[np.searchsorted(numpy_column(decoded, ARRIVAL)[by_arrival], numpy_column(rows, ARRIVAL))]
    rejected = (numpy_column(decoded, DELTA)[places] > 0) & (numpy_column(rows, DELTA) < 0)
    return [None if ended else print_ for print_, ended in zip(hashes[places].tolist(), rejected.tolist(), strict=True)]


def _with_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)
