"""Numbers: arithmetic that widens as ClickHouse's does, rounding, bits, mathematics.

The sum, the difference or the product of two integers has twice the bits of the wider one, 64 at most; beyond 64 bits
ClickHouse wraps around, and here there is no value: NULL, counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import type_name
from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, bracketed, filled

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_OPERATORS = {"plus": exp.Add, "minus": exp.Sub, "multiply": exp.Mul}


def integer_type(bits: int, signed: bool) -> pa.DataType:
    return (_SIGNED if signed else _UNSIGNED)[min(bits, 64)]


def bits_of(kind: pa.DataType) -> int:
    return 8 if pa.types.is_boolean(kind) else int(kind.bit_width)


def signed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


def whole(value: Typed) -> bool:
    """Whether it counts as an integer: a truth value is 0 or 1."""
    return value.is_integer or value.is_boolean


def _expect_numbers(arguments: Sequence[Typed]) -> None:
    for argument in arguments:
        if not (argument.is_number or argument.is_boolean or argument.is_null):
            raise Unfit(f"takes numbers, not {argument.family}")


def as_type(value: Typed, kind: pa.DataType) -> exp.Expr:
    """``value`` in a wider type; a literal fits as it is."""
    if value.type == kind or (value.literal is not None and whole(value) and pa.types.is_integer(kind)):
        return bracketed(value.tree)
    return filled(f"CAST({{0}} AS {type_name(kind)})", [value.tree])


def combined(name: str, left: Typed, right: Typed) -> Typed:
    """``left + right``, ``left - right``, ``left * right``."""
    operator = _OPERATORS[name]
    if not (whole(left) and whole(right)):
        if left.is_float or right.is_float:
            return left.of(
                operator(this=as_type(left, pa.float64()), expression=as_type(right, pa.float64())), pa.float64()
            )
        return left.of(operator(this=bracketed(left.tree), expression=bracketed(right.tree)))
    bits = 2 * max(bits_of(left.type), bits_of(right.type))
    kind = integer_type(bits, name == "minus" or signed(left.type) or signed(right.type))
    if pa.types.is_signed_integer(kind) and pa.uint64() in (left.type, right.type):
        # Between unsigned operands and a signed result lie values that fit neither.
        both = [filled("CAST({0} AS HUGEINT)", [side.tree]) for side in (left, right)]
        wide = operator(this=both[0], expression=both[1])
        return left.of(filled("CAST({0} AS BIGINT)", [wide]), kind)
    sides = [as_type(side, kind) for side in (left, right)]
    if left.literal is not None and right.literal is not None:
        sides[0] = filled(f"CAST({{0}} AS {type_name(kind)})", [left.tree])
    return left.of(operator(this=sides[0], expression=sides[1]), kind)


def _arithmetic(name: str, arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    return combined(name, *arguments)


def divided(arguments: Sequence[Typed]) -> Typed:
    """Always a float; of zero by zero NaN, else of a number by zero an infinity."""
    _expect_numbers(arguments)
    left, right = arguments
    if left.is_decimal and (right.is_decimal or whole(right)):
        # Under ClickHouse the quotient has the scale of the dividend, digits beyond are cut off.
        scale = left.type.scale
        kind = pa.decimal128(38, scale)
        tree = filled(
            f"CAST(trunc(CAST({{0}} AS DECIMAL(38, {scale})) / {{1}}, {scale}) AS DECIMAL(38, {scale}))",
            [left.tree, right.tree],
        )
        return left.of(tree, kind)
    return left.of(exp.Div(this=bracketed(left.tree), expression=bracketed(right.tree), typed=False, safe=False))


def _int_div(arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    left, right = arguments
    if not (whole(left) and whole(right)):
        return left.of(filled("CAST(trunc(CAST({0} AS DOUBLE) / {1}) AS BIGINT)", [left.tree, right.tree]), pa.int64())
    kind = integer_type(bits_of(left.type), signed(left.type) or signed(right.type))
    wide = "HUGEINT" if pa.uint64() in (left.type, right.type) else "BIGINT"
    tree = filled(
        f"CAST(CAST({{0}} AS {wide}) // CAST({{1}} AS {wide}) AS {type_name(kind)})", [left.tree, right.tree]
    )
    return left.of(tree, kind)


def _int_div_or_zero(arguments: Sequence[Typed]) -> Typed:
    quotient = _int_div(arguments)
    tree = filled("CASE WHEN {0} = 0 THEN 0 ELSE {1} END", [arguments[1].tree, quotient.tree])
    return quotient.of(filled(f"CAST({{0}} AS {type_name(quotient.type)})", [tree]), quotient.type)


def modulo(arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    left, right = arguments
    if not (whole(left) and whole(right)):
        if left.is_float or right.is_float:
            return left.of(filled("CAST({0} AS DOUBLE) % CAST({1} AS DOUBLE)", [left.tree, right.tree]), pa.float64())
        return left.of(exp.Mod(this=bracketed(left.tree), expression=bracketed(right.tree)))
    bits = bits_of(right.type)
    kind = integer_type(2 * bits if signed(left.type) else bits, signed(left.type))
    wide = "HUGEINT" if pa.uint64() in (left.type, right.type) else "BIGINT"
    tree = filled(
        f"CAST(CAST({{0}} AS {wide}) % CAST({{1}} AS {wide}) AS {type_name(kind)})", [left.tree, right.tree]
    )
    return left.of(tree, kind)


def negated(arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    (value,) = arguments
    if not whole(value):
        return value.of(exp.Neg(this=bracketed(value.tree)), value.type)
    bits = bits_of(value.type)
    kind = integer_type(bits if signed(value.type) else 2 * bits, True)
    if value.literal is not None:
        return value.of(exp.Neg(this=bracketed(value.tree)), kind)
    if value.type == pa.uint64():
        return value.of(filled("CAST(- CAST({0} AS HUGEINT) AS BIGINT)", [value.tree]), kind)
    return value.of(exp.Neg(this=as_type(value, kind)), kind)


def _abs(arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    (value,) = arguments
    if not signed(value.type):
        return value.of(filled("abs({0})", [value.tree]), value.type)
    kind = integer_type(bits_of(value.type), False)
    return value.of(filled(f"CAST(abs(CAST({{0}} AS HUGEINT)) AS {type_name(kind)})", [value.tree]), kind)


def _sign(arguments: Sequence[Typed]) -> Typed:
    _expect_numbers(arguments)
    (value,) = arguments
    return value.of(filled("CAST(sign({0}) AS TINYINT)", [value.tree]), pa.int8())


def _rounded(arguments: Sequence[Typed], template: str) -> Typed:
    """Numbers keep their type; integers with digits after the point stay as they are."""
    _expect_numbers(arguments)
    value = arguments[0]
    digits = arguments[1] if len(arguments) > 1 else None
    if digits is not None and not isinstance(digits.literal, int):
        raise Unfit("takes a whole number, written out, for the digits")
    places = int(digits.literal) if digits is not None else 0
    if whole(value):
        if places >= 0:
            return value
        unit = 10**-places
        return value.of(_of_whole(value, template, unit), value.type)
    kind = value.type
    return value.of(filled(template.replace("{n}", str(places)), [value.tree]), kind)


def _of_whole(value: Typed, template: str, unit: int) -> exp.Expr:
    scaled = filled(f"CAST({{0}} AS DOUBLE) / {unit}", [value.tree])
    rounded = filled(template.replace("{n}", "0"), [scaled])
    return filled(f"CAST({{0}} * {unit} AS {type_name(value.type)})", [rounded])


def _round(arguments: Sequence[Typed]) -> Typed:
    """Halves to even for floats, away from zero for decimals, as in ClickHouse."""
    if arguments and arguments[0].is_decimal:
        places = arguments[1].literal if len(arguments) > 1 else 0
        if not isinstance(places, int):
            raise Unfit("takes a whole number, written out, for the digits")
        value = arguments[0]
        return value.of(filled(f"CAST(round({{0}}, {places}) AS {type_name(value.type)})", [value.tree]), value.type)
    return _rounded(arguments, "round_even({0}, {n})")


def _shifted(arguments: Sequence[Typed], template: str) -> Typed:
    """``floor``, ``ceil`` and ``trunc`` at a digit: by a power of ten there and back."""
    value = arguments[0]
    places = arguments[1].literal if len(arguments) > 1 else 0
    if places == 0 or whole(value) or not isinstance(places, int):
        return _rounded(arguments, template)
    scale = f"1e{places}"
    return value.of(filled(f"{template} / {scale}".replace("{0}", f"({{0}} * {scale})"), [value.tree]))


def _bits(template: str) -> object:
    def build(arguments: Sequence[Typed]) -> Typed:
        left, right = arguments
        if not (whole(left) and whole(right)):
            raise Unfit("takes whole numbers")
        kind = integer_type(
            max(bits_of(left.type), bits_of(right.type)), signed(left.type) or signed(right.type)
        )
        name = type_name(kind)
        return left.of(
            filled(f"CAST({template} AS {name})".replace("{0}", f"CAST({{0}} AS {name})").replace("{1}", f"CAST({{1}} AS {name})"), [left.tree, right.tree]),
            kind,
        )

    return build


def register(registry: Registry) -> None:
    real = pa.float64()

    def add(usage: str, meaning: str, build: object, kind: pa.DataType | None = None, **more: object) -> None:
        registry.add(usage, meaning, build, kind, group="numbers", **more)  # type: ignore[arg-type]

    for name, sign in (("plus", "+"), ("minus", "-"), ("multiply", "*")):
        add(
            f"{name}(a, b)", f"a {sign} b, in twice the bits of the wider one", lambda given, name=name: _arithmetic(name, given), arity=(2, 2)
        )
    add("divide(a, b)", "a / b as a float; decimals keep the scale of a", divided, arity=(2, 2))
    add("int_div(a, b)", "the whole part of a / b; NULL where b is 0", _int_div, arity=(2, 2))
    add("int_div_or_zero(a, b)", "the whole part of a / b; 0 where b is 0", _int_div_or_zero, arity=(2, 2))
    add("modulo(a, b)", "what is left of a / b, with the sign of a; NULL where b is 0", modulo, arity=(2, 2), aliases="mod")
    add("negate(a)", "-a", negated, arity=(1, 1))
    add("abs(a)", "the distance from 0", _abs, arity=(1, 1))
    add("sign(a)", "-1, 0 or 1", _sign, arity=(1, 1))
    add("round(a[, digits])", "to the nearest; halves to even, of decimals away from 0", _round, arity=(1, 2))
    add("round_bankers(a[, digits])", "to the nearest, halves to even", lambda given: _rounded(given, "round_even({0}, {n})"), arity=(1, 2))
    add("floor(a[, digits])", "the greatest number not above a", lambda given: _shifted(given, "floor({0})"), arity=(1, 2))
    add("ceil(a[, digits])", "the least number not below a", lambda given: _shifted(given, "ceil({0})"), arity=(1, 2), aliases="ceiling")
    add("trunc(a[, digits])", "a without the digits beyond", lambda given: _shifted(given, "trunc({0})"), arity=(1, 2), aliases="truncate")
    for name, meaning in (
        ("sqrt", "the square root; NaN below 0"), ("cbrt", "the cube root"), ("exp", "e to the power of a"),
        ("sin", "the sine"), ("cos", "the cosine"), ("tan", "the tangent"), ("asin", "the arc sine"),
        ("acos", "the arc cosine"), ("atan", "the arc tangent"), ("sinh", "the hyperbolic sine"),
        ("cosh", "the hyperbolic cosine"), ("tanh", "the hyperbolic tangent"),
        ("degrees", "from radians"), ("radians", "from degrees"),
    ):  # fmt: skip
        add(f"{name}(a)", meaning, f"{name}(CAST({{0}} AS DOUBLE))", real)
    add("log(a)", "the natural logarithm; -inf of 0, NaN below", "ln(CAST({0} AS DOUBLE))", real, aliases="ln")
    add("log2(a)", "the logarithm to base 2", "log2(CAST({0} AS DOUBLE))", real)
    add("log10(a)", "the logarithm to base 10", "log10(CAST({0} AS DOUBLE))", real)
    add("log1p(a)", "log(1 + a)", "ln(1 + CAST({0} AS DOUBLE))", real)
    add("exp2(a)", "2 to the power of a", "pow(CAST(2 AS DOUBLE), {0})", real)
    add("exp10(a)", "10 to the power of a", "pow(CAST(10 AS DOUBLE), {0})", real)
    add("pow(a, b)", "a to the power of b", "pow(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", real, aliases="power")
    add("atan2(y, x)", "the angle of the point (x, y)", "atan2(CAST({0} AS DOUBLE), CAST({1} AS DOUBLE))", real)
    add("hypot(a, b)", "the length of the diagonal", "sqrt(CAST({0} AS DOUBLE) * {0} + CAST({1} AS DOUBLE) * {1})", real)
    add("pi()", "3.14159..", "pi()", real)
    add("e()", "2.71828..", "exp(CAST(1 AS DOUBLE))", real)
    add("is_nan(a)", "whether a is NaN", "isnan(CAST({0} AS DOUBLE))")
    add("is_finite(a)", "whether a is neither infinite nor NaN", "isfinite(CAST({0} AS DOUBLE))")
    add("is_infinite(a)", "whether a is an infinity", "isinf(CAST({0} AS DOUBLE))")
    add("bit_and(a, b)", "the bits that both have", _bits("{0} & {1}"), arity=(2, 2))
    add("bit_or(a, b)", "the bits that one has", _bits("{0} | {1}"), arity=(2, 2))
    add("bit_xor(a, b)", "the bits that one of them has", _bits("xor({0}, {1})"), arity=(2, 2))
    add("bit_count(a)", "how many bits are set", "CAST(bit_count({0}) AS UTINYINT)", pa.uint8())
    add("gcd(a, b)", "the greatest common divisor", "gcd({0}, {1})")
    add("lcm(a, b)", "the least common multiple", "lcm({0}, {1})")
    add("greatest(a, ..)", "the greatest of them, NULLs aside", "greatest({*})")
    add("least(a, ..)", "the least of them, NULLs aside", "least({*})")
    add("factorial(a)", "1 * 2 * .. * a", "CAST(factorial({0}) AS UBIGINT)", pa.uint64())

