"""Rows in windows of time, as DuckDB computes them."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.expressions.engine import parsed, type_name
from dovetail.sql.expressions.evaluate import quoted
from dovetail.sql.functions.typed import filled
from dovetail.sql.plan.nodes import Sessions, Window
from dovetail.sql.plan.time_text import in_units, per_unit

_ROWS = "rows"
"""What stands for the rows in a template."""


def held(value: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """``value`` with NULL for a time that no row can hold (``changelog.formats.time_range``)."""
    if not (pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit != "ns")):
        return value
    before, after = ("0000-12-31", "10000-01-01")
    if pa.types.is_timestamp(kind):
        zone = "+00" if kind.tz else ""
        before, after = f"{before} 23:59:59.999999{zone}", f"{after} 00:00:00{zone}"
    before, after = (f"CAST('{time}' AS {type_name(kind)})" for time in (before, after))
    since = f"nullif(greatest({{0}}, {before}), {before})"
    return filled(f"nullif(least({since}, {after}), {after})", [value])


def in_windows(node: Window, rows: exp.Select) -> exp.Select:
    """TUMBLE and HOP: each row once for every window, the last that begins at or before its time, and those before
    that hold it too.
    """
    time, windows = quoted(node.time), node.windows
    if windows.months is not None:
        return _in_months(node, windows.months, rows)
    size, slide, offset = windows.size_ms * 1_000, windows.slide_ms * 1_000, windows.offset_ms * 1_000
    start, end = quoted(node.start), quoted(node.end)
    since = f"(((epoch_us({time}) - {offset}) % {slide}) + {slide}) % {slide}"
    first = f"{time} - to_microseconds({since} + UNNEST(RANGE({-(-size // slide)})) * {slide})"
    each = f"SELECT *, {first} AS {start} FROM {_ROWS} WHERE {time} IS NOT NULL"
    over = f"{start} + to_microseconds({size})"
    return _filled(f"SELECT *, {over} AS {end} FROM ({each}) WHERE {over} > {time}", rows)


def _in_months(node: Window, months: tuple[int, int], rows: exp.Select) -> exp.Select:
    """As ``in_windows``, of months that are counted from that of the epoch."""
    time, start, end, (size, slide) = quoted(node.time), quoted(node.start), quoted(node.end), months
    month = f"date_diff('month', make_timestamp(0), make_timestamp(epoch_us({time})))"
    first = f"{month} - ((({month} % {slide}) + {slide}) % {slide} + UNNEST(RANGE({-(-size // slide)})) * {slide})"
    numbered = f"SELECT *, {first} AS __month FROM {_ROWS} WHERE {time} IS NOT NULL"
    zero = f"{time} - to_microseconds(epoch_us({time}))"
    bounds = (
        f"{zero} + to_months(__month::INTEGER) AS {start}, {zero} + to_months((__month + {size})::INTEGER) AS {end}"
    )
    each = f"SELECT * EXCLUDE (__month), {bounds} FROM ({numbered})"
    return _filled(f"SELECT * FROM ({each}) WHERE {end} > {time}", rows)


def of_sessions(node: Sessions, rows: exp.Select) -> exp.Select:
    """SESSION: gaps are found, and the islands between them numbered."""
    if node.longest_ms is not None:
        raise Unsupported(
            "SESSION with a longest session is not supported over table(x)",
            where=node.place,
            fix="leave it out, or ask the content of a view: FROM table(view)",
        )
    time, kind = quoted(node.time), node.input.schema.field(node.time).type
    gap = in_units(node.gap_ms, kind) * per_unit(kind)
    keys = ", ".join(map(quoted, node.by))
    by = f"PARTITION BY {keys} " if keys else ""
    whole = f"OVER (PARTITION BY {', '.join(filter(None, [keys, '__number']))})"
    before = f"lag(epoch_us({time})) OVER ({by}ORDER BY {time})"
    begins = f"CASE WHEN epoch_us({time}) - {before} < {gap} THEN 0 ELSE 1 END"
    marked = f"SELECT *, {begins} AS __begins FROM {_ROWS} WHERE {time} IS NOT NULL"
    numbered = f"SELECT *, sum(__begins) OVER ({by}ORDER BY {time}) AS __number FROM ({marked})"
    start, end = f"min({time}) {whole}", f"max({time}) {whole} + to_microseconds({gap})"
    bounds = f"{start} AS {quoted(node.start)}, {end} AS {quoted(node.end)}"
    return _filled(f"SELECT * EXCLUDE (__begins, __number), {bounds} FROM ({numbered})", rows)


def _filled(template: str, rows: exp.Select) -> exp.Select:
    made = parsed(template)
    assert isinstance(made, exp.Select)
    place = next(table for table in made.find_all(exp.Table) if table.name == _ROWS)
    place.replace(exp.Subquery(this=rows))
    return made
