"""A subquery over a table that is no stream becomes a join with the table: looked up, or read once.

    Join semi  on o.pid = d.pid                LookupJoin semi  on o.pid = d.pid, d.price > 10
    ├─ scan orders o                     ─▶    ├─ scan orders o
    └─ Map  where d.price > 10                 └─ dictionary goods d
       └─ dictionary goods d

Its filters are conditions of the join then. A table has no changes that an operator could take in, so nothing but
filters and projections may lie between.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Join, LookupJoin, LookupTable, Map, Node, Static, StaticJoin
from dovetail.sql.plan.properties import walk


def is_of_table(node: Node) -> bool:
    """Whether the rows are those of a table, filtered and projected."""
    return isinstance(_rows(node), LookupTable | Static)


def with_table(join: Join) -> Node:
    """``join``, whose right side has nothing of the row around any more, as the join with a table that it is. Raises
    Unsupported for a table below an operator.
    """
    on, columns = list(join.on), dict(identity(join.right))
    node = join.right
    while isinstance(node, Map):
        below = dict(node.columns)
        on = [term.substituted(below) for term in on] + split(node.where)
        columns = {name: expr.substituted(below) for name, expr in columns.items()}
        node = node.input
    if not isinstance(node, LookupTable | Static):
        _refuse_operators(join)
        return join
    made: LookupJoin | StaticJoin
    if isinstance(node, LookupTable):
        made = LookupJoin(join.left, node, join.kind, tuple(on), place=join.place, mark=join.mark)
    else:
        made = StaticJoin(join.left, node, join.kind, tuple(on), place=join.place, mark=join.mark)
    return made if join.kind.is_existence else _valued(made, node, columns)


def _valued(join: LookupJoin | StaticJoin, table: LookupTable | Static, columns: dict[str, Expr]) -> Node:
    """Each left row with the columns of a subquery: NULL where it has no row."""
    keys = table.unique_keys
    if join.kind is JoinKind.LEFT and keys:
        there = exp.Not(this=exp.Is(this=join.column(keys[0][0]).tree.copy(), expression=exp.null()))
        columns = {
            name: expr if expr.plain else Expr(exp.Case().when(there.copy(), expr.tree.copy()), expr.type)
            for name, expr in columns.items()
        }
    return Map(join, (*identity(join.input), *columns.items()))


def _refuse_operators(join: Join) -> None:
    for node in walk(join.right):
        fed = node.inputs[:1] if isinstance(node, LookupJoin | StaticJoin) else node.inputs
        if not isinstance(node, Map) and any(isinstance(below, LookupTable | Static) for below in map(_rows, fed)):
            raise Unsupported(
                "a subquery of a streaming query that groups, orders or joins rows of a table that is no stream is not "
                "supported",
                where=join.place,
                fix="compare with the rows of the table as they are: EXISTS (SELECT 1 FROM d WHERE d.key = l.x AND "
                "d.n > 1); or compute them in FROM: EXISTS (SELECT 1 FROM (SELECT k FROM table(r) GROUP BY k) AS g "
                "WHERE g.k = l.k)",
            )


def _rows(node: Node) -> Node:
    while isinstance(node, Map):
        node = node.input
    return node
