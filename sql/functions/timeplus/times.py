"""Times and dates: their parts, the beginnings of periods, their texts.

A time zone is the last argument; without one it is the zone that the time was put into,
``to_timezone(t, 'Asia/Tokyo')``, else UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.arguments import written_text
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.conversions import UTC, expect_read, in_zone, instant, zone_of
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.functions.zones import named_zone

_FINE = ("nanosecond", "microsecond", "millisecond", "second")
"""Units whose beginnings are as fine as the time; those of longer ones have no digits of seconds."""
DAYS = ("day", "week", "month", "quarter", "year")
"""Units of whole days: a date moved by them is a date."""
UNITS = (*_FINE, "minute", "hour", *DAYS)
_SHORT = {
    "ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second", "ss": "second", "mi": "minute",
    "n": "minute", "m": "minute", "hh": "hour", "h": "hour", "dd": "day", "d": "day", "ww": "week", "wk": "week",
    "mm": "month", "qq": "quarter", "q": "quarter", "yy": "year", "yyyy": "year",
}  # fmt: skip
_BEFORE_EPOCH = "what begins before 1970 does so, where ClickHouse says 1970-01-01"


def unit_of(name: str) -> str:
    """``'day'``, ``'days'`` and ``'dd'`` are ``day``."""
    folded = name.lower()
    found = _SHORT.get(folded, folded.removesuffix("s") if folded.removesuffix("s") in UNITS else folded)
    if found not in UNITS:
        raise Unfit(f"takes a unit ({', '.join(UNITS)}), not '{name}'", fix="INTERVAL 1 DAY")
    return found


def unit_at(value: Typed) -> str:
    return unit_of(written_text(value, "its unit"))


def local(arguments: Sequence[Typed], position: int = 1) -> exp.Expr:
    """The time as clocks of its zone show it; a date is itself."""
    value = arguments[0]
    zone = zone_of(arguments, position)
    if isinstance(value.literal, str):
        expect_read(value, instant(value, zone))
        return filled("timezone({1}, {0})", [instant(value, zone), zone])
    if value.is_date:
        return filled("CAST({0} AS TIMESTAMP)", [value.tree])
    if not value.is_instant:
        read = ": to_datetime64(x, 3) reads one" if value.is_text else ""
        raise Unfit(f"takes a time or a date, not a {value.family}{read}")
    return filled("timezone({1}, {0})", [value.tree, zone])


# Parts


def _local(template: str) -> Build:
    return lambda arguments: filled(template, [local(arguments)])


def _part(name: str, meaning: str, template: str, kind: pa.DataType, also: str = "") -> Row:
    return Row(f"{name}(time[, zone])", meaning, _local(f"CAST({template} AS {type_name(kind)})"), kind, also=also)


def _day_of_week(arguments: Sequence[Typed]) -> exp.Expr:
    """Mode 0: Monday is 1; 1: Monday is 0; 2: Sunday is 0; 3: Sunday is 1."""
    modes = {0: "isodow({0})", 1: "isodow({0}) - 1", 2: "dayofweek({0})", 3: "dayofweek({0}) + 1"}
    mode = arguments[1].literal if len(arguments) > 1 else 0
    if mode not in modes:
        raise Unfit("takes a mode from 0 to 3, written out")
    return filled(modes[int(mode)], [local(arguments, 2)])


def _epoch(template: str) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        value = arguments[0]
        if value.is_text or value.is_date:
            value = value.of(instant(value, zone_of(arguments, 1)))
        return filled(template, [value.tree])

    return build


# Beginnings


def beginning(arguments: Sequence[Typed], start: exp.Expr, *, date: bool, unit: str | None = None) -> Typed:
    """A local time as a date, or as a time of the zone that is the second argument; ``unit`` as in ``in_zone``."""
    value = arguments[0]
    if date:
        return value.of(filled("CAST({0} AS DATE)", [start]), pa.date32())
    return in_zone(value, filled("timezone({1}, {0})", [start, zone_of(arguments, 1)]), arguments[1:], unit)


def _beginning(template: str, *, date: bool, unit: str | None = "s") -> Build:
    return lambda arguments: beginning(arguments, filled(template, [local(arguments)]), date=date, unit=unit)


def _of_unit(unit: str) -> Row:
    build = _beginning(f"date_trunc('{unit}', {{0}})", date=False, unit=None if unit in _FINE else "s")
    return Row(f"to_start_of_{unit}(time[, zone])", f"the beginning of its {unit}", build)


def _bucket(minutes: int) -> Build:
    template = f"time_bucket(INTERVAL {minutes} MINUTE, {{0}}, TIMESTAMP '1970-01-01 00:00:00')"
    return _beginning(template, date=False)


def _of_days(name: str, meaning: str, template: str, also: str = "") -> Row:
    return Row(f"{name}(time[, zone])", meaning, _beginning(template, date=True), also=also, differs=_BEFORE_EPOCH)


def _week(template: str) -> Build:
    """From Sunday; with an odd mode from Monday."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        mode = arguments[1].literal if len(arguments) > 1 else 0
        if not isinstance(mode, int):
            raise Unfit("takes a mode as a number that is written out")
        time = local(arguments, 2)
        monday = "CAST(date_trunc('week', {0}) AS DATE)"
        sunday = "CAST(date_trunc('week', {0} + INTERVAL 1 DAY) AS DATE) - 1"
        return filled(template, [filled(monday if mode % 2 else sunday, [time])])

    return build


