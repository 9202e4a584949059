"""Scalar SQL over Arrow tables: the projections, filters and static joins of a query, run by DuckDB.

Expressions are DuckDB SQL with the columns of the edge as quoted names: the compiler prints it from the trees of the
plan. A step costs nothing where it only picks and renames. A call that fails on a row (a text that is no number,
an overflow) is NULL for that row: one bad value does not stop a query.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.formats.time_range import bounded
from dovetail.changelog.wording import type_words
from dovetail.changelog.work.interruption import ended_by, expect_wanted
from dovetail.joins.dataflow.failed_calls import note
from dovetail.joins.dataflow.ports import Transform
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.engine_calls.duckdb_connection import connection, guard_calls
from dovetail.sql.expressions.engine_calls.interval_macros import teach_intervals
from dovetail.sql.expressions.engine_calls.python_calls import provide, raise_broken
from dovetail.sql.expressions.guard import failure_condition, guarded, without_signs
from dovetail.sql.expressions.misfits import EngineRefused
from dovetail.sql.expressions.python_functions import with_names
from dovetail.sql.expressions.times.timestamp_precision import finer
from dovetail.sql.expressions.trailing_columns import trailing

_LOG = logging.getLogger(__name__)
VALUE_FAULTS = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""What DuckDB raises for a value, as opposed to a statement, that does not fit."""


_CHECK = "check the types, or write CAST(x AS type)"


