"""What is written out, worked out before any row: texts as values of other types."""

from __future__ import annotations

from functools import lru_cache

import duckdb
import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.expressions.evaluate import run

_READ = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean),
    *(pa.types.is_timestamp, pa.types.is_date, pa.types.is_list),
)


@lru_cache(maxsize=1024)
def is_value(text: str, kind: pa.DataType) -> bool:
    """Whether a text stands for a value of a type: none does for a map or a tuple, any does for all but numbers, truth
    values, times, dates and arrays.
    """
    if pa.types.is_map(kind) or pa.types.is_struct(kind):
        return False
    if not any(is_kind(kind) for is_kind in _READ):
        return True
    written = pa.table({"written": [text]})
    found = run(f"SELECT TRY_CAST(written AS {type_name(kind)}) IS NOT NULL AS fits FROM texts", {"texts": written})
    return bool(found.column("fits")[0].as_py())


def has_value(constant: exp.Expr) -> bool:
    """Whether an expression of the engine, over no columns, can be worked out and is not NULL."""
    return _is_not_null(engine.text(constant))


@lru_cache(maxsize=1024)
def _is_not_null(constant: str) -> bool:
    try:
        return run(f"SELECT {constant} IS NOT NULL AS fits", {}).column("fits")[0].as_py() is True
    except duckdb.Error:
        return False
