"""The functions of Timeplus: ClickHouse's, in snake_case."""

from __future__ import annotations

from functools import cache

from sql.functions.registry import Registry
from sql.functions.timeplus import (
    arrays,
    conditions,
    conversions,
    json,
    lambdas,
    mathematics,
    numbers,
    patterns,
    text,
    times,
    tuples,
)


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("Timeplus")
    for group in (numbers, mathematics, conditions, conversions, text, patterns, times, json, arrays, lambdas, tuples):
        group.register(registry)
    return registry
