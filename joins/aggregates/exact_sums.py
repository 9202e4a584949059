"""Sums without rounding: numbers taken apart into digits to the base 2^32, which are added up as integers.

Digits of different numbers can be added in any order and taken away again: a sum is the same however its numbers came,
and a retraction leaves nothing behind. There is room for 2^31 numbers between two calls of ``normalized``/``balanced``.

An integer or decimal has two or four digits, the lowest first; the last bears the sign. A double is a whole number of
2^-1126, and has up to three digits at any of 68 *places*; what is not finite is counted at places of its own, below 0.

Source: Kulisch, "Computer Arithmetic and Validity" (2008); Neal, "Fast exact summation using small and large
superaccumulators" (2015).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.rows import Mask

Digits = npt.NDArray[np.int64]
"""One number a row."""
Doubles = npt.NDArray[np.float64]

_BITS = 32
_BASE = 1 << _BITS
_LOW = np.int64(_BASE - 1)
_UNIT = -1126
"""Every double is a whole number of 2^-1126, its 53 significant bits counted in."""
_EXACT = 2.0**53
NAN, INFINITY, MINUS_INFINITY = -1, -2, -3
"""The places at which these are counted."""


# -- integers and decimals


def width(kind: pa.DataType) -> int:
    """The number of digits of an integer or decimal type."""
    return 4 if pa.types.is_decimal(kind) else 2


def digits_of(values: pa.Array) -> Digits:
    """The digits of integers of 64 bits, or of decimals without their point; no NULLs."""
    if pa.types.is_decimal(values.type):
        words = np.frombuffer(values.buffers()[1], dtype=np.uint32).reshape(-1, 4)
        words = words[values.offset : values.offset + len(values)]
        digits = words.astype(np.int64)
        digits[:, 3] = words[:, 3].astype(np.int32)
        return digits
    numbers = values.to_numpy(zero_copy_only=False)
    high = numbers >> _BITS if numbers.dtype != np.uint64 else numbers >> np.uint64(_BITS)
    low = numbers.astype(np.int64, copy=False) & _LOW
    return np.column_stack([low, high.astype(np.int64, copy=False)])


def normalized(digits: Digits) -> Digits:
    """The same numbers with every digit but the last in [0, 2^32)."""
    digits = digits.copy()
    for place in range(digits.shape[1] - 1):
        digits[:, place + 1] += digits[:, place] >> _BITS
        digits[:, place] &= _LOW
    return digits


def as_integers(digits: Digits, kind: pa.DataType) -> pa.Array:
    """Normalized digits as int64 or uint64; NULL where that is too narrow."""
    low, high = digits[:, 0], digits[:, 1]
    least, signed = (-(1 << 31), True) if pa.types.is_signed_integer(kind) else (0, False)
    fits = (high >= least) & (high < least + _BASE)
    words = (np.where(fits, high, 0) << _BITS) | low
    return pa.array(words if signed else words.view(np.uint64), kind, mask=~fits)


def as_decimals(digits: Digits, kind: pa.Decimal128Type) -> pa.Array:
    """Normalized digits as decimals; NULL where there are more digits than ``kind`` has."""
    digits = normalized(np.pad(digits, [(0, 0), (0, 4 - digits.shape[1])]))
    fits = _below(digits, 10**kind.precision)
    words = np.where(fits[:, None], digits, 0) & _LOW
    content = pa.py_buffer(words.astype(np.uint32).tobytes())
    valid = pa.array(fits).buffers()[1]
    return pa.Array.from_buffers(kind, len(digits), [valid, content])


def _below(digits: Digits, bound: int) -> Mask:
    """Which of these numbers are nearer to 0 than ``bound``."""
    magnitudes = normalized(np.where(digits[:, -1:] < 0, -digits, digits))
    below = np.zeros(len(digits), dtype=np.bool_)
    for place in range(digits.shape[1]):
        digit, limit = magnitudes[:, place], (bound >> _BITS * place) & (_BASE - 1)
        below = np.where(digit == limit, below, digit < limit)
    return below


def quotients(digits: Digits, divisors: Digits, scale: int) -> Doubles:
    """Normalized digits divided by ``divisors * 10^scale``: the nearest doubles.

    The quotient of two doubles is the nearest; where a number is none, Python divides whole numbers of any length.
    """
    numbers, unit = as_doubles(digits), 10**scale
    with np.errstate(divide="ignore", invalid="ignore"):
        found = numbers / (divisors * float(unit))
    long = np.flatnonzero((np.abs(numbers) >= _EXACT) | (divisors * float(unit) >= _EXACT))
    if len(long):
        whole = sum(digits[long, place].astype(object) << _BITS * place for place in range(digits.shape[1]))
        found[long] = (whole / (divisors[long].astype(object) * unit)).astype(np.float64)
    return found


def as_doubles(digits: Digits) -> Doubles:
    """Normalized digits as doubles; those of 53 bits exactly."""
    value = digits[:, -1].astype(np.float64)
    for place in reversed(range(digits.shape[1] - 1)):
        value = value * _BASE + digits[:, place]
    return value


# -- doubles


def placed(values: Doubles) -> tuple[Digits, Digits]:
    """The digits of doubles and their places: one number a row, three digits each, of which some are 0."""
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    # Zero has the exponent 0: any place will do for its digits.
    position = exponent.astype(np.int64) - 53 - _UNIT
    place, shift = position // _BITS, position % _BITS
    low, high = (whole & _LOW) << shift, (whole >> _BITS) << shift
    sign = np.where(mantissa < 0, np.int64(-1), np.int64(1))
    digits = np.column_stack([low & _LOW, ((low >> _BITS) & _LOW) + (high & _LOW), high >> _BITS]) * sign[:, None]
    places = place[:, None] + np.arange(3)
    if not finite.all():
        special = np.where(np.isnan(values), NAN, np.where(values > 0, INFINITY, MINUS_INFINITY))
        digits[~finite] = np.array([1, 0, 0])
        places[~finite] = special[~finite][:, None]
    return places, digits


def balanced(digits: Digits) -> Digits:
    """The digits of consecutive places with carries passed on: each in [-2^31, 2^31). The last must have room."""
    digits = digits.copy()
    for place in range(digits.shape[1] - 1):
        carry = (digits[:, place] + (1 << (_BITS - 1))) >> _BITS
        digits[:, place] -= carry << _BITS
        digits[:, place + 1] += carry
    return digits


def rounded(digits: Digits, first: int) -> Doubles:
    """Balanced digits, of which the first column is at the place ``first``, as doubles: rounded to the nearest."""
    leading = digits.shape[1] - 1 - np.argmax(digits[:, ::-1] != 0, axis=1)
    # Two digits are up to 2^63 together, which is no whole number of 64 bits any more.
    value, lost = _two_digits(_column(digits, leading), _column(digits, leading - 1))
    low, lost_of_low = _two_digits(_column(digits, leading - 2), _column(digits, leading - 3))
    rest, error = _two_sum(lost * float(_BASE) ** 2, low)
    # What is lost of the rest is too small to be added; it only tells to which side of a tie the sum lies.
    signs = [np.sign(error), np.sign(lost_of_low), _sign_below(digits, leading - 3)]
    rest = _to_odd(rest, np.select([sign != 0 for sign in signs], signs, 0))
    with np.errstate(over="ignore"):
        total: Doubles = np.ldexp(value * float(_BASE) ** 2 + rest, _BITS * (first + leading - 3) + _UNIT)
    return total


def _two_digits(upper: Digits, lower: Digits) -> tuple[Doubles, Doubles]:
    """What they are together as a double, and what is lost of it."""
    return _two_sum(upper.astype(np.float64) * _BASE, lower.astype(np.float64))


def _two_sum(first: Doubles, second: Doubles) -> tuple[Doubles, Doubles]:
    """The sum, and what is lost of it by rounding: exact together (Knuth)."""
    total = first + second
    shown = total - first
    return total, (first - (total - shown)) + (second - shown)


def _to_odd(nearest: Doubles, side: Doubles) -> Doubles:
    """Exact values, which lie to the ``side`` of ``nearest``, the doubles nearest to them, rounded to odd: where they
    are no double, to the neighbour whose last bit is set. So a tie is only what was one, and to round again is right.

    Source: Boldo and Melquiond, "Emulation of a FMA and Correctly Rounded Sums" (IEEE Transactions on Computers, 2008).
    """
    odd = nearest.view(np.int64) & 1 == 1
    other = np.nextafter(nearest, np.where(side > 0, np.inf, -np.inf))
    return np.where((side == 0) | odd, nearest, other)


def _sign_below(digits: Digits, column: Digits) -> Digits:
    """Of each row the sign of what its digits before ``column`` add up to."""
    lower = np.where(np.arange(digits.shape[1]) < column[:, None], digits, 0)
    leading = digits.shape[1] - 1 - np.argmax(lower[:, ::-1] != 0, axis=1)
    return np.sign(_column(lower, leading))


def _column(digits: Digits, column: Digits) -> Digits:
    """Of each row the digit in its ``column``; 0 before the first."""
    return np.where(column >= 0, digits[np.arange(len(digits)), column], 0)


def with_specials(total: Doubles, nan: Digits, infinity: Digits, minus_infinity: Digits) -> Doubles:
    """The sums of the finite numbers, and how many of the others there are."""
    total = np.where(infinity > 0, np.inf, np.where(minus_infinity > 0, -np.inf, total))
    return np.where((nan > 0) | ((infinity > 0) & (minus_infinity > 0)), np.nan, total)


def is_summed_exactly(kind: pa.DataType) -> bool:
    """Whether the type is one that digits are made of: whole numbers of 64 bits, and decimals."""
    return kind in (pa.int64(), pa.uint64()) or pa.types.is_decimal128(kind)


def zero_filled(column: pa.ChunkedArray) -> Digits:
    """A column of counts or digits, 0 for NULL."""
    filled: Digits = pc.fill_null(column, 0).to_numpy()
    return filled
