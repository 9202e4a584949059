"""Aggregate functions over groups of a stream that are folded: from a call in the engine's SQL to the operator's fold.

    count(*), count(x), sum(x), avg(x), min(x), max(x)
    bool_and(x), bool_or(x)                                 min(x), max(x) of a truth value

Each takes DISTINCT, count several values with it, and FILTER (WHERE ..). ``sql.functions.aggregate_calls`` writes those
of the dialects, ``uniq(x)`` or ``sum_if(x, c)``, as one of these.

The type of a sum is that of the engine whose rules the rows follow. What it does not hold is NULL, as is every value
that cannot be computed:

    of                            Timeplus        RisingWave
    bool, unsigned integers       uint64          bigint (none of them are RisingWave's)
    int8 .. int32                 int64           bigint
    int64                         int64           numeric (38 digits)
    decimals of scale s           decimal(38, s)  numeric (38 digits, s of them behind the point)
    floats                        float64         double
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.aggregates.aggregation import Fold
from dovetail.joins.state.order import is_ordered
from dovetail.sql.expressions.engine import text
from dovetail.sql.expressions.evaluate import readable
from dovetail.sql.expressions.expression import Expr, Structure, structure
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display

FOLDS: dict[type[exp.Expr], Fold] = {
    exp.Count: Fold.COUNT,
    exp.Sum: Fold.SUM,
    exp.Avg: Fold.AVG,
    exp.Min: Fold.MIN,
    exp.Max: Fold.MAX,
    exp.LogicalAnd: Fold.MIN,
    exp.LogicalOr: Fold.MAX,
}
"""The aggregates whose value follows from what it was and from a change. Others are computed from all rows."""


@dataclass(frozen=True, eq=False)
class Call:
    """An aggregate of the rows of each group.

    argument   what is folded; None for count(*)
    distinct   each value counts once
    condition  what stands in FILTER (WHERE ..); None for none
    """

    fold: Fold
    argument: exp.Expr | None
    distinct: bool
    condition: exp.Expr | None

    @property
    def structure(self) -> Structure:
        """What the call is known by."""
        parts = (None if tree is None else structure(tree) for tree in (self.argument, self.condition))
        return self.fold, self.distinct, *parts

    @property
    def filtered(self) -> exp.Expr | None:
        """The argument, NULL where the condition does not hold: aggregates leave NULLs out."""
        if self.condition is None:
            return self.argument
        return exp.Case().when(self.condition, exp.Literal.number(1) if self.argument is None else self.argument)

    @property
    def shown(self) -> str:
        """Its name, for people."""
        distinct = "distinct " if self.distinct else ""
        condition = "" if self.condition is None else f" filter ({text(self.condition)})"
        argument = "*" if self.argument is None else text(self.argument)
        return readable(f"{self.fold.value}({distinct}{argument}){condition}")


def outermost(expression: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    """The wanted nodes of an expression that stand in no other; those of subqueries and window functions apart."""
    for node in expression.walk(prune=lambda node: wanted(node) or isinstance(node, exp.Query | exp.Window)):
        if wanted(node):
            yield node


def is_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, with its FILTER where it has one."""
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    return isinstance(inner, exp.AggFunc)


def is_folded(call: exp.Expr) -> bool:
    """Whether a call is one of ``FOLDS``, with its FILTER where it has one."""
    return type(call.this if isinstance(call, exp.Filter) else call) in FOLDS


def call_of(node: exp.Expr, place: str) -> Call:
    """The call at a node that is one of ``FOLDS``, or the FILTER of one. Raises Unsupported for one within another."""
    condition = None
    if isinstance(node, exp.Filter):
        condition, node = node.expression.this, node.this
    fold, argument = FOLDS[type(node)], node.this
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        argument = argument.expressions[0] if len(argument.expressions) == 1 else _together(argument.expressions)
    refuse_nested(argument, place)
    argument = None if isinstance(argument, exp.Star) else argument
    return Call(fold, argument, distinct and fold not in (Fold.MIN, Fold.MAX), condition)


def _together(values: Sequence[exp.Expr]) -> exp.Expr:
    """Several values as one, NULL where one of them is."""
    case = exp.Case()
    for value in values:
        case = case.when(exp.Is(this=value.copy(), expression=exp.Null()), exp.Null())
    return case.else_(exp.Tuple(expressions=[value.copy() for value in values]))


def refuse_nested(argument: exp.Expr, place: str) -> None:
    nested = next(outermost(argument, is_call), None)
    if nested is not None:
        raise Unsupported(
            f"{function_name(nested) or text(nested)} stands within another aggregate",
            where=place,
            fix="aggregate in a subquery first: SELECT max(n) FROM (SELECT k, count() AS n FROM t GROUP BY k)",
        )


def call_types(call: Call, schema: pa.Schema, place: str, rules: Rules) -> tuple[pa.DataType, pa.DataType]:
    """The type in which the argument is handed over, and that of the result under ``rules``.

    Raises SqlError for an argument that the aggregate is not made for.
    """
    filtered = call.filtered
    kind = pa.int64() if filtered is None else Expr.over(filtered, schema, place).type
    match call.fold:
        case Fold.COUNT:
            return kind, pa.int64()
        case Fold.MIN | Fold.MAX if is_ordered(kind):
            return kind, kind
        case Fold.SUM | Fold.AVG if _is_summed(kind):
            return _as_summed(kind), _sum_of(kind, rules) if call.fold is Fold.SUM else pa.float64()
    fix = f"{call.fold.value}(CAST(x AS ..)) of another type"
    raise SqlError(f"{call.fold.value} is not made for {display(kind, rules)}", where=place, fix=fix)


def _is_summed(kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
    return bool(number or pa.types.is_boolean(kind))


def _as_summed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind) or kind == pa.uint64():
        return kind
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _sum_of(kind: pa.DataType, rules: Rules) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    if rules == Rules.RISINGWAVE:
        return pa.decimal128(38, 0) if kind == pa.int64() else pa.int64()
    return pa.int64() if pa.types.is_signed_integer(kind) else pa.uint64()
