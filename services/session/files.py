"""Rows of files: lines of JSON, CSV, Parquet and Arrow, a batch after the other, as a stream takes them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, ipc, parquet

from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.schema import TIME, StreamSchema
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import type_words
from dovetail.services.file_format import FileFormat
from dovetail.services.session.typed_rows import json_rows, written_columns

BATCH = 50_000
"""Rows of a batch, which is one transaction."""


def row_batches(file: BinaryIO, kind: FileFormat, schema: StreamSchema, name: str) -> Iterator[pa.Table]:
    """The rows of ``file``, called ``name``, in its order. Raises SqlError with the place of the first that does not
    fit; the batches before it are good.
    """
    try:
        match kind:
            case FileFormat.JSONL:
                yield from _of_lines(file, schema, name)
            case FileFormat.CSV:
                yield from _of_csv(file, schema, name)
            case FileFormat.PARQUET:
                for batch in parquet.ParquetFile(file).iter_batches(BATCH):
                    yield pa.table(batch)
            case FileFormat.ARROW:
                yield from _of_arrow(file)
    except pa.ArrowException as fault:
        raise SqlError(f"{name} cannot be read as {kind}: {str(fault).splitlines()[0]}", where=name) from None


def _of_lines(file: BinaryIO, schema: StreamSchema, name: str) -> Iterator[pa.Table]:
    """Lines that are blank count, and say nothing."""
    numbered = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    known = written_columns(schema, [TIME])
    for part in _batched(numbered):
        numbers, lines = [number for number, _ in part], [line for _, line in part]
        given = _members(lines, numbers, known, name)
        columns = written_columns(schema, given)
        try:
            rows = json_rows(schema, lines, columns)
        except SqlError as fault:
            raise _in_its_file(fault, numbers, name) from None
        yield rows.select([column for column in columns if column in rows.column_names])


def _batched(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[tuple[int, bytes], ...]]:
    while part := tuple(itertools.islice(lines, BATCH)):
        yield part


def _members(lines: Sequence[bytes], numbers: Sequence[int], known: Sequence[str], name: str) -> set[str]:
    """The members of all objects. Raises UnknownName for one that is no column."""
    found: dict[str, int] = {}
    for number, line in zip(numbers, lines, strict=True):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as fault:
            raise SqlError(f"line {number} is no JSON: {fault}", where=name) from None
        if not isinstance(row, dict):
            raise SqlError(f"line {number} is no object of members: {line.decode(errors='replace')[:40]}", where=name)
        for member in row:
            found.setdefault(member, number)
    for member, number in found.items():
        if member not in known:
            raise UnknownName(
                f'line {number} has a member "{member}", which is no column', where=name, fix=suggestion(member, known)
            )
    return set(found)


def _in_its_file(fault: SqlError, numbers: Sequence[int], name: str) -> SqlError:
    """The fault with the number of the line in the place of that of the row."""
    word, _, rest = fault.what.partition(" does not fit")
    if not rest or not word.startswith("row "):
        return fault
    return SqlError(f"line {numbers[int(word[4:]) - 1]} does not fit{rest}", where=name, fix=fault.fix)


def _of_csv(file: BinaryIO, schema: StreamSchema, name: str) -> Iterator[pa.Table]:
    """With a line of names at its head; a cell without a sign is NULL, but for texts."""
    types = {column.name: column.type for column in schema.columns}
    texts = {name: kind for name, kind in types.items() if pa.types.is_timestamp(kind) or pa.types.is_decimal(kind)}
    options = csv.ConvertOptions(column_types=types | dict.fromkeys(texts, pa.string()), strings_can_be_null=False)
    reader = csv.open_csv(file, convert_options=options, parse_options=csv.ParseOptions(newlines_in_values=True))
    _expect_commas(reader.schema.names, name)
    for batch in reader:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        read = {
            column: _read(columns[column], kind, f"{name}, column {column}")
            for column, kind in texts.items()
            if column in columns
        }
        yield pa.table(columns | read)


def _expect_commas(names: Sequence[str], file: str) -> None:
    """Raises SqlError where the columns are parted by another sign, so that all of them are one."""
    sign = next((one for one in (";", "\t", "|") if len(names) == 1 and one in names[0]), "")
    if sign:
        shown = "a tab" if sign == "\t" else sign
        raise SqlError(
            f"columns are parted by {shown}, and those of a CSV file are by commas",
            where=f"{file}, line 1",
            fix=f"db.insert('t', pandas.read_csv('{file}', sep={sign!r})), from Python: docs/python.md",
        )


def _read(texts: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    """Raises SqlError with the first text that is none of ``kind``."""
    texts = pc.if_else(pc.equal(texts, ""), None, texts)
    of_times = pa.types.is_timestamp(kind)
    try:
        return _moments(texts, kind) if of_times else decimal_text.cast(texts, kind)
    except pa.ArrowInvalid:
        if len(texts) > 1:
            half = len(texts) // 2
            return pa.concat_arrays([_read(part, kind, where) for part in (texts[:half], texts[half:])])
        fix = "2026-01-31 12:00:00, 2026-01-31T12:00:00Z or 2026-01-31" if of_times else "12.50"
        raise SqlError(f"{texts[0].as_py()!r} is no {type_words(kind)}", where=where, fix=fix) from None


def _moments(texts: pa.Array, kind: pa.TimestampType) -> pa.Array:
    """Times with a zone, without one (UTC), and dates."""
    texts = pc.if_else(pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d$"), _joined(texts, " 00:00:00"), texts)
    texts = pc.if_else(pc.match_substring_regex(texts, r"(Z|[+-]\d\d(:?\d\d)?)$"), texts, _joined(texts, "Z"))
    moments = texts.cast(pa.timestamp(kind.unit, "UTC"))
    return moments if kind.tz else pc.local_timestamp(moments)


def _joined(texts: pa.Array, end: str) -> pa.Array:
    return pc.binary_join_element_wise(texts, end, "")


def _of_arrow(file: BinaryIO) -> Iterator[pa.Table]:
    """A file, or a stream, of batches."""
    begins = file.read(6)
    file.seek(0)
    if begins == b"ARROW1":
        reader = ipc.open_file(file)
        for place in range(reader.num_record_batches):
            yield pa.table(reader.get_batch(place))
    else:
        for batch in ipc.open_stream(file):
            yield pa.table(batch)
