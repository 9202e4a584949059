"""Window functions by the engine: values in the order of the rows, whatever the partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.partitions.partition_calls import PartitionCalls, in_partitions
from dovetail.sql.expressions.partitions.window_calls import called_in, frame_kind, name_of, read_by

ROWS = pa.table({"v": pa.array([3, 1, None, 2], pa.int64())})


def values(*calls: str) -> list[dict[str, object]]:
    made = tuple((f"c{place}", in_partitions(Expr(parsed(call), pa.int64())).text) for place, call in enumerate(calls))
    schema = pa.schema([(name, pa.int64()) for name, _ in made])
    found: list[dict[str, object]] = PartitionCalls(made, schema)(ROWS, np.array([0, 1, 0, 0])).to_pylist()
    return found


def test_each_row_has_the_values_of_its_partition() -> None:
    assert values("row_number() OVER (ORDER BY v)", "sum(v) OVER ()", "sum(v) OVER () - count(v) OVER ()") == [
        {"c0": 2, "c1": 5, "c2": 3},
        {"c0": 1, "c1": 1, "c2": 0},
        {"c0": 3, "c1": 5, "c2": 3},
        {"c0": 1, "c1": 5, "c2": 3},
    ]


def test_the_parts_of_a_window() -> None:
    window = parsed("sum(v) FILTER (WHERE w > 1) OVER (PARTITION BY k ORDER BY t DESC ROWS 1 PRECEDING)")
    assert isinstance(window, exp.Window)
    assert name_of(called_in(window)) == "sum"
    assert frame_kind(window) == "ROWS"
    assert [part.sql() for part in read_by(window)] == ["v", "w > 1", "k", "t"]
