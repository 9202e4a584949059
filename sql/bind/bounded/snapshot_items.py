"""What stands in FROM of a bounded query, as DuckDB reads it: relations by their names, windows, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import EVENT_TIME_TYPE, TIME
from dovetail.sql.bind.clauses import event_time, refuse_match_condition
from dovetail.sql.bind.from_clause.windows import END, START, WindowCall
from dovetail.sql.bind.named_columns import under_alias
from dovetail.sql.bind.partitions.first_rows import row_count
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.evaluate import common_type, quoted
from dovetail.sql.relations import Stream

Columns = Sequence[tuple[str, pa.DataType]]
"""The columns of a query, in order."""


@dataclass(frozen=True)
class SnapshotItem:
    """A FROM item: what ``*`` gives of it, and the columns that can be named beside.

    key  the primary key of a stream or view, () without one; None of rows that have no order of their own
    """

    alias: str
    columns: Columns
    hidden: Columns = ()
    key: Sequence[str] | None = None

    def named(self, written: exp.Expr) -> SnapshotItem:
        """The columns by the names that the alias of ``written`` gives them."""
        columns = under_alias(written, self.columns)
        names = {own: name for (own, _), (name, _) in zip(self.columns, columns, strict=True)}
        return replace(self, columns=columns, key=self.key and [names[name] for name in self.key])

    def under_names_of(self, other: SnapshotItem) -> list[exp.Expr]:
        """Each of its columns by the name that it has in ``other``."""
        pairs = zip((*self.columns, *self.hidden), (*other.columns, *other.hidden), strict=True)
        return [exp.alias_(column_of(own, self.alias), name, quoted=True) for (own, _), (name, _) in pairs]


def in_brackets_of_its_own(value: exp.Expr) -> bool:
    """Whether it is a value in the brackets that sqlglot puts around those of ClickHouse's VALUES."""
    return isinstance(value, exp.Tuple) and len(value.expressions) == 1


def hoist_order(query: exp.SetOperation) -> None:
    """ORDER BY and LIMIT after the last SELECT are those of all the rows."""
    last = query.right
    for key in ("order", "limit", "offset"):
        if (clause := last.args.get(key)) is not None and not isinstance(last, exp.Subquery):
            last.set(key, None)
            query.set(key, clause)


def expect_counts(query: exp.Query) -> None:
    """Raises Unsupported for a LIMIT, OFFSET or FETCH that is no whole number."""
    for clause in ("limit", "offset"):
        row_count(query, clause, 0)


def columns_in(schema: pa.Schema) -> Columns:
    return [(field.name, field.type) for field in schema]


def column_of(name: str, table: str | None = None) -> exp.Column:
    return exp.column(
        exp.to_identifier(name, quoted=True), table=None if table is None else exp.to_identifier(table, quoted=True)
    )


def united(first: pa.DataType, second: pa.DataType, column: str, place: str) -> pa.DataType:
    """The type of a column of rows that have it in both types; NULL is of any. Raises SqlError where there is none."""
    if pa.types.is_null(first) or pa.types.is_null(second):
        return second if pa.types.is_null(first) else first
    return common_type(first, second, column, place)


def content_schema(stream: Stream) -> pa.Schema:
    fields = [pa.field(column.name, column.type) for column in stream.schema.readable]
    if TIME not in {column.name for column in stream.schema.columns}:
        fields.append(pa.field(TIME, EVENT_TIME_TYPE))
    return pa.schema(fields)


def refuse_join(join: exp.Join) -> None:
    """What has no meaning for rows that are there all at once."""
    method, side, kind = (str(word).upper() for word in (join.method, join.side, join.kind))
    place = place_of(join, "JOIN")
    if method in ("LATEST", "ANY"):
        raise Unsupported(f"{method} JOIN over table(x) is not supported", where=place, fix="ASOF JOIN")
    refuse_match_condition(join, place)
    if event_time(join.this) is not None:
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF a time is not supported over table(x), which holds no versions of its rows",
            where=place,
            fix="ASOF JOIN with a stream that keeps every version as a row",
        )
    if side == "RIGHT" and (method == "ASOF" or kind in ("SEMI", "ANTI")):
        raise Unsupported(
            f"RIGHT {method or kind} JOIN over table(x) is not supported",
            where=place,
            fix=f"turn the sides: LEFT {method or kind} JOIN",
        )


def windows_of(rows: exp.Select, call: WindowCall) -> exp.Expr:
    """Each row once for every window: the last that begins at or before its time, and those before that hold it too."""
    size, slide = call.size_ms * 1_000, call.slide_ms * 1_000
    time = f"in_window.{quoted(call.time.name)}"
    since = f"((epoch_us({time}) % {slide}) + {slide}) % {slide}"
    start = f"{time} - to_microseconds({since} + UNNEST(RANGE({-(-size // slide)})) * {slide})"
    each = f"SELECT in_window.*, {start} AS {START} FROM rows AS in_window WHERE {time} IS NOT NULL"
    end = f"{START} + to_microseconds({size})"
    inside = f"SELECT *, {end} AS {END} FROM ({each}) AS in_window WHERE {end} > {time}"
    windows = parsed(inside)
    source = next(table for table in windows.find_all(exp.Table) if table.name == "rows")
    source.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier("in_window"))))
    return windows


def name_of_cte(name: str) -> str:
    """What the engine calls a CTE: no relation that the query reads is called so."""
    return f"with {name}"


def renamed_relation(table: exp.Table, name: str, alias: str, keys: Sequence[str]) -> None:
    """The relation under its alias; of ``changelog(x, k)`` the last row of each key."""
    named = exp.Table(this=exp.to_identifier(name, quoted=True))
    if not keys:
        named.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    table.replace(last_of_each_key(named, keys, alias) if keys else named)


def last_of_each_key(relation: exp.Expr, keys: Sequence[str], alias: str) -> exp.Subquery:
    """Of the rows of ``relation``, in their order, those behind which none of their key comes."""
    numbered = exp.Select(expressions=[exp.Star(), exp.alias_(_row_number(), "arrived")]).from_(relation)
    last = exp.Window(this=exp.RowNumber(), partition_by=[column_of(key) for key in keys], order=_latest_first())
    rows = exp.Select(expressions=[exp.Star(except_=[exp.to_identifier("arrived")])]).from_(
        numbered.subquery("numbered")
    )
    rows.set("qualify", exp.Qualify(this=exp.EQ(this=last, expression=exp.Literal.number(1))))
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias)))


def _row_number() -> exp.Expr:
    return exp.Window(this=exp.RowNumber())


def _latest_first() -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=exp.column("arrived"), desc=True)])
