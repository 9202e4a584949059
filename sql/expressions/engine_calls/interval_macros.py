"""What the engine is taught of intervals: macros, so that a plan calls them by name.

interval_of(text)      the interval that a text in the one form means (``changelog.formats.interval_texts``)
interval_text(i)       its text in that form: after a part below zero, one above zero has a plus
interval_length(i)     its microseconds, a month being of 30 days: equal for equal intervals, and in their order
interval_months(i), interval_days(i), interval_time(i)    its parts, the time in microseconds
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache

import duckdb

_CALLED = re.compile(r"\binterval_(?:of|text|length|months|days|time)\(", re.IGNORECASE)
_UNITS = (
    ("year", "CAST(year(v_) AS BIGINT)"),
    ("mon", "CAST(month(v_) AS BIGINT)"),
    ("day", "CAST(day(v_) AS BIGINT)"),
)
_TIME = "(CAST(hour(v_) AS BIGINT) * 3600000000 + minute(v_) * 60000000 + microsecond(v_))"


def _once(template: str) -> str:
    """``template`` over ``v_``, the argument, which is computed once."""
    return f"list_extract(list_transform([i], lambda v_: {template}), 1)"


def _text() -> str:
    parts, negative = [], "false"
    for unit, size in _UNITS:
        sign = f"CASE WHEN {size} > 0 AND {negative} THEN '+' ELSE '' END"
        name = f"CASE WHEN {size} = 1 THEN ' {unit}' ELSE ' {unit}s' END"
        parts.append(f"CASE WHEN {size} <> 0 THEN {sign} || {size} || {name} END")
        negative = f"CASE WHEN {size} <> 0 THEN {size} < 0 ELSE {negative} END"
    sign = f"CASE WHEN {_TIME} < 0 THEN '-' WHEN {negative} THEN '+' ELSE '' END"
    clock = (
        f"CASE WHEN abs({_TIME}) < 36000000000 THEN '0' ELSE '' END || CAST(abs({_TIME}) // 3600000000 AS VARCHAR)"
        f" || ':' || lpad(CAST(abs({_TIME}) // 60000000 % 60 AS VARCHAR), 2, '0')"
        f" || ':' || lpad(CAST(abs({_TIME}) // 1000000 % 60 AS VARCHAR), 2, '0')"
        f" || CASE WHEN {_TIME} % 1000000 <> 0 THEN rtrim('.' || lpad(CAST(abs({_TIME}) % 1000000 AS "
        f"VARCHAR), 6, '0'), '0') ELSE '' END"
    )
    is_empty = " AND ".join(f"{size} = 0" for _, size in _UNITS)
    parts.append(f"CASE WHEN {_TIME} <> 0 OR {is_empty} THEN {sign} || {clock} END")
    return f"CASE WHEN v_ IS NOT NULL THEN concat_ws(' ', {', '.join(parts)}) END"


_LENGTH = (
    "CAST((CAST(year(v_) AS HUGEINT) * 12 + month(v_)) * 2592000000000 + CAST(day(v_) AS HUGEINT) * 86400000000 + "
    f"{_TIME} AS DECIMAL(38, 0))"
)
_MACROS = (
    "interval_of(t) AS CAST(replace(t, '+', '') AS INTERVAL)",
    f"interval_text(i) AS {_once(_text())}",
    f"interval_length(i) AS {_once(_LENGTH)}",
    f"interval_months(i) AS {_once('CAST(year(v_) AS BIGINT) * 12 + month(v_)')}",
    "interval_days(i) AS CAST(day(i) AS BIGINT)",
    f"interval_time(i) AS {_once(_TIME)}",
)

_local = threading.local()


@lru_cache(maxsize=1024)
def _calls_one(sql: str) -> bool:
    """The same expressions are computed batch after batch."""
    return _CALLED.search(sql) is not None


def teach_intervals(session: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let ``session``, which is this thread's own, know the macros, once ``sql`` calls one: reading them takes as long
    as making a connection.
    """
    if getattr(_local, "taught", None) is session or not _calls_one(sql):
        return
    for macro in _MACROS:
        session.execute(f"CREATE MACRO IF NOT EXISTS {macro}")
    _local.taught = session