def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit = unit_at(arguments[0])
    rest = arguments[1:]
    date = unit in DAYS and not (unit == "day" and rest[0].is_instant)
    start = filled(f"date_trunc('{unit}', {{0}})", [local(rest)])
    return beginning(rest, start, date=date, unit=None if unit in _FINE else "s")


# Texts

_MYSQL: Mapping[str, str] = {
    "Y": "%Y", "y": "%y", "m": "%m", "d": "%d", "H": "%H", "h": "%I", "I": "%I", "i": "%M", "M": "%B", "s": "%S",
    "S": "%S", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "j": "%j", "a": "%a", "b": "%b",
    "W": "%A", "p": "%p", "u": "%u", "w": "%w", "V": "%V", "G": "%G", "f": "%f", "%": "%%", "e": "%-d", "k": "%H",
    "l": "%I", "c": "%m", "n": "\n", "t": "\t", "r": "%I:%M %p", "g": "%g",
}  # fmt: skip
"""Signs of a format in ClickHouse, which are MySQL's, as those of the engine."""
_COMPUTED: Mapping[str, str] = {
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "C": "lpad(CAST(year({0}) // 100 AS VARCHAR), 2, '0')",
}
"""Signs that the engine has not."""


def _signs(pattern: str) -> list[str]:
    """``'%Y-%m'`` is ``%Y``, ``-``, ``%m``."""
    return re.findall("%.|.", pattern, re.DOTALL)


def _format(arguments: Sequence[Typed]) -> exp.Expr:
    time = local([arguments[0], *arguments[2:]])
    parts: list[exp.Expr] = []
    run = ""
    for sign in _signs(written_text(arguments[1], "its format")):
        if sign[1:] not in _COMPUTED or not sign.startswith("%"):
            run += _engine_sign(sign)
            continue
        parts += [_formatted(time, run)] if run else []
        parts.append(filled(_COMPUTED[sign[1:]], [time]))
        run = ""
    if run or not parts:
        parts.append(_formatted(time, run))
    return filled(" || ".join(f"{{{place}}}" for place in range(len(parts))), parts)


def _formatted(time: exp.Expr, pattern: str) -> exp.Expr:
    return filled("strftime({0}, {1})", [time, exp.Literal.string(pattern)])


def _engine_sign(sign: str) -> str:
    if not sign.startswith("%"):
        return sign
    if sign[1:] not in _MYSQL:
        known = " ".join(f"%{one}" for one in (*_MYSQL, *_COMPUTED))
        raise Unfit(f"does not know {sign}; it knows {known}")
    return _MYSQL[sign[1:]]


def _parsed(arguments: Sequence[Typed]) -> Typed:
    pattern = "".join(map(_engine_sign, _signs(written_text(arguments[1], "its format"))))
    tree = filled(
        "timezone({2}, try_strptime({0}, {1}))",
        [arguments[0].tree, exp.Literal.string(pattern), zone_of(arguments, 2)],
    )
    return in_zone(arguments[0], tree, arguments[2:], "us" if "%f" in pattern or "%g" in pattern else "s")


def _parsed_or_zero(arguments: Sequence[Typed]) -> exp.Expr:
    zero = "TIMESTAMPTZ '1970-01-01 00:00:00+00'"
    template = f"CASE WHEN {{0}} IS NOT NULL THEN coalesce({{1}}, {zero}) END"
    return filled(template, [arguments[0].tree, _parsed(arguments).tree])


_NAMED = {"year": "%Y", "month": "%B", "weekday": "%A", "day": "%-d", "hour": "%-H", "minute": "%-M", "second": "%-S"}


def _date_name(arguments: Sequence[Typed]) -> exp.Expr:
    part = str(arguments[0].literal).lower()
    if part not in _NAMED:
        raise Unfit(f"takes a part ({', '.join(_NAMED)}), written out as a text")
    return _formatted(local(arguments[1:]), _NAMED[part])