def run(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The result of a query over named tables; a call that fails for a row is NULL there, and not counted.

    A time that no row can hold is such a failure: see ``changelog.formats.time_range``.
    """
    try:
        found = _run(sql, tables)
    except VALUE_FAULTS:
        found = _run(guarded(sql), tables, guard=True)
    return pa.table([bounded(column)[0] for column in found.columns], schema=found.schema)


def _run(sql: str, tables: Mapping[str, pa.Table], guard: bool = False) -> pa.Table:
    session = connection()
    provide(session, sql)
    teach_intervals(session, sql)
    for name, table in tables.items():
        session.register(name, table)
    if guard:
        guard_calls(session, guarded=True)
    try:
        with ended_by(session.interrupt):
            return session.sql(sql).to_arrow_table()
    except duckdb.InterruptException:
        expect_wanted()
        raise
    finally:
        if guard:
            guard_calls(session, guarded=False)
        for name in tables:
            session.unregister(name)
        raise_broken()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=4096)
def columns_of(sql: str) -> tuple[str, ...]:
    """The columns that an expression reads, in order of appearance."""
    names = (column.name for column in parsed(sql).find_all(exp.Column, bfs=False))
    return tuple(dict.fromkeys(names))


def plain_column(sql: str) -> str | None:
    """The column that an expression merely names, if that is all it does."""
    if not (sql.startswith('"') and sql.endswith('"')):
        return None
    name = sql[1:-1].replace('""', "\0")
    return None if '"' in name else name.replace("\0", '"')


def readable(sql: str) -> str:
    """DuckDB SQL without the quotes around internal names, on one line."""
    return " ".join(with_names(sql).replace('"', "").split())


def evaluate(rows: pa.Table, sqls: Sequence[str]) -> list[pa.ChunkedArray]:
    """One array per expression, with a value for each row; a value that cannot be computed is NULL, and counted."""
    if not sqls:
        return []
    needed = list(dict.fromkeys(name for sql in sqls for name in columns_of(sql)))
    # A table without columns has no length: constants are evaluated beside any column.
    tables = {"rows_of_edge": rows.select(needed or rows.column_names[-1:])}
    try:
        result = _run(_select([*sqls, *_casts_that_fail(sqls)]), tables).columns
    except VALUE_FAULTS:
        result = _guarded_columns(sqls, tables)
    values, failures = map(bounded, result[: len(sqls)]), result[len(sqls) :]
    arrays, beyond = zip(*values, strict=True)
    note(sum(beyond) + sum(pc.sum(failed).as_py() or 0 for failed in failures))
    return list(arrays)


def _guarded_columns(sqls: Sequence[str], tables: Mapping[str, pa.Table]) -> list[pa.ChunkedArray]:
    """The values of each expression, then of each whether it fails for a row."""
    failing = [*map(_call_that_fails, sqls)]
    try:
        return list(_run(_select([*map(guarded, sqls), *failing]), tables, guard=True).columns)
    except VALUE_FAULTS:
        # The engine works out some constants as it reads a call, beyond the reach of TRY around it.
        pairs = [_with_constant_that_fails(sql, test, tables) for sql, test in zip(sqls, failing, strict=True)]
        return [values for values, _ in pairs] + [failures for _, failures in pairs]


def _with_constant_that_fails(sql: str, failing: str, tables: Mapping[str, pa.Table]) -> list[pa.ChunkedArray]:
    try:
        return list(_run(_select([guarded(sql), failing]), tables, guard=True).columns)
    except VALUE_FAULTS:
        return list(_run(_select([guarded(sql), f"({guarded(sql)}) IS NULL"]), tables, guard=True).columns)


def _select(sqls: Sequence[str]) -> str:
    return f"SELECT {', '.join(f'({sql}) AS c{index}' for index, sql in enumerate(sqls))} FROM rows_of_edge"


def _casts_that_fail(sqls: Iterable[str]) -> list[str]:
    """Whether one does for a row, of each expression that has casts to see it by."""
    return [f"coalesce({condition}, false)" for condition in map(failure_condition, sqls) if condition]


def _call_that_fails(sql: str) -> str:
    # In a struct, a NULL that fails is told from one that is the value.
    return f"TRY({{'value': {without_signs(sql)}}}) IS NULL"


def engine_type(sql: str, reads: tuple[tuple[str, pa.DataType], ...], place: str) -> pa.DataType:
    """The type of an expression over the columns that it reads.

    Raises UnknownName for a function that DuckDB does not have, EngineRefused for one that does not fit its arguments;
    what DuckDB says of it is for the log.
    """
    try:
        kind = _engine_type(sql, reads)
    except duckdb.CatalogException as fault:
        _LOG.debug("an expression is refused: %s", fault)
        raise UnknownName("a function in it is not known", where=place, fix=_did_you_mean(fault)) from None
    except duckdb.Error as fault:
        _LOG.debug("an expression is refused: %s", fault)
        what = "an expression here has no value over columns of these types"
        raise EngineRefused(what, where=place, fix=_CHECK) from None
    if pa.types.is_map(kind) and pa.types.is_null(kind.key_type):
        raise EngineRefused("the keys of a map are not NULL", where=place, fix=_CHECK)
    return kind


@lru_cache(maxsize=8192)
def _engine_type(sql: str, reads: tuple[tuple[str, pa.DataType], ...]) -> pa.DataType:
    rows = pa.schema(list(reads) or [(DELTA, DELTA_TYPE)]).empty_table()
    kind = run(f"SELECT ({sql}) AS c0 FROM rows_of_edge", {"rows_of_edge": rows}).schema.field(0).type
    # DuckDB has a NULL type; a column has none.
    return pa.int32() if pa.types.is_null(kind) else kind


def _did_you_mean(fault: duckdb.Error) -> str:
    found = re.search(r'Did you mean "([^"]+)"', str(fault))
    return f"did you mean {found.group(1)}?" if found else "docs/functions.md lists the functions"


def common_type(left: pa.DataType, right: pa.DataType, comparison: str, place: str) -> pa.DataType:
    """The type in which values of both can be compared: numbers with numbers, instants with instants."""
    if left == right:
        return left
    if family(left) != family(right):
        raise SqlError(
            f"{comparison.replace(chr(34), '')} compares {type_words(left)} with {type_words(right)}",
            where=place,
            fix="write CAST(x AS type) on one side",
        )
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right) and left.tz and right.tz:
        return pa.timestamp(finer((left.unit, right.unit)), "UTC")
    return engine_type('CASE WHEN true THEN "l" ELSE "r" END', (("l", left), ("r", right)), place)


def family(kind: pa.DataType) -> str:
    """Equal for types whose values can be compared, and written for one another."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "instant"
    return str(kind)


def mask(rows: pa.Table, sql: str) -> npt.NDArray[np.bool_]:
    """Where the condition holds; NULL counts as false."""
    if rows.num_rows == 0:
        return np.zeros(0, dtype=np.bool_)
    (passes,) = evaluate(rows, [sql])
    result: npt.NDArray[np.bool_] = pc.fill_null(passes.cast(pa.bool_()), False).to_numpy()
    return result


@dataclass(frozen=True)
class Condition:
    """A predicate over the rows of an edge, as DuckDB SQL."""

    sql: str

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        return mask(rows, self.sql)


@dataclass(frozen=True)
class RowMap:
    """Rows that pass ``where``, each with its columns computed anew.

    select     the columns of the result, each with its expression over the columns of the input
    schema     the types of the result: the same for every batch, empty or all NULL
    where      a condition over the input; NULL rejects
    on_reject  'drop', or 'delete' for upserts: a row that no longer passes takes its predecessor with it, so it
               becomes a delete of its primary key

    ``arrival``, where present, and ``delta`` are carried over.
    """

    select: tuple[tuple[str, str], ...]
    schema: pa.Schema
    where: str | None = None
    on_reject: Literal["drop", "delete"] = "drop"

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.where is not None:
            rows = self._reject(rows, mask(rows, self.where))
        return self._project(rows)

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        return self

    def _reject(self, rows: pa.Table, passed: npt.NDArray[np.bool_]) -> pa.Table:
        if passed.all():
            return rows
        if self.on_reject == "drop":
            return rows.filter(pa.array(passed))
        deltas = np.where(passed, rows.column(DELTA).to_numpy(), -1).astype(np.int32)
        position = rows.schema.get_field_index(DELTA)
        return rows.set_column(position, rows.schema.field(position), pa.array(deltas, DELTA_TYPE))

    def _project(self, rows: pa.Table) -> pa.Table:
        computed = [(name, sql) for name, sql in self.select if plain_column(sql) is None]
        values = dict(zip((name for name, _ in computed), evaluate(rows, [sql for _, sql in computed]), strict=True))
        arrays = []
        for (name, sql), field in zip(self.select, self.schema, strict=True):
            array = values[name] if name in values else rows.column(plain_column(sql))
            arrays.append(array if array.type == field.type else decimal_text.cast(array, field.type, safe=False))
        fields = list(self.schema)
        for name in trailing(rows):
            arrays.append(rows.column(name))
            fields.append(rows.schema.field(name))
        return pa.table(arrays, schema=pa.schema(fields))
