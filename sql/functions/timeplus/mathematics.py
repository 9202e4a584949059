"""Mathematics: rounding, roots, logarithms, angles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.registry import Build, Registry, Unfit
from dovetail.sql.functions.timeplus.conversions import scaled
from dovetail.sql.functions.timeplus.numbers import expect_numbers, whole
from dovetail.sql.functions.typed import Typed, filled


def _places(arguments: Sequence[Typed]) -> int:
    expect_numbers(arguments)
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

_ROUNDING: Sequence[tuple[str, str, Build, str]] = (
    (
        "round",
        "to the nearest; halves of floats to even, others away from 0",
        _rounded("round_even({0}, 0)", _AWAY),
        "",
    ),
    ("round_bankers", "to the nearest, halves to even", _rounded("round_even({0}, 0)", _EVEN), ""),
    ("floor", "the greatest number not above a", _rounded("floor({0})", _DOWN), ""),
    ("ceil", "the least number not below a", _rounded("ceil({0})", _UP), "ceiling"),
    ("trunc", "a without the digits beyond", _rounded("trunc({0})", _CUT), "truncate"),
)

_OF_ONE: Mapping[str, str] = {
    "sqrt": "the square root; NaN below 0",
    "cbrt": "the cube root",
    "exp": "e to the power of a",
    "sin": "the sine",
    "cos": "the cosine",
    "tan": "the tangent",
    "asin": "the arc sine",
    "acos": "the arc cosine",
    "atan": "the arc tangent",
    "sinh": "the hyperbolic sine",
    "cosh": "the hyperbolic cosine",
    "tanh": "the hyperbolic tangent",
    "asinh": "the inverse of the hyperbolic sine",
    "acosh": "the inverse of the hyperbolic cosine",
    "atanh": "the inverse of the hyperbolic tangent",
    "degrees": "from radians to degrees",
    "radians": "from degrees to radians",
    "log2": "the logarithm to base 2",
    "log10": "the logarithm to base 10",
}
"""What takes a number and gives a float, under the same name in the engine."""

_OUTSIDE = {
    "sqrt": "{0} < 0",
    "log2": "{0} <= 0",
    "log10": "{0} <= 0",
    "asin": "abs({0}) > 1",
    "acos": "abs({0}) > 1",
    "acosh": "{0} < 1",
    "atanh": "abs({0}) > 1",
    "sin": "isinf({0})",
    "cos": "isinf({0})",
    "tan": "isinf({0})",
}
"""Where the engine refuses a number for which IEEE has NaN or an infinity."""


def _logarithm(name: str) -> str:
    return (
        f"CASE WHEN {{0}} > 0 THEN {name}(CAST({{0}} AS DOUBLE)) WHEN {{0}} = 0 THEN CAST('-inf' AS DOUBLE) "
        "WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) END"
    )


def _of_one(name: str) -> str:
    call = f"{name}(CAST({{0}} AS DOUBLE))"
    if name in ("log2", "log10"):
        return _logarithm(name)
    if name not in _OUTSIDE:
        return call
    return f"CASE WHEN {_OUTSIDE[name]} THEN CAST('nan' AS DOUBLE) ELSE {call} END"


def _sign(arguments: Sequence[Typed]) -> exp.Expr:
    expect_numbers(arguments)
    value = arguments[0]
    # NaN is greater than all numbers.
    return filled("CASE WHEN isnan({0}) THEN 1 ELSE sign({0}) END" if value.is_float else "sign({0})", [value.tree])


def register(registry: Registry) -> None:
    add = partial(registry.add, group="mathematics")
    real = pa.float64()
    for name, meaning, build, aliases in _ROUNDING:
        add(f"{name}(a[, digits])", meaning, build, arity=(1, 2), aliases=aliases)
    add("sign(a)", "-1, 0 or 1", _sign, pa.int8(), arity=(1, 1))
    for name, meaning in _OF_ONE.items():
        add(f"{name}(a)", meaning, _of_one(name), real)
    add("log(a)", "the natural logarithm; -inf of 0, NaN below", _logarithm("ln"), real, aliases="ln")
    add("log1p(a)", "log(1 + a)", "ln(1 + CAST({0} AS DOUBLE))", real)
    add("exp2(a)", "2 to the power of a", "pow(CAST(2 AS DOUBLE), {0})", real)
    add("exp10(a)", "10 to the power of a", "pow(CAST(10 AS DOUBLE), {0})", real)
    add("pow(a, b)", "a to the power of b", "pow(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", real, aliases="power")
    add("atan2(y, x)", "the angle of the point (x, y)", "atan2(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", real)
    squares = "CAST({0} AS DOUBLE) * {0} + CAST({1} AS DOUBLE) * {1}"
    add("hypot(a, b)", "the length of the diagonal", f"sqrt({squares})", real)
    add("sigmoid(a)", "1 / (1 + exp(-a))", "1 / (1 + exp(- CAST({0} AS DOUBLE)))", real)
    add("factorial(a)", "1 * 2 * .. * a", "CAST(factorial(CAST({0} AS INTEGER)) AS UBIGINT)", pa.uint64())
    add("pi()", "3.14159..", "pi()", real)
    add("e()", "2.71828..", "exp(CAST(1 AS DOUBLE))", real)
    add("is_nan(a)", "whether a is NaN", "isnan(CAST({0} AS DOUBLE))")
    add("is_finite(a)", "whether a is neither infinite nor NaN", "isfinite(CAST({0} AS DOUBLE))")
    add("is_infinite(a)", "whether a is an infinity", "isinf(CAST({0} AS DOUBLE))")
    finite = "CASE WHEN isfinite(CAST({0} AS DOUBLE)) THEN {0} ELSE {1} END"
    add("if_not_finite(a, other)", "other where a is infinite or NaN", finite)
