"""The functions of Timeplus: ClickHouse's, in snake_case."""

from __future__ import annotations

from functools import cache

from sql.functions.registry import Registry
from sql.functions.timeplus import (
    arrays,
    conditions,
    conversions,
    json,
    mathematics,
    numbers,
    patterns,
    text,
    times,
)


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("Timeplus")
    for group in (numbers, mathematics, conditions, conversions, text, patterns, times, json, arrays):
        group.register(registry)
    return registry
