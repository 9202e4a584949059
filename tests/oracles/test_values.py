"""When values of two engines are the same."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.oracles.values import Cell, same


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (None, None, True),
        (None, 0, False),
        (True, 1, False),
        (1, Decimal("1.00"), True),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.31, False),
        (float("nan"), float("nan"), True),
        (float("inf"), float("-inf"), False),
        ("1", 1, False),
        ([1, None], [1, None], True),
        ([1, None], [1], False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_values_are_the_same(left: Cell, right: Cell, equal: bool) -> None:
    assert same(left, right) is equal
