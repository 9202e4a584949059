"""What is refused says why, and what works."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.sql.functions.dialects import TIMEPLUS
from tests.oracles.timeplus import our_values


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("now()", "no fixed value"),
        ("generateUUIDv4()", "random"),
        ("arrayJoin(ints)", "several rows"),
        ("unnest(ints)", "several rows"),
        ("neighbor(i, 1)", "same batch"),
        ("version()", "server"),
        ("cityHash64(s)", "last bit"),
    ],
)
def test_it_is_refused_with_its_reason(written: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason) as refused:
        our_values(written)
    assert refused.value.fix


def test_a_name_is_registered_or_refused() -> None:
    assert TIMEPLUS.registry.functions.keys() & TIMEPLUS.registry.refused.keys() == set()


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UnknownName) as unknown:
        our_values("to_start_of_huor(ts)")
    assert "to_start_of_hour(time[, zone])" in (unknown.value.fix or "")


@pytest.mark.parametrize(
    "written",
    [
        "to_decimal32(i, j)",
        "array_map(x -> x + 1)",
        "array_map(x -> x + 1, i)",
        "array_map((x, y) -> x + y, ints)",
        "format_datetime(ts, s)",
        "format_datetime(ts, '%E')",
        "date_diff('fortnight', ts, ts)",
        "round(f, j)",
        "extract(s, p)",
        "tuple_element((1, 2), 3)",
        "grok(s, '%{NOTHING:x}')",
        "multi_if(o, 1)",
        "hex(f)",
        "length(i)",
        "lower(s, t)",
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_usage(written: str) -> None:
    with pytest.raises(SqlError) as refused:
        our_values(written)
    assert written.partition("(")[0] in f"{refused.value.what} {refused.value.fix}"


@pytest.mark.parametrize("name", ["array_min", "array_sum", "array_sort", "array_exists"])
def test_a_lambda_without_an_array_is_refused(name: str) -> None:
    with pytest.raises(SqlError, match="takes a lambda of 0 arguments"):
        our_values(f"{name}(x -> x)")
