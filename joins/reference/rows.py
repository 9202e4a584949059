"""Rows, and multisets of them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

Row = tuple[object, ...]


Record = tuple[Row, int]
"""A row and its delta, in order of arrival."""


def keys_equal(left: Row, right: Row, null_safe: Sequence[bool]) -> bool:
    safe = null_safe or (False,) * len(left)
    return all(a == b and (s or a is not None) for a, b, s in zip(left, right, safe, strict=True))


def difference(after: Counter[Row], before: Counter[Row]) -> Counter[Row]:
    """Row to signed count, without zeros."""
    changes = Counter(after)
    changes.subtract(before)
    return Counter({row: count for row, count in changes.items() if count})


def part(row: Row, positions: Sequence[int]) -> Row:
    return tuple(row[position] for position in positions)


HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
