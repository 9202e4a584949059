"""Sums of columns and constants: what an inequality comes to, whichever way round it is written.

``l.t <= r.t + INTERVAL '1' MINUTE``, ``date_diff('second', l.t, r.t) <= 60`` and ``r.t - l.t >= - INTERVAL '60 s'``
are one and the same: ``l.t - r.t - 60000000 <= 0``. Instants and lengths of time count in microseconds, dates as their
midnight, whole numbers as they are. Lengths without a fixed size (months) are no part of a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.intervals import milliseconds, unit_ms

_UTC = exp.Literal.string("UTC")
_OPERATORS: Mapping[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "="}


@dataclass(frozen=True)
class LinearSum:
    """``terms``: expression -> its coefficient, never 0; the expressions are instants, dates or whole numbers."""

    terms: Mapping[Expr, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    def plus(self, other: LinearSum, sign: int = 1) -> LinearSum:
        added = dict(self.terms)
        for term, coefficient in other.terms.items():
            added[term] = added.get(term, Fraction(0)) + sign * coefficient
        kept = {term: coefficient for term, coefficient in added.items() if coefficient}
        return LinearSum(kept, self.constant + sign * other.constant)

    def times(self, factor: Fraction) -> LinearSum:
        scaled = {term: coefficient * factor for term, coefficient in self.terms.items() if factor}
        return LinearSum(scaled, self.constant * factor)


@dataclass(frozen=True)
class Inequality:
    """``sum <operator> 0``; the operator is >, >=, <, <= or =."""

    sum: LinearSum
    operator: str


def inequality(term: Expr, schema: pa.Schema) -> Inequality | None:
    """What a condition over columns of ``schema`` says; None where it compares no sums."""
    tree = term.tree.unnest()
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return None
    left, right = summed(tree.left, schema), summed(tree.right, schema)
    return None if left is None or right is None else Inequality(left.plus(right, -1), operator)


def offset_column(expr: Expr, schema: pa.Schema) -> tuple[str, Fraction] | None:
    """The one column that an expression is, and what it adds to it."""
    if expr.plain is not None:
        return expr.plain, Fraction(0)
    found = summed(expr.tree, schema)
    if found is None or len(found.terms) != 1:
        return None
    ((term, coefficient),) = found.terms.items()
    return None if term.plain is None or coefficient != 1 else (term.plain, found.constant)


def summed(node: exp.Expr, schema: pa.Schema) -> LinearSum | None:
    """The expression over columns of ``schema`` as a sum; None if it is none."""
    match node:
        case exp.Paren():
            return summed(node.this, schema)
        case exp.Neg():
            return _scaled(summed(node.this, schema), Fraction(-1))
        case exp.Add() | exp.Sub():
            return _added(node, schema) or _whole(node, schema)
        case exp.Mul():
            return _product(node, schema) or _whole(node, schema)
        case exp.Div():
            divisor = _number(node.expression)
            return _scaled(summed(node.this, schema), 1 / divisor) if divisor else None
        case exp.Literal():
            number = _number(node)
            return None if number is None else LinearSum(constant=number)
        case exp.Interval():
            return _length(milliseconds(node))
        case exp.Cast():
            return _cast(node, schema)
    return _call(node, schema) or _whole(node, schema)


def _scaled(found: LinearSum | None, factor: Fraction) -> LinearSum | None:
    return None if found is None else found.times(factor)


def _added(node: exp.Binary, schema: pa.Schema) -> LinearSum | None:
    left, right = summed(node.left, schema), summed(node.right, schema)
    if left is None or right is None:
        return None
    return left.plus(right, -1 if isinstance(node, exp.Sub) else 1)


def _product(node: exp.Binary, schema: pa.Schema) -> LinearSum | None:
    left, right = _number(node.left), _number(node.right)
    if left is not None:
        return _scaled(summed(node.right, schema), left)
    return _scaled(summed(node.left, schema), right) if right is not None else None


def _call(node: exp.Expr, schema: pa.Schema) -> LinearSum | None:
    """``epoch_us(t)`` is the instant itself; ``to_seconds(5)`` a length of time."""
    name = function_name(node)
    if name == "timezone" and node.expressions[0] == _UTC:
        return summed(node.expressions[1], schema)
    if name == "epoch_us":
        return _instant(node.expressions[0] if isinstance(node, exp.Anonymous) else node.this, schema)
    if name.startswith("to_") and isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        count, scale = _number(_uncast(node.expressions[0])), unit_ms(name.removeprefix("to_"))
        if count is not None and scale is not None:
            return LinearSum(constant=count * Fraction(scale) * 1000)
    return None


def _cast(node: exp.Cast, schema: pa.Schema) -> LinearSum | None:
    """An instant stays what it is as another timestamp, a whole number in a wider type; a literal is its value."""
    literal = node.this.unnest()
    if node.to.is_type("interval") and isinstance(literal, exp.Literal):
        return _length(milliseconds(exp.Interval(this=literal.copy())))
    if (number := _number(literal)) is not None:
        return LinearSum(constant=number)
    cast, inner = _typed(node, schema), _typed(node.this, schema)
    if cast is None or inner is None:
        return None
    to, of = cast.type, inner.type
    if pa.types.is_timestamp(to) and pa.types.is_timestamp(of):
        return summed(node.this, schema)
    if (
        _fits(to)
        and _fits(of)
        and to.bit_width >= of.bit_width
        and (pa.types.is_signed_integer(to) or pa.types.is_unsigned_integer(of))
    ):
        return summed(node.this, schema)
    return _whole(node, schema)


def _uncast(node: exp.Expr) -> exp.Expr:
    """A literal without the type that it is given."""
    return _uncast(node.this) if isinstance(node, exp.Cast | exp.Paren) else node


def _instant(node: exp.Expr, schema: pa.Schema) -> LinearSum | None:
    """A date counts here, and only here: beside a whole number, of days, it would be counted in another unit."""
    value = _typed(node, schema)
    if value is not None and pa.types.is_date(value.type):
        return LinearSum({value: Fraction(1)})
    return summed(node, schema)


def _whole(node: exp.Expr, schema: pa.Schema) -> LinearSum | None:
    """An expression that is an instant or a whole number, taken as it is."""
    value = _typed(node, schema)
    if value is None or not (pa.types.is_timestamp(value.type) or _fits(value.type)):
        return None
    return LinearSum({value: Fraction(1)})


def _fits(kind: pa.DataType) -> bool:
    """Whether a whole number of the type, and the distance of two, has a place in 64 bits with a sign."""
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _typed(node: exp.Expr, schema: pa.Schema) -> Expr | None:
    try:
        return Expr.over(node, schema)
    except SqlError:
        return None


def _length(ms: object) -> LinearSum | None:
    return None if ms is None else LinearSum(constant=Fraction(str(ms)) * 1000)


def _number(node: exp.Expr) -> Fraction | None:
    """The value of a literal number; as DuckDB reads it, ``1.5e0`` and ``1.5`` are the same."""
    node = _uncast(node)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        return Fraction(str(node.this))
    except ValueError:
        return None
