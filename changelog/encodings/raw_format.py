"""Raw: the bytes are the one column that there is, text (UTF-8) or binary. A key of other types is its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dovetail.changelog.encodings.interface import MemberReader, MemberWriter, Reads, Writes
from dovetail.changelog.encodings.text_cells import cell_reader, column_of_cells
from dovetail.changelog.errors import InternalError, RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding
from dovetail.changelog.formats.json_types import Mismatch


class _Reader:
    """Of the members one is the content; others (``_tp_time``) no record has."""

    def __init__(self, reads: Reads) -> None:
        self._members, self._place = reads.members, reads.place
        self._content = _content_of(reads)

    def read(self, values: pa.Array) -> pa.Table:
        columns = {}
        for member in self._members:
            if member.name != self._content:
                columns[member.name] = pa.array([member.default] * len(values), member.type)
            elif pa.types.is_binary(member.type):
                columns[member.name] = values
            else:
                columns[member.name] = _of_texts(values, member.type)
        return pa.table(columns)

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        return pa.array(np.full(len(values), name == self._content))

    def parsed(self, value: bytes) -> dict[str, Any]:
        for member in self._members:
            if member.name == self._content and not pa.types.is_binary(member.type):
                try:
                    return {member.name: value.decode()}
                except UnicodeDecodeError:
                    raise RecordRejected(f"the {self._place} is not UTF-8") from None
        return {self._content: value}

    def values(self, record: dict[str, Any]) -> list[Any]:
        return [
            _typed(member.name, member.type, record[member.name]) if member.name in record else member.default
            for member in self._members
        ]


def _content_of(reads: Reads) -> str:
    names = [column.name for column in reads.stream.columns]
    key = reads.stream.primary_key
    found = list(key) if reads.of_key else [name for name in names if name not in key]
    return found[0] if len(found) == 1 else ""


def _of_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        raise NeedsRowDecoding from None
    return column_of_cells(texts, kind)


def _typed(name: str, kind: pa.DataType, value: Any) -> Any:
    if not isinstance(value, str) or pa.types.is_string(kind):
        return value
    try:
        return cell_reader(kind)(value)
    except Mismatch as mismatch:
        raise RecordRejected(f"column {name}: {mismatch}") from None


class _Writer:
    def write(self, rows: pa.Table) -> pa.Array:
        if rows.num_columns != 1:
            raise InternalError(f"a raw value holds one column, not {', '.join(rows.column_names)}")
        column = rows.column(0).combine_chunks()
        return column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())


def reader(reads: Reads) -> MemberReader:
    return _Reader(reads)


def writer(_: Writes) -> MemberWriter:
    return _Writer()
