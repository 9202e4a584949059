"""The columns of an edge that no expression names, ``arrival`` and ``delta``: they stand behind those of the rows."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.schema import ARRIVAL


def trailing(rows: pa.Table) -> list[str]:
    """Those that are there: ``arrival`` where it was asked for, ``delta``."""
    return [name for name in (ARRIVAL, DELTA) if name in rows.column_names]


def with_columns(rows: pa.Table, columns: Iterable[tuple[pa.Field, pa.Array | pa.ChunkedArray]]) -> pa.Table:
    """``rows`` with ``columns`` before its trailing ones."""
    behind = trailing(rows)
    result = rows.drop_columns(behind)
    for field, values in columns:
        result = result.append_column(field, values)
    for name in behind:
        result = result.append_column(rows.schema.field(name), rows.column(name))
    return result