# From parts and numbers


def _from_epoch(per_second: int) -> Build:
    micros = (
        "CAST({0} AS BIGINT) // 1000"
        if per_second > 1_000_000
        else f"CAST({{0}} AS BIGINT) * {1_000_000 // per_second}"
    )

    def build(arguments: Sequence[Typed]) -> Typed:
        time = filled(f"make_timestamptz({micros})", [arguments[0].tree])
        return in_zone(arguments[0], time, arguments[1:], {1: "s", 1_000: "ms"}.get(per_second, "us"))

    return build


def _from_unix(arguments: Sequence[Typed]) -> exp.Expr | Typed:
    """With a format, a text."""
    time = _from_epoch(1)(arguments[:1])
    assert isinstance(time, Typed)
    return _format([time, *arguments[1:]]) if len(arguments) > 1 else time


def _make_time(arguments: Sequence[Typed]) -> Typed:
    parts, zones = arguments[:6], arguments[6:]
    time = "make_timestamp({0}, {1}, {2}, {3}, {4}, CAST({5} AS DOUBLE))"
    tree = filled(f"timezone({{6}}, {time})", [*(one.tree for one in parts), named_zone(zones[0]) if zones else UTC])
    return in_zone(arguments[0], tree, zones, "s" if parts[5].is_integer else "us")


_TEXT = pa.string()
_SECONDS = "CAST(floor(epoch({0})) AS BIGINT)"
_MILLIS = "(epoch_us({0}) - (epoch_us({0}) % 1000 + 1000) % 1000) // 1000"
_SAID = "the time that a text of this form says"
_DATES = ("make_date({0}, 1, 1) + CAST({1} AS INTEGER) - 1", "make_date({0}, {1}, {2})")

