"""Rows into a topic, as the records that its stream is defined to hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.reader import RECORDS
from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encodings.registry import format_kind
from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.formats.record_parts import expect_written
from dovetail.changelog.formats.text_forms import TEXT_FORMS
from dovetail.changelog.schema import ARRIVAL, EVENT_TIME_TYPE, JSON, TIME, WIRE_DELTA, Column, Kind, StreamSchema
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import counted
from dovetail.sql.syntax.statements import DefaultValue, Literal

_SHORT_PART = re.compile(r"(?<=[-T ])(\d)(?=$|[-: T])")
"""A month, day or hour of one digit."""


def typed_rows(schema: StreamSchema, columns: Sequence[str], rows: Sequence[Sequence[Literal]]) -> pa.Table:
    """Rows of literals as the decoder of the stream reads them: the columns' types, their defaults, and ``delta``.

    The decoder is the judge, so that INSERT takes exactly what any producer may write. Raises UnknownName for a column
    that there is not, SqlError for the first row that does not fit.
    """
    names = columns or [column.name for column in schema.columns]
    _expect_columns(schema, names)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise SqlError(
                f"row {number} has {counted(len(row), 'value')} for {counted(len(names), 'column')}",
                where="VALUES",
                fix=f"give one value for each of: {', '.join(names)}",
            )
    for column in schema.columns:
        if column.form and column.name in names:
            given = (row[names.index(column.name)] for row in rows)
            _expect_form(column, [value for value in given if isinstance(value, str)])
    values = [_object(schema, dict(zip(names, row, strict=True))) for row in rows]
    return json_rows(schema, values, written_columns(schema, names))


def json_rows(schema: StreamSchema, objects: Sequence[bytes], columns: tuple[str, ...]) -> pa.Table:
    """JSON objects as rows of ``columns``. Raises SqlError for the first that does not fit, with its number from 1."""
    literals = replace(schema, value=JSON, key=JSON)
    decoded = Decoder(literals, columns).decode(_as_records(objects))
    if decoded.rejected.num_rows:
        first = decoded.rejected.slice(0, 1).to_pylist()[0]
        raise SqlError(
            f"row {first['offset'] + 1} does not fit: {first['reason']}",
            where=f'INSERT INTO "{schema.name}"',
            fix=f"give a value of the type of its column: DESCRIBE {schema.name}",
        )
    typed = decoded.rows.drop_columns([ARRIVAL])
    expect_values(schema, typed)
    return typed


def written_columns(schema: StreamSchema, given: Iterable[str] = ()) -> tuple[str, ...]:
    """The members of a record: the declared columns, and ``_tp_time`` where it is given."""
    declared = tuple(column.name for column in schema.columns)
    return (*declared, TIME) if TIME in given and TIME not in declared else declared


def _expect_columns(schema: StreamSchema, names: Sequence[str]) -> None:
    known = [column.name for column in schema.columns]
    times = [TIME] if format_kind(schema.value.kind).named else []
    reserved = times if schema.kind is Kind.APPEND else [*times, WIRE_DELTA]
    for name in names:
        expect_written(schema, name, "INSERT")
        if name not in (*known, *reserved):
            raise UnknownName(f'"{schema.name}" has no column "{name}"', where="INSERT", fix=suggestion(name, known))
        if names.count(name) > 1:
            raise SqlError(f'the column "{name}" is named twice', where="INSERT")


def expect_values(schema: StreamSchema, rows: pa.Table) -> None:
    """Raises SqlError where a column that is NOT NULL, or of the primary key, holds NULL."""
    for column in schema.columns:
        required = not column.nullable or column.name in schema.primary_key
        if required and column.name in rows.column_names and rows.column(column.name).null_count:
            raise SqlError(
                f'column "{column.name}" of "{schema.name}" cannot be NULL', fix=f"give a value for {column.name}"
            )
        if column.form and column.name in rows.column_names:
            _expect_form(column, pc.unique(rows.column(column.name).drop_null()).to_pylist())


def _expect_form(column: Column, texts: Iterable[str]) -> None:
    form = TEXT_FORMS[column.form]
    for text in texts:
        try:
            form.text(text)
        except ValueError:
            raise SqlError(
                f"column {column.name}: {text!r} is no {column.form}", where="INSERT", fix=form.example
            ) from None


def _object(schema: StreamSchema, row: Mapping[str, Literal]) -> bytes:
    types = {TIME: EVENT_TIME_TYPE, **{column.name: column.type for column in schema.columns}}
    given = {name: value for name, value in row.items() if not isinstance(value, DefaultValue)}
    members = {name: _plain(value, types.get(name)) for name, value in given.items()}
    inside = (f"{json.dumps(name)}:{_json(value)}" for name, value in members.items())
    return ("{" + ",".join(inside) + "}").encode()


def _plain(value: Literal, kind: pa.DataType | None) -> Literal:
    """A map that was computed is an object. A tuple, and a row whose members have no names of the struct's, take these
    in order; a time may leave out the zeros of its parts, ``2026-1-2 3:04:05``; other values stay.
    """
    if kind is not None and pa.types.is_list(kind) and isinstance(value, list):
        return [_plain(element, kind.value_type) for element in value]
    if kind is not None and pa.types.is_map(kind) and isinstance(value, list):
        return {str(key): _plain(item, kind.item_type) for key, item in value}
    if kind is not None and pa.types.is_temporal(kind) and isinstance(value, str):
        return _SHORT_PART.sub(r"0\1", value)
    if kind is None or not pa.types.is_struct(kind):
        return value
    fields = [kind.field(index) for index in range(kind.num_fields)]
    names = [field.name for field in fields]
    if isinstance(value, tuple) or (isinstance(value, Mapping) and set(names).isdisjoint(value)):
        given = list(value.values() if isinstance(value, Mapping) else value)
        if len(given) != len(names):
            listed = ", ".join(names)
            what = f"a row of {counted(len(given), 'value')} for the members {listed}"
            raise SqlError(what, where="VALUES", fix=f"give a value for each: ({listed})")
        value = dict(zip(names, given, strict=True))
    if isinstance(value, Mapping):
        types = {field.name: field.type for field in fields}
        return {name: _plain(member, types.get(name)) for name, member in value.items()}
    return value


def _json(value: Literal) -> str:
    """JSON with all digits of a decimal; NaN and the infinities are null, as in every record."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(name))}:{_json(element)}" for name, element in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_json(element) for element in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=_text)


def _text(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise SqlError(f"a value of type {type(value).__name__} cannot be written", where="VALUES")


def _as_records(values: Sequence[bytes]) -> pa.Table:
    """The values as if a broker had given them: record n is at offset n."""
    count = len(values)
    columns = [
        pa.nulls(count, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(np.zeros(count, dtype=np.int64)).cast(RECORDS.field("timestamp").type),
        pa.array(np.zeros(count, dtype=np.int32)),
        pa.array(np.arange(count)),
    ]
    return pa.table(columns, schema=RECORDS)


def changes_of(old: pa.Table, new: pa.Table) -> pa.Table:
    """-1 of the old rows, +1 of the new ones, those that are equal left out."""
    return Changes.concat([Changes.of(old, -1), Changes.of(new)]).consolidated().table
