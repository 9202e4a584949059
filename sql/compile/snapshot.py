"""A query that is answered once, by DuckDB, from what its relations hold then: ``SELECT .. FROM table(x)``; and the
question what a view should hold.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats import decimal_text
from dovetail.sql.compile.duckdb import select_of, text_of
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.past import Past
from dovetail.sql.plan.nodes import Content, LookupTable, Node, Scan, Static
from dovetail.sql.plan.properties import walk
from dovetail.sql.syntax.faults import unforeseen_as_errors


@dataclass(frozen=True)
class Snapshot:
    """A bounded query: the relations it reads, its DuckDB SQL over tables of their names, its columns and their types.

    A table holds the declared columns of its relation and, where it has one, ``_tp_time``; rows in order of arrival.
    Relations may be dictionaries, external tables, and those of ``sql.system_tables``. One by a name of ``past`` is
    what that says.
    ``forms``: that of each column whose texts have one.
    """

    relations: tuple[str, ...]
    sql: str
    columns: Mapping[str, pa.DataType]
    past: Mapping[str, Past] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations that it reads, now or as they were."""
        names = (self.past[name].relation if name in self.past else name for name in self.relations)
        return tuple(dict.fromkeys(names))

    def mentions(self, column: str) -> bool:
        """Whether a column of this name may be read; of one that is not, no table has to be given."""
        return quoted(column) in self.sql

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
            logging.getLogger(__name__).info("a query over table(x) has failed: %s", fault)
            raise SqlError(
                "a value that the query meets cannot be computed",
                where="a query over table(x)",
                fix="ask for its columns one by one, to see which it is; CASE WHEN .. leaves such values out",
            ) from None
        with unforeseen_as_errors("answering it"):
            kinds = self.columns.values()
            columns = [
                decimal_text.cast(column, kind, safe=False) for column, kind in zip(rows.columns, kinds, strict=True)
            ]
            return pa.table(columns, names=list(self.columns))


def snapshot_of_plan(rows: Node, columns: Sequence[tuple[str, Expr]]) -> Snapshot:
    """The output ``columns`` over ``rows``, computed once."""
    kinds = {name: _plain(expr.type) for name, expr in columns}
    forms = {name: expr.form for name, expr in columns if expr.form}
    return Snapshot(tuple(dict.fromkeys(_relations(rows))), text_of(select_of(rows, columns)), kinds, forms=forms)


def _relations(rows: Node) -> Iterator[str]:
    for node in walk(rows):
        match node:
            case Scan():
                yield node.stream.name
            case Content():
                yield node.relation
            case LookupTable():
                yield node.name
            case Static():
                yield from node.relations


def _plain(kind: pa.DataType) -> pa.DataType:
    """A column has a type."""
    return pa.int32() if pa.types.is_null(kind) else kind
