"""Functions that PostgreSQL does not have, held against Python's."""

from __future__ import annotations

import math
import zlib
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import run
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.translate import Translator
from dovetail.sql.syntax.risingwave import RisingWaveQueries


def value(text: str) -> Any:
    tree = sqlglot.parse_one(text, read=RisingWaveQueries)
    translated = Translator(RisingWaveDialect(), Environment({}, "SELECT"))(tree).tree
    return run(f"SELECT {engine.text(translated)} AS v", {}).column("v")[0].as_py()


@given(x=st.floats(-170, 170))
def test_gamma_is_pythons(x: float) -> None:
    try:
        expected = (math.gamma(x), math.lgamma(x))
    except (ValueError, OverflowError):
        return
    found = value(f"gamma('{x!r}'::float8)"), value(f"lgamma('{x!r}'::float8)")
    assert found[0] is None if expected[0] == 0 else math.isclose(found[0], expected[0], rel_tol=1e-9)
    assert math.isclose(found[1], expected[1], rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("x", "gamma", "lgamma"),
    [
        ("inf", math.inf, math.inf),
        ("-inf", None, math.inf),
        ("0", None, None),
        ("-3", None, None),
        ("1000", None, 5905.220423209181),
        ("-1000.5", None, -5914.437701116975),
    ],
)
def test_gamma_at_its_edges(x: str, gamma: float | None, lgamma: float | None) -> None:
    assert value(f"gamma('{x}'::float8)") == gamma
    found = value(f"lgamma('{x}'::float8)")
    assert found is None if lgamma is None else math.isclose(found, lgamma, rel_tol=1e-9)


def test_gamma_of_nan_is_nan() -> None:
    assert math.isnan(value("gamma('nan'::float8)"))
    assert math.isnan(value("lgamma('nan'::float8)"))


@given(elements=st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=5))
def test_a_transformed_array_has_a_value_for_each_element(elements: list[int | None]) -> None:
    written = f"ARRAY[{', '.join('NULL' if one is None else str(one) for one in elements)}]::int[]"
    doubled = [None if one is None else one * 2 + 1 for one in elements]
    assert value(f"array_transform({written}, |x| x * 2 + 1)") == doubled
    assert value(f"array_transform(array_transform({written}, |x| x * 2), |x| x + 1)") == doubled
    for name in ("array_overlaps", "array_is_overlap", "array_is_intersect"):
        assert value(f"{name}({written}, ARRAY[3, -4])") == value(f"{written} && ARRAY[3, -4]")
    assert value(f"array_join({written}, '-', 'x')") == value(f"array_to_string({written}, '-', 'x')")


@given(content=st.binary(max_size=40))
def test_a_crc32_is_pythons(content: bytes) -> None:
    assert value(f"crc32('\\x{content.hex()}'::bytea)") == zlib.crc32(content)


@pytest.mark.parametrize(("content", "crc32c"), [("", 0), ("00", 0x527D5351), ("313233343536373839", 0xE3069283)])
def test_crc32c(content: str, crc32c: int) -> None:
    assert value(f"crc32c('\\x{content}'::bytea)") == crc32c


@given(number=st.integers(-(1 << 63) + 1, (1 << 63) - 1))
def test_what_is_sent_is_received(number: int) -> None:
    assert value(f"int8send({number}::bigint)") == number.to_bytes(8, "big", signed=True)
    assert value(f"int8recv(int8send({number}::bigint))") == number
    assert value("int8recv('abc'::bytea)") is None


@pytest.mark.parametrize("call", ["array_transform(ARRAY[1], |x, y| x)", "array_transform(ARRAY[1], 1)"])
def test_a_lambda_of_one_name_is_asked_for(call: str) -> None:
    with pytest.raises(SqlError, match="a lambda of one name"):
        value(call)
