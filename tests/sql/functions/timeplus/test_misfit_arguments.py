"""A function is not NULL for every row because its arguments are of no type that it takes: that is refused."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions import timeplus
from tests.oracles.timeplus import our_values, their_values

KINDS = ("s", "ts", "ints")
MOST = 3
"""Arguments of the calls."""
NULLS = ("to_", "parse_", "null_if")
"""Conversions read any value that has a text, and what cannot be read is NULL; equal values are NULL by NULLIF."""


def calls() -> Iterator[str]:
    for table in timeplus.GROUPS.values():
        for row in table:
            name, (least, _) = row.names[0], row.argument_count
            if 0 < least <= MOST and "->" not in row.usage and not name.startswith(NULLS):
                yield from (f"{name}({', '.join([kind] * least)})" for kind in KINDS)


def is_silent(call: str) -> bool:
    try:
        return all(value is None for value in our_values(call))
    except (SqlError, duckdb.Error):
        return False


def test_no_function_is_null_for_want_of_a_type() -> None:
    silent = list(filter(is_silent, calls()))
    told = dict(zip(silent, their_values(silent), strict=True))
    assert [call for call, answer in told.items() if isinstance(answer, str) and "Code: 43" in answer] == []
