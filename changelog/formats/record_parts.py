"""Columns that are parts of a record: its key, where it stands, its timestamp, its headers.

KEY         NULL where there is none
HEADERS     a map of text to text: of several headers of a name the last counts, as for Kafka's own ``lastHeader``; an
            array of objects has them all, in order. A record without headers has an empty one
HEADER      the last header of the name; NULL where there is none

A header without value is NULL. Bytes that are no UTF-8 become U+FFFD where a text is asked for, so no record is lost
for what another program has put there.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import Included, RecordPart, StreamSchema

HEADERS_TYPE = pa.map_(pa.string(), pa.binary())
"""As records have them: names may repeat."""


def part_of(column: Included, records: pa.RecordBatch) -> pa.Array:
    """The column for each of ``records``: key, timestamp, partition, offset, and headers where it is made of them."""
    match column.part:
        case RecordPart.KEY:
            return _typed(records["key"], column.type)
        case RecordPart.PARTITION | RecordPart.OFFSET:
            return records[column.part.value].cast(column.type)
        case RecordPart.TIMESTAMP:
            return as_time(records["timestamp"], column.type)
        case RecordPart.HEADERS:
            return _all_headers(records["headers"], column.type)
        case RecordPart.HEADER:
            return _typed(_one_header(records["headers"], column.header), column.type)
        case _:
            assert_never(column.part)


def expect_written(stream: StreamSchema, name: str, where: str) -> None:
    """Raises Unsupported for a column that is a part of the record: what is written has its own."""
    part = stream.included_as(name)
    if part is not None:
        raise Unsupported(
            f'"{name}" of "{stream.name}" is the {part.part.value} of the record, which is read and not written',
            where=where,
            fix=f"leave {name} out",
        )


def as_time(instants: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Times of records, in milliseconds and UTC, as another kind of timestamp."""
    zoned = instants.cast(pa.timestamp("ms", "UTC"))
    return zoned.cast(pa.timestamp(kind.unit, "UTC"), safe=False).cast(kind, safe=False)


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if pa.types.is_binary(kind) else _texts(values)


def _texts(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        # Only the values that are no text, which are few, are looked at by themselves.
        return pa.array([None if value is None else value.decode(errors="replace") for value in values.to_pylist()])


def _all_headers(headers: pa.MapArray, kind: pa.DataType) -> pa.Array:
    offsets, names, values = _flat(headers)
    if not pa.types.is_map(kind):
        objects = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), objects)
    last = _last_of_each(np.repeat(np.arange(len(headers)), np.diff(offsets)), names)
    counts = np.concatenate([[0], np.cumsum(last)])[offsets]
    kept = pa.array(last)
    return pa.MapArray.from_arrays(pa.array(counts, pa.int32()), names.filter(kept), _texts(values.filter(kept)))


def _one_header(headers: pa.MapArray, name: str) -> pa.Array:
    offsets, names, values = _flat(headers)
    owners = np.repeat(np.arange(len(headers)), np.diff(offsets))
    places = np.full(len(headers), -1, dtype=np.int64)
    named = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
    np.maximum.at(places, owners[named], named)
    return values.take(pa.array(places, mask=places < 0))


def _flat(headers: pa.MapArray) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """Where the headers of each record begin and end among all, their names, and their values."""
    offsets = headers.offsets.to_numpy()
    first, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - first, headers.keys.slice(first, length), headers.items.slice(first, length)


def _last_of_each(owners: np.ndarray, names: pa.Array) -> np.ndarray:
    """Whether a header is the last of its record with its name."""
    frame = pl.DataFrame({"owner": owners, "name": pl.Series("name", names, pl.String)})
    found: np.ndarray = frame.select(pl.struct("owner", "name").is_last_distinct()).to_series().to_numpy()
    return found
