"""What inequalities come to, whichever way round they are written."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.linear import inequality
from dovetail.sql.expressions.nearness import nearnesses, rest

LEFT = pa.schema([("l.t", pa.timestamp("us", "UTC")), ("l.n", pa.int64()), ("l.d", pa.date32()), ("l.x", pa.float64())])
RIGHT = pa.schema([("r.t", pa.timestamp("us", "UTC")), ("r.n", pa.int64()), ("r.d", pa.date32()), ("r.u", pa.uint64())])
SECOND = 1_000_000


def condition(text: str) -> Expr:
    return Expr.condition(parsed(text))


def value(text: str) -> Expr:
    return Expr.over(parsed(text), pa.schema([*LEFT, *RIGHT]))


@pytest.mark.parametrize(
    ("terms", "lower", "upper"),
    [
        (['"l.t" <= "r.t" + INTERVAL \'1\' MINUTE'], None, 60 * SECOND),
        (['"r.t" + INTERVAL \'1 minute 30 seconds\' >= "l.t"'], None, 90 * SECOND),
        (['("l.t" - TO_SECONDS(5)) < "r.t"'], None, 5 * SECOND - 1),
        (['"l.t" - "r.t" > - INTERVAL \'2\' SECOND'], -2 * SECOND + 1, None),
        (['"l.t" BETWEEN "r.t" - 2 * INTERVAL \'1\' SECOND AND "r.t"'], -2 * SECOND, 0),
        (['((EPOCH_US("r.t") - EPOCH_US("l.t")) / 1000000.0e0) BETWEEN -3 AND 10'], -10 * SECOND, 3 * SECOND),
        (['((EPOCH_US("l.t") - EPOCH_US("r.t")) / 60000000.0e0) = 1'], 60 * SECOND, 60 * SECOND),
        (['(EPOCH_US(CAST("l.t" AS TIMESTAMP)) - EPOCH_US("r.t")) > 0'], 1, None),
        (['"l.t" > "r.t"', '"l.t" <= "r.t"', '"l.t" < "r.t" + INTERVAL \'1\' SECOND'], 1, 0),
    ],
)
def test_the_bounds_of_times(terms: list[str], lower: int | None, upper: int | None) -> None:
    said = [condition(term) for term in terms]
    (near,) = nearnesses(said, LEFT, RIGHT)
    assert (near.left.plain, near.right.plain) == ("l.t", "r.t")
    assert near.bounds(unit=1) == (lower, upper)
    other = condition('"l.n" < 3')
    assert rest([*said, other], near) == [other]


@pytest.mark.parametrize(
    ("term", "bounds"),
    [
        ('"l.n" < "r.n" + 100', (None, 99)),
        ('2 * "l.n" - 2 * "r.n" >= 5', (3, None)),
        ('"r.n" - "l.n" BETWEEN -1 AND 4', (-4, 1)),
        ('"l.n" > "r.n" - 0.5e0', (0, None)),
        ('NOT "l.n" < "r.n"', None),
        ('"l.n" + "r.n" < 5', None),
        ('"l.n" < 2 * "r.n"', None),
        ('"l.n" < "r.u"', None),
        ('"l.x" < "r.n"', None),
        ('"l.n" < 5', None),
        ('"l.n" <> "r.n"', None),
        ('"l.d" >= "r.d" - 1', None),
    ],
)
def test_the_bounds_of_numbers(term: str, bounds: tuple[int | None, int | None] | None) -> None:
    found = nearnesses([condition(term)], LEFT, RIGHT)
    assert [near.bounds(unit=1) for near in found] == ([] if bounds is None else [bounds])


def test_bounds_are_in_whole_units_of_the_column() -> None:
    term = "\"l.t\" - \"r.t\" BETWEEN INTERVAL '1500' MICROSECOND AND INTERVAL '2500' MICROSECOND"
    (near,) = nearnesses([condition(term)], LEFT, RIGHT)
    assert near.bounds(unit=1) == (1500, 2500)
    assert near.bounds(unit=1_000) == (2, 2)


def test_dates_count_as_their_midnight() -> None:
    (near,) = nearnesses([condition('((EPOCH_US("l.d") - EPOCH_US("r.d")) / 86400000000.0e0) <= 3')], LEFT, RIGHT)
    assert (near.left.plain, near.bounds(unit=1)) == ("l.d", (None, 3 * 86_400 * SECOND))


def test_a_month_has_no_length_of_its_own() -> None:
    between = condition('"l.t" BETWEEN "r.t" AND "r.t" + INTERVAL \'1\' MONTH')
    later, earlier = nearnesses([between], LEFT, RIGHT)
    assert later.bounds(unit=1) == (0, None)
    assert earlier.right == value("\"r.t\" + INTERVAL '1' MONTH")
    assert rest([between], later) == earlier.terms


def test_each_pair_of_columns_has_bounds_of_its_own() -> None:
    texts = ['"l.t" > "r.t"', '"l.n" > "r.n"', '"l.t" < "r.t" + INTERVAL \'1\' SECOND']
    terms = [condition(text) for text in texts]
    first, second = nearnesses(terms, LEFT, RIGHT)
    assert (first.bounds(1), second.bounds(1)) == ((1, SECOND - 1), (1, None))
    assert rest(terms, first) == [terms[1]]


def test_an_expression_over_one_side_is_taken_as_it_is() -> None:
    found = inequality(condition('DATE_TRUNC(\'minute\', "l.t") <= "r.t"'), pa.schema([*LEFT, *RIGHT]))
    assert found is not None
    assert found.sum.terms == {value("DATE_TRUNC('minute', \"l.t\")"): Fraction(1), value('"r.t"'): Fraction(-1)}
