"""Numbers: rounding, powers and logarithms, angles, divisors.

A function of double precision takes any number; a logarithm or a root outside its domain fails, and is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dovetail.sql.functions.registry import Registry, Unfit
from dovetail.sql.functions.risingwave.arithmetic import arithmetic, whole_quotient
from dovetail.sql.functions.risingwave.signatures import Group
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    DOUBLE,
    INT,
    NUMERIC_DIGITS,
    SMALL,
    TEXT,
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
from dovetail.sql.functions.typed import Typed

_LAST = "the last digit may differ, so a sine of 30 may not be 0.5"
_DOUBLE = "a double precision, where PostgreSQL gives a numeric for a numeric"


def _number(value: Typed) -> Typed:
    """A number; a text in quotes is a double precision."""
    if is_unknown(value):
        return cast(value, DOUBLE)
    if not is_number(kind_of(value)):
        raise Unfit(f"takes a number, not {name_of(kind_of(value))}")
    return cast(value, kind_of(value))


def _abs(given: Sequence[Typed]) -> Typed:
    value = _number(given[0])
    return typed(value, "abs({0})", [value.tree], kind_of(value))


def _whole(of_numeric: str, of_double: str) -> Callable[[Sequence[Typed]], Typed]:
    """Rounded to a whole number: a numeric stays one, all else is a double precision."""

    def build(given: Sequence[Typed]) -> Typed:
        value = _number(given[0])
        kind = kind_of(value)
        if pa.types.is_decimal(kind):
            result = numeric(kind.precision - kind.scale + 1, 0)
            return typed(value, f"CAST({of_numeric} AS {engine_name(result)})", [value.tree], result)
        return typed(value, of_double, [cast(value, DOUBLE).tree], DOUBLE)

    return build


def _to_digits(name: str, whole: Callable[[Sequence[Typed]], Typed]) -> Callable[[Sequence[Typed]], Typed]:
    """``round(x, n)``: of a numeric, n digits after the point; below 0 before it."""

    def build(given: Sequence[Typed]) -> Typed:
        if len(given) == 1:
            return whole(given)
        value, digits = _number(given[0]), given[1]
        kind = kind_of(value)
        if pa.types.is_floating(kind):
            raise Unfit(f"takes digits of a numeric, not of {name_of(kind)}: write x::numeric")
        if not isinstance(digits.literal, int):
            raise Unfit("takes its digits written out")
        exact = as_numeric(kind)
        places, whole_digits = digits.literal, exact.precision - exact.scale
        source = cast(value, exact)
        if places >= exact.scale:
            return cast(source, numeric(whole_digits, min(places, NUMERIC_DIGITS - whole_digits)))
        result = numeric(whole_digits + 1, max(places, 0))
        return typed(value, f"CAST({name}({{0}}, {places}) AS {engine_name(result)})", [source.tree], result)

    return build


def _sign(given: Sequence[Typed]) -> Typed:
    value = _number(given[0])
    if pa.types.is_decimal(kind_of(value)):
        return typed(value, "CAST(sign({0}) AS DECIMAL(1, 0))", [value.tree], numeric(1, 0))
    return typed(value, "CAST(sign({0}) AS DOUBLE)", [cast(value, DOUBLE).tree], DOUBLE)


def _mod(given: Sequence[Typed]) -> Typed:
    return arithmetic("%", given[0], given[1])


def _div(given: Sequence[Typed]) -> Typed:
    return whole_quotient(*map(_number, given))


def _divisor(template: str) -> Callable[[Sequence[Typed]], Typed]:
    def build(given: Sequence[Typed]) -> Typed:
        sides = [_number(value) for value in given]
        kind = common_number([kind_of(side) for side in sides])
        if not pa.types.is_integer(kind):
            raise Unfit(f"takes integers, not {name_of(kind)}")
        kind = INT if kind == SMALL else kind
        return typed(
            sides[0], f"CAST({template} AS {engine_name(kind)})", [cast(side, kind).tree for side in sides], kind
        )

    return build


def _hex(given: Sequence[Typed]) -> Typed:
    """Below zero in the bits of its type."""
    value = _number(given[0])
    kind = kind_of(value)
    if not pa.types.is_integer(kind):
        raise Unfit(f"takes an integer, not {name_of(kind)}")
    if kind == BIG:
        return typed(value, "lower(hex({0}))", [value.tree], TEXT)
    return typed(
        value, "lower(hex(CASE WHEN {0} < 0 THEN {0} + 4294967296 ELSE {0} END))", [cast(value, BIG).tree], TEXT
    )


_BUCKET = (
    "CASE WHEN {1} = {2} OR {3} <= 0 OR isnan({0}) OR NOT isfinite({1}) OR NOT isfinite({2}) THEN NULL "
    "WHEN {1} < {2} THEN CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN {3} + 1 "
    "ELSE CAST(floor(({0} - {1}) / ({2} - {1}) * {3}) AS BIGINT) + 1 END "
    "ELSE CASE WHEN {0} > {1} THEN 0 WHEN {0} <= {2} THEN {3} + 1 "
    "ELSE CAST(floor(({1} - {0}) / ({1} - {2}) * {3}) AS BIGINT) + 1 END END"
)


def register(registry: Registry) -> None:
    group = Group(registry, "numbers")
    ceil, floor = _whole("ceil({0})", "ceil({0})"), _whole("floor({0})", "floor({0})")
    group.made("abs(x)", "without its sign", _abs, (1, 1))
    group.made("ceil(x)", "the least whole number that is not less", ceil, (1, 1), aliases="ceiling")
    group.made("floor(x)", "the greatest whole number that is not greater", floor, (1, 1))
    round_ = _to_digits("round", _whole("round({0}, 0)", "round_even({0}, 0)"))
    group.made(
        "round(x[, digits])",
        "rounded: half away from zero for a numeric, half to even for a double precision",
        round_,
        (1, 2),
    )
    group.made(
        "trunc(x[, digits])",
        "with the digits behind cut off",
        _to_digits("trunc", _whole("trunc({0})", "trunc({0})")),
        (1, 2),
    )
    group.made("sign(x)", "-1, 0 or 1", _sign, (1, 1))
    group.made("mod(a, b)", "the remainder of a / b, with the sign of a", _mod, (2, 2))
    group.made("div(a, b)", "the whole part of a / b, as a numeric", _div, (2, 2))
    group.made("gcd(a, b)", "the greatest common divisor", _divisor("gcd({0}, {1})"), (2, 2))
    group.made("lcm(a, b)", "the least common multiple", _divisor("lcm({0}, {1})"), (2, 2))
    group.add(
        "factorial(n)",
        "1 * 2 * .. * n",
        "bigint",
        "CASE WHEN {0} >= 0 THEN factorial(CAST({0} AS INTEGER)) END",
        numeric(38, 0),
        differs="no value beyond factorial(33): 38 digits",
    )
    group.add(
        "sqrt(x)",
        "the square root",
        "double",
        "sqrt(CASE WHEN {0} >= 0 THEN {0} END)",
        DOUBLE,
        aliases="dsqrt",
        differs=_DOUBLE,
    )
    group.add("cbrt(x)", "the cube root", "double", "cbrt({0})", DOUBLE)
    group.add(
        "exp(x)",
        "e to the power of x",
        "double",
        "exp(CASE WHEN {0} <= 709.782712893384 OR NOT isfinite({0}) THEN {0} END)",
        DOUBLE,
        differs=_DOUBLE,
    )
    group.add("ln(x)", "the natural logarithm", "double", "ln(CASE WHEN {0} > 0 THEN {0} END)", DOUBLE, differs=_DOUBLE)
    positive = "ln(CASE WHEN {0} > 0 THEN {0} END)"
    group.add(
        "log([base, ]x)",
        "the logarithm to a base, 10 without one",
        "double",
        ["log10(CASE WHEN {0} > 0 THEN {0} END)", f"{positive.replace('{0}', '{1}')} / nullif({positive}, 0)"],
        DOUBLE,
        differs=_DOUBLE,
    )
    group.add(
        "log10(x)",
        "the logarithm to the base 10",
        "double",
        "log10(CASE WHEN {0} > 0 THEN {0} END)",
        DOUBLE,
        differs=_DOUBLE,
    )
    group.add(
        "power(a, b)",
        "a to the power of b",
        "double double",
        "CASE WHEN {0} = 0 AND {1} < 0 OR {0} < 0 AND isfinite({1}) AND {1} <> trunc({1}) THEN NULL "
        "ELSE pow({0}, {1}) END",
        DOUBLE,
        aliases="pow",
        differs=_DOUBLE,
    )
    group.add("pi()", "3.14159..", "", "pi()", DOUBLE)
    finite = "{0}(CASE WHEN isfinite({{0}}) OR isnan({{0}}) THEN {{0}} END)"
    for name, meaning in (("sin", "the sine"), ("cos", "the cosine"), ("tan", "the tangent"), ("cot", "the cotangent")):
        group.add(f"{name}(x)", f"{meaning} of an angle in radians", "double", finite.format(name), DOUBLE)
        degrees = finite.format(name).replace("THEN {0}", "THEN radians({0} % 360)")
        group.add(f"{name}d(x)", f"{meaning} of an angle in degrees", "double", degrees, DOUBLE, differs=_LAST)
    unit = "{0}(CASE WHEN {{0}} BETWEEN -1 AND 1 OR isnan({{0}}) THEN {{0}} END)"
    for name, template in (("asin", unit), ("acos", unit), ("atan", "{0}({{0}})")):
        group.add(f"{name}(x)", "the angle in radians", "double", template.format(name), DOUBLE)
        group.add(
            f"{name}d(x)", "the angle in degrees", "double", f"degrees({template.format(name)})", DOUBLE, differs=_LAST
        )
    group.add("atan2(y, x)", "the angle of the point (x, y) in radians", "double", "atan2({0}, {1})", DOUBLE)
    group.add(
        "atan2d(y, x)",
        "the angle of the point (x, y) in degrees",
        "double",
        "degrees(atan2({0}, {1}))",
        DOUBLE,
        differs=_LAST,
    )
    for name in ("sinh", "cosh", "tanh", "asinh"):
        group.add(f"{name}(x)", "the hyperbolic function", "double", f"{name}({{0}})", DOUBLE)
    group.add("acosh(x)", "the inverse hyperbolic cosine", "double", "acosh(CASE WHEN {0} >= 1 THEN {0} END)", DOUBLE)
    group.add(
        "atanh(x)",
        "the inverse hyperbolic tangent",
        "double",
        "atanh(CASE WHEN {0} BETWEEN -1 AND 1 OR isnan({0}) THEN {0} END)",
        DOUBLE,
    )
    group.add("degrees(radians)", "an angle in degrees", "double", "degrees({0})", DOUBLE)
    group.add("radians(degrees)", "an angle in radians", "double", "radians({0})", DOUBLE)
    group.add(
        "width_bucket(x, low, high, count)",
        "in which of count buckets from low to high x lies",
        "double double double int",
        _BUCKET,
        INT,
    )
    group.made("to_hex(n)", "in hexadecimal digits", _hex, (1, 1))
