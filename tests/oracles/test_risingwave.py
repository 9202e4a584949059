# ruff: noqa: E501 - lists of expressions
"""RisingWave's expressions are PostgreSQL's: every function, every operator, and random nests of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.oracles.fuzz import Sample, compare, run
from tests.oracles.risingwave import RisingWaveOracle, oracle
from tests.oracles.risingwave_grammar import ALL_FORMS, made

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def risingwave() -> Iterator[RisingWaveOracle]:
    with oracle() as found:
        yield found


def test_every_form_means_the_same(risingwave: RisingWaveOracle) -> None:
    rng = random.Random(1)
    samples = [made(kind, form, 0, rng) for kind, form in ALL_FORMS]
    outcome = compare(risingwave, samples)
    assert [str(one) for one in outcome.differences] == []
    assert outcome.refused == []
    assert outcome.skipped == 0
    assert outcome.nulls < outcome.values / 3


def test_every_form_has_the_same_type(risingwave: RisingWaveOracle) -> None:
    rng = random.Random(2)
    samples = [made(kind, form, 0, rng) for kind, form in ALL_FORMS]
    assert [sample.text for sample in samples if not risingwave.same_type(sample)] == []


def test_random_expressions_mean_the_same(risingwave: RisingWaveOracle) -> None:
    outcome = run(risingwave, seed=20, count=100)
    assert [str(one) for one in outcome.differences] == []
    assert outcome.refused == []
    assert outcome.skipped <= 3
    assert outcome.nulls < outcome.values / 3


@pytest.mark.parametrize(
    "text",
    [
        # As tight as each operator binds.
        "1 + 2 * 3 ^ 2", "-2 ^ 2", "2 ^ 3 ^ 2", "7 - 2 - 1", "100 / 7 * 3", "7 % 4 * 2", "'a' || 1 + 2", "1 << 2 + 1", "6 & 3 + 1",
        "5 # 1 | 8", "NOT i4 = 1 AND b", "i4 = 1 OR b AND c", "k4 + 1 BETWEEN 1 AND 2 AND b", "s || 'x' LIKE '%x'", "i4 = k4 IS NULL",
        "-i4::bigint", "- 5 % 3", "i4 + k4 = ANY(ai)", "n * 2 > m + 1", "'{\"a\": {\"b\": 5}}'::jsonb -> 'a' ->> 'b' || '!'", "~1 + 2", "|/ 4 + 5", "2 * ~1 + 2",
        "ts AT TIME ZONE 'UTC' > tz", "s LIKE 'a' OR t IN ('a') AND NOT b", "ARRAY[1,2] || 3 = ARRAY[1,2,3]", "interval '1 day' * 2 + interval '1 hour'",
        "NOT b IS NULL", "i4 NOT IN (1, 2) = b", "(ai)[1] + 1", "CASE WHEN b THEN 1 ELSE 2 END + 1", "abs(-5)",
        # What a text in quotes means is what stands beside it.
        "i4 = '7'", "'2024-02-29' = dt", "d + '1.5'", "coalesce(i4, '5')", "'1' || 2", "ts > '2000-01-01 00:00:00'", "CASE WHEN b THEN 1 ELSE '2' END",
        "greatest(n, '3.14')", "dt BETWEEN '1970-01-01' AND '2024-12-31'", "i4 IN ('1', '7')", "'t'::bool AND b", "ai = '{1}'", "tz < '2024-01-01 00:00:00+02'",
        # The types of numbers.
        "2147483647::bigint + 1", "2147483647 + 1", "32767::int2 + 1::int2", "9223372036854775807", "9223372036854775808", "0.1 + 0.2", "1e3", "1.5e-3 * 2",
        "7 / 2", "-7 / 2", "-7 % 3", "7 / 2.0", "10.00 / 3", "1 / 3.0::float8", "2.5::numeric::int", "-2.5::numeric::int", "2.5::float8::int", "3.5::float8::int", "i4 / 0", "n / 0", "d / 0",
        # Times at the ends of their type.
        "date_trunc('decade', dt - interval '9 years')", "date_trunc('decade', dt - interval '11 years')", "extract(isodow from dt + 1073741824)", "extract(epoch from dt + 1073741824)",
        "to_char(dt - interval '9 years', 'YYYY YYY YY Y IYYY FMYYYY')",
        # A call that fails is NULL, not what stands around it.
        "coalesce(1 / (k4 - k4), 5)", "coalesce(w::int, -1)", "CASE WHEN w::int IS NULL THEN 'none' ELSE w END", "greatest(i4 * i4, 3)", "(i4 + i4) IS NULL", "concat('a', w::date, 'b')", "coalesce(-(0 % 0), i4)",
    ],
)  # fmt: skip
def test_precedence_and_types(risingwave: RisingWaveOracle, text: str) -> None:
    outcome = compare(risingwave, [_FAILING.get(text, Sample(text))])
    assert (outcome.compared, outcome.refused) == (1, [])
    assert [str(one) for one in outcome.differences] == []


def _nested(template: str, *parts: str) -> Sample:
    return Sample(template, tuple(Sample(part) for part in parts))


_FAILING = {
    sample.text: sample
    for sample in (
        _nested("coalesce({0}, 5)", "1 / (k4 - k4)"),
        _nested("coalesce({0}, -1)", "w::int"),
        _nested("CASE WHEN {0} IS NULL THEN 'none' ELSE w END", "w::int"),
        _nested("greatest({0}, 3)", "i4 * i4"),
        _nested("({0}) IS NULL", "i4 + i4"),
        _nested("concat('a', {0}, 'b')", "w::date"),
        _nested("coalesce({0}, i4)", "-(0 % 0)"),
    )
}
"""Expressions of which a part fails: the oracle is told the part."""
