"""What a topic holds, all its records taken together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import allotted, numbered, shortfalls
from dovetail.changelog.schema import ARRIVAL, Kind, StreamSchema


def content(schema: StreamSchema, decoded: pa.Table) -> pa.Table:
    """The rows that ``decoded`` (``Decoded.rows`` of all its records) add up to, without ``arrival`` and ``delta``.

    APPEND                every row
    UPSERT, CHANGELOG_KV  the last row of each primary key, unless that is a delete, or of those after the last delete
                          the one of the greatest version; in the order of arrival. The columns of the primary key and
                          the version are among those decoded
    CHANGELOG             each row as often as its deltas add up to, its times aside; a delta that finds no row to take
                          away counts for nothing
    """
    changes = Changes(decoded.drop_columns([ARRIVAL]))
    if schema.kind is Kind.APPEND:
        return changes.rows
    if schema.kind is Kind.CHANGELOG:
        return changes.take(_not_taken_back(changes, schema)).rows
    if schema.version:
        return changes.take(_greatest_of_each(decoded, schema)).rows
    return changes.take(_last_of_each(decoded, schema.primary_key)).insertions.rows


def _last_of_each(decoded: pa.Table, primary_key: tuple[str, ...]) -> np.ndarray:
    """The positions of the last arrived row of each primary key, by arrival."""
    frame = pl.DataFrame(pl.from_arrow(decoded.select([*primary_key, ARRIVAL])))
    last = frame.with_row_index("position").sort(ARRIVAL).group_by(primary_key).agg(pl.all().last()).sort(ARRIVAL)
    return last["position"].to_numpy().astype(np.int64)


def _greatest_of_each(decoded: pa.Table, schema: StreamSchema) -> np.ndarray:
    """The positions of the rows of the greatest version among those after the last delete of their primary key."""
    key = list(schema.primary_key)
    names = dict.fromkeys([*key, schema.version, ARRIVAL, DELTA])
    frame = pl.DataFrame(pl.from_arrow(decoded.select(list(names)))).with_row_index("position")
    deletes = pl.when(pl.col(DELTA) < 0).then(pl.col(ARRIVAL)).max().over(key)
    current = frame.filter(pl.col(DELTA) > 0, deletes.is_null() | (pl.col(ARRIVAL) > deletes))
    ordered = current.sort(schema.version, ARRIVAL, descending=[False, schema.first_stays], nulls_last=False)
    greatest = ordered.group_by(key, maintain_order=True).agg(pl.all().last()).sort(ARRIVAL)
    return greatest["position"].to_numpy().astype(np.int64)


def _not_taken_back(changes: Changes, schema: StreamSchema) -> np.ndarray:
    """The positions of the rows that remain, in order, each as often as it does.

    A retraction has a time and a place in the topic of its own, so it takes a row that equals it in all other columns;
    the oldest rows go first.
    """
    identity = [name for name in changes.rows.column_names if not schema.of_record(name)]
    group, _ = numbered(changes.rows.select(identity))
    remaining = np.zeros(group.max(initial=-1) + 1, dtype=np.int64)
    np.add.at(remaining, group, changes.deltas)
    remaining += shortfalls(group, changes.deltas, np.zeros_like(remaining))
    newest_first = np.flatnonzero(changes.deltas > 0)[::-1]
    kept = allotted(group[newest_first], changes.deltas[newest_first], remaining)
    return np.sort(np.repeat(newest_first, kept))
