"""Times: their parts, the beginnings of periods, arithmetic, text. A time zone is the last argument; UTC without."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import type_name
from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, filled
from sql.syntax.intervals import milliseconds
from sql.functions.timeplus.conversions import UTC, instant, zone_of

_UNITS = {
    "nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "second": "s", "minute": "m", "hour": "h", "day": "d",
    "week": "w", "month": "M", "quarter": "q", "year": "y",
}  # fmt: skip
_SHORT = {
    "ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second", "ss": "second", "mi": "minute",
    "n": "minute", "m": "minute", "hh": "hour", "h": "hour", "dd": "day", "d": "day", "ww": "week", "wk": "week",
    "mm": "month", "qq": "quarter", "q": "quarter", "yy": "year", "yyyy": "year",
}  # fmt: skip


def unit_of(name: str) -> str:
    """``'day'``, ``'days'`` and ``'dd'`` are ``day``."""
    folded = name.lower()
    found = _SHORT.get(folded, folded.removesuffix("s") if folded.removesuffix("s") in _UNITS else folded)
    if found not in _UNITS:
        raise Unfit(f"takes a unit ({', '.join(_UNITS)}), not '{name}'")
    return found


def _unit(value: Typed) -> str:
    if isinstance(value.literal, str):
        return unit_of(value.literal)
    if isinstance(value.tree, exp.Column):
        return unit_of(value.tree.name)
    raise Unfit("takes its unit as a text that is written out")


def local(arguments: Sequence[Typed], position: int = 1) -> exp.Expr:
    """The time as clocks of its zone show it; a date is itself."""
    value = arguments[0]
    if value.is_text:
        value = value.of(instant(value, UTC))
    if value.is_date:
        return filled("CAST({0} AS TIMESTAMP)", [value.tree])
    if not value.is_instant:
        raise Unfit(f"takes a time or a date, not a {value.family}")
    zone = arguments[position].tree if len(arguments) > position else exp.Literal.string("UTC")
    return filled("timezone({1}, {0})", [value.tree, zone])


def _part(template: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    return lambda arguments: filled(template, [local(arguments)])


def _beginning(template: str, *, date: bool) -> Callable[[Sequence[Typed]], exp.Expr]:
    """The beginning of a period: a date, or a time of the zone."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        start = filled(template, [local(arguments)])
        if date:
            return filled("CAST({0} AS DATE)", [start])
        zone = arguments[1].tree if len(arguments) > 1 else exp.Literal.string("UTC")
        return filled("timezone({1}, {0})", [start, zone])

    return build


def interval_of(value: Typed) -> exp.Interval:
    tree = value.tree.unnest()
    if not isinstance(tree, exp.Interval):
        raise Unfit("takes an interval: INTERVAL 5 MINUTE, or 5m")
    return in_one_unit(tree)


def in_one_unit(interval: exp.Interval) -> exp.Interval:
    """``INTERVAL '1 second 500 milliseconds'`` counts in one unit."""
    if interval.unit is not None:
        return interval
    length = milliseconds(interval)
    if length is None:
        raise Unfit("takes an interval of parts with a fixed length: INTERVAL '1 minute 30 seconds'")
    return exp.Interval(this=exp.Literal.number(int(length * 1000)), unit=exp.var("MICROSECOND"))


def _of_interval(arguments: Sequence[Typed]) -> exp.Expr:
    """Weeks from Monday, months and longer from 1900, all else from the epoch."""
    interval = interval_of(arguments[1])
    unit = unit_of(str(interval.unit))
    count = interval.this
    width = filled(f"to_{unit}s(CAST({{0}} AS BIGINT))", [count]) if unit not in ("quarter",) else filled("to_months(CAST(3 * {0} AS INTEGER))", [count])
    if unit in ("month", "year"):
        width = filled(f"to_{unit}s(CAST({{0}} AS INTEGER))", [count])
    if unit in ("day", "week"):
        width = filled(f"to_{unit}s(CAST({{0}} AS INTEGER))", [count])
    origin = {"week": "TIMESTAMP '1970-01-05 00:00:00'", "month": "TIMESTAMP '1900-01-01 00:00:00'", "quarter": "TIMESTAMP '1900-01-01 00:00:00'", "year": "TIMESTAMP '1900-01-01 00:00:00'"}.get(unit, "TIMESTAMP '1970-01-01 00:00:00'")
    start = filled(f"time_bucket({{1}}, {{0}}, {origin})", [local(arguments, 2), width])
    if unit in ("week", "month", "quarter", "year"):
        return filled("CAST({0} AS DATE)", [start])
    zone = arguments[2].tree if len(arguments) > 2 else exp.Literal.string("UTC")
    return filled("timezone({1}, {0})", [start, zone])


