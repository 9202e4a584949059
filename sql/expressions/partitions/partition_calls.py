"""Window functions, run by DuckDB: one query over all partitions that are computed anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.rows import Positions
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.expressions.expression import Expr, column_named

_PARTITION, _PLACE = "__partition", "__place"


def in_partitions(call: Expr) -> Expr:
    """A window function as ``PartitionCalls`` takes it."""

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):
            node.set("partition_by", [column_named(_PARTITION)])
        return node

    return Expr(call.tree.transform(replaced), call.type)


@dataclass(frozen=True)
class PartitionCalls:
    """The values of ``calls`` for each row, a ``joins.partitions.over.PartitionFunction``.

    calls   the columns of the result, each with its window function ``in_partitions``, as DuckDB SQL
    schema  their types
    """

    calls: tuple[tuple[str, str], ...]
    schema: pa.Schema

    def __call__(self, rows: pa.Table, partition: Positions) -> pa.Table:
        if rows.num_rows == 0:
            return self.schema.empty_table()
        rows = rows.append_column(_PARTITION, pa.array(partition))
        rows = rows.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
        calls = [f"({sql}) AS {quoted(name)}" for name, sql in self.calls]
        query = f"SELECT {', '.join([quoted(_PLACE), *calls])} FROM rows_of_partitions"
        found = run(query, {"rows_of_partitions": rows})
        place = np.empty(rows.num_rows, dtype=np.int64)
        place[found.column(_PLACE).to_numpy()] = np.arange(rows.num_rows)
        return found.select(self.schema.names).take(pa.array(place)).cast(self.schema)
