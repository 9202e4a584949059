"""The functions of Timeplus: ClickHouse's, in snake_case."""

from __future__ import annotations

from functools import cache

from sql.functions.registry import Registry
from sql.functions.timeplus import (
    arrays,
    conditions,
    conversions,
    encodings,
    intervals,
    json,
    lambdas,
    mathematics,
    numbers,
    patterns,
    text,
    times,
    tuples,
    urls,
)


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("Timeplus")
    for group in (
        *(numbers, mathematics, conditions, conversions),
        *(text, patterns, encodings, urls, json),
        *(times, intervals),
        *(arrays, lambdas, tuples),
    ):
        group.register(registry)
    return registry
