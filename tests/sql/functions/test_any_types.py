"""Calls and operators over columns of any types: each has a type, or is refused with a place and a fix."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions import risingwave, timeplus
from dovetail.sql.functions.registry import Function, Registry
from tests.sql.planner import Planner
from tests.tries import tries

STREAM = {
    "n": "int", "f": "float64", "d": "decimal(10, 2)", "s": "string", "b": "bool", "day": "date",
    "at": "datetime64(3)", "a": "array(int)", "m": "map(string, int)", "t": "tuple(x int, y string)",
}  # fmt: skip
TABLE = {
    "n": "int", "f": "double precision", "d": "numeric", "s": "varchar", "b": "boolean", "day": "date",
    "ts": "timestamp", "at": "timestamptz", "clock": "time", "i": "interval", "a": "int[]", "m": "map(varchar, int)",
    "r": "struct<x int, y varchar>", "j": "jsonb", "bytes": "bytea",
}  # fmt: skip
COLUMNS = {"streamed": STREAM, "kept": TABLE}
WRITTEN = ("5", "'x'", "'Mars'", "NULL", "INTERVAL '1 day'", "INTERVAL '1 fortnight'")
OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "<", "AND", "LIKE", "IN", "AT TIME ZONE")
OF_TABLES = ("->", "->>", "@>", "&&", "^", "#", "<<", "~", "IS DISTINCT FROM")
FORMS = ("extract",)
"""Functions whose arguments have words between them."""


@cache
def planner() -> Planner:
    declared = {name: ", ".join(" ".join(column) for column in columns.items()) for name, columns in COLUMNS.items()}
    return Planner.of(f"CREATE STREAM streamed ({declared['streamed']})", f"CREATE TABLE kept ({declared['kept']})")


def expect_type_or_refusal(expression: str, relation: str) -> None:
    try:
        planner().plan(f"SELECT {expression} AS x FROM {relation}")
    except SqlError as fault:
        refused = fault
    else:
        return
    assert refused.where, expression
    assert refused.fix, expression


@pytest.mark.parametrize(
    ("operator", "relation"),
    [*((one, "streamed") for one in OPERATORS), *((one, "kept") for one in (*OPERATORS, *OF_TABLES))],
)
def test_operators(operator: str, relation: str) -> None:
    values, chance = (*COLUMNS[relation], *WRITTEN), random.Random(operator)
    for left in values:
        for right in chance.sample(values, min(tries(4), len(values))):
            expect_type_or_refusal(f"{left} {operator} ({right})", relation)


@pytest.mark.parametrize(
    ("registry", "relation"), [(timeplus.functions(), "streamed"), (risingwave.functions(), "kept")]
)
def test_functions(registry: Registry, relation: str) -> None:
    chance = random.Random(relation)
    for name, function in registry.functions.items():
        if name not in FORMS:
            for arguments in calls(function, (*COLUMNS[relation], *WRITTEN), chance):
                expect_type_or_refusal(f"{name}({', '.join(arguments)})", relation)


def calls(function: Function, values: tuple[str, ...], chance: random.Random) -> Iterator[tuple[str, ...]]:
    """Some arguments for each number of them that the function takes, up to four."""
    least, most = function.row.argument_count
    for count in range(least, min(most or least + 1, 4) + 1):
        for _ in range(tries(2)):
            yield tuple(chance.choice(values) for _ in range(count))


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT d + INTERVAL '1 day' FROM streamed", "takes a time or a date, not a number"),
        ("SELECT at + INTERVAL 1 FORTNIGHT FROM streamed", "not 'FORTNIGHT'"),
        ("SELECT to_hour(at, 'Mars') FROM streamed", "there is no time zone 'Mars'"),
        ("SELECT at AT TIME ZONE 'Europe/Berlim' FROM streamed", "there is no time zone 'Europe/Berlim'"),
        ("SELECT to_timezone(at, s) FROM streamed", "takes its time zone as a text in quotes"),
        ("SELECT at AT TIME ZONE 'Mars' FROM kept", "there is no time zone 'Mars'"),
        ("SELECT date_trunc('day', at, 'Mars') FROM kept", "there is no time zone 'Mars'"),
        ("SELECT j ->> 'a' + 1 FROM kept", "'a' is not a valid integer"),
        ("SELECT j ->> 'a' * d FROM kept", "'a' is not a valid numeric"),
    ],
)
def test_what_a_refusal_says(query: str, what: str) -> None:
    with pytest.raises(SqlError, match=re.escape(what)):
        planner().plan(query)
