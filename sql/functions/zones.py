"""Time zones, by the names that the engine knows: ``Europe/Berlin``, ``UTC``, in any letter case."""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from dovetail.changelog.errors import UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.functions.typed import Typed, filled

_NAMES = "the tz database has the names: 'Europe/Berlin', 'America/New_York', 'Etc/GMT-2' for two hours ahead of UTC"


@cache
def zone_names() -> tuple[str, ...]:
    return tuple(sorted(run("SELECT name FROM pg_timezone_names()", {}).column("name").to_pylist()))


@cache
def _folded() -> tuple[str, ...]:
    return tuple(name.lower() for name in zone_names())


def named_zone(value: Typed) -> exp.Expr:
    """``value`` as the zone of a call. A value of a row that names no zone fails.

    Raises UnknownName for a literal that names none.
    """
    if value.is_null:
        return value.tree
    if isinstance(value.literal, str):
        if value.literal.lower() not in _folded():
            near = suggestion(value.literal, zone_names(), _NAMES)
            raise UnknownName(f"there is no time zone '{value.literal}'", fix=near)
        return value.tree
    known = ", ".join(f"'{name}'" for name in _folded())
    # The cast is of no number, whatever the text: the engine ends a query for an unknown zone, and not a call.
    unknown = "CAST(CAST('no time zone: ' || {0} AS BIGINT) AS VARCHAR)"
    return filled(f"CASE WHEN lower({{0}}) IN ({known}) THEN {{0}} ELSE {unknown} END", [value.tree])
