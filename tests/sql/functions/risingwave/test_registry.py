# ruff: noqa: E501 - lists of expressions
"""Every function of RisingWave's dialect is held against PostgreSQL; what is none of them is refused with a reason."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
import sqlglot

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.registry import Function, Registry
from dovetail.sql.functions.risingwave import functions, maps, series
from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.translate import Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from tests.oracles.risingwave_grammar import ALL_FORMS, made
from tests.oracles.risingwave_rows import FORMS, TABLE

_TYPES = {field.name: field.type for field in TABLE.schema}
_ENVIRONMENT = Environment(_TYPES, "SELECT", Rules.RISINGWAVE, FORMS)


def translated(text: str, dialect: RisingWaveDialect | None = None) -> Typed:
    return Translator(dialect or RisingWaveDialect(), _ENVIRONMENT)(sqlglot.parse_one(text, read=RisingWaveQueries))


UNKNOWN_TO_POSTGRESQL = {
    *("gamma", "lgamma", "array_transform", "array_join", "int8recv", "crc32", "crc32c"),
    *("jsonb_populate_record", "jsonb_records_to_array"),
    *(name for row in maps.FUNCTIONS for name in row.names),
    *("array_overlaps", "array_is_overlap", "array_is_intersect"),
}
"""PostgreSQL, at least the release that is asked, has none of them: test_unknown_to_postgresql.py."""


@dataclass
class _Watched(Registry):
    """Notes what is looked for."""

    found: set[str] = field(default_factory=set)

    def find(self, name: str, place: str) -> Function:
        self.found.add(name)
        return functions().find(name, place)


class _WatchedDialect(RisingWaveDialect):
    def __init__(self) -> None:
        self.watched = _Watched("RisingWave")

    @property
    def registry(self) -> Registry:
        return self.watched


def test_every_function_is_held_against_postgresql() -> None:
    dialect, rng = _WatchedDialect(), random.Random(1)
    for kind, form in ALL_FORMS:
        translated(made(kind, form, 0, rng).text, dialect)
    # Those that give several rows are asked in FROM: tests/oracles/test_set_functions.py.
    apart = (
        {name for row in series.FUNCTIONS for name in row.names[:1]}
        | {"regexp_matches_to_array"}
        | UNKNOWN_TO_POSTGRESQL
    )
    assert set(functions().functions) - dialect.watched.found == apart


@pytest.mark.parametrize("name", sorted(functions().refused))
def test_what_is_refused_says_why(name: str) -> None:
    assert name not in functions().functions
    with pytest.raises(Unsupported, match=name) as fault:
        functions().find(name, "SELECT")
    assert fault.value.where == "SELECT"
    assert fault.value.fix


def test_clocks_without_brackets_are_refused() -> None:
    for text in ("current_timestamp", "current_date", "localtimestamp", "now()", "CURRENT_TIMESTAMP"):
        with pytest.raises(Unsupported, match="no fixed value"):
            translated(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("lenght(s)", "length"),
        ("sub_string(s, 1)", "substring"),
        ("datetrunc('day', ts)", "date_trunc"),
        ("zzz(i4)", "docs/functions.md"),
    ],
)
def test_an_unknown_function_is_refused_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UnknownName) as fault:
        translated(text)
    assert near in str(fault.value.fix)


@pytest.mark.parametrize(
    "text",
    [
        "i4 + s", "s + 1", "i4 || i8", "i4 = s", "s < dt", "b + 1", "i4 AND b", "NOT i4", "CASE WHEN b THEN 1 ELSE s END", "coalesce(i4, s)", "greatest(i4, dt)",
        "length(i4)", "lower(i4)", "lpad(s)", "lpad(s, 'x', 'y', 'z')", "trunc(d, 2)", "date_trunc('fortnight', ts)", "extract(hour from dt)", "extract(epochs from ts)",
        "to_char(ts, 'YYYY-bb')", "i4 LIKE 'x'", "ai[1] || 'x' = 1", "d % 2", "s::int[]", "dt::int", "b::bigint", "ts + 1", "dt + dt", "ai || ts", "array_append(i4, 1)", "i4 @> 1",
        "j @> j", "interval '1 fortnight'", "s ~ '(?=a)'", "format('%x', 1)", "format('%s')", "encode(by, 'utf8')", "i4 IN ('a', dt)", "factorial(1.5)", "1.5 << 2", "~1.5", "(i4).x", "-s::text",
        "regexp_replace(s, 'a', 'b', 'x')", "array_length(ai, 2)", "(1, 2) = (1, 2, 3)", "s COLLATE \"de_DE\"", "i4 COLLATE \"C\"", "btrim(by)", "to_timestamp(s, 'HH24 TZM')", "x'41'", "age(s)", "regexp_count(s, '^a', 2)", "i4 = ANY(k4)",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(SqlError) as fault:
        translated(text)
    assert fault.value.what
    assert fault.value.fix


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", pa.int32()), ("2147483648", pa.int64()), ("9223372036854775808", pa.decimal128(19, 0)), ("1.50", pa.decimal128(3, 2)), ("1e3", pa.decimal128(4, 0)),
        ("-1", pa.int32()), ("'a'", pa.string()), ("i2 + 1", pa.int32()), ("i2 + i2", pa.int16()), ("r + r", pa.float32()), ("r + 1", pa.float64()),
        ("r * n", pa.float64()), ("n + 1", pa.decimal128(13, 2)), ("7 / 2", pa.int32()), ("dt - dt", pa.int32()), ("ts - ts", pa.month_day_nano_interval()),
        ("dt + interval '1 day'", pa.timestamp("us")), ("ts AT TIME ZONE 'UTC'", pa.timestamp("us", tz="UTC")), ("j -> 'a'", pa.string()), ("extract(year from dt)", pa.decimal128(19, 0)),
        ("array_min(NULL)", pa.string()), ("array_sum(NULL)", pa.int64()), ("array_to_string(NULL, NULL)", pa.string()), ("array_element(NULL, 1)", pa.string()),
        ("ARRAY[1, 2.5]", pa.list_(pa.decimal128(11, 1))), ("NULL::bigint", pa.int64()), ("s::int8", pa.int64()), ("s::int2", pa.int16()), ("s::float", pa.float64()), ("s::real", pa.float32()),
    ],
)  # fmt: skip
def test_types(text: str, kind: pa.DataType) -> None:
    assert translated(text).type == kind


def test_names_of_functions_are_folded() -> None:
    assert translated("LENGTH(s)").type == translated("length(s)").type
