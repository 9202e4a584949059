"""What ClickHouse has no comparison of, or no common type for, is refused; what it compares has its values."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from dovetail.changelog.errors import SqlError
from tests.oracles.timeplus import our_values, their_values
from tests.oracles.values import Cell, same
from tests.sql.planner import Planner

VALUES = ("i", "f", "m", "o", "s", "ts", "d", "ints", "words", "(i, s)", "5", "'5'", "[1, 2]", "['a']", "(1, 'a')")
TEXTS = {"'5'"}
"""Stands for a value of any scalar type."""
COMPARISONS = (
    *("{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} >= {1}", "equals({0}, {1})", "less({0}, {1})"),
    *("{0} between {1} and {1}", "case {0} when {1} then 1 end", "null_if({0}, {1}) is null"),
    "{0} is not distinct from {1}",
)
OURS_ALONE = {frozenset(("ts", "5")), frozenset(("ts", "i")), frozenset(("ts", "f")), frozenset(("ts", "m")),
              frozenset(("ts", "o")), frozenset(("d", "o"))}  # fmt: skip
"""ClickHouse compares a time with the seconds since 1970, which nobody means."""
THEIRS_ALONE = {frozenset(("o", "f")), frozenset(("o", "m"))}
"""A truth value is 1 or 0, beside any number."""
CHOICES = ("if(o, {0}, {1})", "multi_if(o, {0}, {1})", "case when o then {0} else {1} end", "coalesce({0}, {1})")


@cache
def theirs() -> dict[str, list[Cell] | str]:
    asked = [f"{left} = {right}" for left, right in product(VALUES, VALUES)]
    return dict(zip(asked, their_values(asked), strict=True))


def ours(expression: str) -> list[Cell] | None:
    """None where it is refused."""
    try:
        return our_values(expression)
    except SqlError:
        return None


@pytest.mark.parametrize(("left", "right"), list(product(VALUES, VALUES)))
def test_what_is_never_compared_is_refused(left: str, right: str) -> None:
    answer = theirs()[f"{left} = {right}"]
    if {left, right} & TEXTS or frozenset((left, right)) in THEIRS_ALONE:
        return
    for form in COMPARISONS:
        found = ours(form.format(left, right))
        if isinstance(answer, str) and not _constant(left, right):
            assert found is None, (form, answer)
        elif form == "{0} = {1}" and frozenset((left, right)) not in OURS_ALONE and not isinstance(answer, str):
            assert found is not None
            assert "(" in left + right or all(same(*pair) for pair in zip(found, answer, strict=True))


def _constant(left: str, right: str) -> bool:
    return all(value[0] in "[(" and value != "(i, s)" for value in (left, right))


@pytest.mark.parametrize("form", CHOICES)
@pytest.mark.parametrize(
    ("left", "right"), [("i", "s"), ("ts", "s"), ("i", "ints"), ("s", "ints"), ("i", "ts"), ("1", "'x'"), ("ts", "'x'")]
)
def test_a_choice_has_one_type(form: str, left: str, right: str) -> None:
    for pair in ((left, right), (right, left)):
        with pytest.raises(SqlError, match="no type in common") as fault:
            our_values(form.format(*pair))
        assert fault.value.fix.startswith("as texts: to_string(")


@pytest.mark.parametrize("call", ["has({0}, {1})", "index_of({0}, {1})", "count_equal({0}, {1})"])
def test_an_array_is_asked_for_what_it_can_hold(call: str) -> None:
    for array, value in (("ints", "'a'"), ("ints", "s"), ("words", "1"), ("ints", "[1]")):
        with pytest.raises(SqlError, match="holds no"):
            our_values(call.format(array, value))
    assert our_values(call.format("ints", "7")) == our_values(call.format("ints", "'7'"))


@pytest.mark.parametrize(
    "expression",
    [
        *("date '2026-13-01'", "timestamp '2026-13-01 00:00:00'", "'abc'::int", "cast('2026-02-30' as date)"),
        *("to_date('abc')", "to_datetime('abc')", "to_int32('abc')", "to_decimal32('abc', 2)", "to_uuid('abc')"),
        *("date_diff('day', 'a', 'b')", "date_diff('day', ts, 'b')", "date_diff('day', s, ts)", "time_diff('a', ts)"),
        *("to_start_of_hour('abc')", "to_year('abc')", "to_hour(s)", "age('day', s, ts)"),
        *("to_timezone(ts, 'Mars')", "ts at time zone 'Mars'", "to_hour(ts, 'Mars')", "to_date(ts, 'Mars')"),
    ],
)
def test_what_is_written_and_has_no_value_is_refused(expression: str) -> None:
    with pytest.raises(SqlError):
        our_values(expression)


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "to_int32_or_null('abc')",
            "to_date_or_null('2026-13-01')",
            "to_int32_or_zero('abc')",
            "try_cast('x' as int)",
        ),
        *("date_diff('day', ts, '2026-01-02')", "to_int32(s)", "to_date(day_text)", "to_hour(to_datetime64(s, 3))"),
    ],
)
def test_what_is_asked_for_or_in_rows_is_not(expression: str) -> None:
    our_values(expression)


PLANNER = Planner.of("CREATE STREAM s (id int, status string, tags array(string), ids array(int), at datetime64(3))")


@pytest.mark.parametrize("relation", ["s", "table(s)"])
@pytest.mark.parametrize(
    ("refused", "said", "fix", "mended"),
    [
        (
            "status = 5",
            "status (string) cannot be compared with 5 (uint8)",
            "as texts: to_string(5)",
            "status = to_string(5)",
        ),
        (
            "id = status",
            "id (int32) cannot be compared with status (string)",
            "as texts: to_string(id)",
            "to_string(id) = status",
        ),
        (
            "tags = 'a'",
            "tags (array(string)) cannot be compared with 'a' (string)",
            "ask for an element: has(tags, 'a')",
            "has(tags, 'a')",
        ),
        (
            "ids = 1",
            "ids (array(int32)) cannot be compared with 1 (uint8)",
            "ask for an element: has(ids, 1)",
            "has(ids, 1)",
        ),
        (
            "id = (1, 2)",
            "id (int32) cannot be compared with tuple(int32, int32)",
            "as texts: to_string(id) and to_string(x)",
            "to_string(id) = to_string((1, 2))",
        ),
        (
            "at = 5",
            "at (datetime64(3, 'UTC')) cannot be compared with 5 (uint8)",
            "compare seconds: to_unix_timestamp(at)",
            "to_unix_timestamp(at) = 5",
        ),
        (
            "status IN ('a', 1)",
            "status (string) cannot be compared with 1 (uint8)",
            "as texts: to_string(1)",
            "status IN ('a', to_string(1))",
        ),
        (
            "id = 1 AND at > date '2026-13-01'",
            "'2026-13-01' is not a valid date",
            "write a value of that type; or, for NULL, NULL::date",
            "at > NULL::date",
        ),
    ],
)
@pytest.mark.parametrize(
    "place", ["SELECT id FROM {1} WHERE {0}", "SELECT {0} AS x FROM {1}", "SELECT if({0}, 1, 2) AS x FROM {1}"]
)
def test_the_fix_can_be_planned(relation: str, refused: str, said: str, fix: str, mended: str, place: str) -> None:
    with pytest.raises(SqlError) as fault:
        PLANNER.plan(place.format(refused, relation))
    assert (fault.value.what, fault.value.fix) == (said, fix)
    assert fault.value.where
    PLANNER.plan(place.format(mended, relation))


@pytest.mark.parametrize("relation", ["s", "table(s)"])
def test_a_text_that_is_no_value_is_refused_in_the_select_list_too(relation: str) -> None:
    with pytest.raises(SqlError, match="'abc' is not a valid int32, the type of id"):
        PLANNER.plan(f"SELECT id = 'abc' AS x FROM {relation}")


@pytest.mark.parametrize(
    "condition",
    [
        "m = d",
        "m = (n)",
        "m < 'x'",
        "t = 'x'",
        "5 = 'Mars'",
        "'Mars' <> 1.5",
        "at IS DISTINCT FROM 'Mars'",
        "n <=> 'x'",
    ],
)
def test_no_form_of_a_comparison_is_passed_over(condition: str) -> None:
    columns = "n int, d decimal(10, 2), at datetime64(3), m map(string, int), t tuple(x int, y string)"
    planner = Planner.of(f"CREATE STREAM s ({columns})")
    with pytest.raises(SqlError, match=r"cannot be compared|is not a valid"):
        planner.plan(f"SELECT {condition} AS x FROM s")
    with pytest.raises(SqlError, match=r"cannot be compared|is not a valid"):
        planner.plan(f"SELECT {condition} AS x FROM table(s)")
