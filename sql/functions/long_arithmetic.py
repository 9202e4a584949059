"""Long multiplication and long division: whole numbers of which a product, or a dividend, has up to 76 digits.

The engine's widest whole number holds 38. Factors are taken apart into limbs, and digits of a dividend are brought down
a group at a time, so that every step has room; only a result of more than 38 digits fails. Where the divisor is 0,
there is none: NULL.

Source: Knuth, "The Art of Computer Programming", volume 2 (1997), 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.typed import filled

_DIGITS = 38
_LIMB = 10**19
_GROUP = 18
"""Digits that are brought down at a time: of twice as many there is room above a divisor of 38."""

_OPERANDS = "struct_pack(one := {0}, other := {1})"
_DIVISION = (
    "struct_pack(quotient := abs(n_.one) // abs(n_.other), rest := abs(n_.one) % abs(n_.other), "
    "divisor := abs(n_.other), sign := sign(n_.one) * sign(n_.other), sign_of_rest := sign(n_.one))"
)
_LIMBS = (
    f"struct_pack(a := abs(n_.one) // {_LIMB}, b := abs(n_.one) % {_LIMB}, c := abs(n_.other) // {_LIMB}, "
    f"d := abs(n_.other) % {_LIMB}, sign := sign(n_.one) * sign(n_.other))"
)


def digits_of(tree: exp.Expr, scale: int) -> exp.Expr:
    """The digits of an integer, or of a decimal with ``scale`` of them behind the point, as a whole number."""
    template = "CAST(replace(CAST({0} AS VARCHAR), '.', '') AS HUGEINT)" if scale else "CAST({0} AS HUGEINT)"
    return filled(template, [tree])


def with_point(digits: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """The decimal that has these digits, the point where ``kind`` has it."""
    # Written out: the engine reads no 1e-38 as a decimal of 38 digits behind the point.
    unit = f"CAST('{Decimal((0, (1,), -kind.scale)):f}' AS DECIMAL({_DIGITS}, {kind.scale}))"
    return filled(f"CAST(CAST({{0}} AS DECIMAL({_DIGITS}, 0)) * {unit} AS {type_name(kind)})", [digits])


def product(left: exp.Expr, right: exp.Expr, dropped: int) -> exp.Expr:
    """``left * right / 10**dropped``, rounded half away from zero; 1 to 38 digits are dropped."""
    tree = _let(filled(_OPERANDS, [left, right]), _LIMBS)
    low = f"struct_pack(high := n_.a * n_.c, middle := n_.a * n_.d + n_.b * n_.d // {_LIMB}, "
    tree = _let(tree, f"{low} other := n_.b * n_.c, low := n_.b * n_.d % {_LIMB}, sign := n_.sign)")
    carried = f"struct_pack(high := n_.high + n_.middle // {_LIMB}, middle := n_.middle % {_LIMB} + n_.other, "
    tree = _let(tree, f"{carried} low := n_.low, sign := n_.sign)")
    last = f"((n_.middle % {_LIMB}) * {_LIMB} + n_.low + {_half(dropped)}) // {_power(dropped)}"
    return _let(tree, f"n_.sign * ((n_.high + n_.middle // {_LIMB}) * {_power(_DIGITS - dropped)} + {last})")


def quotient(top: exp.Expr, bottom: exp.Expr, shift: int, digits: int, *, rounded: bool) -> exp.Expr:
    """``top * 10**shift / bottom``, rounded half away from zero or cut off; ``top`` has ``digits`` at most."""
    division = _divided(top, bottom, shift, digits, "n_.quotient * {power} + n_.guess")
    if shift < 0:
        # Cut off twice, the second time after half of what is cut off was added: as if it were rounded once.
        half = _half(-shift) if rounded else "0"
        return _let(division, f"n_.sign * ((n_.quotient + {half}) // {_power(-shift)})")
    up = "CASE WHEN n_.rest >= n_.divisor - n_.rest THEN 1 ELSE 0 END" if rounded else "0"
    return _let(division, f"n_.sign * (n_.quotient + {up})")


def remainder(top: exp.Expr, bottom: exp.Expr, shift: int, digits: int) -> exp.Expr:
    """What ``top * 10**shift / bottom``, or ``top / (bottom * 10**-shift)``, leaves over; with the sign of ``top``."""
    # A quotient that grew on could have more digits than there is room for, and what is left of it is not read.
    division = _divided(top, bottom, shift, digits, "n_.guess")
    more = f"n_.quotient % {_power(-shift)} * n_.divisor + " if shift < 0 else ""
    return _let(division, f"n_.sign_of_rest * ({more}n_.rest)")


def _divided(top: exp.Expr, bottom: exp.Expr, shift: int, digits: int, grown: str) -> exp.Expr:
    """The quotient, ``grown`` by each group of digits, and the rest, without their signs; with a shift below 0 those of
    ``top / bottom``.
    """
    at_once = max(min(shift, _DIGITS - digits), 0)
    dividend = filled(f"{{0}} * {_power(at_once)}", [top]) if at_once else top
    tree = _let(filled(_OPERANDS, [dividend, bottom]), _DIVISION)
    for group in _groups(shift - at_once):
        tree = _brought_down(tree, _power(group), grown)
    return tree


def _groups(digits: int) -> Iterator[int]:
    for done in range(0, digits, _GROUP):
        yield min(_GROUP, digits - done)


def _brought_down(division: exp.Expr, power: str, grown: str) -> exp.Expr:
    """A first guess at the next digits is never too great, and by so little too small that the rest is soon told."""
    kept = "divisor := n_.divisor, sign := n_.sign, sign_of_rest := n_.sign_of_rest"
    guess = f"guess := n_.rest // (n_.divisor // {power} + 1)"
    tree = _let(division, f"struct_pack(quotient := n_.quotient, rest := n_.rest, {guess}, {kept})")
    rest = f"rest := (n_.rest - n_.guess * (n_.divisor // {power})) * {power} - n_.guess * (n_.divisor % {power})"
    tree = _let(tree, f"struct_pack(quotient := {grown.format(power=power)}, {rest}, {kept})")
    fields = "quotient := n_.quotient + n_.rest // n_.divisor, rest := n_.rest % n_.divisor"
    return _let(tree, f"struct_pack({fields}, {kept})")


def _let(value: exp.Expr, body: str) -> exp.Expr:
    """``body`` with ``value`` as ``n_``, computed once."""
    return filled(f"list_transform([{{0}}], lambda n_: {body})[1]", [value])


def _power(digits: int) -> str:
    return f"CAST({10**digits} AS HUGEINT)"


def _half(digits: int) -> str:
    return f"CAST({10**digits // 2} AS HUGEINT)"
