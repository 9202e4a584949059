"""What a topic holds, all its records taken together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from changelog.changes import Changes
from changelog.schema import ARRIVAL, Kind, StreamSchema


def content(schema: StreamSchema, decoded: pa.Table) -> pa.Table:
    """The rows that ``decoded`` (``Decoded.rows`` of all its records) add up to, without ``arrival`` and ``delta``.

    APPEND                every row
    UPSERT, CHANGELOG_KV  the last row of each primary key, unless that is a delete; in the order of arrival. The
                          columns of the primary key are among those decoded
    CHANGELOG             each row as often as its deltas add up to; never fewer than no times
    """
    rows = decoded.drop_columns([ARRIVAL])
    if schema.kind is Kind.APPEND:
        return Changes(rows).rows
    if schema.kind is Kind.CHANGELOG:
        return _repeated(Changes(rows).consolidated())
    last = _last_of_each(decoded, schema.primary_key)
    return Changes(rows.take(pa.array(last[Changes(rows).deltas[last] > 0]))).rows


def _last_of_each(decoded: pa.Table, primary_key: tuple[str, ...]) -> np.ndarray:
    """The positions of the last arrived row of each primary key, by arrival."""
    frame = pl.DataFrame(pl.from_arrow(decoded.select([*primary_key, ARRIVAL])))
    last = frame.with_row_index("position").sort(ARRIVAL).group_by(primary_key).agg(pl.all().last()).sort(ARRIVAL)
    return last["position"].to_numpy().astype(np.int64)


def _repeated(changes: Changes) -> pa.Table:
    times = np.maximum(changes.deltas, 0)
    return changes.rows.take(pa.array(np.repeat(np.arange(len(changes)), times)))
