"""Mathematics: rounding, roots, logarithms, angles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.arguments import whole
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.conversions import scaled
from dovetail.sql.functions.typed import Typed, filled


def _places(arguments: Sequence[Typed]) -> int:
    digits = arguments[1].literal if len(arguments) > 1 else 0
    if not isinstance(digits, int):
        raise Unfit("takes a whole number, written out, for the digits")
    return digits


def _rounded(of_float: str, of_whole: str) -> Build:
    """A number keeps its type; a whole number changes only at digits before its point.

    of_float  a template over a float, or a decimal
    of_whole  a template over a whole number ``{0}`` and a power of ten ``{1}``
    """

    def build(arguments: Sequence[Typed]) -> Typed:
        value, places = arguments[0], _places(arguments)
        if whole(value) or value.is_decimal:
            return _at_unit(value, places, of_whole)
        if places == 0:
            return value.of(filled(of_float, [value.tree]), value.type)
        unit = exp.Literal.number(f"1e{abs(places)}")
        there, back = ("*", "/") if places > 0 else ("/", "*")
        moved = filled(f"{{0}} {there} {{1}}", [value.tree, unit])
        return value.of(filled(f"{{0}} {back} {{1}}", [filled(of_float, [moved]), unit]), value.type)

    return build


def _at_unit(value: Typed, places: int, template: str) -> Typed:
    """Whole numbers, and decimals as the whole numbers that they are at their scale, in 128 bits."""
    scale = value.type.scale if value.is_decimal else 0
    if places >= scale:
        return value
    unit = exp.Literal.number(10 ** (scale - places))
    if not scale:
        number = filled("CAST({0} AS HUGEINT)", [value.tree])
        return value.of(filled(f"CAST({template} AS {type_name(value.type)})", [number, unit]), value.type)
    shift = 10**scale
    number = filled(f"CAST({{0}} * {shift} AS HUGEINT)", [value.tree])
    return value.of(scaled(filled(template, [number, unit]), value.type), value.type)


_AWAY = "CASE WHEN {0} < 0 THEN ({0} - {1} // 2) // {1} * {1} ELSE ({0} + {1} // 2) // {1} * {1} END"
_EVEN = """CASE WHEN abs({0} % {1}) * 2 = {1} AND ({0} // {1}) % 2 = 0 THEN ({0} // {1}) * {1}
    WHEN {0} < 0 THEN ({0} - {1} // 2) // {1} * {1} ELSE ({0} + {1} // 2) // {1} * {1} END"""
_DOWN = "({0} - ({0} % {1} + {1}) % {1})"
_UP = "({0} + ({1} - {0} % {1}) % {1})"
_CUT = "({0} - {0} % {1})"


def _logarithm(name: str) -> str:
    return (
        f"CASE WHEN {{0}} > 0 THEN {name}(CAST({{0}} AS DOUBLE)) WHEN {{0}} = 0 THEN CAST('-inf' AS DOUBLE) "
        "WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) END"
    )


def _of_one(name: str, nan: str = "") -> str:
    """A function of the engine that takes a number and gives a float.

    nan  where the engine refuses a number for which IEEE has NaN
    """
    call = f"{name}(CAST({{0}} AS DOUBLE))"
    return f"CASE WHEN {nan} THEN CAST('nan' AS DOUBLE) ELSE {call} END" if nan else call


def _sign(arguments: Sequence[Typed]) -> str:
    # NaN is greater than all numbers.
    return "CASE WHEN isnan({0}) THEN 1 ELSE sign({0}) END" if arguments[0].is_float else "sign({0})"


_REAL = pa.float64()

_ROWS: Table = (
    Row("round(a[, digits])", "to the nearest; halves of floats to even, others away from 0",
        _rounded("round_even({0}, 0)", _AWAY)),
    Row("round_bankers(a[, digits])", "to the nearest, halves to even", _rounded("round_even({0}, 0)", _EVEN)),
    Row("floor(a[, digits])", "the greatest number not above a", _rounded("floor({0})", _DOWN)),
    Row("ceil(a[, digits])", "the least number not below a", _rounded("ceil({0})", _UP),
        also="ceiling"),
    Row("trunc(a[, digits])", "a without the digits beyond", _rounded("trunc({0})", _CUT),
        also="truncate"),
    Row("sign(a)", "-1, 0 or 1", _sign, pa.int8()),
    Row("sqrt(a)", "the square root; NaN below 0", _of_one("sqrt", "{0} < 0"), _REAL),
    Row("cbrt(a)", "the cube root", _of_one("cbrt"), _REAL),
    Row("exp(a)", "e to the power of a", _of_one("exp"), _REAL),
    Row("sin(a)", "the sine", _of_one("sin", "isinf({0})"), _REAL),
    Row("cos(a)", "the cosine", _of_one("cos", "isinf({0})"), _REAL),
    Row("tan(a)", "the tangent", _of_one("tan", "isinf({0})"), _REAL),
    Row("asin(a)", "the arc sine", _of_one("asin", "abs({0}) > 1"), _REAL),
    Row("acos(a)", "the arc cosine", _of_one("acos", "abs({0}) > 1"), _REAL),
    Row("atan(a)", "the arc tangent", _of_one("atan"), _REAL),
    Row("sinh(a)", "the hyperbolic sine", _of_one("sinh"), _REAL),
    Row("cosh(a)", "the hyperbolic cosine", _of_one("cosh"), _REAL),
    Row("tanh(a)", "the hyperbolic tangent", _of_one("tanh"), _REAL),
    Row("asinh(a)", "the inverse of the hyperbolic sine", _of_one("asinh"), _REAL),
    Row("acosh(a)", "the inverse of the hyperbolic cosine", _of_one("acosh", "{0} < 1"), _REAL),
    Row("atanh(a)", "the inverse of the hyperbolic tangent", _of_one("atanh", "abs({0}) > 1"), _REAL),
    Row("degrees(a)", "from radians to degrees", _of_one("degrees"), _REAL),
    Row("radians(a)", "from degrees to radians", _of_one("radians"), _REAL),
    Row("log2(a)", "the logarithm to base 2", _logarithm("log2"), _REAL),
    Row("log10(a)", "the logarithm to base 10", _logarithm("log10"), _REAL),
    Row("log(a)", "the natural logarithm; -inf of 0, NaN below", _logarithm("ln"), _REAL, also="ln"),
    Row("log1p(a)", "log(1 + a)", "ln(1 + CAST({0} AS DOUBLE))", _REAL),
    Row("exp2(a)", "2 to the power of a", "pow(CAST(2 AS DOUBLE), {0})", _REAL),
    Row("exp10(a)", "10 to the power of a", "pow(CAST(10 AS DOUBLE), {0})", _REAL),
    Row("pow(a, b)", "a to the power of b", "pow(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", _REAL, also="power"),
    Row("atan2(y, x)", "the angle of the point (x, y)", "atan2(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", _REAL),
    Row("hypot(a, b)", "the length of the diagonal",
        "sqrt(CAST({0} AS DOUBLE) * {0} + CAST({1} AS DOUBLE) * {1})", _REAL),
    Row("sigmoid(a)", "1 / (1 + exp(-a))", "1 / (1 + exp(- CAST({0} AS DOUBLE)))", _REAL),
    Row("factorial(a)", "1 * 2 * .. * a", "CAST(factorial(CAST({0} AS INTEGER)) AS UBIGINT)", pa.uint64()),
    Row("pi()", "3.14159..", "pi()", _REAL),
    Row("e()", "2.71828..", "exp(CAST(1 AS DOUBLE))", _REAL),
    Row("is_nan(a)", "whether a is NaN", "isnan(CAST({0} AS DOUBLE))"),
    Row("is_finite(a)", "whether a is neither infinite nor NaN", "isfinite(CAST({0} AS DOUBLE))"),
    Row("is_infinite(a)", "whether a is an infinity", "isinf(CAST({0} AS DOUBLE))"),
    Row("if_not_finite(a, other)", "other where a is infinite or NaN",
        "CASE WHEN isfinite(CAST({0} AS DOUBLE)) THEN {0} ELSE {1} END"),
)  # fmt: skip

FUNCTIONS: Table = tuple(replace(row, takes="number") for row in _ROWS)
