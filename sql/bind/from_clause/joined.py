"""A join of two items: its condition over the columns of both, its node in the plan, and the columns that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.bind.clauses import is_process_time
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.join_method import (
    direct_joins,
    kind_of,
    refuse_method,
    terms_of,
    unresolved_join,
    using_names,
)
from dovetail.sql.bind.resolve import Expressions
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.comparison import comparison
from dovetail.sql.expressions.expression import Expr, coalesce, equality
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.plan.joins import UnresolvedJoin
from dovetail.sql.plan.joins.unresolved_join import JoinSyntax
from dovetail.sql.plan.maps import filtered, identity
from dovetail.sql.plan.nodes import Join, LookupJoin, LookupTable, Map, Node, Static, StaticJoin
from dovetail.sql.plan.properties import rules_of
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.syntax.rules import Rules

_PADDED = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


def joined(
    join: exp.Join, left: FromItem, right: FromItem, settings: QuerySettings, expressions: Expressions
) -> FromItem:
    """``left`` and ``right`` as ``join`` says."""
    place = place_of(join, "JOIN")
    left.scope.refuse_aliases_of(right.scope, place)
    kind = kind_of(join)
    if kind in (JoinKind.SEMI, JoinKind.ANTI) and join.side.upper() == "RIGHT":
        left, right = right, left
    scope = left.scope + right.scope
    using = using_names(join, left.scope, right.scope)
    trees = [
        equality(left.node.column(first), right.node.column(second))
        for first, second in left.scope.halves(right.scope, using)
    ]
    conditions, modifiers = terms_of(on) if (on := join.args.get("on")) is not None else ([], [])
    trees += _resolved(conditions, left, right, expressions)
    if not trees and kind in _PADDED and (expressions.bounded or isinstance(right.node, Static)):
        what = f"{kind.upper()} JOIN needs a condition: without one each row matches"
        raise Unsupported(what, where=place, fix=f"{kind.upper()} JOIN r ON l.k = r.k, or CROSS JOIN r")
    schema = scope.seen_with(pa.schema([*left.node.schema, *right.node.schema]))
    on_place = place_of(on, "JOIN .. ON") if on is not None else place
    terms = tuple(Expr.over(tree, schema, on_place).held_as(pa.bool_()) for tree in trees)
    method = unresolved_join(join, modifiers, left.scope, scope)
    if is_process_time(join.this) and not isinstance(right.node, LookupTable):
        method = replace(method, syntax=JoinSyntax.PROCESS_TIME)
    if kind == JoinKind.ANTI and not isinstance(left.node, Static) and not expressions.bounded:
        left = replace(left, node=_with_keys(left.node, right.node, terms))
    if expressions.bounded:
        node: Node = Join(kind, method, left.node, right.node, terms, place=place)
    else:
        node = _node(kind, left.node, right.node, terms, method, settings, place)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        scope = left.scope + right.scope.spent(f"{join.side or 'LEFT'} {kind} JOIN".upper())
    leads = left.scope.dialect.merged_first if expressions.bounded else rules_of(node) == Rules.RISINGWAVE
    return _merged(FromItem(node, scope), left, right, using, kind, leads)


def has_equality(join: exp.Join, left: FromItem, right: FromItem, expressions: Expressions) -> bool:
    """Whether the join equates something of the right side, by which it could be looked up."""
    on = join.args.get("on")
    if using_names(join, left.scope, right.scope):
        return True
    if on is None:
        return False
    scope = left.scope + right.scope
    schema = scope.seen_with(pa.schema([*left.node.schema, *right.node.schema]))
    conditions, _ = terms_of(on)
    own = set(right.node.schema.names)
    return any(_tells(tree, schema, own) for tree in _resolved(conditions, left, right, expressions))


def _resolved(
    conditions: Sequence[exp.Expr], left: FromItem, right: FromItem, expressions: Expressions
) -> list[exp.Expr]:
    """Conditions of ON over the columns of both sides, each by itself."""
    return [tree for term in conditions for tree in conjuncts(expressions.on(term, left.scope, right.scope))]


def _tells(tree: exp.Expr, schema: pa.Schema, own: set[str]) -> bool:
    """Whether a condition equates something of ``own`` columns with something of none."""
    if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
        return False
    read = [set(Expr.over(side, schema).columns) for side in (tree.this, tree.expression)]
    return any(one and one <= own and other.isdisjoint(own) for one, other in (read, reversed(read)))


def _with_keys(left: Node, right: Node, terms: Sequence[Expr]) -> Node:
    """The left side of LEFT ANTI under Timeplus rules: a row whose key is NULL is dropped, as Timeplus has it. By the
    standard, and in NOT EXISTS, it matches nothing and stays.
    """
    if rules_of(left) != Rules.TIMEPLUS or rules_of(right) != Rules.TIMEPLUS:
        return left
    pairs = [comparison(term, left.schema, right.schema) for term in terms]
    keys = [pair.left for pair in pairs if pair is not None and pair.operator == "="]
    return filtered(
        left, [Expr.condition(exp.Not(this=exp.Is(this=key.tree.copy(), expression=exp.null()))) for key in keys]
    )


def _node(
    kind: JoinKind,
    left: Node,
    right: Node,
    on: tuple[Expr, ...],
    method: UnresolvedJoin,
    settings: QuerySettings,
    place: str,
) -> Node:
    pad = Pad.NULL if settings["join_use_nulls"] or kind.is_existence else Pad.DEFAULT
    if isinstance(left, Static) and isinstance(right, LookupTable):
        raise Unsupported(
            "table(x) on the left of a lookup would be answered once, at the start",
            where=place,
            fix="put a stream on the left",
        )
    if isinstance(left, Static) or isinstance(right, Static):
        refuse_method(method, kind, place)
        return _static_join(kind, left, right, on, pad, place)
    if isinstance(right, LookupTable):
        refuse_method(method, kind, place)
        return LookupJoin(left, right, kind, on, pad=pad, place=place)
    if direct_joins(settings) == "only":
        raise Unsupported(
            "join_algorithm = 'direct' looks up the rows of a mutable stream, a view or a dictionary, and the "
            "right side is not one of them",
            where=place,
            fix="leave the setting out, or SETTINGS join_algorithm = 'direct, hash'",
        )
    return Join(kind, method, left, right, on, pad=pad, place=place)


def _static_join(kind: JoinKind, left: Node, right: Node, on: tuple[Expr, ...], pad: Pad, place: str) -> Node:
    if isinstance(left, Static) and isinstance(right, Static):
        raise Unsupported(
            "two tables are joined before a stream",
            where=place,
            fix="write the stream first: FROM stream JOIN table(a) JOIN table(b)",
        )
    if isinstance(left, Static) and not kind.is_existence:
        left, right = right, left
        kind = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}.get(kind, kind)
    if kind in (JoinKind.RIGHT, JoinKind.FULL) or not isinstance(right, Static):
        raise Unsupported(
            "a stream joined with table(x) keeps the rows of the stream: those of the table without a match never "
            "become known",
            where=place,
            fix="INNER, LEFT, LEFT SEMI or LEFT ANTI JOIN with the stream on the left",
        )
    return StaticJoin(left, right, kind, on, pad=pad, place=place)


def _merged(
    joined: FromItem, left: FromItem, right: FromItem, names: Sequence[str], kind: JoinKind, leads: bool
) -> FromItem:
    """USING columns once: the left one's, the right one's under RIGHT, whichever is there under FULL."""
    node, scope = joined.node, joined.scope
    computed: list[tuple[str, Expr]] = []
    columns: list[tuple[str, str, str, str]] = []
    for name, (first, second) in zip(names, left.scope.halves(right.scope, names), strict=True):
        internal = second if kind == JoinKind.RIGHT else first
        if kind == JoinKind.FULL:
            internal = f"{first}|{second}"
            whichever = coalesce(node.column(first), node.column(second))
            computed.append((internal, Expr.over(whichever, node.schema)))
        columns.append((name, first, second, internal))
    if computed:
        node = Map(node, (*identity(node), *computed))
    for place, (name, first, second, internal) in enumerate(columns):
        scope = scope.merged(name, first, second, internal, place if leads else None)
    return FromItem(node, scope)