def _date_trunc(arguments: Sequence[Typed]) -> exp.Expr:
    unit = _unit(arguments[0])
    date = unit in ("day", "week", "month", "quarter", "year")
    if unit == "day" and arguments[1].is_instant:
        date = False
    return _beginning(f"date_trunc('{unit}', {{0}})", date=date)(arguments[1:])


def length_tree(unit: str, count: exp.Expr) -> exp.Expr:
    """So many units, as an interval of the engine."""
    if unit == "quarter":
        return filled("to_months(CAST(3 * {0} AS INTEGER))", [count])
    if unit == "nanosecond":
        return filled("to_microseconds({0} // 1000)", [count])
    kind = "INTEGER" if unit in ("day", "week", "month", "year") else "BIGINT" if unit != "second" else "DOUBLE"
    return filled(f"to_{unit}s(CAST({{0}} AS {kind}))", [count])


def moved(value: Typed, length: exp.Expr, sign: str, *, keeps_date: bool) -> exp.Expr:
    """A date moved by whole days stays a date; otherwise it is midnight of that day, and a time."""
    if value.is_text:
        value = value.of(instant(value, UTC))
    if value.is_date:
        moved_date = filled(f"CAST({{0}} AS TIMESTAMP) {sign} {{1}}", [value.tree, length])
        return filled("CAST({0} AS DATE)" if keeps_date else "timezone('UTC', {0})", [moved_date])
    if not value.is_instant:
        raise Unfit(f"takes a time or a date, not a {value.family}")
    # The engine's session is in UTC.
    return filled(f"{{0}} {sign} {{1}}", [value.tree, length])


