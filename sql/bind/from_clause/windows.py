"""TUMBLE and HOP in FROM: their arguments, and the rows of a FROM item in windows.

TUMBLE(t, time, size [, offset])   HOP(t, time, slide, size [, offset])     RisingWave
tumble(s [, time], size)   hop(s [, time], slide, size)     Timeplus; without a time over _tp_time

The time is a column, or computed from some. Sizes and slides of months, quarters and years are of the calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import TIME, Kind
from dovetail.changelog.wording import type_words
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.scope import Scope, Visible, place_of
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Map, Scan, Sessions, Window
from dovetail.sql.plan.window_shape import WindowShape
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.intervals import milliseconds, months

START, END = "window_start", "window_end"
_COMPUTED = "__time"
_FORMS = {
    "tumble": "TUMBLE(stream, time, INTERVAL '1' MINUTE) or tumble(stream, time, 1m)",
    "hop": "HOP(stream, time, INTERVAL '10' SECOND, INTERVAL '1' MINUTE): the slide, then the size",
}


_OF_MONTHS = {"tumble": "tumble(s, at, INTERVAL 1 MONTH)", "hop": "hop(s, at, INTERVAL 1 MONTH, INTERVAL 1 QUARTER)"}


@dataclass(frozen=True)
class WindowCall:
    """``source`` is the FROM item in windows: a name, or changelog(..) or table(..)."""

    source: exp.Table
    time: exp.Expr
    windows: WindowShape
    place: str

    @staticmethod
    def of(table: exp.Expr) -> WindowCall:
        """Raises SqlError for arguments that are not as above."""
        name, place = function_name(table.this), place_of(table, "FROM")
        arguments = list(map(_length_in, table.this.expressions))
        lengths = [milliseconds(argument) for argument in arguments]
        given = [length for length in lengths if length is not None]
        names = [argument for argument, length in zip(arguments, lengths, strict=True) if length is None]
        wanted = 1 if name == "tumble" else 2
        offsets = given[wanted:]
        if not given and (of_calendar := _of_months(arguments, wanted)) is not None:
            source, *named = arguments[:-wanted]
            return WindowCall(
                as_table(source, name, place, _FORMS[name]), time_of([source, *named]), of_calendar, place
            )
        if any(months(argument) is not None for argument in arguments):
            raise SqlError(
                f"months have no fixed length: {name.upper()} takes them for all of its lengths, and without an offset",
                where=place,
                fix=_OF_MONTHS[name],
            )
        if (
            lengths[: len(names)] != [None] * len(names)
            or not wanted <= len(given) <= wanted + 1
            or len(names) not in (1, 2)
        ):
            raise SqlError(f"{name.upper()} takes other arguments", where=place, fix=_FORMS[name])
        for length in given[:wanted]:
            check_length(length, f"the windows of {name.upper()}", place, _FORMS[name])
        for offset in offsets:
            check_whole(offset, f"the offset of {name.upper()}", place, _FORMS[name])
        slide, size = int(given[0]), int(given[wanted - 1])
        windows = WindowShape(size, slide, int(sum(offsets)) % slide)
        return WindowCall(as_table(names[0], name, place, _FORMS[name]), time_of(names), windows, place)

    @property
    def name(self) -> str:
        """What the item is called without an alias: as its source."""
        return name_of(self.source)


def _of_months(arguments: Sequence[exp.Expr], wanted: int) -> WindowShape | None:
    """The windows of a call that ends with ``wanted`` lengths in months, quarters or years; None for any other."""
    lengths = [months(argument) for argument in arguments]
    given = [int(length) for length in lengths[-wanted:] if length is not None and length > 0 and length == int(length)]
    if len(given) < wanted or lengths[:-wanted].count(None) != len(arguments) - wanted or len(arguments) - wanted > 2:
        return None
    return WindowShape.of_months(given[-1], given[0])


def _length_in(argument: exp.Expr) -> exp.Expr:
    """A text as the length of time that it says."""
    return exp.Interval(this=argument) if isinstance(argument, exp.Literal) and argument.is_string else argument


def name_of(source: exp.Table) -> str:
    inner = source.this
    return str(inner.expressions[0].name) if isinstance(inner, exp.Anonymous) else source.name


def time_of(names: Sequence[exp.Expr]) -> exp.Expr:
    """What the windows are of: the second argument of a call, a column or an expression; else ``_tp_time``."""
    return names[1] if len(names) == 2 else exp.column(TIME)


def with_time(
    from_item: FromItem, time: exp.Expr, value: Callable[[exp.Expr, Scope, str], exp.Expr], name: str, place: str
) -> tuple[FromItem, Visible]:
    """The rows with the time of the windows of ``name``, and the column that holds it: one of theirs, or a computed
    one, which nothing else can name.
    """
    scope = from_item.scope
    for column in time.find_all(exp.Column):
        refuse_time_of_arrival(from_item, scope.find(column, "FROM"), name, place)
    known = scope.find(time, "FROM") if isinstance(time, exp.Column) else None
    if known is not None and pa.types.is_timestamp(known.type):
        return from_item, known
    tree = Expr.over(value(time, scope, "FROM"), scope.seen_with(from_item.node.schema), place)
    if not pa.types.is_timestamp(tree.type):
        shown = f'"{time.name}"' if isinstance(time, exp.Column) else time.sql(dialect="clickhouse")
        raise SqlError(
            f"windows are of time, and {shown} is {type_words(tree.type)}",
            where=place_of(time, "FROM"),
            fix="name a column of type datetime64(3) or timestamp; or to_time(x) of a text or a number",
        )
    of = scope.columns[0]
    prefix = of.internal.removesuffix(of.name)
    made = unused(_COMPUTED, {column.name for column in scope.columns}, mark="_")
    node = Map(from_item.node, (*identity(from_item.node), (f"{prefix}{made}", tree)))
    return replace(from_item, node=node), Visible(of.table, made, f"{prefix}{made}", tree.type)


def check_length(length: Decimal, of: str, place: str, form: str) -> None:
    """Raises SqlError for a length that ``of`` cannot have; ``form``: how the call is written."""
    if length <= 0 or length != int(length):
        raise SqlError(f"{of} have a length of whole milliseconds, above 0", where=place, fix=form)


def check_whole(length: Decimal, of: str, place: str, form: str) -> None:
    """Raises SqlError for a length that is none of whole milliseconds."""
    if length != int(length):
        raise SqlError(f"{of} is of whole milliseconds", where=place, fix=form)


def as_table(source: exp.Expr, name: str, place: str, form: str) -> exp.Table:
    """The first argument, which is read as a FROM item is."""
    if isinstance(source, exp.Column) and not source.table:
        return exp.Table(this=source.this.copy())
    if isinstance(source, exp.Anonymous) and source.expressions:
        return exp.Table(this=source.copy())
    raise SqlError(f"{name.upper()} takes the name of a stream", where=place, fix=form)


def windowed(call: WindowCall, from_item: FromItem, time: Visible) -> FromItem:
    """``from_item``, the source of ``call``, in windows of ``time``."""
    start, end = window_columns(from_item, time, call.place)
    check_units(call, time)
    node = Window(from_item.node, time.internal, call.windows, start, end)
    return with_bounds(from_item, node, time)


def check_units(call: WindowCall, time: Visible) -> None:
    """Raises SqlError for windows whose bounds a time of this type cannot say."""
    shape, name = call.windows, time.name
    if getattr(time.type, "unit", "") == "s" and any(
        ms % 1_000 for ms in (shape.size_ms, shape.slide_ms, shape.offset_ms)
    ):
        raise SqlError(
            f'windows of {shape} begin between seconds, and "{name}" is a datetime, which has none of that',
            where=call.place,
            fix=f"declare it as {name} datetime64(3), or give windows of whole seconds: 1s",
        )


def window_columns(from_item: FromItem, time: Visible, place: str) -> tuple[str, str]:
    """The internal names of the bounds of windows of ``time``. Raises SqlError where the rows have such columns."""
    for bound in (START, END):
        if from_item.scope.has(bound):
            raise SqlError(f'"{time.table}" has a column "{bound}" already', where=place, fix="rename it in a subquery")
    prefix = time.internal.removesuffix(time.name)
    return f"{prefix}{START}", f"{prefix}{END}"


def with_bounds(from_item: FromItem, node: Window | Sessions, time: Visible) -> FromItem:
    """``node``, made of ``from_item``, with the bounds of its windows among the columns."""
    named = ((START, node.start), (END, node.end))
    bounds = tuple(Visible(time.table, name, internal, time.type) for name, internal in named)
    return FromItem(node, from_item.scope + Scope(bounds))


def refuse_time_of_arrival(from_item: FromItem, time: Visible, name: str, place: str) -> None:
    """A retraction of a multiset has a time of its own, so its windows and gaps are not those of its row."""
    node = from_item.node
    if not isinstance(node, Scan) or node.stream.kind != Kind.CHANGELOG or time.name != TIME:
        return
    raise Unsupported(
        f'a retraction of "{node.stream.name}" has a {TIME} of its own, other than that of its row',
        where=place,
        fix=f"name a column that is part of the row: {name}({node.stream.name}, at, ..)",
    )
