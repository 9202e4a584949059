"""Columns that are parts of a record: ``_tp_message_key string`` among the columns, ``INCLUDE key AS k`` after them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import Column, Included, RecordPart
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.type_names import type_name
from dovetail.sql.syntax.types import INSTANT, arrow_type, display

_HEADERS = pa.map_(pa.string(), pa.string())
_LISTED = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TEXT, _BYTES = pa.string(), pa.binary()
_HEADER_TYPES = ("VARCHAR", "CHARACTER VARYING", "BYTEA")


def declared_part(cursor: Cursor, column: Column, offset: int) -> Included | None:
    """A column of Timeplus whose name says which part of the record it is; None for any other."""
    known = _BY_NAME.get(column.name)
    if known is None:
        return None
    part, usual, takes = known
    if not takes(column.type):
        cursor.fail(
            f'"{column.name}" is the {part.value} of the record, and no {display(column.type, Rules.TIMEPLUS)}',
            fix=f"{column.name} {usual}",
            kind=Unsupported,
            offset=offset,
        )
    if column != Column(column.name, column.type):
        cursor.fail(
            f'"{column.name}" is the {part.value} of the record, whatever a value holds',
            fix=f"{column.name} {usual}",
            kind=Unsupported,
            offset=offset,
        )
    return Included(column.name, column.type, part)


_BY_NAME: Mapping[str, tuple[RecordPart, str, Callable[[pa.DataType], bool]]] = {
    "_tp_message_key": (RecordPart.KEY, "string", lambda kind: kind in (_TEXT, _BYTES)),
    "_tp_message_headers": (RecordPart.HEADERS, "map(string, string)", lambda kind: kind == _HEADERS),
    "_tp_shard": (RecordPart.PARTITION, "int32", lambda kind: kind in (pa.int32(), pa.int64())),
    "_tp_append_time": (RecordPart.TIMESTAMP, "datetime64(3)", pa.types.is_timestamp),
}


DECLARATIONS = {name: usual for name, (_, usual, _) in _BY_NAME.items()}
"""The type that each of these names of Timeplus is declared with."""


def include(cursor: Cursor, taken: Collection[str]) -> Included:
    """``key | partition | offset | timestamp | header ['name' [type]] [AS column]``, after INCLUDE. ``taken``: the
    names of other columns.
    """
    offset = cursor.offset
    word = cursor.expect("KEY", "PARTITION", "OFFSET", "TIMESTAMP", "HEADER").lower()
    named = word == "header" and cursor.at_string
    header = cursor.string() if named else ""
    kind = _type_of(word, named)
    if named and cursor.at(*_HEADER_TYPES):
        kind = arrow_type(cursor, type_name(cursor), Rules.RISINGWAVE)
    usual = "_".join(["_rw_kafka", word, *([header, display(kind, Rules.RISINGWAVE)] if named else [])])
    name = cursor.name("a column") if cursor.accept("AS") else usual
    part = RecordPart.HEADERS if word == "header" and not named else RecordPart(word)
    if name.casefold() in {one.casefold() for one in taken}:
        cursor.fail(f'the column "{name}" is declared twice', fix=f"INCLUDE {word} AS ..", offset=offset)
    return Included(name, kind, part, header)


def _type_of(word: str, named: bool) -> pa.DataType:
    """As RisingWave has it; the key is text where keys are."""
    match word:
        case "partition" | "offset":
            return _TEXT
        case "timestamp":
            return INSTANT
        case "header" if not named:
            return _LISTED
        case _:
            return _BYTES


def check_parts(cursor: Cursor, included: Iterable[Included], uses: Mapping[str, Iterable[str]], start: int) -> None:
    """Raises Unsupported where rows would be told apart, or found, by what is a part of the record. ``uses``: what for,
    and by which columns.
    """
    names = {one.name for one in included}
    for use, columns in uses.items():
        for name in columns:
            if name in names:
                cursor.fail(
                    f'"{name}" is a part of the record, and cannot be {use}',
                    fix="name a column that the values hold",
                    kind=Unsupported,
                    offset=start,
                )
