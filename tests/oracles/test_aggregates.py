# ruff: noqa: E501 - lists of expressions
"""Aggregates over edges of types: over a stream and over its content, beside the databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracles import clickhouse
from tests.oracles.contexts import answers
from tests.oracles.risingwave import RisingWaveOracle
from tests.oracles.risingwave import oracle as risingwave
from tests.oracles.timeplus import TimeplusOracle, their_text, their_values
from tests.oracles.values import same

pytestmark = pytest.mark.services

TIMEPLUS = (
    "count() | count(i) | count(DISTINCT i) | sum(i) | sum(u) | sum(m) | sum(o) | avg(i) | avg(m) | avg(o) | avg(f) | min(i) | max(ubig) | min(f) | max(m)",
    "countIf(i > 0) | sumIf(i, i > 0) | avgIf(m, o) | minIf(i, o) | maxIf(f, o) | countIf(o) | uniq(s) | uniq(i, j) | uniqIf(s, o) | sum(DISTINCT j) | avg(DISTINCT j)",
    "groupBitAnd(i) | groupBitOr(j) | groupBitXor(u) | groupBitOrIf(i, o) | sumDistinct(j) | avgDistinct(j) | uniqCombined64(i) | uniqHLL12(j)",
    "length(groupArray(i)) | length(groupArray(null_if(i, i))) | length(groupUniqArray(s)) | length(groupArray(2)(i)) | length(groupArrayIf(i, o)) | length(topK(2)(s))",
    "sum(null_if(i, i)) | avg(null_if(i, i)) | max(null_if(i, i)) | count(null_if(i, i)) | sum(if(o, 1, 0)) | sum(i) FILTER (WHERE o) | count() FILTER (WHERE j > 0) | sum(to_float32(0.1))",
)
RISINGWAVE = (
    "count(*) | count(i4) | count(DISTINCT i4) | sum(i2) | sum(i4) | sum(i8) | sum(n) | sum(e) | avg(i4) | avg(i8) | avg(n) | avg(m) | avg(e) | min(i4) | max(s) | max(n) | bool_and(b) | bool_or(b)",
    "sum(i4) FILTER (WHERE b) | avg(n) FILTER (WHERE c) | max(s) FILTER (WHERE b) | sum(DISTINCT k4) | avg(DISTINCT k4) | sum(nullif(i4, i4)) | avg(nullif(i4, i4)) | count(nullif(i4, i4)) | count(DISTINCT e * 0)",
    "bit_and(i4) | bit_or(k4) | bit_xor(i8) | bit_or(i4) FILTER (WHERE b) | bit_and(nullif(i4, i4))",
    "regr_count(k4, e) | regr_avgx(k4, e) | regr_avgy(k4, e) | regr_slope(k4, e) | regr_intercept(k4, e) | regr_r2(k4, e) | regr_slope(e, n) FILTER (WHERE b)",
    "regr_slope(k4, 1) | regr_intercept(k4, 1) | regr_r2(k4, 1) | regr_r2(1, k4) | regr_slope(1, k4) | regr_count(e, nullif(e, e)) | regr_slope(e, nullif(e, e)) | regr_avgx(e, nullif(e, e))",
    "count(iv) | count(DISTINCT iv) | extract(epoch from sum(iv)) | extract(epoch from max(iv)) | extract(epoch from min(iv) FILTER (WHERE b)) | extract(day from sum(iv)) | extract(month from avg(iv))",
    "sum(iv)::text | avg(iv)::text | max(iv)::text | (sum(iv) FILTER (WHERE b))::text | (max(iv) + interval '1 day')::text",
    "jsonb_agg(i4 ORDER BY id)::text | jsonb_agg(s ORDER BY id)::text | jsonb_agg(iv ORDER BY iv, id)::text | jsonb_agg(by ORDER BY id)::text | jsonb_agg(dt ORDER BY id) FILTER (WHERE b) ->> 0 | jsonb_agg(b ORDER BY id)::text",
    "jsonb_object_agg(id, s)::text | jsonb_object_agg(coalesce(s, '-'), i4) ->> 'Hello World' | (jsonb_object_agg(id, iv) -> '2')::text | jsonb_agg(ai ORDER BY id)::text | jsonb_agg(j ORDER BY id)::text",
    "sum(i4) FILTER (WHERE false) | sum(1.5) | avg(i4 % 3) | sum(n * m)",
)
REFUSED = (("sum(big)", None), ("sum(ubig)", None), ("sum(big + 1)", 5000999962), ("count(DISTINCT f * -0.0)", 1))
"""Where ClickHouse wraps, or tells -0.0 from 0.0: ours."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[RisingWaveOracle]:
    with risingwave() as found:
        yield found


def _listed(lines: tuple[str, ...]) -> list[str]:
    return [one for line in lines for one in line.split(" | ")]


@pytest.mark.parametrize("relation", ["rows", "table(rows)"])
def test_aggregates_of_timeplus(relation: str) -> None:
    calls = _listed(TIMEPLUS)
    their_values(["i"])
    columns = ", ".join(f"{their_text(one)} AS c{place}" for place, one in enumerate(calls))
    (theirs,) = clickhouse.ask(f"SELECT {columns} FROM rows").to_pylist()
    ours = answers(TimeplusOracle().source(), relation, calls)
    assert _differing(calls, ours, list(theirs.values())) == []


@pytest.mark.parametrize("relation", ["rows", "table(rows)"])
def test_overflow_is_null_and_zero_has_no_sign(relation: str) -> None:
    calls = [text for text, _ in REFUSED]
    assert answers(TimeplusOracle().source(), relation, calls) == [wanted for _, wanted in REFUSED]


@pytest.mark.parametrize("relation", ["rows", "table(rows)"])
def test_aggregates_of_risingwave(postgres: RisingWaveOracle, relation: str) -> None:
    calls = _listed(RISINGWAVE)
    where = "WHERE id < 10"
    theirs = postgres.theirs_.connection.execute(f"SELECT {', '.join(calls)} FROM rows_of_edge {where}".encode())
    ours = answers(postgres.source(), f"{relation} {where}", calls)
    assert _differing(calls, ours, list(theirs.fetchall()[0])) == []


def _differing(calls: list[str], ours: list[object], theirs: list[object]) -> list[tuple[str, object, object]]:
    shown = [int(one) if isinstance(one, bool) else one for one in ours]
    wanted = [int(one) if isinstance(one, bool) else one for one in theirs]
    return [
        (text, one, other)
        for text, one, other in zip(calls, shown, wanted, strict=True)
        if not same(one if one is None or isinstance(one, str) else float(str(one)), _number(other))
    ]


def _number(value: object) -> object:
    return value if value is None or isinstance(value, str) else float(str(value))
