"""A chain of joins of which each has the one before for its left side: what computes keys stands below all of them."""

from __future__ import annotations

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Join, Map, Node


def straight(node: Node, joins: int) -> Join | None:
    """``node``, a chain of so many joins, with keys that are computed between them computed of its inputs instead;
    None where one is computed of several inputs, or it is no such chain.

    a JOIN b .. JOIN c ON a.x + 1 = c.x     Map __k0 = a.x + 1  over a, not over (a b)
    """
    if not isinstance(node, Join):
        return None
    if joins == 1:
        return node
    left = node.left
    computed: list[tuple[str, Expr]] = []
    while isinstance(left, Map):
        if left.where is not None:
            return None
        passed = [name for name, expr in left.columns if expr.plain == name]
        if set(passed) != set(left.input.schema.names):
            return None
        computed = [(name, expr) for name, expr in left.columns if expr.plain != name] + computed
        left = left.input
    below: Join | None = straight(left, joins - 1)
    for name, expr in computed:
        below = None if below is None else _with_column(below, joins - 1, name, expr)
    return None if below is None else node.with_inputs(below, node.right)


def _with_column(chain: Join, joins: int, name: str, expr: Expr) -> Join | None:
    """``chain`` with a column that one of its inputs computes."""
    read = set(expr.columns)
    if read <= set(chain.right.schema.names):
        return chain.with_inputs(chain.left, _computing(chain.right, name, expr))
    if not read <= set(chain.left.schema.names):
        return None
    if joins == 1:
        return chain.with_inputs(_computing(chain.left, name, expr), chain.right)
    left = _with_column(chain.left, joins - 1, name, expr) if isinstance(chain.left, Join) else None
    return None if left is None else chain.with_inputs(left, chain.right)


def _computing(node: Node, name: str, expr: Expr) -> Map:
    return Map(node, (*identity(node), (name, expr)))
