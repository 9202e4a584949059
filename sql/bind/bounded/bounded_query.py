"""Bounded queries: a SELECT over ``table(x)``, answered by DuckDB from the content of each topic now.

A streaming query can be asked in the same way: every stream is its content then, and the answer is what a view should
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import duckdb
import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
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


def _check(sql: str, tables: Mapping[str, pa.Table]) -> None:
    """Raises for a query that DuckDB does not take."""
    try:
        run(sql, tables)
    except duckdb.BinderException as fault:
        raise UnknownName(_line(fault), where="a query over table(x)", fix=_candidates(fault)) from None
    except duckdb.Error as fault:
        raise SqlError(_line(fault), where="a query over table(x)", fix="check names and types") from None


def _line(fault: duckdb.Error) -> str:
    return str(fault).split("\n")[0].split("Error: ", 1)[-1].replace('"', "")


def _candidates(fault: duckdb.Error) -> str:
    if "must appear in the GROUP BY" in str(fault):
        return "GROUP BY it too, or take an aggregate of it: max(x), any_value(x)"
    _, found, rest = str(fault).partition("Candidate bindings: ")
    return f"there are: {rest.split(chr(10))[0]}".replace('"', "") if found else "check names and types"
