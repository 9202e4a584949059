"""A filter by a bound that rises moves below the joins whose state it bounds.

    filter (a JOIN b)      all rows of a and b are kept, for all that may come
    (filter a) JOIN b      a row of a goes from the state when the clock has passed it

It passes below a join that keeps its rows without end, on the side of its column: either one of an INNER join, the left
of a LEFT join. One that keeps rows by a watermark, or answers each row once, takes no rows that are taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.joins import Bidirectional, DynamicFilter
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Join, Map, Node, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan


def clock_filters(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_filters(plan.rows))


def _filters(node: Node) -> Node:
    made = rebuilt(node, _filters)
    return _sunk(made) if isinstance(made, Join) and _is_filter(made) else made


def _is_filter(join: Join) -> bool:
    method = join.method
    return isinstance(method, DynamicFilter) and method.empties(join.kind)


def _sunk(join: Join) -> Node:
    """The filter ``join`` as deep as it goes."""
    below = join.left
    read = {column for term in (join.residual,) if term is not None for column in term.columns}
    read = (read | join.method.columns_read) - set(join.right.schema.names)
    if isinstance(below, Map) and below.where is None:
        below = _lowered(below, read)
        if all(below.name_below(name) == name for name in read):
            return replace(below, input=_sunk(replace(join, left=below.input)))
        return join
    if (side := _side(below, read)) is None:
        return join
    return _with_side(below, side, lambda rows: _sunk(replace(join, left=rows)))


def _side(node: Node, read: Set[str]) -> str | None:
    """The side of a join, 'left' or 'right', below which a filter of the columns ``read`` may move; None: neither."""
    if not (isinstance(node, Join) and isinstance(node.method, Bidirectional)):
        return None
    if node.kind in (JoinKind.INNER, JoinKind.LEFT) and read <= set(node.left.schema.names):
        return "left"
    if node.kind is JoinKind.INNER and read <= set(node.right.schema.names):
        return "right"
    return None


def _with_side(join: Node, side: str, made: Callable[[Node], Node]) -> Join:
    assert isinstance(join, Join)
    return replace(join, left=made(join.left)) if side == "left" else replace(join, right=made(join.right))


def _lowered(node: Map, read: Set[str]) -> Map:
    """``node`` with what it computes of ``read`` computed below, on the side of the join that has all it is made of."""
    computed = [(name, expr) for name, expr in node.columns if name in read and expr.plain != name]
    side = _side(node.input, {column for _, expr in computed for column in expr.columns}) if computed else None
    if side is None:
        return node
    below = _with_side(node.input, side, lambda rows: Map(rows, (*identity(rows), *computed)))
    names = {name for name, _ in computed}
    passed = tuple((name, Expr.column(name, expr.type) if name in names else expr) for name, expr in node.columns)
    return replace(node, input=below, columns=passed)
