"""Other columns in a topic that stays: whether one reader can read the records that are there, and those that come.

A record of JSON names its members, so a reader takes those that it knows, and one that is not there is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from dovetail.changelog.encodings.registry import JSON_FORMAT
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display


def column_changes(before: Stream, after: Stream) -> Iterator[str]:
    """A line for each column that is added, dropped or changed: ``+ total bigint``, ``- price int``."""
    old, new = columns(before), columns(after)
    yield from (f"- {name} {_shown(kind)}" for name, kind in old.items() if name not in new)
    for name, kind in new.items():
        if name not in old:
            yield f"+ {name} {_shown(kind)}"
        elif old[name] != kind:
            yield f"~ {name} {_shown(old[name])} -> {_shown(kind)}"


def columns(stream: Stream) -> dict[str, pa.DataType]:
    return {column.name: column.type for column in stream.schema.columns}


def unfit_columns(before: Stream, after: Stream) -> str:
    """Why records of both do not go into one topic; '' where they do."""
    if replace(before, schema=replace(before.schema, columns=after.schema.columns)) != after:
        return "another key, event time, watermark or dialect"
    if before.schema.value.kind != JSON_FORMAT.name:
        return "; ".join(column_changes(before, after))
    old, new = columns(before), columns(after)
    narrowed = [name for name, kind in new.items() if name in old and not holds(kind, old[name])]
    return "; ".join(f"~ {name} {_shown(old[name])} -> {_shown(new[name])}" for name in narrowed)


def holds(wider: pa.DataType, kind: pa.DataType) -> bool:
    """Whether each value of ``kind``, as a record has it, is the same value when it is read as ``wider``."""
    if pa.types.is_integer(wider) and pa.types.is_integer(kind):
        signed, unsigned = pa.types.is_signed_integer(wider), pa.types.is_unsigned_integer(kind)
        if signed == unsigned:
            return bool(signed and wider.bit_width > kind.bit_width)
        return bool(wider.bit_width >= kind.bit_width)
    if pa.types.is_decimal(wider) and pa.types.is_decimal(kind):
        return bool(wider.scale >= kind.scale and wider.precision - wider.scale >= kind.precision - kind.scale)
    return bool(wider == kind)


def _shown(kind: pa.DataType) -> str:
    return display(kind, Rules.TIMEPLUS)
