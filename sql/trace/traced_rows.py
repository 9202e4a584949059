"""Rows on their way through a plan, each with its lineage: the numbers of the records that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import Transform
from dovetail.sql.expressions.evaluate import evaluate, mask
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.time_text import length_text
from dovetail.sql.trace.demand import literal
from dovetail.sql.trace.ledger import Ledger

LINEAGE = "#lineage"
LINEAGE_TYPE = pa.list_(pa.int64())
Lineage = list[int]


def with_lineage(rows: pa.Table, lineage: Sequence[Lineage]) -> pa.Table:
    return rows.append_column(LINEAGE, pa.array(lineage, LINEAGE_TYPE))


def without_lineage(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([LINEAGE])


def lineage_of(rows: pa.Table) -> list[Lineage]:
    found: list[Lineage] = rows.column(LINEAGE).to_pylist()
    return found


def merged(parts: Iterable[Iterable[int]]) -> Lineage:
    """The lineage of a row that is made of several."""
    return sorted({number for part in parts for number in part})


def stepped(rows: pa.Table, step: Transform) -> pa.Table:
    """``rows`` after a stateless step, each with the lineage of the row that it was."""
    places = pa.array(np.arange(rows.num_rows))
    counted = without_lineage(rows).append_column(ARRIVAL, places)
    made = step(counted.append_column(DELTA, pa.array(np.ones(rows.num_rows, np.int64), DELTA_TYPE)))
    lineage = rows.column(LINEAGE).take(made.column(ARRIVAL))
    return made.drop_columns([ARRIVAL, DELTA]).append_column(LINEAGE, lineage)


def passing(rows: pa.Table, terms: Sequence[Expr], ledger: Ledger, called: str = "condition") -> pa.Table:
    """The rows for which all ``terms`` hold; of each other one the first that does not is told, with its values."""
    for term in terms:
        holds = mask(rows, term.text)
        failed = rows.filter(pa.array(~holds))
        for lineage, text in zip(lineage_of(failed), failing(failed, term), strict=True):
            ledger.lost(lineage, f"{called} {text}")
        rows = rows.filter(pa.array(holds))
    return rows


def failing(rows: pa.Table, term: Expr) -> list[str]:
    """For each row why ``term`` does not hold: ``a.x > 5 is false: a.x = 3``; how far two times are apart besides."""
    names = term.columns
    columns = [rows.column(name).to_pylist() for name in names]
    [found] = evaluate(rows, [term.text])
    states = ["NULL" if value is None else "false" for value in found.to_pylist()]
    far = _apart(rows, names)
    return [
        f"{term.readable} is {state}: {', '.join(map(_equal, names, values))}{distance}"
        for state, values, distance in zip(states, zip(*columns, strict=True), far, strict=True)
    ]


def _equal(name: str, value: object) -> str:
    return f"{name} = {literal(value)}"


def _apart(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """How far the two times of a condition are apart; '' where it has not two."""
    kinds = [rows.schema.field(name).type for name in names]
    if len(names) != 2 or not all(map(pa.types.is_timestamp, kinds)):
        return [""] * rows.num_rows
    first, second = (rows.column(name).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() for name in names)
    return [
        "" if one is None or other is None else f", {length_text(abs(one - other), pa.timestamp('us'))} apart"
        for one, other in zip(first, second, strict=True)
    ]
