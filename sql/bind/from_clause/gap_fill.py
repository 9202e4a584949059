"""GAP_FILL in FROM: between each row and the next one of its partition, rows at the times that are missing.

GAP_FILL(t, time, interval [, LOCF(c) | INTERPOLATE(c) | KEEPNULL(c)].. [, PARTITION_BY(k, ..)])     RisingWave

It is made of what other queries are made of: ``lead`` tells of each row the time of the next one and the values to
interpolate to, the times from its own up to there are unnested beside it, and each column says what it is at a time
that is none of a row.

Map          at = coalesce(at, t.at), t.v = CASE WHEN at > t.at THEN .. ELSE t.v END, ..
ArrayJoin    at = times, number = 0, 1, ..; the last row of a partition has none: it stays by itself
Map          times = range(t.at, lead(t.at), interval)
Over         by t.k: lead(t.at), lead(t.v)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import type_words
from dovetail.joins.dataflow.ports import Pad
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.windows import as_table, name_of, refuse_time_of_arrival
from dovetail.sql.bind.partitions.ties import Shown
from dovetail.sql.bind.partitions.window_functions import WindowFunctions
from dovetail.sql.bind.scope import Visible, place_of
from dovetail.sql.expressions.expression import Expr, column_named
from dovetail.sql.functions.long_arithmetic import digits_of, with_point
from dovetail.sql.functions.risingwave.series import times_before
from dovetail.sql.functions.typed import filled
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import ArrayJoin, Map, Over
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.intervals import milliseconds, months

_FORM = "GAP_FILL(t, at, INTERVAL '1' MINUTE, LOCF(v), INTERPOLATE(w), KEEPNULL(x), PARTITION_BY(k))"
_PARTITION = "partition_by"


class Fill(StrEnum):
    """What a column is in a row that is filled in.

    LOCF         what it is in the row before
    INTERPOLATE  on the line from the row before to the next one
    """

    LOCF = "locf"
    INTERPOLATE = "interpolate"
    KEEPNULL = "keepnull"


@dataclass(frozen=True)
class GapFillCall:
    """``source`` is the FROM item with the gaps: a name, or changelog(..) or table(..).

    ms, months  the interval, one of them
    fills       the columns with a fill of their own, as they are written; those of PARTITION_BY are ``by``
    """

    source: exp.Table
    time: exp.Column
    ms: Decimal | None
    months: Decimal | None
    fills: tuple[tuple[exp.Column, Fill], ...]
    by: tuple[exp.Column, ...]
    place: str

    @staticmethod
    def of(table: exp.Expr) -> GapFillCall:
        """Raises SqlError for arguments that are not as above."""
        place = place_of(table, "FROM")
        arguments = list(table.this.expressions)
        ms, in_months = (length(arguments[2]) if len(arguments) > 2 else None for length in (milliseconds, months))
        calls = [(function_name(one), one) for one in arguments[3:]]
        if (ms is None and in_months is None) or [name for name, _ in calls].count(_PARTITION) > 1:
            raise SqlError("GAP_FILL takes other arguments", where=place, fix=_FORM)
        _check_interval(ms if in_months is None else in_months, of_months=in_months is not None, place=place)
        fills: list[tuple[exp.Column, Fill]] = []
        by: tuple[exp.Column, ...] = ()
        for name, call in calls:
            if name == _PARTITION:
                by = _columns(call, place)
            else:
                fills.append(_fill(name, call, place))
        source = as_table(arguments[0], "gap_fill", place, _FORM)
        time = arguments[1]
        if not isinstance(time, exp.Column):
            raise SqlError(f"the time of GAP_FILL is a column, not {time.sql()}", where=place, fix=_FORM)
        return GapFillCall(source, time, ms, in_months, tuple(fills), by, place)

    @property
    def name(self) -> str:
        """What the item is called without an alias: as its source."""
        return name_of(self.source)

    @property
    def step(self) -> exp.Expr:
        """The interval in the engine's SQL."""
        if self.months is not None:
            return filled(f"to_months({self.months:f})", [])
        assert self.ms is not None
        return filled(f"to_milliseconds({self.ms.normalize():f})", [])


