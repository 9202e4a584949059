"""What Timeplus has and ClickHouse has not, or has under another meaning: answers written out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.oracles.timeplus import our_values
from tests.oracles.values import Cell

ANSWERS: dict[str, list[Cell]] = {
    "zero_if_null(i)": [7, -3, 0, 2147483647, -2147483648, 12, 0],
    "day_name(d)": ["Sunday", "Monday", "Tuesday", "Sunday", "Thursday", "Tuesday", None],
    "split_part('a,b,c', ',', 2)": ["b"] * 7,
    "split_part(s, ',', 9)": ["", "", "", "", "", "", None],
    "to_unix_timestamp(earliest_ts())": [0] * 7,
    "to_unix_timestamp(to_time('2024-03-10 01:02:03', 'Asia/Tokyo'))": [1710000123] * 7,
    "json:a.c": ["x", None, None, None, None, None, None],
    "json:n": [None, None, None, "-3", "12", None, None],
    "grok('10.0.0.1 GET /x', '%{IP:client} %{WORD:method} %{NOTSPACE:path}')['method']": ["GET"] * 7,
    "grok('10.0.0.1 GET /x', '%{INT:a}%{INT:b} nothing')['a']": [""] * 7,
    "to_decimal64_or_null('7.41251856201490e+08', 12)": [None] * 7,
    "modulo(to_decimal128('-123456789012345678901234567890.25', 2), to_decimal128('0.4', 20))": [Decimal("-0.25")] * 7,
}


@pytest.mark.parametrize("expression", ANSWERS)
def test_values_are_as_written(expression: str) -> None:
    assert our_values(expression) == ANSWERS[expression]
