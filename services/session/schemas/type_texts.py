"""The type of a column as CREATE declares it."""

from __future__ import annotations

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow, display


def type_text(kind: pa.DataType, rules: Rules) -> tuple[str, bool]:
    """The text of the type that keeps values of ``kind``, and whether a dialect has such a type."""
    text = display(_kept(kind), rules)
    try:
        return text, display(arrow(text, rules), rules) == text
    except SqlError:
        return text, False


def _kept(kind: pa.DataType) -> pa.DataType:
    """The type with times as columns keep them."""
    if pa.types.is_timestamp(kind) and (kind.unit == "ns" or kind.tz is None):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_list(kind):
        return pa.list_(_kept(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _kept(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _kept(one.type)) for one in kind])
    return kind