def _check_interval(length: Decimal | None, *, of_months: bool, place: str) -> None:
    assert length is not None
    whole = length if of_months else length * 1000
    if length <= 0 or whole != int(whole):
        unit = "months" if of_months else "microseconds"
        raise SqlError(f"the interval of GAP_FILL is of whole {unit}, above 0", where=place, fix=_FORM)


def _fill(name: str, call: exp.Expr, place: str) -> tuple[exp.Column, Fill]:
    if name not in tuple(Fill):
        raise SqlError(
            f"{call.sql()} says of no column how GAP_FILL fills it",
            where=place,
            fix="LOCF(v): as in the row before; INTERPOLATE(v): between it and the next; KEEPNULL(v): NULL",
        )
    columns = _columns(call, place)
    if len(columns) != 1:
        raise SqlError(f"{name.upper()} takes one column", where=place, fix=f"a call for each: {name.upper()}(v)")
    return columns[0], Fill(name)


def _columns(call: exp.Expr, place: str) -> tuple[exp.Column, ...]:
    """The arguments of a call that stands in GAP_FILL."""
    given = call.expressions if isinstance(call, exp.Anonymous) else [call.this]
    name, columns = function_name(call).upper(), [one for one in given if isinstance(one, exp.Column)]
    if not given or len(columns) < len(given):
        raise SqlError(
            f"{name} in GAP_FILL takes columns",
            where=place,
            fix=f"compute them in a subquery: GAP_FILL(s, .., {name}(v)) with s in WITH s AS (SELECT .. AS v FROM ..)",
        )
    return tuple(columns)


def gap_filled(call: GapFillCall, from_item: FromItem) -> FromItem:
    """``from_item``, the source of ``call``, with its gaps filled: the columns of its ``*``, and its time. No record is
    behind a row that is filled in, so the others have no value there.
    """
    scope, node = from_item.scope, from_item.node
    time = scope.find(call.time, "FROM")
    columns = tuple(column for column in scope.columns if column.starred or column == time)
    _check_time(call, time, from_item)
    by = [scope.find(column, "FROM") for column in call.by]
    fills = _fills(call, from_item, {time.internal, *(column.internal for column in by)})
    windows = WindowFunctions(node, node.schema)
    shown = Shown.of([column_named(column.internal) for column in columns])

    def following(internal: str) -> exp.Expr:
        """The column that holds what another one is in the next row."""
        order = exp.Ordered(this=column_named(time.internal), nulls_first=False)
        window = exp.Window(
            this=filled("lead({0})", [column_named(internal)]),
            partition_by=[column_named(column.internal) for column in by],
            order=exp.Order(expressions=[order]),
        )
        return windows.over(shown.distinguished(window), call.place)

    end = following(time.internal)
    ends = {name: following(name) for name, fill in fills.items() if fill is Fill.INTERPOLATE}
    rows = windows.node()
    rows = replace(rows, of_gaps=True) if isinstance(rows, Over) else rows
    filled_in = _FilledIn.beside(rows.schema.names, time)
    rows = Map(rows, (*identity(rows), (filled_in.times, _times(call, time, end))))
    rows = ArrayJoin(rows, filled_in.arrays, left=True, pad=Pad.NULL)
    carried = {column.internal for column in by} | {name for name, fill in fills.items() if fill is Fill.LOCF}

    def value(column: Visible) -> Expr:
        own = Expr.column(column.internal, column.type)
        if column.internal in carried:
            return own
        if column == time:
            return Expr(filled("coalesce({0}, {1})", [column_named(filled_in.at), own.tree]), own.type)
        return filled_in.value(own, ends.get(column.internal))

    made = Map(rows, tuple((column.internal, value(column)) for column in columns))
    return FromItem(made, replace(scope, columns=columns))


@dataclass(frozen=True)
class _FilledIn:
    """The columns that tell the rows that are filled in: all ``times`` of a row, its own among them, then one of them,
    ``at``, and its ``number``, from 0.
    """

    time: Visible
    times: str
    at: str
    number: str

    @staticmethod
    def beside(taken: Sequence[str], time: Visible) -> _FilledIn:
        names = (unused(f"{time.internal} {word}", taken) for word in ("times", "filled", "number"))
        return _FilledIn(time, *names)

    @property
    def arrays(self) -> tuple[tuple[str, Expr], ...]:
        numbers = Expr(filled("range(len({0}))", [column_named(self.times)]), pa.list_(pa.int64()))
        return (self.at, Expr.column(self.times, pa.list_(self.time.type))), (self.number, numbers)

    def value(self, own: Expr, last: exp.Expr | None) -> Expr:
        """A column: ``own`` in the rows themselves, in others NULL, or on the line to ``last``."""
        between: exp.Expr = exp.null()
        if last is not None:
            steps = filled("len({0})", [column_named(self.times)])
            between = _interpolated(own.type, own.tree, last, column_named(self.number), steps)
        parts = [column_named(self.at), column_named(self.time.internal), between, own.tree]
        return Expr(filled("CASE WHEN {0} > {1} THEN {2} ELSE {3} END", parts), own.type)


