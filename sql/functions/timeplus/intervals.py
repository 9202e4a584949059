"""Times and dates moved by lengths of time, and the lengths between them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.conversions import UTC, instant
from dovetail.sql.functions.timeplus.times import DAYS, UNITS, beginning, local, unit_at, unit_of
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.syntax.intervals import milliseconds

_WHOLE_DAYS = {"day": "INTEGER", "week": "INTEGER", "month": "INTEGER", "year": "INTEGER"}
_ORIGINS = {
    "week": "1970-01-05",
    "month": "1970-01-01",
    "quarter": "1970-01-01",
    "year": "1970-01-01",
}
"""Where periods are counted from: weeks from a Monday, all else from the epoch."""
_BEFORE_EPOCH = "periods that begin before 1970 do so, where ClickHouse says 1970-01-01"


def length(unit: str, count: exp.Expr) -> exp.Expr:
    """So many units, as an interval of the engine."""
    if unit == "quarter":
        return filled("to_months(CAST(3 * {0} AS INTEGER))", [count])
    if unit == "nanosecond":
        return filled("to_microseconds(CAST({0} AS BIGINT) // 1000)", [count])
    kind = "DOUBLE" if unit == "second" else _WHOLE_DAYS.get(unit, "BIGINT")
    return filled(f"to_{unit}s(CAST({{0}} AS {kind}))", [count])


def moved(value: Typed, step: exp.Expr, sign: str, *, keeps_date: bool) -> Typed:
    """A date moved by whole days stays a date; otherwise it is midnight of that day, and a time."""
    if value.is_text:
        value = value.of(instant(value, UTC), pa.timestamp("us", "UTC"))
    if value.is_date:
        tree = filled(f"CAST({{0}} AS TIMESTAMP) {sign} {{1}}", [value.tree, step])
        if keeps_date:
            return value.of(filled("CAST({0} AS DATE)", [tree]), pa.date32())
        return value.of(filled("timezone('UTC', {0})", [tree]), pa.timestamp("us", "UTC"))
    if not value.is_instant:
        raise Unfit(f"takes a time or a date, not a {value.family}", fix="to_datetime64(x, 3) makes a time of it")
    if (value.zone or "UTC") == "UTC":
        # The engine's session is in UTC; the plain form is what a condition on times is recognised by.
        return _as_fine(value, filled(f"{{0}} {sign} {{1}}", [value.tree, step]))
    zone = exp.Literal.string(value.zone)
    tree = filled(f"timezone({{2}}, timezone({{2}}, {{0}}) {sign} {{1}})", [value.tree, step, zone])
    return _as_fine(value, tree)


def _as_fine(value: Typed, tree: exp.Expr) -> Typed:
    """``value`` moved, in its zone: as fine as both it and the step are, which the tree says."""
    made = value.of(tree)
    made.zone = value.zone
    return made


def _moving(unit: str, sign: str) -> Build:
    return lambda arguments: _by(unit, sign, arguments[0], arguments[1].tree)


def _by(unit: str, sign: str, value: Typed, count: exp.Expr) -> Typed:
    return moved(value, length(unit, count), sign, keeps_date=unit in DAYS)


def _interval_of(value: Typed) -> tuple[str, exp.Expr]:
    """The unit and the count of ``INTERVAL 5 MINUTE``, ``5m`` or ``to_interval_minute(5)``."""
    tree = value.tree.unnest()
    if not isinstance(tree, exp.Interval):
        raise Unfit("takes an interval: INTERVAL 5 MINUTE, or 5m")
    if tree.unit is None:
        return _of_parts(tree)
    count = tree.this
    # The count may be written as a text.
    return unit_of(str(tree.unit)), exp.Literal.number(str(count.this)) if isinstance(count, exp.Literal) else count


def _of_parts(interval: exp.Interval) -> tuple[str, exp.Expr]:
    """``INTERVAL '1 second 500 milliseconds'`` in one unit."""
    whole = milliseconds(interval)
    if whole is None:
        raise Unfit("takes an interval of parts with a fixed length", fix="INTERVAL '1 minute 30 seconds'")
    return "microsecond", exp.Literal.number(int(whole * 1000))


def with_interval(value: Typed, interval: exp.Interval, sign: str) -> Typed:
    """``time + INTERVAL 1 DAY``"""
    unit, count = _interval_of(value.of(interval))
    return _by(unit, sign, value, count)


def _date_add(sign: str) -> Build:
    """``(unit, count, time)``, ``(time, interval)`` or ``(interval, time)``"""

    def build(arguments: Sequence[Typed]) -> Typed:
        if len(arguments) == 3:
            return _by(unit_at(arguments[0]), sign, arguments[2], arguments[1].tree)
        first, second = arguments
        leads = isinstance(first.tree.unnest(), exp.Interval)
        unit, count = _interval_of(first if leads else second)
        return _by(unit, sign, second if leads else first, count)

    return build


def _to_interval(unit: str) -> Build:
    return lambda arguments: exp.Interval(this=arguments[0].tree.copy(), unit=exp.var(unit.upper()))


def _start_of_interval(arguments: Sequence[Typed]) -> exp.Expr | Typed:
    unit, count = _interval_of(arguments[1])
    origin = f"TIMESTAMP '{_ORIGINS.get(unit, '1970-01-01')} 00:00:00'"
    rest = [arguments[0], *arguments[2:]]
    start = filled(f"time_bucket({{1}}, {{0}}, {origin})", [local(rest), length(unit, count)])
    fine = {"millisecond": "ms", "microsecond": "us", "nanosecond": "us"}.get(unit, "s")
    return beginning(rest, start, date=unit in _ORIGINS, unit=fine)


def _difference(arguments: Sequence[Typed]) -> exp.Expr:
    """How many borders of the unit lie between, not how much time."""
    unit = unit_at(arguments[0])
    first, second = (local([value, *arguments[3:]]) for value in arguments[1:3])
    if unit == "week":
        mondays = [filled("CAST(date_trunc('week', {0}) AS DATE)", [one]) for one in (first, second)]
        return filled("date_diff('day', {0}, {1}) // 7", mondays)
    if unit == "nanosecond":
        return filled("1000 * date_diff('microsecond', {0}, {1})", [first, second])
    return filled(f"date_diff('{unit}', {{0}}, {{1}})", [first, second])


def _age(arguments: Sequence[Typed]) -> exp.Expr:
    unit = unit_at(arguments[0])
    first, second = (local([value, *arguments[3:]]) for value in arguments[1:3])
    if unit == "nanosecond":
        return filled("1000 * date_sub('microsecond', {0}, {1})", [first, second])
    return filled(f"date_sub('{unit}', {{0}}, {{1}})", [first, second])


def _moves(unit: str) -> tuple[Row, Row, Row]:
    to_interval = f"to_interval_{unit}(n)"
    return (
        Row(f"add_{unit}s(time, n)", f"n {unit}s later", _moving(unit, "+"), takes="any number"),
        Row(f"subtract_{unit}s(time, n)", f"n {unit}s earlier", _moving(unit, "-"), takes="any number"),
        Row(to_interval, f"n {unit}s: time + {to_interval}", _to_interval(unit), takes="number"),
    )


FUNCTIONS: Table = (
    *(row for unit in UNITS if unit != "nanosecond" for row in _moves(unit)),
    Row("date_add(unit, n, time)", "n units later; also date_add(time, interval)", _date_add("+"),
        also="timestamp_add", arity=(2, 3)),
    Row("date_sub(unit, n, time)", "n units earlier; also date_sub(time, interval)", _date_add("-"),
        also="timestamp_sub", arity=(2, 3)),
    Row("date_diff(unit, from, to[, zone])", "how many borders of the unit lie between", _difference, pa.int64(),
        also="timestamp_diff"),
    Row("age(unit, from, to[, zone])", "how many whole units lie between", _age, pa.int64(),
        differs="weeks before the first time are whole ones, where ClickHouse counts one more"),
    Row("time_diff(from, to)", "the seconds between",
        lambda given: filled("date_diff('second', {0}, {1})", [local([value]) for value in given]), pa.int64()),
    Row("to_start_of_interval(time, interval[, zone])", "the beginning of its period", _start_of_interval,
        differs=_BEFORE_EPOCH),
)  # fmt: skip
