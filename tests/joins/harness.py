"""Random inputs for the operators, and their references beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from changelog.changes import DELTA
from changelog.schema import ARRIVAL, StreamSchema
from joins.dataflow import Dataflow, Edge, Ingest, Node, Operator, Port, Scan, Sink
from joins.local import LocalQuery
from joins.reference import Record, Row

LEFT = pa.schema([("l.k", pa.int64()), ("l.id", pa.string()), ("l.v", pa.int64())])
RIGHT = pa.schema([("r.k", pa.int64()), ("r.id", pa.string()), ("r.w", pa.int64())])


@dataclass(frozen=True)
class LeftBelowRight:
    """``l.v < r.w`` as a residual condition; picklable."""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        pairs = zip(rows.column("l.v").to_pylist(), rows.column("r.w").to_pylist(), strict=True)
        return np.array([a is not None and b is not None and a < b for a, b in pairs], dtype=np.bool_)


def left_below_right(left: Row, right: Row) -> bool:
    a, b = left[2], right[2]
    return isinstance(a, int) and isinstance(b, int) and a < b


def port(schema: pa.Schema, ingest: Ingest) -> Port:
    """Joined by ``k``; the primary key, where there is one, is (k, id)."""
    names = schema.names
    keyed = ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV)
    return Port(schema, (names[0],), ingest, (names[0], names[1]) if keyed else ())


def dataflow(operator: Operator) -> Dataflow:
    """Two scans into ``operator``, its output to a sink that is not exchanged."""
    scans = tuple(Scan(StreamSchema(name, ()), name, (), (), edge) for edge, name in enumerate("lr"))
    return Dataflow(
        scans=scans,
        nodes=(Node(1, operator, (0, 1), (), 2),),
        edges=(Edge(0, 1, (LEFT.names[0],)), Edge(1, 1, (RIGHT.names[0],)), Edge(2, 2, ())),
        sink=Sink(2, (*LEFT.names, *RIGHT.names), (), (), True, False),
    )


def decoded(schema: pa.Schema, records: Sequence[Record], first: int) -> pa.Table:
    """The records as a scan gives them, ``arrival`` counted from ``first``."""
    columns = [pa.array([row[i] for row, _ in records], field.type) for i, field in enumerate(schema)]
    table = pa.Table.from_arrays(columns, schema=schema)
    table = table.append_column(ARRIVAL, pa.array(range(first, first + len(records)), pa.int64()))
    return table.append_column(DELTA, pa.array([delta for _, delta in records], pa.int32()))


def net(rows: pa.Table | None) -> Counter[Row]:
    """Row to signed count, without zeros."""
    total: Counter[Row] = Counter()
    for *values, delta in [] if rows is None else zip(*[column.to_pylist() for column in rows.columns], strict=True):
        total[tuple(values)] += delta
    return Counter({row: count for row, count in total.items() if count})


def emitted(query: LocalQuery, left: Sequence[Record], right: Sequence[Record], first: int) -> Counter[Row]:
    return net(query.feed({0: decoded(LEFT, left, first), 1: decoded(RIGHT, right, first)}))
