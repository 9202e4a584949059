"""The values of a tree of the engine: where a call fails on a row, NULL for that call alone."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from sql.expressions import engine
from sql.expressions.evaluate import VALUE_FAULTS, run


def values_of(tree: exp.Expr, rows: pa.Table) -> pa.ChunkedArray:
    try:
        return _run(tree, rows)
    except VALUE_FAULTS:
        return _run(guarded(tree), rows)


def _run(tree: exp.Expr, rows: pa.Table) -> pa.ChunkedArray:
    return run(f"SELECT ({engine.text(tree)}) AS value FROM rows_of_edge", {"rows_of_edge": rows}).column(0)


def guarded(tree: exp.Expr) -> exp.Expr:
    """Every call that may fail in TRY; inside a lambda only the call that runs it."""
    if isinstance(tree, exp.Lambda):
        return tree.copy()
    made = tree.copy()
    for key, part in list(made.args.items()):
        if isinstance(part, exp.Expr) and key not in ("to", "unit"):
            made.set(key, guarded(part))
        elif isinstance(part, list):
            made.set(key, [guarded(one) if isinstance(one, exp.Expr) else one for one in part])
    fails = isinstance(made, exp.Func | exp.Cast | exp.Binary | exp.Neg) and not isinstance(
        made,
        exp.Connector
        | exp.Case
        | exp.If
        | exp.Dot
        | exp.Interval
        | exp.Escape
        | exp.Like
        | exp.ILike
        | exp.PropertyEQ
        | exp.Kwarg
        | exp.Is,
    )
    return exp.Anonymous(this="TRY", expressions=[made]) if fails else made
