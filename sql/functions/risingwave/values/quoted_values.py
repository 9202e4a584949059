"""Texts in quotes, each of which is read as a value of the type of what it stands beside, or refused."""

from __future__ import annotations

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.misfits import column_name
from dovetail.sql.expressions.written_values import has_value
from dovetail.sql.functions.risingwave.values.kinds import BOOL, is_number, is_unknown, kind_of, name_of, quoted
from dovetail.sql.functions.typed import Typed

BRACKETS = "write a value of that type; what -> and ->> give is in brackets: (document ->> 'member')::int + 1"


def expect_value(beside: Typed, written: Typed, made: Typed, fix: str = "") -> None:
    """Raises SqlError where ``written``, a text in quotes, is no value of the type of ``made``, which it is cast to.

    beside  what has that type
    fix     '' is for a comparison
    """
    kind = kind_of(made)
    if written.is_null or not is_unknown(written) or not _is_plain(kind) or has_value(made.tree):
        return
    name = column_name(beside.tree)
    text = quoted(str(written.literal)).sql()
    compare = f"compare with a value of that type; or compare texts: CAST({name or '..'} AS varchar) = {text}"
    of = name or ("the other side" if fix else "what it is compared with")
    raise SqlError(f"{text} is not a valid {name_of(kind)}, the type of {of}", fix=fix or compare)


def _is_plain(kind: pa.DataType) -> bool:
    """Numbers, truth values, times and dates: of others each text is a value, or is refused as it is read."""
    return is_number(kind) or kind == BOOL or pa.types.is_temporal(kind)
