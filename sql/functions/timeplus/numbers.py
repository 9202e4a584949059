"""Numbers: arithmetic that widens as ClickHouse's does, and bits.

The sum, the difference or the product of two integers has twice the bits of the wider one, 64 at most; beyond 64 bits
ClickHouse wraps around, and here there is no value: NULL, counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions import long_arithmetic
from dovetail.sql.functions.arguments import trees_of, whole
from dovetail.sql.functions.registry import Build, Row, Table
from dovetail.sql.functions.typed import Typed, bracketed, filled

_INTEGER_DIGITS = 20
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_WRAPS = "beyond 64 bits NULL, where ClickHouse wraps around"
_BY_ZERO = "NULL where the divisor is 0, where ClickHouse stops the query"
_OPERATORS = {"plus": exp.Add, "minus": exp.Sub, "multiply": exp.Mul}


def integer_type(bits: int, signed: bool) -> pa.DataType:
    return (_SIGNED if signed else _UNSIGNED)[min(bits, 64)]


def bits_of(kind: pa.DataType) -> int:
    """The bits of an integer; a truth value and NULL are as the smallest."""
    return int(kind.bit_width) if pa.types.is_integer(kind) else 8


def signed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


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


def _arithmetic(name: str) -> Build:
    return lambda arguments: combined(name, *arguments)


def divided(arguments: Sequence[Typed]) -> Typed:
    """Always a float; of zero by zero NaN, else of a number by zero an infinity."""
    left, right = arguments
    if left.is_decimal and _is_exact(right):
        # Under ClickHouse the quotient has the scale of the dividend, digits beyond are cut off.
        kind = pa.decimal128(38, left.type.scale)
        return left.of(long_arithmetic.with_point(_quotient(left, right, kind.scale), kind), kind)
    return left.of(exp.Div(this=bracketed(left.tree), expression=bracketed(right.tree), typed=False, safe=False))


def _is_exact(value: Typed) -> bool:
    return value.is_decimal or whole(value)


def _scale(value: Typed) -> int:
    return int(value.type.scale) if value.is_decimal else 0


def _precision(value: Typed) -> int:
    return int(value.type.precision) if value.is_decimal else _INTEGER_DIGITS


def _digits(value: Typed) -> exp.Expr:
    return long_arithmetic.digits_of(as_type(value, value.type), _scale(value))


def _quotient(left: Typed, right: Typed, scale: int) -> exp.Expr:
    """The digits of a quotient of decimals with ``scale`` of them behind the point; what is beyond is cut off."""
    shift = scale + _scale(right) - _scale(left)
    return long_arithmetic.quotient(_digits(left), _digits(right), shift, _precision(left), rounded=False)


def _int_div(arguments: Sequence[Typed]) -> Typed:
    left, right = arguments
    if not (whole(left) and whole(right)):
        if _is_exact(left) and _is_exact(right):
            return left.of(filled("CAST({0} AS BIGINT)", [_quotient(left, right, 0)]), pa.int64())
        return left.of(filled("CAST(trunc(CAST({0} AS DOUBLE) / {1}) AS BIGINT)", [left.tree, right.tree]), pa.int64())
    kind = integer_type(bits_of(left.type), signed(left.type) or signed(right.type))
    wide = "HUGEINT" if pa.uint64() in (left.type, right.type) else "BIGINT"
    tree = filled(f"CAST(CAST({{0}} AS {wide}) // CAST({{1}} AS {wide}) AS {type_name(kind)})", [left.tree, right.tree])
    return left.of(tree, kind)


def _or_zero(of_others: Callable[[Sequence[Typed]], Typed]) -> Build:
    """0 where the divisor is 0."""

    def build(arguments: Sequence[Typed]) -> Typed:
        result = of_others(arguments)
        trees = [*trees_of(arguments), result.tree]
        tree = filled("CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN 0 ELSE {2} END", trees)
        return result.of(filled(f"CAST({{0}} AS {type_name(result.type)})", [tree]), result.type)

    return build


def modulo(arguments: Sequence[Typed]) -> Typed:
    left, right = arguments
    if not (whole(left) and whole(right)):
        if left.is_float or right.is_float:
            return left.of(filled("CAST({0} AS DOUBLE) % CAST({1} AS DOUBLE)", [left.tree, right.tree]), pa.float64())
        rest = left.of(exp.Mod(this=bracketed(left.tree), expression=bracketed(right.tree)))
        # Of decimals that have no type in common the engine takes the remainder as doubles.
        return _remainder(left, right) if rest.is_float and not (left.is_null or right.is_null) else rest
    bits = bits_of(right.type)
    kind = integer_type(2 * bits if signed(left.type) else bits, signed(left.type))
    wide = "HUGEINT" if pa.uint64() in (left.type, right.type) else "BIGINT"
    tree = filled(f"CAST(CAST({{0}} AS {wide}) % CAST({{1}} AS {wide}) AS {type_name(kind)})", [left.tree, right.tree])
    return left.of(tree, kind)


def _remainder(left: Typed, right: Typed) -> Typed:
    kind = pa.decimal128(38, max(_scale(left), _scale(right)))
    shift = _scale(right) - _scale(left)
    digits = long_arithmetic.remainder(_digits(left), _digits(right), shift, _precision(left))
    return left.of(long_arithmetic.with_point(digits, kind), kind)


def _positive_modulo(arguments: Sequence[Typed]) -> exp.Expr:
    rest = modulo(arguments)
    trees = [rest.tree, arguments[1].tree]
    kind = type_name(integer_type(bits_of(rest.type), True)) if whole(rest) else "DOUBLE"
    return filled(f"CAST(CASE WHEN {{0}} < 0 THEN {{0}} + abs({{1}}) ELSE {{0}} END AS {kind})", trees)


def negated(arguments: Sequence[Typed]) -> Typed:
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
    (value,) = arguments
    if not signed(value.type):
        return value.of(filled("abs({0})", [value.tree]), value.type)
    kind = integer_type(bits_of(value.type), False)
    return value.of(filled(f"CAST(abs(CAST({{0}} AS HUGEINT)) AS {type_name(kind)})", [value.tree]), kind)


def _bitwise(template: str) -> Build:
    """Of two whole numbers, in the wider of their types."""

    def build(arguments: Sequence[Typed]) -> Typed:
        left, right = arguments
        kind = integer_type(max(bits_of(left.type), bits_of(right.type)), signed(left.type) or signed(right.type))
        sides = [filled(f"CAST({{0}} AS {type_name(kind)})", [side.tree]) for side in arguments]
        return left.of(filled(f"CAST({template} AS {type_name(kind)})", sides), kind)

    return build


def _bit_not(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    if signed(value.type):
        return value.of(filled("~ {0}", [value.tree]), value.type)
    most = (1 << bits_of(value.type)) - 1
    return value.of(
        filled(f"CAST({most} - CAST({{0}} AS HUGEINT) AS {type_name(value.type)})", [value.tree]), value.type
    )


def _bit_count(arguments: Sequence[Typed]) -> str:
    return f"bit_count(CAST({{0}} AS {type_name(arguments[0].type)}))"


def _shifted(left: bool) -> Build:
    """The bits that leave the type of ``a`` are lost; those of its sign come in from the left."""

    def build(arguments: Sequence[Typed]) -> Typed:
        value, count = arguments
        kind, name, bits = value.type, type_name(value.type), bits_of(value.type)
        trees = [value.tree, count.tree]
        if not left:
            tree = filled("CAST(CAST({0} AS BIGINT) >> CAST({1} AS BIGINT) AS BIGINT)", trees)
            return value.of(filled(f"CAST({{0}} AS {name})", [tree]), kind)
        # Kept within 128 bits, cut to those of the type, and the sign found again.
        wide = filled(f"(CAST({{0}} AS HUGEINT) * CAST(pow(2, {{1}} % {bits}) AS HUGEINT)) % {1 << bits}", trees)
        if signed(kind):
            half, full = 1 << (bits - 1), 1 << bits
            folded = f"WHEN {{0}} >= {half} THEN {{0}} - {full} WHEN {{0}} < -{half} THEN {{0}} + {full}"
            wide = filled(f"CASE {folded} ELSE {{0}} END", [wide])
        return value.of(filled(f"CAST({{0}} AS {name})", [wide]), kind)

    return build


_BIT_TEST = "CAST((CAST({0} AS HUGEINT) >> CAST({1} AS HUGEINT)) & 1 AS UTINYINT)"


def _bit_tests(word: str) -> Build:
    def build(arguments: Sequence[Typed]) -> str:
        tests = [f"{_BIT_TEST.replace('{1}', f'{{{place}}}')} = 1" for place in range(1, len(arguments))]
        return f"({f' {word} '.join(tests)})"

    return build


FUNCTIONS: Table = (
    Row("plus(a, b)", "a + b, in twice the bits of the wider one", _arithmetic("plus"), takes="number", differs=_WRAPS),
    Row("minus(a, b)", "a - b, with a sign, in twice the bits of the wider one", _arithmetic("minus"), takes="number",
        differs=_WRAPS),
    Row("multiply(a, b)", "a * b, in twice the bits of the wider one", _arithmetic("multiply"), takes="number",
        differs=_WRAPS),
    Row("divide(a, b)", "a / b as a float; decimals keep the scale of a", divided, takes="number"),
    Row("int_div(a, b)", "the whole part of a / b; NULL where b is 0", _int_div, takes="number", differs=_BY_ZERO),
    Row("int_div_or_zero(a, b)", "the whole part of a / b; 0 where b is 0", _or_zero(_int_div), takes="number"),
    Row("modulo(a, b)", "what is left of a / b, with the sign of a; NULL where b is 0", modulo, takes="number",
        also="mod", differs=_BY_ZERO),
    Row("modulo_or_zero(a, b)", "as modulo; 0 where b is 0", _or_zero(modulo), takes="number"),
    Row("positive_modulo(a, b)", "what is left of a / b, never below 0", _positive_modulo, takes="number",
        differs=_BY_ZERO),
    Row("bit_and(a, b)", "the bits that both have", _bitwise("{0} & {1}"), takes="integer"),
    Row("bit_or(a, b)", "the bits that one has", _bitwise("{0} | {1}"), takes="integer"),
    Row("bit_xor(a, b)", "the bits that one of them has", _bitwise("xor({0}, {1})"), takes="integer"),
    Row("bit_shift_left(a, n)", "its bits n places up", _shifted(left=True), takes="integer"),
    Row("bit_shift_right(a, n)", "its bits n places down", _shifted(left=False), takes="integer"),
    Row("bit_test(a, n)", "the n-th bit, from 0", _BIT_TEST, takes="integer"),
    Row("negate(a)", "-a", negated, takes="number", differs=_WRAPS),
    Row("abs(a)", "the distance from 0", _abs, takes="number"),
    Row("gcd(a, b)", "the greatest common divisor",
        "CAST(gcd(CAST({0} AS HUGEINT), CAST({1} AS HUGEINT)) AS UBIGINT)", pa.uint64(), differs=_BY_ZERO,
        takes="number"),
    Row("lcm(a, b)", "the least common multiple",
        "CAST(lcm(CAST({0} AS HUGEINT), CAST({1} AS HUGEINT)) AS UBIGINT)", pa.uint64(), differs=_BY_ZERO,
        takes="number"),
    Row("greatest(a, ..)", "the greatest of them, NULLs aside", "greatest({*})", also="max2"),
    Row("least(a, ..)", "the least of them, NULLs aside", "least({*})", also="min2"),
    Row("bit_not(a)", "the bits that it has not", _bit_not, takes="integer"),
    Row("bit_count(a)", "how many bits are set", _bit_count, pa.uint8(), takes="integer"),
    Row("bit_hamming_distance(a, b)", "how many bits differ", "CAST(bit_count(xor({0}, {1})) AS UTINYINT)", pa.uint8()),
    Row("bit_test_any(a, n, ..)", "whether one of these bits is set", _bit_tests("OR"), takes="integer"),
    Row("bit_test_all(a, n, ..)", "whether all of these bits are set", _bit_tests("AND"), takes="integer"),
)  # fmt: skip
