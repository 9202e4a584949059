"""JSON objects, a member per column."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from dovetail.changelog.encodings.interface import MemberReader, MemberWriter, Reads, Writes
from dovetail.changelog.formats import json_text
from dovetail.changelog.formats.json_batch import BatchReader, may_contain
from dovetail.changelog.formats.json_record import RecordReader
from dovetail.changelog.keys import as_object, as_objects


class _Objects:
    def __init__(self, reads: Reads) -> None:
        self._batch, self._record = BatchReader(reads.members), RecordReader(reads.members)
        self._place = reads.place

    def read(self, values: pa.Array) -> pa.Table:
        return self._batch.read(values)

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        return may_contain(values, name)

    def parsed(self, value: bytes) -> dict[str, Any]:
        return self._record.parsed_object(value, self._place)

    def values(self, record: dict[str, Any]) -> list[Any]:
        return self._record.values(record)


class _Keys(_Objects):
    """Objects, and bare values of a single column."""

    def __init__(self, reads: Reads) -> None:
        super().__init__(reads)
        self._columns = reads.stream.primary_key
        self._text = len(self._columns) == 1 and pa.types.is_string(reads.stream.column(self._columns[0]).type)

    def read(self, values: pa.Array) -> pa.Table:
        return super().read(as_objects(values, self._columns, self._text))

    def parsed(self, value: bytes) -> dict[str, Any]:
        return super().parsed(as_object(value, self._columns, self._text))


class _Texts:
    def write(self, rows: pa.Table) -> pa.Array:
        return json_text.objects(rows).cast(pl.Binary).to_arrow()


def reader(reads: Reads) -> MemberReader:
    return _Keys(reads) if reads.of_key else _Objects(reads)


def writer(_: Writes) -> MemberWriter:
    return _Texts()
