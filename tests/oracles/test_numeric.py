"""Numerics of every width beside PostgreSQL's, which have no bound: the same digits, as many as the type keeps, or NULL
where 38 do not hold them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
import sqlglot

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.translate import Translator
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from tests.oracles.postgres import postgres

pytestmark = pytest.mark.services

_DIGITS = 38
_WIDE = "numeric(400, 160)"
"""PostgreSQL divides to as many digits behind the point as an operand has: more than could change one that is kept."""


@pytest.fixture(scope="module")
def server() -> Iterator[psycopg.Connection]:
    with postgres(["CREATE TABLE one (id int)", "INSERT INTO one VALUES (0)"], "one", "id") as found:
        yield found.connection


Pair = tuple[Decimal, Decimal]


@dataclass(frozen=True)
class Pairs:
    """Values of two types."""

    left: pa.DataType
    right: pa.DataType
    values: tuple[Pair, ...]

    def table(self) -> pa.Table:
        kinds = (("x", self.left), ("y", self.right))
        columns = zip(kinds, zip(*self.values, strict=True), strict=True)
        return pa.table({name: pa.array(values, kind) for (name, kind), values in columns})


def _kind(rng: random.Random) -> pa.DataType:
    precision = rng.choice([1, 5, 10, 18, 19, 28, 37, 38, rng.randint(1, _DIGITS)])
    return pa.decimal128(precision, rng.choice([0, precision, min(2, precision), rng.randint(0, precision)]))


def _value(kind: pa.DataType, rng: random.Random) -> Decimal:
    """Of any length; among them 0, powers of ten, the greatest, and what has many digits below one half."""
    length = rng.randint(1, kind.precision)
    digits = rng.choice(
        [
            0,
            10 ** (length - 1),
            10**kind.precision - 1,
            5 * 10 ** (length - 1),
            int("49999999999999999999999999999999999999"[:length]),
            *(rng.randrange(10**length) for _ in range(6)),
        ]
    )
    return Decimal((rng.randint(0, 1), tuple(map(int, str(digits))), -kind.scale))


def _pairs(rng: random.Random, types: int, each: int) -> list[Pairs]:
    made = []
    for _ in range(types):
        left, right = _kind(rng), _kind(rng)
        made.append(Pairs(left, right, tuple((_value(left, rng), _value(right, rng)) for _ in range(each))))
    return made


def _values(rows: pa.Table, text: str) -> tuple[pa.DataType, list[Decimal | None]]:
    environment = Environment({field.name: field.type for field in rows.schema})
    typed = Translator(RisingWaveDialect(), environment)(sqlglot.parse_one(text, read=RisingWaveQueries))
    (found,) = evaluate(rows, [engine.text(typed.tree)])
    assert found.type == typed.type
    return typed.type, found.to_pylist()


def _theirs(server: psycopg.Connection, text: str, several: Sequence[Pairs], scales: Sequence[int]) -> list[object]:
    """For every pair in turn, ``s`` in ``text`` being the digits behind the point that are kept."""
    rows = [(*pair, scale) for pairs, scale in zip(several, scales, strict=True) for pair in pairs.values]
    x, y, s = (list(column) for column in zip(*rows, strict=True))
    given = "unnest(%s::numeric[], %s::numeric[], %s::int[]) WITH ORDINALITY AS given(x, y, s, i)"
    query = f"SELECT {text.replace('%', '%%')} FROM {given} ORDER BY i"
    return [row[0] for row in server.execute(query.encode(), [x, y, s]).fetchall()]


def _held(value: object, kind: pa.DataType) -> Decimal | None:
    """A value that the type has room for."""
    assert value is None or isinstance(value, Decimal)
    room = Decimal((0, (1,), kind.precision - kind.scale))
    return value if value is not None and value.copy_abs() < room else None


def _differences(server: psycopg.Connection, text: str, exact: str, several: Sequence[Pairs]) -> list[object]:
    ours = [_values(pairs.table(), text) for pairs in several]
    theirs = iter(_theirs(server, exact, several, [kind.scale for kind, _ in ours]))
    return [
        (text, str(pairs.left), str(pairs.right), *pair, value, wanted)
        for pairs, (kind, values) in zip(several, ours, strict=True)
        for pair, value in zip(pairs.values, values, strict=True)
        if (wanted := _held(next(theirs), kind)) != value
    ]


def test_five_thousand_quotients(server: psycopg.Connection) -> None:
    several = _pairs(random.Random(7), types=50, each=100)
    assert _differences(server, "x / y", f"round(x::{_WIDE} / nullif(y, 0), s)", several) == []


_SUMMED = "CASE WHEN greatest(abs(x), abs(y)) < 10::numeric ^ (38 - s) THEN {} END"
"""Both sides have to have room as well."""


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("x * y", "round(x * y, s)"),
        ("x + y", _SUMMED.format("x + y")),
        ("x - y", _SUMMED.format("x - y")),
        ("x % y", "x % nullif(y, 0)"),
        ("mod(x, y)", "mod(x, nullif(y, 0))"),
        ("div(x, y)", "div(x, nullif(y, 0))"),
        *((f"{name}(x, {digits})", None) for name in ("round", "trunc") for digits in (-40, -20, -3, -1, 0, 1, 5, 40)),
        *((f"{name}(x)", None) for name in ("round", "trunc", "ceil", "floor", "abs", "sign")),
        *((f"x::numeric({kind})", "round(x, s)") for kind in ("38, 0", "38, 38", "38, 10", "20, 5", "5", "3, 2")),
        *(
            (
                f"x::{kind}::numeric",
                f"CASE WHEN round(x) BETWEEN -2::numeric ^ {bits} AND 2::numeric ^ {bits} - 1 THEN round(x) END",
            )
            for kind, bits in (("bigint", 63), ("int", 31), ("smallint", 15))
        ),
        ("-x", None),
    ],
)
def test_what_is_computed_of_numerics(server: psycopg.Connection, text: str, exact: str | None) -> None:
    several = _pairs(random.Random(text), types=30, each=20)
    assert _differences(server, text, exact or text, several) == []


@pytest.mark.parametrize("kind", ["float8", "float4"])
@pytest.mark.parametrize("written", ["numeric", "numeric(38, 25)", "numeric(20, 12)", "numeric(18, 2)"])
def test_numerics_of_floats(server: psycopg.Connection, kind: str, written: str) -> None:
    """A float has the digits that it is sure of: 1234567.89 is not 1234567.8899999998."""
    rng = random.Random(3)
    floats = [rng.choice([-1, 1]) * rng.random() * 10.0 ** rng.randint(-12, 17) for _ in range(500)]
    floats += [float(f"{value:.3g}") for value in floats] + [0.0, 1e15, 0.5, 2.5e-10, 1234567.89]
    ours_kind = pa.float64() if kind == "float8" else pa.float32()
    typed, ours = _values(pa.table({"x": pa.array(floats, ours_kind)}), f"x::{written}")
    given = f"unnest(%s::{kind}[]) WITH ORDINALITY AS given(x, i)"
    query = f"SELECT round(x::numeric, {typed.scale}) FROM {given} ORDER BY i"
    theirs = [_held(row[0], typed) for row in server.execute(query.encode(), [floats]).fetchall()]
    assert ours == theirs
    assert len([value for value in ours if value]) > 400
    texts = pa.table({"x": pa.array([f"{value:.14e}" for value in floats])})
    assert _values(texts, f"x::{written}")[1] == ours or kind == "float4"
