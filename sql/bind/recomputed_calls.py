"""An aggregate that is computed from all rows of a group: its arguments as columns, and the call over these.

quantile_cont(o.a + o.b, 0.9) FILTER (WHERE o.c > 1)

__a0 = o.a + o.b, __a1 = o.c > 1
quantile_cont(__a0, 0.9) FILTER (WHERE __a1)
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dovetail.sql.expressions.expression import column_named

_PARTS_OF_CALLS = (exp.AggFunc, exp.Filter, exp.Where, exp.Distinct, exp.Order, exp.Ordered)
"""What a call is made of, besides its arguments."""


def with_columns(call: exp.Expr, column_of: Callable[[exp.Expr], str]) -> exp.Expr:
    """``call`` with each argument that reads a column replaced by the column that ``column_of`` puts it in."""

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, _PARTS_OF_CALLS):
            made = part.copy()
            for name, value in part.args.items():
                if isinstance(value, list):
                    made.set(name, [replaced(one) if isinstance(one, exp.Expr) else one for one in value])
                elif isinstance(value, exp.Expr):
                    made.set(name, replaced(value))
            return made
        if part.find(exp.Column) is None:
            return part.copy()
        return column_named(column_of(part))

    return replaced(call)
