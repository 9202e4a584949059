"""``+ - * / %``: of numbers in the type that they have in common, of times and intervals.

Two integers give an integer; beyond its range, and for a division by zero, the operator fails. A numeric keeps its
digits: 38, of which a product has those of both factors after the point, rounded to 20 where it would have more, and a
quotient 16 if they find room beside those before it, and 6 at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions import long_arithmetic
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    CLOCK,
    DATE,
    DOUBLE,
    INSTANT,
    INT,
    INTERVAL,
    LOCAL,
    NUMERIC_DIGITS,
    as_numeric,
    common_number,
    engine_name,
    is_number,
    is_unknown,
    kind_of,
    name_of,
    numeric,
    typed,
)
from dovetail.sql.functions.risingwave.values.quoted_values import BRACKETS, expect_value
from dovetail.sql.functions.typed import Typed

_QUOTIENT_SCALE = 16
_PRODUCT_SCALE = 20
_BEYOND_64_BITS = 19

Operands = tuple[Typed, Typed]
_MOVED = (DATE, LOCAL, INSTANT, CLOCK)


def arithmetic(sign: str, left: Typed, right: Typed) -> Typed:
    """``left sign right``. Raises SqlError for types that have no such operator."""
    left, right = _known(sign, left, right)
    kinds = kind_of(left), kind_of(right)
    if is_number(kinds[0]) and is_number(kinds[1]):
        return _of_numbers(sign, left, right)
    made = _of_times(sign, left, right)
    if made is None:
        raise SqlError(
            f"there is no {name_of(kinds[0])} {sign} {name_of(kinds[1])}", fix="write x::type on one of them"
        )
    return made


def _known(sign: str, left: Typed, right: Typed) -> Operands:
    """A text in quotes is of the type of the other operand; beside a time it is an interval, after + ."""
    if is_unknown(left) and is_unknown(right):
        both = cast(left, INT), cast(right, INT)
        expect_value(both[1], left, both[0], BRACKETS)
        expect_value(both[0], right, both[1], BRACKETS)
        return both
    if is_unknown(right):
        return left, _read(right, sign, left)
    if is_unknown(left):
        return _read(left, sign, right), right
    return left, right


def _read(written: Typed, sign: str, beside: Typed) -> Typed:
    made = cast(written, _beside(sign, kind_of(beside)))
    expect_value(beside, written, made, BRACKETS)
    return made


def _beside(sign: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return numeric(18, 20)
    if kind in _MOVED and sign == "+":
        return INTERVAL
    return DOUBLE if kind == INTERVAL and sign in "*/" else kind


# Numbers


def _of_numbers(sign: str, left: Typed, right: Typed) -> Typed:
    kind = common_number([kind_of(left), kind_of(right)])
    if pa.types.is_floating(kind):
        # real with anything but real is a double precision.
        kind = kind if kind_of(left) == kind_of(right) else DOUBLE
        return _of_floats(sign, left, right, kind)
    if pa.types.is_decimal(kind):
        return _NUMERIC[sign](left, right)
    if sign == "%" and not isinstance(right.literal, int):
        # The least integer divided by -1 has no quotient, but a remainder.
        return typed(
            left, f"CAST(CAST({{0}} AS HUGEINT) % {{1}} AS {engine_name(kind)})", [left.tree, right.tree], kind
        )
    template = "{0} // {1}" if sign == "/" else f"{{0}} {sign} {{1}}"
    return typed(left, template, [cast(left, kind).tree, cast(right, kind).tree], kind)


def _of_floats(sign: str, left: Typed, right: Typed, kind: pa.DataType) -> Typed:
    if sign == "%":
        raise SqlError(f"there is no {name_of(kind)} % {name_of(kind)}", fix="write x::numeric")
    # NaN alone may be divided by zero.
    template = "{0} / CASE WHEN {1} <> 0 OR isnan({0}) THEN {1} END" if sign == "/" else f"{{0}} {sign} {{1}}"
    return typed(left, template, [cast(left, kind).tree, cast(right, kind).tree], kind)


def _decimals(left: Typed, right: Typed) -> tuple[pa.DataType, pa.DataType]:
    return as_numeric(kind_of(left)), as_numeric(kind_of(right))


def _numeric_sum(sign: str) -> Callable[[Typed, Typed], Typed]:
    def made(left: Typed, right: Typed) -> Typed:
        one, other = _decimals(left, right)
        whole, scale = max(one.precision - one.scale, other.precision - other.scale), max(one.scale, other.scale)
        kind, part = numeric(whole + 1, scale), numeric(whole, scale)
        trees = [cast(left, part).tree, cast(right, part).tree]
        return typed(left, f"CAST({{0}} {sign} {{1}} AS {engine_name(kind)})", trees, kind)

    return made


def _numeric_product(left: Typed, right: Typed) -> Typed:
    one, other = _decimals(left, right)
    scale = min(one.scale + other.scale, max(_PRODUCT_SCALE, one.scale, other.scale))
    kind = pa.decimal128(min(NUMERIC_DIGITS, one.precision + other.precision), scale)
    dropped = one.scale + other.scale - scale
    if dropped and one.precision + other.precision > NUMERIC_DIGITS:
        return _of_digits(left, long_arithmetic.product(_digits(left, one), _digits(right, other), dropped), kind)
    # The engine multiplies narrow factors in 64 bits, whatever the product needs.
    least = _BEYOND_64_BITS if kind.precision >= _BEYOND_64_BITS else 1
    trees = [
        cast(side, pa.decimal128(max(digits.precision, least), digits.scale)).tree
        for side, digits in ((left, one), (right, other))
    ]
    return typed(left, f"CAST({{0}} * {{1}} AS {engine_name(kind)})", trees, kind)


def _digits(value: Typed, kind: pa.DataType) -> exp.Expr:
    return long_arithmetic.digits_of(cast(value, kind).tree, kind.scale)


def _of_digits(value: Typed, digits: exp.Expr, kind: pa.DataType) -> Typed:
    return value.of(long_arithmetic.with_point(digits, kind), kind)


def _quotient(left: Typed, right: Typed) -> Typed:
    """Rounded half away from zero."""
    one, other = _decimals(left, right)
    whole = one.precision - one.scale + other.scale
    scale = max(min(max(_QUOTIENT_SCALE, one.scale, other.scale), NUMERIC_DIGITS - 1 - whole), 6)
    kind = pa.decimal128(NUMERIC_DIGITS, scale)
    return _of_digits(left, _divided(left, right, scale, rounded=True), kind)


def whole_quotient(left: Typed, right: Typed) -> Typed:
    """``div(left, right)``: what is behind the point is cut off."""
    return _of_digits(left, _divided(left, right, 0, rounded=False), numeric(NUMERIC_DIGITS, 0))


def _divided(left: Typed, right: Typed, scale: int, *, rounded: bool) -> exp.Expr:
    """The digits of the quotient, with ``scale`` of them behind the point."""
    one, other = _decimals(left, right)
    shift = scale + other.scale - one.scale
    return long_arithmetic.quotient(_digits(left, one), _digits(right, other), shift, one.precision, rounded=rounded)


def _remainder(left: Typed, right: Typed) -> Typed:
    one, other = _decimals(left, right)
    kind = numeric(max(one.precision - one.scale, other.precision - other.scale), max(one.scale, other.scale))
    digits = long_arithmetic.remainder(
        _digits(left, one), _digits(right, other), other.scale - one.scale, one.precision
    )
    return _of_digits(left, digits, kind)


_NUMERIC: Mapping[str, Callable[[Typed, Typed], Typed]] = {
    "+": _numeric_sum("+"),
    "-": _numeric_sum("-"),
    "*": _numeric_product,
    "/": _quotient,
    "%": _remainder,
}


# Times


def _of_times(sign: str, left: Typed, right: Typed) -> Typed | None:
    one, other = kind_of(left), kind_of(right)
    if sign == "+" and one not in _MOVED and other in _MOVED:
        return _of_times(sign, right, left)
    if sign == "*" and is_number(one) and other in (INTERVAL, CLOCK):
        return _of_times(sign, right, left)
    if sign in "*/" and one == CLOCK and is_number(other):
        # Of a time of day, that is of its length.
        left, one = cast(left, INTERVAL), INTERVAL
    made = _TIMES.get((one, sign, _integer(other)))
    return None if made is None else typed(left, made[0], [left.tree, right.tree], made[1])


def _integer(kind: pa.DataType) -> pa.DataType | str:
    return "number" if is_number(kind) else kind


def _between(template: str) -> str:
    """Whole days of 24 hours, and the rest."""
    micros = template
    return f"to_days(CAST(({micros}) // 86400000000 AS INTEGER)) + to_microseconds(({micros}) % 86400000000)"


def _in_calendar(moved: str) -> str:
    """The days that PostgreSQL has begin in 4714 BC."""
    return f"CASE WHEN {moved} BETWEEN DATE '1970-01-01' - 2440588 AND DATE '5874897-12-31' THEN {moved} END"


_LOCAL_DIFFERENCE = _between("epoch_us(CAST({0} AS TIMESTAMP)) - epoch_us(CAST({1} AS TIMESTAMP))")
_INSTANT_DIFFERENCE = _between("epoch_us(CAST({0} AS TIMESTAMPTZ)) - epoch_us(CAST({1} AS TIMESTAMPTZ))")

_TIMES: Mapping[tuple[pa.DataType, str, pa.DataType | str], tuple[str, pa.DataType]] = {
    (DATE, "+", "number"): (_in_calendar("CAST({0} + CAST({1} AS INTEGER) AS DATE)"), DATE),
    (DATE, "-", "number"): (_in_calendar("CAST({0} - CAST({1} AS INTEGER) AS DATE)"), DATE),
    (DATE, "-", DATE): ("CAST({0} - {1} AS INTEGER)", INT),
    (DATE, "+", INTERVAL): ("CAST({0} AS TIMESTAMP) + {1}", LOCAL),
    (DATE, "-", INTERVAL): ("CAST({0} AS TIMESTAMP) - {1}", LOCAL),
    (DATE, "+", CLOCK): (
        "CAST({0} AS TIMESTAMP) + to_microseconds(date_diff('microsecond', TIME '00:00:00', {1}))",
        LOCAL,
    ),
    (CLOCK, "+", DATE): (
        "CAST({1} AS TIMESTAMP) + to_microseconds(date_diff('microsecond', TIME '00:00:00', {0}))",
        LOCAL,
    ),
    (LOCAL, "+", INTERVAL): ("{0} + {1}", LOCAL),
    (LOCAL, "-", INTERVAL): ("{0} - {1}", LOCAL),
    (INSTANT, "+", INTERVAL): ("{0} + {1}", INSTANT),
    (INSTANT, "-", INTERVAL): ("{0} - {1}", INSTANT),
    (LOCAL, "-", LOCAL): (_LOCAL_DIFFERENCE, INTERVAL),
    (LOCAL, "-", DATE): (_LOCAL_DIFFERENCE, INTERVAL),
    (DATE, "-", LOCAL): (_LOCAL_DIFFERENCE, INTERVAL),
    (INSTANT, "-", INSTANT): (_INSTANT_DIFFERENCE, INTERVAL),
    (INSTANT, "-", LOCAL): (_INSTANT_DIFFERENCE, INTERVAL),
    (LOCAL, "-", INSTANT): (_INSTANT_DIFFERENCE, INTERVAL),
    (INSTANT, "-", DATE): (_INSTANT_DIFFERENCE, INTERVAL),
    (DATE, "-", INSTANT): (_INSTANT_DIFFERENCE, INTERVAL),
    (CLOCK, "+", INTERVAL): ("{0} + {1}", CLOCK),
    (CLOCK, "-", INTERVAL): ("{0} - {1}", CLOCK),
    (CLOCK, "-", CLOCK): ("to_microseconds(date_diff('microsecond', {1}, {0}))", INTERVAL),
    (INTERVAL, "+", INTERVAL): ("{0} + {1}", INTERVAL),
    (INTERVAL, "-", INTERVAL): ("{0} - {1}", INTERVAL),
    (INTERVAL, "*", "number"): ("{0} * CAST({1} AS DOUBLE)", INTERVAL),
    (INTERVAL, "/", "number"): ("{0} * (1 / nullif(CAST({1} AS DOUBLE), 0))", INTERVAL),
}


def negated(value: Typed) -> Typed:
    """``-value``"""
    if is_unknown(value):
        value = cast(value, DOUBLE)
    kind = kind_of(value)
    if kind == INTERVAL:
        return typed(value, "{0} * -1", [value.tree], kind)
    if not is_number(kind):
        raise SqlError(f"there is no -{name_of(kind)}", fix="write x::numeric")
    return typed(value, "-{0}", [value.tree], kind)


def bits(sign: str, left: Typed, right: Typed) -> Typed:
    """``& | # << >>``"""
    kinds = [kind_of(left), kind_of(right)]
    if not all(pa.types.is_integer(kind) for kind in kinds):
        raise SqlError(f"there is no {name_of(kinds[0])} {sign} {name_of(kinds[1])}", fix="write x::integer")
    kind = kinds[0] if sign in ("<<", ">>") else common_number(kinds)
    template = {"#": "xor({0}, {1})", "<<": _shifted(kind.bit_width)}.get(sign, f"{{0}} {sign} {{1}}")
    trees: Sequence[exp.Expr] = [cast(left, kind).tree, cast(right, kind).tree]
    return typed(left, f"CAST({template} AS {engine_name(kind)})", trees, kind)


def _shifted(width: int) -> str:
    """Bits beyond the width are lost; the engine's shift would fail."""
    half, whole = 1 << (width - 1), 1 << width
    product = f"CAST({{0}} AS HUGEINT) * (CAST(1 AS HUGEINT) << ({{1}} & {max(width, 32) - 1}))"
    huge = f"(({product} + {half}) % CAST({whole} AS HUGEINT) + {whole}) % CAST({whole} AS HUGEINT)"
    return f"{huge} - {half}"
