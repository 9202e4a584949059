"""CSV: a record is one line, its fields the declared columns in order, ``_tp_delta`` after them where rows have one.

A field may stand in double quotes, a quote in it is written twice; it may hold the delimiter and line breaks then.
Without quotes ``\\N`` is NULL. An empty field is an empty text, or no bytes; of another type it lacks the column: its
DEFAULT, or NULL. Values are as in ``text_cells``.

``without_header`` 'false': a line that is the names of the columns is no record, wherever it stands, so that nobody has
to know which record was the first.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dovetail.changelog.encodings.interface import MemberReader, MemberWriter, Reads, Writes
from dovetail.changelog.encodings.text_cells import cell_reader, column_of_cells
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats import json_text
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, decline_where
from dovetail.changelog.formats.json_types import Mismatch
from dovetail.changelog.formats.members import Member
from dovetail.changelog.schema import WIRE_DELTA, Kind, RecordFormat, StreamSchema
from dovetail.changelog.wording import counted

_NULL = "\\N"
_BOM = b"\xef\xbb\xbf"
"""The byte order mark that some programs write first."""

_SPECIAL = re.compile(rb'["\r]')


class _Reader:
    def __init__(self, reads: Reads) -> None:
        self._members = reads.members
        self._declared = [column.name for column in reads.stream.columns]
        self._counted = reads.stream.kind is not Kind.APPEND
        self._delimiter = _delimiter(reads.format)
        self._record = f"^(?:{_record_form(self._delimiter)})$".encode()
        self._cells = {member.name: cell_reader(member.type) for member in reads.members}

    def read(self, values: pa.Array) -> pa.Table:
        if len(values) == 0:
            return pa.table({member.name: pa.array([], member.type) for member in self._members})
        lines = self._lines(values)
        names = self._names(_fields_of(values[0].as_py(), self._delimiter))
        if names is None:
            raise NeedsRowDecoding(np.zeros(1, dtype=np.int64))
        wanted = [member.name for member in self._members if member.name in names]
        try:
            cells, misfits = _split(lines, names, wanted, self._delimiter)
        except pa.ArrowInvalid:
            raise NeedsRowDecoding from None
        if misfits:
            raise NeedsRowDecoding(np.array(misfits, dtype=np.int64))
        if cells.num_rows != len(values):
            raise NeedsRowDecoding
        return pa.table({member.name: self._column(member, cells) for member in self._members})

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        """Its empty fields lack a column, which a closer look tells."""
        return pa.array(np.full(len(values), name in self._declared))

    def parsed(self, value: bytes) -> dict[str, Any]:
        if not _is_utf8(value):
            raise RecordRejected("the value is not UTF-8")
        if not pc.match_substring_regex(pa.scalar(value), self._record).as_py():
            raise RecordRejected("malformed CSV: several lines, or a quote inside a field or without its end")
        fields = _fields_of(value, self._delimiter)
        names = self._names(fields)
        if names is None:
            raise RecordRejected(f"{counted(fields, 'field')} for {counted(len(self._declared), 'column')}")
        cells, _ = _split(value, names, names, self._delimiter)
        found = {name: cells.column(name)[0].as_py() for name in names}
        return {
            name: self._delta(name, cell) if name == WIRE_DELTA else cell
            for name, cell in found.items()
            if name in self._cells and not self._is_absent(name, cell)
        }

    def values(self, record: dict[str, Any]) -> list[Any]:
        return [
            self._value(member, record[member.name]) if member.name in record else member.default
            for member in self._members
        ]

    def _is_absent(self, name: str, cell: str | None) -> bool:
        return cell == "" and not any(one.name == name and _has_empty(one.type) for one in self._members)

    def _delta(self, name: str, cell: str | None) -> Any:
        """``_tp_delta`` as a number, where it is one."""
        try:
            return None if cell is None else self._cells[name](cell)
        except Mismatch:
            return cell

    def _value(self, member: Member, cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        try:
            return self._cells[member.name](cell)
        except Mismatch as mismatch:
            raise RecordRejected(f"column {member.name}: {mismatch}") from None

    def _names(self, fields: int) -> list[str] | None:
        """What the fields of a record of so many are; None: it is no record of this stream."""
        if fields == len(self._declared):
            return self._declared
        if self._counted and fields == len(self._declared) + 1:
            return [*self._declared, WIRE_DELTA]
        return None

    def _lines(self, values: pa.Array) -> bytes:
        """The values, a line each; raises NeedsRowDecoding where a line would not be one whole record."""
        decline_where(pc.or_(pc.equal(values, b""), pc.match_substring(values, b"\n")))
        whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        lines: bytes = pc.binary_join(whole, b"\n")[0].as_py()
        if not _is_utf8(lines):
            raise NeedsRowDecoding
        if _BOM in lines:
            # The parser passes over it at the beginning of all lines, and takes it for a text before any other.
            decline_where(pc.starts_with(values, _BOM))
        if _SPECIAL.search(lines):
            odd = pc.match_substring_regex(values, _SPECIAL.pattern)
            decline_where(pc.and_not(odd, pc.match_substring_regex(values, self._record)))
        return lines

    def _column(self, member: Member, cells: pa.Table) -> pa.Array | pa.ChunkedArray:
        if member.name not in cells.column_names:
            return pa.array([member.default] * cells.num_rows, member.type)
        column = cells.column(member.name).combine_chunks()
        if _has_empty(member.type):
            return column_of_cells(column, member.type)
        absent = pc.equal(column, "").fill_null(False)
        if not pc.any(absent).as_py():
            return column_of_cells(column, member.type)
        found = column_of_cells(pc.if_else(absent, pa.scalar(None, pa.string()), column), member.type)
        return found if member.default is None else pc.if_else(absent, pa.scalar(member.default, member.type), found)


def _has_empty(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _record_form(delimiter: str) -> str:
    """One record, fields in quotes or without any, and perhaps the end of its line."""
    mark = re.escape(delimiter)
    field = rf'(?:"(?:[^"]|"")*"|[^"\r\n{mark}]*)'
    return rf"{field}(?:{mark}{field})*(?:\r?\n)?"


def _split(lines: bytes, names: list[str], wanted: list[str], delimiter: str) -> tuple[pa.Table, list[int]]:
    """The fields of ``wanted`` as texts, and the lines that have more or fewer than ``names``, which it lacks."""
    misfits: list[int] = []

    def skip(row: pa.csv.InvalidRow) -> str:
        misfits.append(row.number - 1)
        return "skip"

    table = pa.csv.read_csv(
        pa.BufferReader(lines if lines.endswith(b"\n") else lines + b"\n"),
        pa.csv.ReadOptions(use_threads=False, block_size=len(lines) + 2, column_names=names),
        pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=b'"' in lines, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            null_values=[_NULL],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table, misfits


def _fields_of(value: bytes, delimiter: str) -> int:
    """How many fields the record has."""
    outside = re.sub(rb'"(?:[^"]|"")*"', b"", value)
    return outside.count(delimiter.encode()) + 1


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(of: RecordFormat) -> str:
    said = of.option("delimiter", ",")
    return "\t" if said in ("tab", "\\t") else said


class _Writer:
    def __init__(self, writes: Writes) -> None:
        self._delimiter = _delimiter(writes.format)

    def write(self, rows: pa.Table) -> pa.Array:
        fields = [self._field(rows.select([name]).rename_columns(["v"])) for name in rows.column_names]
        return pl.select(pl.concat_str(fields, separator=self._delimiter)).to_series().cast(pl.Binary).to_arrow()

    def _field(self, column: pa.Table) -> pl.Series:
        kind = column.schema.field(0).type
        if pa.types.is_string(kind):
            texts = pl.Series(column.column(0))
            special = texts.str.contains(rf'["\r\n\\{re.escape(self._delimiter)}\x{{feff}}]')
            return texts.zip_with(~special, _quoted(texts)).fill_null(_NULL)
        # The inside of {"v":..}: what is no text of JSON has no delimiter in it, or brackets around.
        literal = json_text.objects(column).str.slice(len('{"v":')).str.head(-1)
        shown = _quoted(literal) if pa.types.is_nested(kind) else literal
        return shown.zip_with(pl.Series(column.column(0)).is_not_null() & (literal != "null"), pl.Series([_NULL]))


def _quoted(texts: pl.Series) -> pl.Series:
    doubled = texts.str.replace_all('"', '""', literal=True)
    return pl.select(pl.concat_str([pl.lit('"'), doubled, pl.lit('"')])).to_series()


def reader(reads: Reads) -> MemberReader:
    return _Reader(reads)


def writer(writes: Writes) -> MemberWriter:
    return _Writer(writes)


def headers(stream: StreamSchema) -> frozenset[bytes]:
    """The names of the columns as a line: plain or in quotes, with a byte order mark and the end of a line or not."""
    if stream.value.option("without_header", "true") != "false":
        return frozenset()
    delimiter = _delimiter(stream.value)
    columns = [column.name for column in stream.columns]
    found = set()
    for names in (columns, [*columns, WIRE_DELTA]):
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        for cells in (quoted, [_cell(name, delimiter) for name in names]):
            line = delimiter.join(cells).encode()
            found |= {bom + line + end for bom, end in product((b"", _BOM), (b"", b"\n", b"\r\n"))}
    return frozenset(found)


def _cell(name: str, delimiter: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(sign in name for sign in (delimiter, '"', "\n", "\r")) else name
