"""Timeplus' expressions: operators, literals and casts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.expressions.times.timestamp_precision import marked
from dovetail.sql.expressions.written_values import has_value
from dovetail.sql.functions.arguments import whole
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.forms import COMMON
from dovetail.sql.functions.registry import Registry
from dovetail.sql.functions.timeplus import conversions, functions, intervals, patterns
from dovetail.sql.functions.timeplus.choices import CHOICES
from dovetail.sql.functions.timeplus.comparable import expect_comparable
from dovetail.sql.functions.translate import COMPARISONS, Translator, Visit
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow, display

_CALLS: dict[type[exp.Expr], str] = {
    exp.Add: "plus", exp.Sub: "minus", exp.Mul: "multiply", exp.Div: "divide", exp.IntDiv: "int_div", exp.Mod: "modulo",
    exp.BitwiseAnd: "bit_and", exp.BitwiseOr: "bit_or", exp.DPipe: "concat", exp.Xor: "xor",
}  # fmt: skip


class TimeplusDialect:
    """As ClickHouse has them."""

    rules = Rules.TIMEPLUS
    merged_first = False
    """Whether columns of USING lead ``*``."""

    @property
    def registry(self) -> Registry:
        return functions()

    @property
    def visits(self) -> Mapping[type[exp.Expr], Visit]:
        return _VISITS

    def operator(self, node: exp.Expr, operands: Sequence[Typed]) -> Typed | exp.Expr | None:
        left, right = operands
        if isinstance(node, exp.Add | exp.Sub) and (moved := _moved(node, left, right)) is not None:
            return moved
        if isinstance(node, exp.Like | exp.ILike):
            return patterns.liked(left, right, fold=isinstance(node, exp.ILike))
        if isinstance(node, COMPARISONS):
            expect_comparable(left, right)
        name = _CALLS.get(type(node))
        if name is not None:
            return self.registry.find(name, "")(operands, left)
        return None

    def literal(self, node: exp.Literal, environment: Environment) -> Typed:
        if node.is_string:
            return Typed(node.copy(), environment.ask, pa.string(), str(node.this))
        written = str(node.this)
        if any(sign in written for sign in ".eE"):
            # The engine would make 1.5 a decimal.
            shown = written if "e" in written.lower() else f"{written}e0"
            return Typed(exp.Literal.number(shown), environment.ask, pa.float64(), float(written))
        value = int(written)
        return Typed(node.copy(), environment.ask, _least_type(value), value)

    def own(self, name: str) -> None:
        """Those of users are in the catalog."""

    def type_of(self, written: exp.DataType) -> pa.DataType:
        return arrow(written.sql(dialect="clickhouse").lower(), Rules.TIMEPLUS)

    def cast(self, value: Typed, kind: pa.DataType) -> exp.Expr:
        if value.type == kind:
            return value.tree
        if pa.types.is_integer(kind):
            return conversions.to_integer(value, kind)
        if pa.types.is_floating(kind):
            return conversions.to_float(value, kind)
        if pa.types.is_string(kind):
            return conversions.to_string([value]).tree
        if pa.types.is_boolean(kind):
            return conversions.to_boolean(value)
        if pa.types.is_date(kind):
            return conversions.to_date([value])
        if pa.types.is_timestamp(kind):
            digits = {"s": 0, "ms": 3}.get(kind.unit, 6)
            return marked(conversions.instant(value, conversions.UTC, digits), kind.unit)
        if pa.types.is_decimal(kind):
            return conversions.to_decimal(value, kind)
        return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [value.tree])


def _cast_to_name(translator: Translator, node: exp.Expr) -> Typed:
    """``cast(x, 'int32')``"""
    kind = exp.DataType.build(node.args["to"].name.lower(), dialect="clickhouse")
    translator.note_read(node.args["to"])
    return translator(exp.Cast(this=node.this.copy(), to=kind))


def _cast(translator: Translator, node: exp.Expr) -> Typed:
    """``date '2026-01-31'`` and ``x::date``. Raises SqlError for a text that is written out and is no such value."""
    made = COMMON[exp.Cast](translator, node)
    written = node.this.unnest()
    if isinstance(written, exp.Literal) and written.is_string and not has_value(made.tree):
        kind = display(made.type, Rules.TIMEPLUS)
        raise SqlError(
            f"{written.sql()} is not a valid {kind}",
            where=translator.environment.place,
            fix=f"write a value of that type; or, for NULL, NULL::{kind}",
        )
    return made


def _least_type(value: int) -> pa.DataType:
    for bits, kind in ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64())):
        if value < 1 << bits:
            return kind
    raise SqlError(f"{value} is beyond 64 bits", fix="write it as a text: to_decimal128('..', 0)")


def _moved(node: exp.Expr, left: Typed, right: Typed) -> Typed | exp.Expr | None:
    """Times and dates with intervals and numbers of seconds or days; None for all else."""
    sign = "+" if isinstance(node, exp.Add) else "-"
    if isinstance(right.tree, exp.Interval):
        return intervals.with_interval(left, right.tree, sign)
    if isinstance(left.tree, exp.Interval) and sign == "+":
        return intervals.with_interval(right, left.tree, sign)
    if left.is_instant and whole(right):
        return intervals.moved(left, intervals.length("second", right.tree), sign, keeps_date=True)
    if left.is_date and whole(right):
        return intervals.moved(left, intervals.length("day", right.tree), sign, keeps_date=True)
    if right.is_date and whole(left) and sign == "+":
        return intervals.moved(right, intervals.length("day", left.tree), sign, keeps_date=True)
    if left.is_date and right.is_date and sign == "-":
        return left.of(filled("CAST(date_diff('day', {1}, {0}) AS INTEGER)", [left.tree, right.tree]), pa.int32())
    if left.is_instant and right.is_instant and sign == "-":
        micros = filled("(epoch_us({0}) - epoch_us({1}))", [left.tree, right.tree])
        return left.of(conversions.scaled(micros, pa.decimal128(18, 6)), pa.decimal128(18, 6))
    return None


_VISITS: Mapping[type[exp.Expr], Visit] = {**COMMON, **CHOICES, exp.Cast: _cast, exp.CastToStrType: _cast_to_name}