def _check_time(call: GapFillCall, time: Visible, from_item: FromItem) -> None:
    """Raises SqlError for what is no event time, or cannot say the times that are filled in."""
    if not pa.types.is_timestamp(time.type):
        raise SqlError(
            f'the gaps of GAP_FILL are of time, and "{time.name}" is {type_words(time.type)}',
            where=call.place,
            fix="name a column of type timestamp or datetime64(3)",
        )
    refuse_time_of_arrival(from_item, time, "GAP_FILL", call.place)
    per_ms = {"s": Decimal("0.001"), "ms": Decimal(1)}.get(time.type.unit)
    if call.ms is not None and per_ms is not None and (call.ms * per_ms) % 1:
        raise SqlError(
            f'the times that GAP_FILL fills in are finer than those of "{time.name}", {type_words(time.type)}',
            where=call.place,
            fix=f"declare it as {time.name} timestamp, or datetime64(6); or give an interval of whole seconds",
        )


def _fills(call: GapFillCall, from_item: FromItem, known: set[str]) -> Mapping[str, Fill]:
    """The fill of each column, by its internal name. ``known``: those whose values are known in rows filled in."""
    fills: dict[str, Fill] = {}
    for written, fill in call.fills:
        column = from_item.scope.find(written, "FROM")
        if column.internal in known or column.internal in fills:
            raise SqlError(
                f'GAP_FILL has a value for "{column.name}" already',
                where=call.place,
                fix="leave it out: a column has one of LOCF, INTERPOLATE, KEEPNULL, PARTITION_BY, and the time none",
            )
        number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if fill is Fill.INTERPOLATE and not (number or pa.types.is_decimal(column.type)):
            raise SqlError(
                f'INTERPOLATE is of numbers, and "{column.name}" is {type_words(column.type)}',
                where=call.place,
                fix=f"LOCF({column.name}) for its value in the row before",
            )
        fills[column.internal] = fill
    return fills


def _times(call: GapFillCall, time: Visible, end: exp.Expr) -> Expr:
    """The time of a row and those that are missing before the next one. Instants are filled in by the hours of UTC."""
    kind = "TIMESTAMPTZ" if time.type.tz else "TIMESTAMP"
    bounds = [column_named(time.internal), end]
    if time.type.tz:
        bounds = [filled("timezone('UTC', {0})", [bound]) for bound in bounds]
    times = times_before(bounds[0], bounds[1], call.step)
    if time.type.tz:
        times = filled("list_transform({0}, lambda t_: timezone('UTC', t_))", [times])
    return Expr(filled(f"CAST({{0}} AS {kind}[])", [times]), pa.list_(time.type))


def _interpolated(kind: pa.DataType, first: exp.Expr, last: exp.Expr, number: exp.Expr, steps: exp.Expr) -> exp.Expr:
    """The value after ``number`` of ``steps`` from ``first`` to ``last``. That of an integer is the same at each step,
    rounded down; a decimal is rounded once, half away from zero.
    """
    if pa.types.is_floating(kind):
        return filled("{0} + ({1} - {0}) / {2} * {3}", [first, last, steps, number])
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    parts: Sequence[exp.Expr] = [digits_of(first, scale), digits_of(last, scale), steps, number]
    if not pa.types.is_decimal(kind):
        return filled("{0} + ({1} - {0} - (({1} - {0}) % {2} + {2}) % {2}) // {2} * {3}", parts)
    rest = "CAST(round(({1} - {0}) % {2} * {3} / {2}) AS HUGEINT)"
    return with_point(filled(f"{{0}} + ({{1}} - {{0}}) // {{2}} * {{3}} + {rest}", parts), kind)
