"""LATERAL: a subquery in FROM that reads the items before it, asked for each of their rows.

FROM l, LATERAL (q) AS x              the rows of q beside each row of l
FROM l LEFT JOIN LATERAL (q) AS x ON true    NULL beside a row for which q has none
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.plan.joins import Apply
from dovetail.sql.plan.nodes import Join


def is_lateral(join: exp.Join) -> bool:
    return isinstance(join.this, exp.Lateral)


def lateral_kind(join: exp.Join) -> JoinKind:
    """INNER or LEFT. Raises Unsupported for a join of another kind, and for LEFT with a condition."""
    kind, side = join.kind.upper(), join.side.upper()
    place = place_of(join, "LATERAL")
    if join.method or join.args.get("using") or side not in ("", "LEFT") or kind not in ("", "CROSS", "INNER", "OUTER"):
        raise Unsupported(
            "LATERAL is joined by CROSS JOIN, JOIN .. ON and LEFT JOIN .. ON true",
            where=place,
            fix="FROM l, LATERAL (SELECT .. FROM r WHERE r.k = l.k) AS x, or l LEFT JOIN LATERAL (..) AS x ON true",
        )
    if side != "LEFT":
        return JoinKind.INNER
    if any(not isinstance(term, exp.Boolean) or not term.this for term in _terms(join)):
        raise Unsupported(
            "LEFT JOIN LATERAL with a condition is not supported",
            where=place,
            fix="write it in WHERE of the subquery: l LEFT JOIN LATERAL (SELECT .. FROM r WHERE r.k = l.k AND ..) AS x "
            "ON true",
        )
    return JoinKind.LEFT


def _terms(join: exp.Join) -> list[exp.Expr]:
    on = join.args.get("on")
    return [] if on is None else conjuncts(on)


def applied(kind: JoinKind, join: exp.Join, left: FromItem, right: FromItem, on: tuple[Expr, ...] = ()) -> FromItem:
    """The rows of ``right``, a query that may read columns of ``left``, beside each row of ``left``."""
    place = place_of(join, "LATERAL")
    left.scope.refuse_aliases_of(right.scope, place)
    return FromItem(Join(kind, Apply(), left.node, right.node, on, place=place), left.scope + right.scope)
