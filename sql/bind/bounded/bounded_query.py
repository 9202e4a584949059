"""Bounded queries: a SELECT over ``table(x)``, answered by DuckDB from the content of each topic now.

A streaming query can be asked in the same way: every stream is its content then, and the answer is what a view should
hold.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import duckdb
import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.bounded.bounded_binder import BoundedBinder
from dovetail.sql.bind.named_columns import named_as
from dovetail.sql.bind.scope import place_of
from dovetail.sql.bind.written.untranslated import as_written
from dovetail.sql.compile.snapshot import Snapshot, snapshot_of_plan
from dovetail.sql.expressions.dict_functions import dict_calls, dict_function
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.query_settings import checked
from dovetail.sql.relations import Relations, Stream
from dovetail.sql.syntax.statements import CreateView


def snapshot_of(
    query: exp.Query,
    catalog: Relations,
    view: Callable[[CreateView], Stream],
    dialect: Dialect,
    ctes: Mapping[str, exp.Query] | None = None,
) -> Snapshot:
    """The query over the content of its relations; ``x`` and ``table(x)`` are the same here. ``ctes``: those around."""
    tree = as_written(query)
    for call in dict_calls(tree):
        raise Unsupported(
            f"{dict_function(call)} is for streaming queries",
            where=place_of(call, "a query over table(x)"),
            fix="join the dictionary itself: FROM table(x) LEFT JOIN d ON x.key = d.key",
        )
    binder = BoundedBinder(catalog, checked({}), view, dialect=dialect, ctes=ctes or {})
    bound = binder.bind(tree)
    made = snapshot_of_plan(bound.node, named_as(query, bound.columns))
    _check(made.sql, {name: schema.empty_table() for name, schema in binder.read.items()})
    return replace(made, relations=tuple(binder.read), past=binder.past)


_GROUPED = "GROUP BY it too, or take an aggregate of it: max(x), any_value(x)"
_IN_PARTS = "ask for its columns one by one, to see which of them it is; each name and literal has a type that fits"
_SAID = (("must appear in the GROUP BY", "a column is neither in GROUP BY nor in an aggregate", _GROUPED),)
"""What the engine says of a query, and what it means."""


def _check(sql: str, tables: Mapping[str, pa.Table]) -> None:
    """Raises SqlError for a query that DuckDB does not take, whose own words are for the log."""
    try:
        run(sql, tables)
    except duckdb.Error as fault:
        logging.getLogger(__name__).info("a query over table(x) is refused: %s", fault)
        said = ((what, fix) for text, what, fix in _SAID if text in str(fault))
        what, fix = next(said, ("the query has no answer as it is written", _IN_PARTS))
        raise SqlError(what, where="a query over table(x)", fix=fix) from None
