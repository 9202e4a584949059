"""Aggregates of whole groups, run by DuckDB: those that are computed anew from the rows of a group that changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.rows import Positions
from dovetail.sql.expressions.evaluate import quoted, run

_GROUP = "__group"


@dataclass(frozen=True)
class GroupCalls:
    """The values of ``calls`` for each group, a ``joins.aggregates.aggregation.GroupFunction``.

    calls      the columns of the result, each with its aggregate over the rows of a group, as DuckDB SQL
    arguments  the columns that they read
    schema     their types
    """

    calls: tuple[tuple[str, str], ...]
    arguments: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, rows: pa.Table, group: Positions, groups: int) -> pa.Table:
        # Calls of constants read no columns, and a table without any has no length.
        rows = pa.Table.from_arrays([*rows.columns, pa.array(group)], [*rows.column_names, _GROUP])
        named = quoted(_GROUP)
        calls = [f"({sql}) AS {quoted(name)}" for name, sql in self.calls]
        query = f"SELECT {', '.join([named, *calls])} FROM rows_of_groups GROUP BY {named}"
        found = run(query, {"rows_of_groups": rows})
        place = np.full(groups, -1, dtype=np.int64)
        place[found.column(_GROUP).to_numpy()] = np.arange(found.num_rows)
        return found.select(self.schema.names).take(pa.array(place, mask=place < 0)).cast(self.schema)
