"""Bounded queries: a SELECT over ``table(x)``, answered by DuckDB from the content of each topic now.

A streaming query can be asked in the same way: every stream is its content then, and the answer is what a view should
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.formats import decimal_text
from dovetail.sql.bind.bounded.bounded_query import BoundedBinder
from dovetail.sql.bind.bounded.snapshot_items import column_of
from dovetail.sql.bind.bounded.snapshot_names import SnapshotNames
from dovetail.sql.bind.bounded.snapshot_relations import SnapshotRelations
from dovetail.sql.bind.named_columns import named_as
from dovetail.sql.bind.scope import place_of
from dovetail.sql.bind.written.untranslated import as_written, refuse_untranslated
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.dict_functions import dict_calls, dict_function
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.relations import Relations, Stream
from dovetail.sql.syntax.faults import told_in_order
from dovetail.sql.syntax.statements import CreateView


@dataclass(frozen=True)
class Snapshot:
    """A bounded query: the relations it reads, its DuckDB SQL over tables of their names, its columns and their types.

    A table holds the declared columns of its relation and, where it has one, ``_tp_time``; rows in order of arrival.
    Relations may be dictionaries, external tables, and those of ``sql.system_tables``.
    """

    relations: tuple[str, ...]
    sql: str
    columns: Mapping[str, pa.DataType]

    def mentions(self, column: str) -> bool:
        """Whether a column of this name may be read; of one that is not, no table has to be given."""
        return engine.text(column_of(column), identify=True) in self.sql

    def run(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        read = {name: tables[name] for name in self.relations}
        try:
            rows = run(self.sql, read)
        except duckdb.OutOfMemoryException:
            raise SqlError(
                "the query needs more memory than it may have",
                where="a query over table(x)",
                fix="ask for less, with WHERE; DOVETAIL_ENGINE_MEMORY_MB bounds the HTTP server",
            ) from None
        except duckdb.Error as fault:
            raise SqlError(
                str(fault).split("\n")[0], where="a query over table(x)", fix="check the values that it meets"
            ) from None
        with told_in_order("answering it"):
            kinds = self.columns.values()
            columns = [
                decimal_text.cast(column, kind, safe=False) for column, kind in zip(rows.columns, kinds, strict=True)
            ]
            return pa.table(columns, names=list(self.columns))


def snapshot_of(
    query: exp.Query,
    catalog: Relations,
    view: Callable[[CreateView], Stream],
    dialect: Dialect,
) -> Snapshot:
    """The query over the content of its relations; ``x`` and ``table(x)`` are the same here."""
    tree = as_written(query)
    for call in dict_calls(tree):
        raise Unsupported(
            f"{dict_function(call)} is for streaming queries",
            where=place_of(call, "a query over table(x)"),
            fix="join the dictionary itself: FROM table(x) LEFT JOIN d ON x.key = d.key",
        )
    relations = SnapshotRelations(view)
    binder = BoundedBinder(catalog, relations, SnapshotNames(dialect))
    columns = named_as(query, binder.query(tree, {}))
    refuse_untranslated(tree, "a query over table(x)")
    sql = engine.text(tree, identify=True)
    tables = {name: schema.empty_table() for name, schema in relations.read.items()}
    _check(sql, tables)
    return Snapshot(tuple(tables), sql, {name: _plain(kind) for name, kind in columns})


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


def _plain(kind: pa.DataType) -> pa.DataType:
    """A column has a type."""
    return pa.int32() if pa.types.is_null(kind) else kind
