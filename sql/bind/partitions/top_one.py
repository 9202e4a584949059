"""``SELECT x FROM r ORDER BY x DESC LIMIT 1``: the greatest value, which is an aggregate, so that it can change.

It has no row where there is none: HAVING count(*) > 0. Where NULL comes first, one NULL makes it NULL.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.sql.expressions.expression import structure
from dovetail.sql.functions.aggregate_calls import aggregates_in

_OTHER_CLAUSES = ("group", "having", "distinct", "offset", "qualify", "windows", "laterals")


def top_one(query: exp.Select) -> exp.Select:
    """The query with MAX or MIN in the place of ORDER BY and LIMIT 1, if it selects what it orders by, alone."""
    value = _ordered_value(query)
    if value is None:
        return query
    ordered = query.args["order"].expressions[0]
    extreme = exp.Max if ordered.args.get("desc") else exp.Min
    answer: exp.Expr = extreme(this=value.copy())
    rows = exp.Count(this=exp.Star(), big_int=True)
    if ordered.args.get("nulls_first"):
        complete = exp.EQ(this=rows.copy(), expression=exp.Count(this=value.copy(), big_int=True))
        answer = exp.Case().when(complete, answer)
    made = query.copy()
    made.set("expressions", [exp.alias_(answer, query.expressions[0].alias_or_name, quoted=True)])
    made.set("having", exp.Having(this=exp.GT(this=rows, expression=exp.Literal.number(0))))
    for clause in ("order", "limit"):
        made.set(clause, None)
    return made


def _ordered_value(select: exp.Select) -> exp.Expr | None:
    """What is selected, and ordered by, of the first row; None for any other query."""
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or limit is None or any(select.args.get(clause) for clause in _OTHER_CLAUSES):
        return None
    if not isinstance(limit.expression, exp.Literal) or limit.expression.this != "1":
        return None
    if len(select.expressions) != 1 or len(order.expressions) != 1:
        return None
    item, by = select.expressions[0], order.expressions[0].this
    value = item.unalias()
    same = structure(by) == structure(value) or (isinstance(by, exp.Column) and by.name == item.alias)
    plain = isinstance(value, exp.Column) and not isinstance(value.this, exp.Star)
    return value if same and (plain or item.alias) and next(aggregates_in(value), None) is None else None
