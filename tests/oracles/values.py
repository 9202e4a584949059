"""Values of two engines, and when they are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

Cell = object


def same(left: Cell, right: Cell) -> bool:
    """NULL is NULL, NaN is NaN, and floats may differ in their last bits: two libraries computed them."""
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        return _close(left, right)
    if isinstance(left, int | Decimal) and isinstance(right, int | Decimal):
        return left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def _close(left: Cell, right: Cell) -> bool:
    if not (isinstance(left, int | float | Decimal) and isinstance(right, int | float | Decimal)):
        return False
    one, other = float(left), float(right)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    # A numeric that a double precision stands for has 16 digits after the point.
    least = 1e-15 if isinstance(left, Decimal) or isinstance(right, Decimal) else 1e-300
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=least)
