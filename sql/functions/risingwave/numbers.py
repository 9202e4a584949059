"""Numbers: rounding, powers and logarithms, angles, divisors.

A function of double precision takes any number; a logarithm or a root outside its domain fails, and is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave.arithmetic import arithmetic, whole_quotient
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    DOUBLE,
    INT,
    NUMERIC,
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


def _to_digits(name: str, whole: Callable[[Sequence[Typed]], Typed]) -> Build:
    """``round(x, n)``: of a numeric, n digits after the point; below 0 before it. A double precision stays one."""

    def build(given: Sequence[Typed]) -> Typed:
        if len(given) == 1:
            return whole(given)
        value, digits = _number(given[0]), given[1]
        kind = kind_of(value)
        if not isinstance(digits.literal, int):
            raise Unfit("takes its digits written out")
        if pa.types.is_floating(kind):
            if name != "round":
                raise Unfit(f"takes digits of a numeric, not of {name_of(kind)}: write x::numeric")
            return typed(value, f"round({{0}}, {digits.literal})", [cast(value, DOUBLE).tree], DOUBLE)
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


def _divisor(template: str) -> Build:
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


_POSITIVE = "CASE WHEN {0} > 0 THEN {0} END"
_LOG = f"ln(CASE WHEN {{1}} > 0 THEN {{1}} END) / nullif(ln({_POSITIVE}), 0)"
_UNIT = "CASE WHEN {0} BETWEEN -1 AND 1 OR isnan({0}) THEN {0} END"
_POWER = (
    "CASE WHEN {0} = 0 AND {1} < 0 OR {0} < 0 AND isfinite({1}) AND {1} <> trunc({1}) THEN NULL ELSE pow({0}, {1}) END"
)


def _of_one(usage: str, meaning: str, template: str, also: str = "", differs: str = "") -> Row:
    """A function of one number, or more, in double precision."""
    return Row(usage, meaning, template, DOUBLE, takes="double", also=also, differs=differs)


def _of_angle(name: str, meaning: str) -> tuple[Row, Row]:
    finite = f"{name}(CASE WHEN isfinite({{0}}) OR isnan({{0}}) THEN %s END)"
    return (
        _of_one(f"{name}(x)", f"{meaning} of an angle in radians", finite % "{0}"),
        _of_one(f"{name}d(x)", f"{meaning} of an angle in degrees", finite % "radians({0} % 360)", differs=_LAST),
    )


def _angle_of(name: str, domain: str = "{0}") -> tuple[Row, Row]:
    return (
        _of_one(f"{name}(x)", "the angle in radians", f"{name}({domain})"),
        _of_one(f"{name}d(x)", "the angle in degrees", f"degrees({name}({domain}))", differs=_LAST),
    )


_BEHIND = "rtrim(split_part(CAST({0} AS VARCHAR), '.', 2), '0')"


def _scale(given: Sequence[Typed]) -> Typed:
    """Of the type; a numeric without digits of its own has those that it needs."""
    value = _exact(given[0])
    if kind_of(value).scale == NUMERIC.scale:
        return _least_scale(given)
    return typed(value, f"CASE WHEN {{0}} IS NOT NULL THEN {kind_of(value).scale} END", [value.tree], INT)


def _least_scale(given: Sequence[Typed]) -> Typed:
    value = _exact(given[0])
    return typed(value, f"CAST(length({_BEHIND}) AS INTEGER)", [value.tree], INT)


def _trimmed(given: Sequence[Typed]) -> Typed:
    """A numeric without digits of its own is shown with those that it needs."""
    value = _exact(given[0])
    kind = kind_of(value)
    whole = kind.precision - kind.scale
    fits = kind.scale <= NUMERIC.scale and whole + NUMERIC.scale <= NUMERIC_DIGITS
    return cast(value, numeric(whole, NUMERIC.scale)) if fits else value


def _exact(value: Typed) -> Typed:
    value = cast(value, numeric(18, 20)) if is_unknown(value) else _number(value)
    if pa.types.is_floating(kind_of(value)):
        raise Unfit(f"takes a numeric, not {name_of(kind_of(value))}")
    return cast(value, as_numeric(kind_of(value)))


FUNCTIONS: Table = (
    Row("abs(x)", "without its sign", _abs),
    Row("ceil(x)", "the least whole number that is not less", _whole("ceil({0})", "ceil({0})"), also="ceiling"),
    Row("floor(x)", "the greatest whole number that is not greater", _whole("floor({0})", "floor({0})")),
    Row("round(x[, digits])", "rounded: half away from zero for a numeric, half to even for a double precision",
        _to_digits("round", _whole("round({0}, 0)", "round_even({0}, 0)")),
        differs="also of the digits of a double precision, as avg(x) is"),
    Row("trunc(x[, digits])", "with the digits behind cut off",
        _to_digits("trunc", _whole("trunc({0})", "trunc({0})"))),
    Row("sign(x)", "-1, 0 or 1", _sign),
    Row("mod(a, b)", "the remainder of a / b, with the sign of a", lambda given: arithmetic("%", given[0], given[1])),
    Row("div(a, b)", "the whole part of a / b, as a numeric", lambda given: whole_quotient(*map(_number, given))),
    Row("gcd(a, b)", "the greatest common divisor", _divisor("gcd({0}, {1})")),
    Row("lcm(a, b)", "the least common multiple", _divisor("lcm({0}, {1})")),
    Row("factorial(n)", "1 * 2 * .. * n", "CASE WHEN {0} >= 0 THEN factorial(CAST({0} AS INTEGER)) END",
        numeric(38, 0), takes="bigint", differs="no value beyond factorial(33): 38 digits"),
    _of_one("sqrt(x)", "the square root", "sqrt(CASE WHEN {0} >= 0 THEN {0} END)", also="dsqrt", differs=_DOUBLE),
    _of_one("cbrt(x)", "the cube root", "cbrt({0})"),
    _of_one("exp(x)", "e to the power of x",
            "exp(CASE WHEN {0} <= 709.782712893384 OR NOT isfinite({0}) THEN {0} END)", differs=_DOUBLE),
    _of_one("gamma(x)", "(x - 1)! of a whole number, and what lies between",
            "CASE WHEN isnan({0}) OR {0} = 'inf' THEN {0} WHEN isfinite(gamma({0})) AND gamma({0}) <> 0 "
            "THEN gamma({0}) END", differs=_LAST),
    _of_one("lgamma(x)", "the natural logarithm of the absolute value of gamma(x)",
            "CASE WHEN isfinite({0}) AND isfinite(lgamma({0})) THEN lgamma({0}) WHEN NOT isfinite({0}) THEN abs({0}) "
            "END", differs=_LAST),
    _of_one("ln(x)", "the natural logarithm", f"ln({_POSITIVE})", differs=_DOUBLE),
    Row("log([base, ]x)", "the logarithm to a base, 10 without one", (f"log10({_POSITIVE})", _LOG), DOUBLE,
        takes="double", differs=_DOUBLE),
    _of_one("log10(x)", "the logarithm to the base 10", f"log10({_POSITIVE})", differs=_DOUBLE),
    _of_one("power(a, b)", "a to the power of b", _POWER, also="pow", differs=_DOUBLE),
    Row("pi()", "3.14159..", "pi()", DOUBLE),
    *_of_angle("sin", "the sine"),
    *_of_angle("cos", "the cosine"),
    *_of_angle("tan", "the tangent"),
    *_of_angle("cot", "the cotangent"),
    *_angle_of("asin", _UNIT),
    *_angle_of("acos", _UNIT),
    *_angle_of("atan"),
    _of_one("atan2(y, x)", "the angle of the point (x, y) in radians", "atan2({0}, {1})"),
    _of_one("atan2d(y, x)", "the angle of the point (x, y) in degrees", "degrees(atan2({0}, {1}))", differs=_LAST),
    _of_one("sinh(x)", "the hyperbolic function", "sinh({0})"),
    _of_one("cosh(x)", "the hyperbolic function", "cosh({0})"),
    _of_one("tanh(x)", "the hyperbolic function", "tanh({0})"),
    _of_one("asinh(x)", "the hyperbolic function", "asinh({0})"),
    _of_one("acosh(x)", "the inverse hyperbolic cosine", "acosh(CASE WHEN {0} >= 1 THEN {0} END)"),
    _of_one("atanh(x)", "the inverse hyperbolic tangent", f"atanh({_UNIT})"),
    _of_one("degrees(radians)", "an angle in degrees", "degrees({0})"),
    _of_one("radians(degrees)", "an angle in radians", "radians({0})"),
    Row("width_bucket(x, low, high, count)", "in which of count buckets from low to high x lies", _BUCKET, INT,
        takes="double double double int"),
    Row("to_hex(n)", "in hexadecimal digits", _hex),
    Row("scale(x)", "how many digits a numeric has behind the point", _scale),
    Row("min_scale(x)", "how many digits behind the point it needs", _least_scale),
    Row("trim_scale(x)", "without noughts at the end", _trimmed,
        differs="with more than 10 digits behind the point they stay; the value is the same"),
)  # fmt: skip
