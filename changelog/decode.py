"""From Kafka records to typed rows with a delta; a record that cannot be used is set aside with its reason.

A record with neither key nor value is a **heartbeat**: no row, but the word of the producer that the event time of its
partition has reached the timestamp of the record, or what ``changelog.formats.heartbeat`` has in its place. An empty
key counts as none, since compacted topics demand one.

A batch is decoded as a whole. Records that stand in the way of that are taken out, the rest is decoded as a whole, and
those taken out are looked at one by one: a few bad records cost little more than none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.encodings import registry
from dovetail.changelog.encodings.interface import SchemaSource
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, Positions
from dovetail.changelog.formats.record_parts import HEADERS_TYPE, as_time, part_of
from dovetail.changelog.formats.time_range import RANGE, Mask, outside
from dovetail.changelog.row_reader import RowReader
from dovetail.changelog.schema import (
    ARRIVAL,
    EVENT_TIME_TYPE,
    OFFSET_BITS,
    RECORD,
    SEQUENCE,
    TIME,
    WIRE_DELTA,
    RecordPart,
    RecordTime,
    StreamSchema,
)
from dovetail.changelog.values import normalised

REJECTED = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", EVENT_TIME_TYPE),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("reason", pa.string()),
    ]
)
_RECORD = [*REJECTED][:-1]
HEADERS = "headers"
HEARTBEATS = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("event_ms", pa.int64())])
_ATTEMPTS = 12


@dataclass(frozen=True, slots=True)
class Decoded:
    """Each in the order of records.

    rows        the requested columns, ``arrival``, ``delta``
    rejected    REJECTED
    heartbeats  HEARTBEATS: ms since the epoch, or for event times that are whole numbers the number
    """

    rows: pa.Table
    rejected: pa.Table
    heartbeats: pa.Table


class Decoder:
    """Decodes the records of a stream into rows of ``columns`` (declared, included, ``_tp_time``, ``_tp_sn``). Pickles.

    Members that no column needs are not looked at. ``_tp_time`` is the value's member of that name, else the column of
    the event time, else the timestamp of the record; ``_tp_sn`` is its offset. ``schemas``: for formats that have their
    schemas by id.
    """

    def __init__(self, schema: StreamSchema, columns: tuple[str, ...], schemas: SchemaSource | None = None) -> None:
        self.schema = schema
        self.columns = columns
        self.headed = schema.headed(columns)
        """Whether records must come with their headers."""
        self._schemas = schemas
        self._reader = RowReader(schema, columns, schemas)
        headers = registry.headers(schema)
        self._headers = pa.array(sorted(headers), pa.binary()) if headers else None
        self._shape = self._rows_schema()
        self._dated = any(map(self._is_dated, columns))

    def __reduce__(self) -> tuple[type[Decoder], tuple[StreamSchema, tuple[str, ...], SchemaSource | None]]:
        return Decoder, (self.schema, self.columns, self._schemas)

    def decode(self, batch: pa.Table | pa.RecordBatch) -> Decoded:
        """``batch``: key, value (binary), timestamp, partition (int32), offset (int64) of records of this stream; where
        ``headed``, headers (``HEADERS_TYPE``).
        """
        records, heartbeats = self._parted(batch)
        plain, suspect, rows = self._decode_plain(records)
        if len(suspect) == 0:
            return Decoded(rows, REJECTED.empty_table(), heartbeats)
        good, single_rows, rejected = self._decode_each(records, suspect)
        order = pa.array(np.argsort(np.concatenate([plain, good]), kind="stable"))
        return Decoded(pa.concat_tables([rows, single_rows]).take(order).combine_chunks(), rejected, heartbeats)

    def decode_singly(self, batch: pa.Table | pa.RecordBatch) -> Decoded:
        """As ``decode``, slowly: every record is looked at by itself. The reference of the tests."""
        records, heartbeats = self._parted(batch)
        _, rows, rejected = self._decode_each(records, np.arange(records.num_rows))
        return Decoded(rows, rejected, heartbeats)

    def _parted(self, batch: pa.Table | pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table]:
        records, heartbeats = parted(batch)
        if self._headers is not None:
            records = records.filter(pc.invert(pc.is_in(records["value"], self._headers)))
        return records, heartbeats

    def _decode_plain(self, records: pa.RecordBatch) -> tuple[Positions, Positions, pa.Table]:
        """The rows of all records that can be read at once, the position of each row's, and those of all others."""
        plain = np.arange(records.num_rows)
        suspects: list[Positions] = [plain[:0]]
        for _ in range(_ATTEMPTS):
            rest = records if len(suspects) == 1 else records.take(pa.array(plain))
            try:
                members, places = self._reader.read_batch(rest["key"], rest["value"])
                owners = rest if places is None else rest.take(pa.array(places))
                self._decline_beyond(members, owners, places)
                rows = self._shaped(members, owners)
            except NeedsRowDecoding as declined:
                positions = slice(None) if declined.positions is None else declined.positions
                suspects.append(plain[positions])
                plain = np.delete(plain, positions)
            else:
                of_rows = plain if places is None else plain[places]
                return of_rows, np.sort(np.concatenate(suspects)), rows
        return plain[:0], np.arange(records.num_rows), self._shape.empty_table()

    def _decode_each(self, records: pa.RecordBatch, suspect: Positions) -> tuple[Positions, pa.Table, pa.Table]:
        """The records at ``suspect`` one by one: their rows, before them the position of each, and the rejected."""
        values, good, reasons = [], [], {}
        records_of = records.take(pa.array(suspect))
        pairs = zip(records_of["key"].to_pylist(), records_of["value"].to_pylist(), strict=True)
        for position, (key, value) in zip(suspect.tolist(), pairs, strict=True):
            try:
                found = self._reader.read_record(key, value)
                values.extend(found)
                good.extend([position] * len(found))
            except RecordRejected as rejection:
                reasons[position] = rejection.what
        members, positions = self._reader.table(values), np.array(good, dtype=np.int64)
        for what, beyond in self._beyond(members, records.take(pa.array(positions))):
            reasons |= dict.fromkeys(positions[beyond].tolist(), f"{what}: the time is outside of {RANGE}")
        kept = np.flatnonzero(np.isin(positions, list(reasons), invert=True))
        positions = positions[kept]
        rows = self._shaped(members.take(pa.array(kept)), records.take(pa.array(positions)))
        return positions, rows, _rejected(records, dict(sorted(reasons.items())))

    def _decline_beyond(self, members: pa.Table, owners: pa.RecordBatch, places: Positions | None) -> None:
        """Raises NeedsRowDecoding where a time is one that no row can hold."""
        found = [beyond for _, beyond in self._beyond(members, owners)]
        if found:
            bad = np.flatnonzero(np.logical_or.reduce(found))
            raise NeedsRowDecoding(bad if places is None else np.unique(places[bad]))

    def _beyond(self, members: pa.Table, owners: pa.RecordBatch) -> Iterator[tuple[str, Mask]]:
        """What has times that no row can hold, and in which rows; ``owners`` are the records of these."""
        times = [(f"column {name}", column) for name, column in zip(members.column_names, members.columns, strict=True)]
        if self._dated:
            times.append(("timestamp of the record", owners["timestamp"]))
        found = ((what, outside(column)) for what, column in times)
        return ((what, beyond) for what, beyond in found if beyond is not None)

    def _shaped(self, members: pa.Table, records: pa.RecordBatch) -> pa.Table:
        """The rows as they leave: reserved columns added, members that only they needed gone."""
        columns = [self._column(name, members, records) for name in self.columns]
        offsets, partitions = records["offset"].to_numpy(), records["partition"].to_numpy().astype(np.int64)
        columns.append(pa.array(partitions << OFFSET_BITS | offsets))
        columns.append(
            members[WIRE_DELTA].cast(DELTA_TYPE) if self._reader.counted else pa.array(np.ones(len(offsets), np.int64))
        )
        return normalised(pa.table(columns, schema=self._shape))

    def _column(self, name: str, members: pa.Table, records: pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
        if name == SEQUENCE:
            return records["offset"]
        if name != TIME:
            return self._stamped(name, members, records)
        sources = [members[TIME], records["timestamp"]]
        if self.schema.event_time not in (None, TIME) and self.schema.included_as(self.schema.event_time) is None:
            sources.insert(1, _to_event_time(members[self.schema.event_time]))
        return pc.coalesce(*sources)

    def _stamped(self, name: str, members: pa.Table, records: pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
        """A declared column, with the time of its record where it is to have that; or a part of its record."""
        included = self.schema.included_as(name)
        if included is not None:
            return part_of(included, records)
        column = self.schema.column(name)
        if column.record_time is None:
            return members[name]
        times = as_time(records["timestamp"], column.type)
        return times if column.record_time is RecordTime.ALWAYS else pc.coalesce(members[name], times)

    def _is_dated(self, name: str) -> bool:
        """Whether the column may have the timestamp of its record."""
        included = self.schema.included_as(name)
        if included is not None or name in (TIME, SEQUENCE):
            return name == TIME or (included is not None and included.part is RecordPart.TIMESTAMP)
        return self.schema.column(name).record_time is not None

    def _rows_schema(self) -> pa.Schema:
        types = self.schema.types | {TIME: EVENT_TIME_TYPE, SEQUENCE: pa.int64()}
        fields = [(name, types[name]) for name in self.columns]
        return pa.schema([*fields, (ARRIVAL, pa.int64()), pa.field(DELTA, DELTA_TYPE, nullable=False)])


def parted(batch: pa.Table | pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table]:
    """The records of ``batch`` that are no heartbeats, and HEARTBEATS."""
    records = _records(batch)
    if records["value"].null_count == 0:
        return records, HEARTBEATS.empty_table()
    keyless = pc.equal(pc.fill_null(pc.binary_length(records["key"]), 0), 0)
    beats = pc.and_(keyless, pc.is_null(records["value"]))
    found = records.filter(beats)
    columns = [found["partition"], found["offset"], found["timestamp"].cast(pa.int64())]
    return records.filter(pc.invert(beats)), pa.table(columns, schema=HEARTBEATS)


def _rejected(records: pa.RecordBatch, reasons: dict[int, str]) -> pa.Table:
    bad = records.take(pa.array(list(reasons), pa.int64()))
    columns = [bad[name] for name in REJECTED.names[:-1]] + [pa.array(list(reasons.values()), pa.string())]
    return pa.table(columns, schema=REJECTED)


def _records(batch: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The records with one chunk per column, in the types that are documented."""
    records = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    types = {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32(), "offset": pa.int64()}
    columns = {name: records[name].cast(kind).combine_chunks() for name, kind in types.items()}
    columns["timestamp"] = _to_event_time(records["timestamp"]).combine_chunks()
    if HEADERS in records.column_names:
        columns[HEADERS] = records[HEADERS].cast(HEADERS_TYPE).combine_chunks()
    return pa.RecordBatch.from_pydict(columns)


def _to_event_time(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """In milliseconds and UTC, digits beyond cut off towards the past."""
    kind = instants.type
    if kind == EVENT_TIME_TYPE:
        return instants
    if kind.unit in ("us", "ns"):
        instants = pc.floor_temporal(instants, unit="millisecond")
    zoned = instants if kind.tz else instants.cast(pa.timestamp(kind.unit, "UTC"))
    return zoned.cast(EVENT_TIME_TYPE)


def recorded(rows: pa.Table, records: pa.RecordBatch) -> pa.Table:
    """``rows``, some of those decoded from ``records`` of one partition, with their records (RECORD)."""
    taken = records.take(pa.array(places(rows, records)))
    columns = [taken[field.name].cast(field.type, safe=False) for field in _RECORD]
    return rows.add_column(0, RECORD, pa.StructArray.from_arrays(columns, fields=_RECORD))


def places(rows: pa.Table, records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The position in ``records``, of one partition and in order, of the record of each row."""
    offsets = np.bitwise_and(rows.column(ARRIVAL).to_numpy(), (1 << OFFSET_BITS) - 1)
    found: npt.NDArray[np.int64] = np.searchsorted(records.column("offset").to_numpy(), offsets)
    return found
