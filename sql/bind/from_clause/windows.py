"""TUMBLE and HOP in FROM: their arguments, and the rows of a FROM item in windows.

TUMBLE(t, time, size)   HOP(t, time, slide, size)     RisingWave
tumble(s [, time], size)   hop(s [, time], slide, size)     Timeplus; without a column over _tp_time
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, Unsupported
from changelog.schema import TIME, Kind
from sql.bind.from_clause.from_item import FromItem
from sql.bind.scope import Scope, Visible, place_of
from sql.plan.nodes import Scan, Window
from sql.syntax.calls import function_name
from sql.syntax.intervals import milliseconds

START, END = "window_start", "window_end"
_FORMS = {
    "tumble": "TUMBLE(stream, time, INTERVAL '1' MINUTE) or tumble(stream, time, 1m)",
    "hop": "HOP(stream, time, INTERVAL '10' SECOND, INTERVAL '1' MINUTE): the slide, then the size",
}


@dataclass(frozen=True)
class WindowCall:
    """``source`` is the FROM item in windows: a name, or changelog(..) or table(..)."""

    source: exp.Table
    time: exp.Column
    size_ms: int
    slide_ms: int
    place: str

    @staticmethod
    def of(table: exp.Expr) -> WindowCall:
        """Raises SqlError for arguments that are not as above."""
        name, place = function_name(table.this), place_of(table, "FROM")
        arguments = list(table.this.expressions)
        lengths = [milliseconds(argument) for argument in arguments]
        given = [length for length in lengths if length is not None]
        names = [argument for argument, length in zip(arguments, lengths, strict=True) if length is None]
        wanted = 1 if name == "tumble" else 2
        if lengths[: len(names)] != [None] * len(names) or len(given) != wanted or not 1 <= len(names) <= 2:
            raise SqlError(f"{name.upper()} takes other arguments", where=place, fix=_FORMS[name])
        for length in given:
            _check_length(length, name, place)
        time = names[1] if len(names) == 2 else exp.column(TIME)
        if not isinstance(time, exp.Column):
            raise SqlError(
                f"the time of {name.upper()} is a column, not {time.sql()}",
                where=place,
                fix="compute it in a subquery: TUMBLE(s, at, ..) with s in WITH s AS (SELECT .. AS at FROM ..)",
            )
        return WindowCall(_as_table(names[0], name, place), time, int(given[-1]), int(given[0]), place)

    @property
    def name(self) -> str:
        """What the item is called without an alias: as its source."""
        inner = self.source.this
        return str(inner.expressions[0].name) if isinstance(inner, exp.Anonymous) else self.source.name


def _check_length(length: Decimal, name: str, place: str) -> None:
    if length <= 0 or length != int(length):
        raise SqlError(
            f"the windows of {name.upper()} have a length of whole milliseconds, above 0", where=place, fix=_FORMS[name]
        )


def _as_table(source: exp.Expr, name: str, place: str) -> exp.Table:
    """The first argument, which is read as a FROM item is."""
    if isinstance(source, exp.Column) and not source.table:
        return exp.Table(this=source.this.copy())
    if isinstance(source, exp.Anonymous) and source.expressions:
        return exp.Table(this=source.copy())
    raise SqlError(f"{name.upper()} takes the name of a stream", where=place, fix=_FORMS[name])


def windowed(call: WindowCall, from_item: FromItem) -> FromItem:
    """``from_item``, the source of ``call``, in windows."""
    time = from_item.scope.find(call.time, "FROM")
    kind = from_item.node.schema.field(time.internal).type
    if not pa.types.is_timestamp(kind):
        raise SqlError(
            f'windows are of time, and "{time.name}" is {kind}',
            where=place_of(call.time, "FROM"),
            fix="name a column of type datetime64(3) or timestamp",
        )
    _refuse_time_of_arrival(from_item, time, call.place)
    for name in (START, END):
        if from_item.scope.has(name):
            raise SqlError(
                f'"{time.table}" has a column "{name}" already', where=call.place, fix="rename it in a subquery"
            )
    prefix = time.internal.removesuffix(time.name)
    start, end = f"{prefix}{START}", f"{prefix}{END}"
    node = Window(from_item.node, time.internal, call.size_ms, call.slide_ms, start, end)
    bounds = tuple(Visible(time.table, name, internal, kind) for name, internal in ((START, start), (END, end)))
    return FromItem(node, from_item.scope + Scope(bounds))


def _refuse_time_of_arrival(from_item: FromItem, time: Visible, place: str) -> None:
    """A retraction of a multiset has a time of its own, so it would fall into another window than its row."""
    node = from_item.node
    if not isinstance(node, Scan) or node.stream.kind != Kind.CHANGELOG or time.name != TIME:
        return
    raise Unsupported(
        f'a retraction of "{node.stream.name}" has a {TIME} of its own, and so another window than its row',
        where=place,
        fix=f"name a column that is part of the row: TUMBLE({node.stream.name}, at, ..)",
    )
