"""Late rows beside the rows of their input: which columns tell them, and the input without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.joins.dataflow.graph import TopicScan
from dovetail.sql.bind.from_clause.windows import END, START
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.transforms.window_step import WindowStep


def row_columns(scan: TopicScan, members: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The columns of the input that late rows with these members have; None where they tell no row of it.

    A row of TUMBLE has the bounds of its one window beside them. One of HOP is in several, and may be late in some.
    """
    distinct = set(members)
    if len(distinct) != 1:
        return None
    windows = [step for step in scan.transforms if isinstance(step, WindowStep)]
    if not all(step.windows.tumbles for step in windows):
        return None
    [names] = distinct
    columns = tuple(name for name in names if not (windows and name in (START, END)))
    return columns if columns and set(columns) <= set(scan.columns) else None


def without_late(rows: pa.Table, late: pa.Table) -> pa.Table:
    """``rows`` in their order, without as many of those equal to each of ``late``, in its columns, as there are of it.

    The last ones go. Rows that are equal in the columns that a query reads are one and the same to it.
    """
    columns = [quoted(name) for name in late.column_names]
    listed, same = ", ".join(columns), " AND ".join(f"r.{one} IS NOT DISTINCT FROM l.{one}" for one in columns)
    sql = f"""
        WITH r AS (SELECT *, row_number() OVER (PARTITION BY {listed} ORDER BY place DESC) AS nth FROM input),
             l AS (SELECT {listed}, count(*) AS times FROM late GROUP BY {listed})
        SELECT r.place FROM r JOIN l ON {same} AND r.nth <= l.times
    """
    places = pa.array(np.arange(rows.num_rows))
    read = {"input": rows.select(late.column_names).append_column("place", places), "late": late}
    gone = run(sql, read).column("place")
    return rows.filter(pc.invert(pc.is_in(places, gone.combine_chunks())))
