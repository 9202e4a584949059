"""Times: their parts, the beginnings of periods, time zones, times made of numbers and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.arguments import written_text
from dovetail.sql.functions.registry import Row, Table, Unfit
from dovetail.sql.functions.risingwave import formats
from dovetail.sql.functions.risingwave.signatures import argument, zone_argument
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    CLOCK,
    DATE,
    DOUBLE,
    INSTANT,
    INTERVAL,
    LOCAL,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    numeric,
    quoted,
    typed,
)
from dovetail.sql.functions.typed import Typed, filled

_WHOLE = numeric(19, 0)
_MICRO = numeric(25, 6)
_OF_SECOND = "CAST({0} AS DECIMAL(19, 0)) * CAST('0.000001' AS DECIMAL(6, 6))"


def _clock(value: Typed) -> Typed:
    """As the clocks of UTC show it; a text in quotes is a time."""
    if is_unknown(value):
        value = cast(value, LOCAL)
    kind = kind_of(value)
    if kind not in (DATE, LOCAL, INSTANT):
        raise Unfit(f"takes a time or a date, not {name_of(kind)}")
    return cast(value, LOCAL)


_PARTS: Mapping[str, str] = {
    "century": "CASE WHEN year({0}) > 0 THEN (year({0}) + 99) // 100 ELSE -((99 - (year({0}) - 1)) // 100) END",
    "day": "day({0})",
    "decade": "CASE WHEN year({0}) >= 0 THEN year({0}) // 10 ELSE -((8 - (year({0}) - 1)) // 10) END",
    "dow": "dayofweek({0})", "doy": "dayofyear({0})", "hour": "hour({0})", "isodow": "isodow({0})",
    "isoyear": "CASE WHEN isoyear({0}) > 0 THEN isoyear({0}) ELSE isoyear({0}) - 1 END",
    "microseconds": "microsecond({0})",
    "millennium": "CASE WHEN year({0}) > 0 THEN (year({0}) + 999) // 1000 ELSE -((999 - (year({0}) - 1)) // 1000) END",
    "minute": "minute({0})", "month": "month({0})", "quarter": "quarter({0})", "week": "week({0})",
    "year": "CASE WHEN year({0}) > 0 THEN year({0}) ELSE year({0}) - 1 END",
}  # fmt: skip
_FRACTIONS: Mapping[str, tuple[str, pa.DataType]] = {
    "epoch": (_OF_SECOND.replace("{0}", "epoch_us({0})"), _MICRO),
    "second": (_OF_SECOND.replace("{0}", "microsecond({0})"), _MICRO),
    "milliseconds": ("CAST(microsecond({0}) AS DECIMAL(19, 0)) * CAST('0.001' AS DECIMAL(3, 3))", numeric(22, 3)),
}
_INTERVAL_PARTS: Mapping[str, str] = {
    "year": "year({0})", "month": "month({0})", "day": "day({0})", "hour": "hour({0})", "minute": "minute({0})",
    "quarter": "month({0}) // 3 + 1", "decade": "year({0}) // 10", "century": "year({0}) // 100",
    "millennium": "year({0}) // 1000", "microseconds": "microsecond({0})",
}  # fmt: skip
_INTERVAL_EPOCH = (
    "CAST((CAST(month({0}) + 12 * year({0}) AS BIGINT) // 12) * 31557600 + (CAST(month({0}) + 12 * "
    "year({0}) AS BIGINT) % 12) * 2592000 "
    "+ CAST(day({0}) AS BIGINT) * 86400 AS DECIMAL(19, 0)) + CAST(hour({0}) * 3600000000 + "
    "minute({0}) * 60000000 + microsecond({0}) AS DECIMAL(19, 0)) "
    "* CAST('0.000001' AS DECIMAL(6, 6))"
)
_NOT_OF_DATES = ("hour", "minute", "second", "microseconds", "milliseconds")
_SINGULAR = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "decades": "decade", "centuries": "century", "millennia": "millennium",
    "microsecond": "microseconds", "millisecond": "milliseconds", "us": "microseconds", "ms": "milliseconds",
    "s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mon": "month", "y": "year",
    "millenniums": "millennium",
}  # fmt: skip


def _field(value: Typed) -> str:
    name = written_text(value, "its field").lower()
    return _SINGULAR.get(name, name)


def part(field: str, value: Typed) -> Typed:
    """``EXTRACT(field FROM value)``, a numeric."""
    kind = kind_of(value)
    if kind == INTERVAL:
        return _interval_part(field, value)
    if kind == CLOCK:
        value = typed(
            value,
            "TIMESTAMP '1970-01-01' + to_microseconds(date_diff('microsecond', TIME '00:00:00', {0}))",
            [value.tree],
            LOCAL,
        )
    if kind == DATE and field in _NOT_OF_DATES:
        raise Unfit(f"finds no {field} in a date")
    if field == "epoch" and kind == DATE:
        days = "CAST(date_diff('day', DATE '1970-01-01', {0}) AS DECIMAL(19, 0))"
        return typed(value, f"CAST({days} * 86400 AS DECIMAL(19, 0))", [value.tree], _WHOLE)
    # Most dates have no time: there are more years of them.
    local = value if kind == DATE else _clock(value)
    if field in _FRACTIONS:
        template, result = _FRACTIONS[field]
        return typed(value, f"CAST({template} AS {engine_name(result)})", [local.tree], result)
    if field not in _PARTS:
        raise Unfit(f"takes a field ({', '.join([*_PARTS, *_FRACTIONS])}), not '{field}'")
    return typed(value, f"CAST({_PARTS[field]} AS DECIMAL(19, 0))", [local.tree], _WHOLE)


def _interval_part(field: str, value: Typed) -> Typed:
    if field == "epoch":
        return typed(value, f"CAST({_INTERVAL_EPOCH} AS {engine_name(_MICRO)})", [value.tree], _MICRO)
    if field in _FRACTIONS:
        template, result = _FRACTIONS[field]
        return typed(value, f"CAST({template} AS {engine_name(result)})", [value.tree], result)
    if field not in _INTERVAL_PARTS:
        raise Unfit(f"takes a field ({', '.join([*_INTERVAL_PARTS, *_FRACTIONS])}) of an interval, not '{field}'")
    return typed(value, f"CAST({_INTERVAL_PARTS[field]} AS DECIMAL(19, 0))", [value.tree], _WHOLE)


def _extract(given: Sequence[Typed]) -> Typed:
    return part(_field(given[0]), given[1])


def _date_part(given: Sequence[Typed]) -> Typed:
    return cast(_extract(given), DOUBLE)


_UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_WITHIN_AN_HOUR = _UNITS[:5]
_LONG = {"century": 100, "millennium": 1000}
_DECADE = "make_timestamp(CAST(floor(year({0}) / 10.0) * 10 AS BIGINT), 1, 1, 0, 0, 0)"
"""The engine rounds the years before Christ up."""


def _beginning(field: str) -> str:
    if field in _LONG:
        # The first year of a century is 1, 101, .., 2001.
        years = _LONG[field]
        first = (
            f"CASE WHEN year({{0}}) > 0 THEN (year({{0}}) - 1) // {years} * {years} + 1 "
            f"ELSE -(({years} - year({{0}})) // {years}) * {years} + 1 END"
        )
        return f"make_timestamp(CAST({first} AS BIGINT), 1, 1, 0, 0, 0)"
    if field == "decade":
        return _DECADE
    if field not in _UNITS:
        raise Unfit(f"takes a unit ({', '.join([*_UNITS, 'decade', *_LONG])}), not '{field}'")
    return f"CAST(date_trunc('{field}', {{0}}) AS TIMESTAMP)"


def _date_trunc(given: Sequence[Typed]) -> Typed:
    """The beginning of a period; with a zone, of a period of that zone. A date is a time of UTC."""
    if given[0].literal is None and not given[0].is_null:
        return _of_any_field(given)
    field, value = _field(given[0]), given[1]
    kind = kind_of(value)
    if kind == CLOCK:
        kind, value = INTERVAL, cast(value, INTERVAL)
    if kind == INTERVAL:
        if field == "week" or field not in (*_UNITS, "decade", *_LONG):
            raise Unfit(f"takes no {field} of an interval")
        return typed(value, f"date_trunc('{field}', {{0}})", [value.tree], INTERVAL)
    if len(given) == 3:
        zone = zone_argument(given[2])
        instant = argument(value, "instant")
        local = typed(value, "timezone({1}, {0})", [instant.tree, zone], LOCAL)
        if field in _WITHIN_AN_HOUR:
            # An hour that a clock has twice begins twice: the offset stays that of the time itself.
            start = filled(f"{{1}} - ({{0}} - {_beginning(field)})", [local.tree, instant.tree])
            return typed(value, "{0}", [start], INSTANT)
        start = filled(_beginning(field), [local.tree])
        return typed(value, "timezone({1}, {0})", [start, zone], INSTANT)
    start = filled(_beginning(field), [_clock(value).tree])
    if kind == LOCAL:
        return value.of(start, LOCAL)
    return typed(value, "timezone('UTC', {0})", [start], INSTANT)


def _of_any_field(given: Sequence[Typed]) -> Typed:
    """By a field that each row tells."""
    told = argument(given[0], "text")
    fields = [*_UNITS, "decade", *_LONG]
    if kind_of(given[1]) in (INTERVAL, CLOCK):
        fields.remove("week")
    choices = [_date_trunc([Typed(quoted(field), told.ask, TEXT, field), *given[1:]]) for field in fields]
    names = {name: fields.index(field) for name, field in _SINGULAR.items() if field in fields}
    places = {**names, **{field: place for place, field in enumerate(fields)}}
    branches = " ".join(f"WHEN '{name}' THEN {{{place + 1}}}" for name, place in places.items())
    trees = [told.tree, *(one.tree for one in choices)]
    return typed(told, f"CASE lower({{0}}) {branches} END", trees, kind_of(choices[0]))


def _timezone(given: Sequence[Typed]) -> Typed:
    """``time AT TIME ZONE zone``: a time of that zone becomes an instant, an instant the time that its clocks show."""
    value = given[1]
    if is_unknown(value) or kind_of(value) == DATE:
        value = cast(value, INSTANT)
    kind = kind_of(value)
    if kind not in (LOCAL, INSTANT):
        raise Unfit(f"takes a time, not {name_of(kind)}")
    return typed(
        value, "timezone({0}, {1})", [zone_argument(given[0]), value.tree], INSTANT if kind == LOCAL else LOCAL
    )


_TO_2000 = 946684800


def _to_timestamp(given: Sequence[Typed]) -> Typed:
    """Seconds since 1970, or a text by a format."""
    if len(given) == 1:
        seconds = argument(given[0], "double")
        # Rounded as a number of seconds since 2000, of which PostgreSQL counts.
        micros = f"CAST(round_even(({{0}} - {_TO_2000}) * 1000000, 0) AS BIGINT) + {_TO_2000}000000"
        template = f"make_timestamptz(CASE WHEN {{0}} BETWEEN -210866803200 AND 9224318015999 THEN {micros} END)"
        return typed(seconds, template, [seconds.tree], INSTANT)
    text, form = argument(given[0], "text"), formats.reading(written_text(given[1], "its format"))
    template = "strptime({0}, {1})" if formats.reads_zone(form) else "timezone('UTC', strptime({0}, {1}))"
    return typed(text, template, [text.tree, exp.Literal.string(form)], INSTANT)


def _to_date(given: Sequence[Typed]) -> Typed:
    text, form = argument(given[0], "text"), formats.reading(written_text(given[1], "its format"))
    return typed(text, "CAST(strptime({0}, {1}) AS DATE)", [text.tree, exp.Literal.string(form)], DATE)


def _to_char(given: Sequence[Typed]) -> Typed:
    value = given[0]
    if kind_of(value) in (INTERVAL, CLOCK) and not is_unknown(value):
        form = written_text(given[1], "its format")
        return value.of(formats.of_interval(cast(value, INTERVAL).tree, form), TEXT)
    return _clock(value).of(formats.written(_clock(value).tree, written_text(given[1], "its format")), TEXT)


def _age(given: Sequence[Typed]) -> Typed:
    """Years, months, days and time from the second to the first."""
    later, earlier = (_clock(value).tree for value in given)
    return typed(given[0], "age({0}, {1})", [later, earlier], INTERVAL)


def _date_bin(given: Sequence[Typed]) -> Typed:
    """The beginning of the interval of that length, counted from the origin."""
    width = argument(given[0], "interval")
    value, origin = _clock(given[1]), _clock(given[2])
    kind = kind_of(given[1]) if kind_of(given[1]) == LOCAL else INSTANT
    template = (
        "make_timestamp(epoch_us({2}) + CAST(floor(CAST(epoch_us({1}) - epoch_us({2}) AS DOUBLE) / "
        "epoch_us({0})) AS BIGINT) * epoch_us({0}))"
    )
    start = filled(
        f"CASE WHEN epoch_us({{0}}) > 0 AND datepart('month', {{0}}) = 0 AND datepart('year', {{0}}) = "
        f"0 THEN {template} END",
        [width.tree, value.tree, origin.tree],
    )
    return cast(value.of(start, LOCAL), kind)


_LENGTHS = (
    *("to_months(12 * {0})", "to_months({0})", "to_days(7 * {0})", "to_days({0})", "to_hours({0})", "to_minutes({0})"),
    "to_microseconds(CAST(round({0} * 1000000) AS BIGINT))",
)


def _interval_of(given: Sequence[Typed]) -> Typed:
    """years, months, weeks, days, hours, minutes, seconds"""
    parts = [filled(template, [value.tree]) for template, value in zip(_LENGTHS, given, strict=False)]
    return typed(given[0], " + ".join(f"{{{index}}}" for index in range(len(parts))), parts, INTERVAL)


_MONTHS = "CAST(12 * year({0}) + month({0}) AS BIGINT)"
_TIME = "(hour({0}) * 3600000000 + minute({0}) * 60000000 + microsecond({0}))"


def _carried(large: exp.Expr, small: exp.Expr, size: int) -> tuple[exp.Expr, exp.Expr]:
    """The large units that the small ones make are theirs, and both have one sign."""
    whole = filled(f"{{0}} + {{1}} // {size}", [large, small])
    rest = filled(f"{{0}} % {size}", [small])
    shift = filled("CASE WHEN {0} > 0 AND {1} < 0 THEN 1 WHEN {0} < 0 AND {1} > 0 THEN -1 ELSE 0 END", [whole, rest])
    return filled("{0} - {1}", [whole, shift]), filled(f"{{0}} + {size} * {{1}}", [rest, shift])


def _of_parts(value: Typed, months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> Typed:
    template = "to_months(CAST({0} AS INTEGER)) + to_days(CAST({1} AS INTEGER)) + to_microseconds({2})"
    return typed(value, template, [months, days, micros], INTERVAL)


def _parts(value: Typed) -> list[exp.Expr]:
    return [filled(template, [value.tree]) for template in (_MONTHS, "CAST(day({0}) AS BIGINT)", _TIME)]


def _justify_hours(given: Sequence[Typed]) -> Typed:
    months, days, micros = _parts(given[0])
    return _of_parts(given[0], months, *_carried(days, micros, 86400000000))


def _justify_days(given: Sequence[Typed]) -> Typed:
    months, days, micros = _parts(given[0])
    return _of_parts(given[0], *_carried(months, days, 30), micros)


_YEAR = "CASE WHEN {0} <> 0 THEN {0} + CAST({0} < 0 AS INTEGER) END"
"""The year before 1 is -1, which the engine calls 0."""


_TIMESTAMP = (
    "CASE WHEN {3} BETWEEN 0 AND 23 AND {4} BETWEEN 0 AND 59 AND {5} >= 0 AND {5} <= 60 THEN "
    f"make_timestamp({_YEAR}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}}) END"
)
_TIME_OF_DAY = (
    "CASE WHEN {0} BETWEEN 0 AND 23 AND {1} BETWEEN 0 AND 59 AND {2} >= 0 AND {2} < 60 THEN "
    "make_time({0}, {1}, {2}) END"
)


def _make_timestamptz(given: Sequence[Typed]) -> Typed:
    zone = zone_argument(given[6]) if len(given) == 7 else exp.Literal.string("UTC")
    clocks = filled(_TIMESTAMP, [value.tree for value in given[:6]])
    return typed(given[0], "timezone({0}, {1})", [zone, clocks], INSTANT)


_EVERY_SIGN = "the text must have every sign of the format"

FUNCTIONS: Table = (
    Row("extract(field FROM time)", "a part of a time, a date or an interval, as a numeric", _extract, arity=(2, 2)),
    Row("date_part(field, time)", "a part of a time, as a double precision", _date_part),
    Row("date(x)", "x::date", lambda given: cast(given[0], DATE)),
    Row("date_trunc(unit, time[, zone])", "the beginning of its hour, day, .., of a zone; also of an interval",
        _date_trunc),
    Row("date_bin(length, time, origin)", "the beginning of its interval of that length", _date_bin),
    Row("timezone(zone, time)", "time AT TIME ZONE zone", _timezone),
    Row("to_char(time, format)", "a time or an interval as a text, by YYYY MM DD HH24 MI SS ..", _to_char),
    Row("to_date(text, format)", "the date of a text", _to_date, differs=_EVERY_SIGN),
    Row("to_timestamp(seconds | text, format)", "an instant of seconds since 1970, or of a text", _to_timestamp,
        differs=_EVERY_SIGN, arity=(1, 2)),
    Row("age(later, earlier)", "years, months, days and time between them", _age),
    Row("make_date(year, month, day)", "the date", f"make_date({_YEAR}, {{1}}, {{2}})", DATE, takes="int"),
    Row("make_timestamp(year, month, day, hour, minute, seconds)", "the time",
        lambda given: typed(given[0], _TIMESTAMP, [value.tree for value in given], LOCAL),
        takes="int int int int int double"),
    Row("make_timestamptz(year, month, day, hour, minute, seconds[, zone])", "the instant, by clocks of a zone or UTC",
        _make_timestamptz, takes="int int int int int double text"),
    Row("make_interval(years, months, weeks, days, hours, minutes, seconds)", "the interval", _interval_of,
        takes="int int int int int int double", arity=(1, 7)),
    Row("make_time(hour, minute, seconds)", "the time of a day", _TIME_OF_DAY, CLOCK, takes="int int double"),
    Row("isfinite(time)", "whether it is no infinity",
        lambda given: typed(given[0], "isfinite({0})", [_clock(given[0]).tree], BOOL)),
    Row("justify_hours(interval)", "with days for 24 hours", _justify_hours, takes="interval"),
    Row("justify_days(interval)", "with months for 30 days", _justify_days, takes="interval"),
)  # fmt: skip
