"""Sums of doubles are rounded once: beside ``math.fsum``, over many sums that lie at ties and just beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dovetail.joins.aggregates.exact_sums import Doubles, balanced, placed, rounded

SUMS, NUMBERS = 20_000, 7
FEW = np.array([0.1, 0.2, 0.7, 1.0, 3.0, 1e16, -1e16, 2.0**53, -(2.0**53), 2.0**-60, 5e-324, 0.0, -0.0, 1e300])
"""Of these, sums often lie at a tie, or so near to one that only the last digits tell."""


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_is_rounded_once(seed: int) -> None:
    chance = np.random.default_rng(seed)
    signs = chance.choice([-1.0, 1.0], (SUMS, NUMBERS))
    few = signs * chance.choice(FEW, (SUMS, NUMBERS))
    any_bits = np.ldexp(chance.integers(0, 1 << 53, (SUMS, NUMBERS)), chance.integers(-60, 10, (SUMS, NUMBERS)))
    near = signs * np.where(chance.random((SUMS, NUMBERS)) < 0.5, any_bits, chance.choice(FEW, (SUMS, NUMBERS)))
    for numbers in (few, near):
        expected = np.array([math.fsum(row) for row in numbers.tolist()])
        np.testing.assert_array_equal(summed(numbers), expected)


def summed(numbers: Doubles) -> Doubles:
    """The sum of each row."""
    places, digits = placed(numbers.ravel())
    first = int(places.min())
    dense = np.zeros((len(numbers), int(places.max()) - first + 3), dtype=np.int64)
    rows = np.repeat(np.arange(len(numbers)), 3 * NUMBERS)
    np.add.at(dense, (rows, places.ravel() - first), digits.ravel())
    return rounded(balanced(dense), first)
