"""Times that a query puts into a time zone and then gives as they are: a column has no zone, and is shown in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.dialect import spelling
from dovetail.sql.syntax.rules import Rules

_LAST_NAME = re.compile(r"(?<!\s)\s++(?:as\s++)?(?:\"([^\"]*+)\"|`([^`]*+)`|(\w++))$", re.IGNORECASE)
_UTC = ("utc", "etc/utc", "gmt")


def zoned_times(query: exp.Expr, rules: Rules) -> Iterator[str]:
    """A line for each such item of the outermost SELECT. In the dialect of tables AT TIME ZONE gives a local time."""
    if rules is not Rules.TIMEPLUS or not isinstance(query, exp.Select):
        return
    for item in query.expressions:
        zone = _zone(item.unalias())
        if isinstance(zone, exp.Literal) and zone.this.casefold() not in _UTC:
            written = _without_alias(item) or item.unalias().sql(dialect="clickhouse")
            yield f"{written} is a time, which is shown in UTC; to_string({written}) is its text in {zone.this}"


def _without_alias(item: exp.Expr) -> str:
    """As it was written."""
    text = spelling(item)
    found = _LAST_NAME.search(text) if item.alias else None
    return text if found is None or item.alias not in found.groups() else text[: found.start()]


def _zone(made: exp.Expr) -> exp.Expr | None:
    if isinstance(made, exp.AtTimeZone):
        zone: exp.Expr = made.args["zone"]
        return zone
    return made.expressions[1] if function_name(made) == "to_timezone" and len(made.expressions) == 2 else None