FUNCTIONS: Table = (
    _part("to_year", "the year", "year({0})", pa.uint16(), "year"),
    _part("to_quarter", "the quarter, 1 to 4", "quarter({0})", pa.uint8(), "quarter"),
    _part("to_month", "the month, 1 to 12", "month({0})", pa.uint8(), "month"),
    _part("to_day_of_month", "the day of the month", "day({0})", pa.uint8(), "day day_of_month"),
    _part("to_day_of_year", "the day of the year", "dayofyear({0})", pa.uint16(), "day_of_year"),
    _part("to_iso_week", "the ISO week", "weekofyear({0})", pa.uint8()),
    _part("to_iso_year", "the year of the ISO week", "isoyear({0})", pa.uint16()),
    _part("to_hour", "the hour", "hour({0})", pa.uint8(), "hour"),
    _part("to_minute", "the minute", "minute({0})", pa.uint8(), "minute"),
    _part("to_second", "the second", "second({0})", pa.uint8(), "second"),
    _part("to_millisecond", "the millisecond", "millisecond({0}) % 1000", pa.uint16(), "millisecond"),
    _part("to_yyyymm", "the month as a number: toYYYYMM", "year({0}) * 100 + month({0})", pa.uint32()),
    _part("to_yyyymmdd", "the day as a number: toYYYYMMDD", "year({0}) * 10000 + month({0}) * 100 + day({0})",
          pa.uint32()),
    _part("to_yyyymmddhhmmss", "the second as a number: toYYYYMMDDhhmmss",
          "CAST(strftime({0}, '%Y%m%d%H%M%S') AS BIGINT)", pa.uint64()),
    _part("to_relative_year_num", "the year", "year({0})", pa.uint32()),
    _part("to_relative_month_num", "the months since the year 0", "year({0}) * 12 + month({0})", pa.uint32()),
    _part("to_relative_day_num", "the days since the epoch", "floor(epoch({0}) / 86400)", pa.uint32()),
    _part("to_relative_hour_num", "the hours since the epoch", "floor(epoch({0}) / 3600)", pa.uint32()),
    _part("to_relative_minute_num", "the minutes since the epoch", "floor(epoch({0}) / 60)", pa.uint32()),
    _part("to_relative_second_num", "the seconds since the epoch", "floor(epoch({0}))", pa.uint32()),
    Row("to_day_of_week(time[, mode[, zone]])", "the day of the week: by mode 0 Monday is 1, by 3 Sunday is 1",
        _day_of_week, pa.uint8(), also="day_of_week"),
    Row("to_unix_timestamp(time[, zone])", "the seconds since the epoch", _epoch(_SECONDS), pa.int64()),
    Row("to_unix_timestamp64_second(time)", "the seconds since the epoch", _epoch(_SECONDS), pa.int64(), arity=(1, 2)),
    Row("to_unix_timestamp64_milli(time)", "the milliseconds since the epoch", _epoch(_MILLIS), pa.int64(),
        arity=(1, 2)),
    Row("to_unix_timestamp64_micro(time)", "the microseconds since the epoch", _epoch("epoch_us({0})"), pa.int64(),
        arity=(1, 2)),
    Row("to_unix_timestamp64_nano(time)", "the nanoseconds since the epoch", _epoch("1000 * epoch_us({0})"),
        pa.int64(), arity=(1, 2)),
    *map(_of_unit, ("millisecond", "second", "minute", "hour", "day")),
    Row("to_start_of_five_minutes(time[, zone])", "the beginning of its five minutes", _bucket(5),
        also="to_start_of_five_minute"),
    Row("to_start_of_ten_minutes(time[, zone])", "the beginning of its ten minutes", _bucket(10),
        also="to_start_of_ten_minute"),
    Row("to_start_of_fifteen_minutes(time[, zone])", "the beginning of its fifteen minutes", _bucket(15),
        also="to_start_of_fifteen_minute"),
    _of_days("to_start_of_month", "the first day of its month", "date_trunc('month', {0})"),
    _of_days("to_start_of_quarter", "the first day of its quarter", "date_trunc('quarter', {0})"),
    _of_days("to_start_of_year", "the first day of its year", "date_trunc('year', {0})"),
    _of_days("to_monday", "the Monday of its week", "date_trunc('week', {0})"),
    _of_days("to_start_of_iso_year", "the first day of its ISO year",
             "date_trunc('week', make_timestamp(isoyear({0}), 1, 4, 0, 0, 0.0))"),
    _of_days("to_last_day_of_month", "the last day of its month", "last_day({0})", "last_day"),
    Row("to_start_of_week(time[, mode[, zone]])", "the Sunday of its week; by mode 1 the Monday", _week("{0}"),
        pa.date32(), differs=_BEFORE_EPOCH),
    Row("to_last_day_of_week(time[, mode[, zone]])", "the Saturday of its week; by mode 1 the Sunday",
        _week("({0} + 6)"), pa.date32(), differs=_BEFORE_EPOCH),
    Row("date_trunc(unit, time[, zone])", "the beginning of its unit", _date_trunc, differs=_BEFORE_EPOCH),
    Row("time_slot(time[, zone])", "the beginning of its half hour", _bucket(30)),
    Row("format_datetime(time, format[, zone])", "as a text, by signs such as %Y-%m-%d %H:%i:%s", _format, _TEXT,
        also="date_format"),
    Row("date_name(part, time[, zone])", "the name of its month, weekday, ..", _date_name, _TEXT),
    Row("month_name(time)", "the name of its month", _local("monthname({0})"), _TEXT),
    Row("day_name(time)", "the name of its day", _local("dayname({0})"), _TEXT),
    Row("parse_datetime(text, format[, zone])", _SAID, _parsed, also="parse_datetime_or_null",
        differs="NULL where it does not fit, where parseDateTime stops the query"),
    Row("parse_datetime_or_zero(text, format[, zone])", f"{_SAID}, or the epoch", _parsed_or_zero),
    Row("to_timezone(time, zone)",
        "the same time, its parts and texts in this zone; as a column it is an instant, shown in UTC: "
        "`format_datetime(t, .., zone)`",
        lambda given: in_zone(given[0], given[0].tree, given[1:])),
    Row("from_unix_timestamp(n[, format])", "the time so many seconds after the epoch, or its text", _from_unix,
        takes="number any"),
    Row("from_unix_timestamp64_second(n[, zone])", "the time so many seconds after the epoch", _from_epoch(1),
        takes="number any"),
    Row("from_unix_timestamp64_milli(n[, zone])", "the time so many milliseconds after the epoch", _from_epoch(1000),
        takes="number any"),
    Row("from_unix_timestamp64_micro(n[, zone])", "the time so many microseconds after the epoch",
        _from_epoch(1_000_000), takes="number any"),
    Row("from_unix_timestamp64_nano(n[, zone])", "the time so many nanoseconds after the epoch",
        _from_epoch(1_000_000_000), takes="number any"),
    Row("make_date(year, month, day)", "a date of its parts; also of a year and its day", _DATES, pa.date32(),
        also="make_date32", arity=(2, 3), takes="number"),
    Row("make_datetime(year, month, day, hour, minute, second[, zone])", "a time of its parts", _make_time),
    Row("earliest_ts()", "the epoch", "TIMESTAMPTZ '1970-01-01 00:00:00+00'", also="earliest_timestamp"),
)  # fmt: skip