def _moving(unit: str, sign: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    days = unit in ("day", "week", "month", "quarter", "year")
    return lambda arguments: moved(arguments[0], length_tree(unit, arguments[1].tree), sign, keeps_date=days)


def _date_add(sign: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    """``(unit, count, time)``, ``(time, interval)`` or ``(interval, time)``"""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        if len(arguments) == 3:
            unit, count, value = _unit(arguments[0]), arguments[1].tree, arguments[2]
        else:
            first, second = arguments
            interval, value = (first, second) if isinstance(first.tree.unnest(), exp.Interval) else (second, first)
            found = interval_of(interval)
            unit, count = unit_of(str(found.unit)), found.this
        return _moving(unit, sign)([value, value.of(_number(count))])

    return build


def _number(count: exp.Expr) -> exp.Expr:
    """The count of an interval, which may be written as a text."""
    return exp.Literal.number(str(count.this)) if isinstance(count, exp.Literal) else count


def with_interval(value: Typed, interval: exp.Interval, sign: str) -> exp.Expr:
    """``time + INTERVAL 1 DAY``"""
    interval = in_one_unit(interval)
    return _moving(unit_of(str(interval.unit)), sign)([value, value.of(_number(interval.this))])


def _difference(arguments: Sequence[Typed]) -> exp.Expr:
    """How many borders of the unit lie between, not how much time."""
    unit = _unit(arguments[0])
    zone = arguments[3:]
    first, second = (local([value, *zone]) for value in arguments[1:3])
    if unit == "week":
        return filled("CAST(date_diff('day', CAST(date_trunc('week', {0}) AS DATE), CAST(date_trunc('week', {1}) AS DATE)) // 7 AS BIGINT)", [first, second])
    if unit == "nanosecond":
        return filled("1000 * date_diff('microsecond', {0}, {1})", [first, second])
    return filled(f"CAST(date_diff('{unit}', {{0}}, {{1}}) AS BIGINT)", [first, second])


def _age(arguments: Sequence[Typed]) -> exp.Expr:
    unit = _unit(arguments[0])
    first, second = (local([value, *arguments[3:]]) for value in arguments[1:3])
    return filled(f"CAST(date_sub('{unit}', {{0}}, {{1}}) AS BIGINT)", [first, second])


_MYSQL = {
    "Y": "%Y", "y": "%y", "m": "%m", "d": "%d", "H": "%H", "h": "%I", "I": "%I", "i": "%M", "M": "%B", "s": "%S",
    "S": "%S", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "j": "%j", "a": "%a", "b": "%b",
    "W": "%A", "p": "%p", "u": "%u", "w": "%w", "V": "%V", "G": "%G", "f": "%f", "%": "%%", "e": "%-d", "k": "%-H",
    "l": "%-I", "c": "%m", "C": None, "n": "\n", "t": "\t", "r": "%I:%M %p", "Q": None, "g": "%g",
}  # fmt: skip


def _format(arguments: Sequence[Typed]) -> exp.Expr:
    pattern = arguments[1].literal
    if not isinstance(pattern, str):
        raise Unfit("takes its format as a text that is written out")
    return filled("strftime({0}, {1})", [local([arguments[0], *arguments[2:]]), exp.Literal.string(_pattern(pattern))])


def _pattern(pattern: str) -> str:
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign != "%":
            parts.append(sign)
            continue
        named = next(signs, "")
        translated = _MYSQL.get(named)
        if translated is None:
            raise Unfit(f"does not know %{named}; it knows {' '.join('%' + one for one, to in _MYSQL.items() if to)}")
        parts.append(translated)
    return "".join(parts)


def _parsed(arguments: Sequence[Typed]) -> exp.Expr:
    pattern = arguments[1].literal
    if not isinstance(pattern, str):
        raise Unfit("takes its format as a text that is written out")
    zone = arguments[2].tree if len(arguments) > 2 else exp.Literal.string("UTC")
    return filled("timezone({2}, try_strptime({0}, {1}))", [arguments[0].tree, exp.Literal.string(_pattern(pattern)), zone])


def _from_epoch(per_second: int) -> Callable[[Sequence[Typed]], exp.Expr]:
    micros = 1_000_000 // per_second
    return lambda given: filled(f"make_timestamptz(CAST({{0}} * {micros} AS BIGINT))" if micros > 1 else "make_timestamptz(CAST({0} AS BIGINT))", [given[0].tree])


def _epoch(template: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        value = arguments[0]
        if value.is_text:
            value = value.of(instant(value, zone_of(arguments, 1)))
        if value.is_date:
            value = value.of(filled("timezone('UTC', CAST({0} AS TIMESTAMP))", [value.tree]))
        return filled(template, [value.tree])

    return build


def register(registry: Registry) -> None:
    def add(usage: str, meaning: str, build: object, kind: pa.DataType | None = None, **more: object) -> None:
        registry.add(usage, meaning, build, kind, group="times", **more)  # type: ignore[arg-type]

    def part(name: str, meaning: str, template: str, kind: pa.DataType, aliases: str = "") -> None:
        add(f"{name}(time[, zone])", meaning, _part(f"CAST({template} AS {type_name(kind)})"), kind, arity=(1, 2), aliases=aliases)

    part("to_year", "the year", "year({0})", pa.uint16(), "year")
    part("to_quarter", "the quarter, 1 to 4", "quarter({0})", pa.uint8(), "quarter")
    part("to_month", "the month, 1 to 12", "month({0})", pa.uint8(), "month")
    part("to_day_of_month", "the day of the month", "day({0})", pa.uint8(), "day day_of_month")
    part("to_day_of_week", "the day of the week, Monday is 1", "isodow({0})", pa.uint8(), "day_of_week")
    part("to_day_of_year", "the day of the year", "dayofyear({0})", pa.uint16(), "day_of_year")
    part("to_iso_week", "the ISO week", "weekofyear({0})", pa.uint8())
    part("to_iso_year", "the year of the ISO week", "isoyear({0})", pa.uint16())
    part("to_hour", "the hour", "hour({0})", pa.uint8(), "hour")
    part("to_minute", "the minute", "minute({0})", pa.uint8(), "minute")
    part("to_second", "the second", "second({0})", pa.uint8(), "second")
    part("to_millisecond", "the millisecond", "millisecond({0}) % 1000", pa.uint16(), "millisecond")
    part("to_YYYYMM", "the month as a number", "year({0}) * 100 + month({0})", pa.uint32(), "to_yyyymm")
    part("to_YYYYMMDD", "the day as a number", "year({0}) * 10000 + month({0}) * 100 + day({0})", pa.uint32(), "to_yyyymmdd")
    part("to_YYYYMMDDhhmmss", "the second as a number", "CAST(strftime({0}, '%Y%m%d%H%M%S') AS BIGINT)", pa.uint64(), "to_yyyymmddhhmmss")
    part("to_relative_day_num", "the days since the epoch", "date_diff('day', TIMESTAMP '1970-01-01 00:00:00', {0})", pa.uint32())
    for unit in ("second", "minute", "hour", "day"):
        add(f"to_start_of_{unit}(time[, zone])", f"the beginning of its {unit}", _beginning(f"date_trunc('{unit}', {{0}})", date=False), arity=(1, 2))
    for unit in ("month", "quarter", "year"):
        add(f"to_start_of_{unit}(time[, zone])", f"the first day of its {unit}", _beginning(f"date_trunc('{unit}', {{0}})", date=True), pa.date32(), arity=(1, 2))
    add("to_start_of_week(time[, mode])", "the Sunday of its week; with mode 1 the Monday", _week, pa.date32(), arity=(1, 3))
    add("to_monday(time[, zone])", "the Monday of its week", _beginning("date_trunc('week', {0})", date=True), pa.date32(), arity=(1, 2))
    add("to_start_of_iso_year(time[, zone])", "the first day of its ISO year", _beginning("date_trunc('week', make_timestamp(isoyear({0}), 1, 4, 0, 0, 0.0))", date=True), pa.date32(), arity=(1, 2))
    add("to_last_day_of_month(time[, zone])", "the last day of its month", _beginning("last_day({0})", date=True), pa.date32(), arity=(1, 2))
    for minutes, name in ((5, "five"), (10, "ten"), (15, "fifteen")):
        add(f"to_start_of_{name}_minutes(time[, zone])", f"the beginning of its {minutes} minutes", _beginning(f"time_bucket(INTERVAL {minutes} MINUTE, {{0}}, TIMESTAMP '1970-01-01 00:00:00')", date=False), arity=(1, 2))
    add("to_start_of_interval(time, interval[, zone])", "the beginning of its period", _of_interval, arity=(2, 3))
    add("date_trunc(unit, time[, zone])", "the beginning of its unit", _date_trunc, arity=(2, 3))
    for unit in _UNITS:
        if unit == "nanosecond":
            continue
        add(f"add_{unit}s(time, n)", f"n {unit}s later", _moving(unit, "+"), arity=(2, 2))
        add(f"subtract_{unit}s(time, n)", f"n {unit}s earlier", _moving(unit, "-"), arity=(2, 2))
    add("date_add(unit, n, time)", "n units later; also date_add(time, interval)", _date_add("+"), arity=(2, 3), aliases="timestamp_add")
    add("date_sub(unit, n, time)", "n units earlier; also date_sub(time, interval)", _date_add("-"), arity=(2, 3), aliases="timestamp_sub")
    add("date_diff(unit, from, to[, zone])", "how many borders of the unit lie between", _difference, pa.int64(), arity=(3, 4))
    add("age(unit, from, to[, zone])", "how many whole units lie between", _age, pa.int64(), arity=(3, 4))
    add("format_datetime(time, format[, zone])", "as a text, by signs such as %Y-%m-%d %H:%i:%s", _format, pa.string(), arity=(2, 3))
    add("parse_datetime(text, format[, zone])", "the time that a text of this form says; NULL where it does not fit", _parsed, arity=(2, 3))
    add("month_name(time)", "the name of its month", _part("monthname({0})"), pa.string(), arity=(1, 1))
    add("day_name(time)", "the name of its day", _part("dayname({0})"), pa.string(), arity=(1, 1))
    add("to_timezone(time, zone)", "the same time: a column here keeps no zone", "{0}", arity=(2, 2))
    add("to_unix_timestamp(time[, zone])", "the seconds since the epoch", _epoch("CAST(floor(epoch({0})) AS BIGINT)"), pa.int64(), arity=(1, 2))
    add("to_unix_timestamp64_milli(time)", "the milliseconds since the epoch", _epoch("epoch_ms({0})"), pa.int64(), arity=(1, 1))
    add("to_unix_timestamp64_micro(time)", "the microseconds since the epoch", _epoch("epoch_us({0})"), pa.int64(), arity=(1, 1))
    add("to_unix_timestamp64_nano(time)", "the nanoseconds since the epoch", _epoch("1000 * epoch_us({0})"), pa.int64(), arity=(1, 1))
    add("from_unix_timestamp(seconds)", "the time so many seconds after the epoch", "to_timestamp({0})")
    add("from_unix_timestamp64_milli(n)", "the time so many milliseconds after the epoch", _from_epoch(1000), arity=(1, 2))
    add("from_unix_timestamp64_micro(n)", "the time so many microseconds after the epoch", _from_epoch(1_000_000), arity=(1, 2))
    add("make_date(year, month, day)", "a date of its parts", "make_date({0}, {1}, {2})", pa.date32())
    add("make_datetime(year, month, day, hour, minute, second)", "a time of its parts", "timezone('UTC', make_timestamp({0}, {1}, {2}, {3}, {4}, CAST({5} AS DOUBLE)))")
    add("earliest_ts()", "the epoch", "TIMESTAMPTZ '1970-01-01 00:00:00+00'", aliases="earliest_timestamp")


def _week(arguments: Sequence[Typed]) -> exp.Expr:
    mode = arguments[1].literal if len(arguments) > 1 else 0
    time = local([arguments[0], *arguments[2:]])
    if mode == 1:
        return filled("CAST(date_trunc('week', {0}) AS DATE)", [time])
    return filled("CAST(date_trunc('week', {0} + INTERVAL 1 DAY) AS DATE) - 1", [time])
