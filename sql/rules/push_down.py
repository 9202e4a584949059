"""Conditions move towards the scans.

A condition of WHERE passes below a join on the sides whose rows the join never pads: both of an INNER join, the left
of a LEFT join, the right of a RIGHT join, none of a FULL join. A condition of ON over one side moves the other way:
below the side that is padded with, since a row that fails it is as if absent. Below a join that takes one right row of
many (ASOF, LATEST, FOR SYSTEM_TIME AS OF) only the left side takes conditions: a right row that fails must still hide
others. A condition of ON over the left of an ANTI or MARK join stays: a left row that fails it matches nothing, and
leaves.

Rows of an upsert stream that fail are deletes (``RowMap.on_reject``). A ``changelog_kv`` stream takes no condition
before its rows are changes: a retraction is compared with the whole row that it takes away. Nor does one with a version
column: a record of an older version that fails deletes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjunction, split
from dovetail.sql.plan.maps import filtered, identity
from dovetail.sql.plan.nodes import (
    Join,
    LookupJoin,
    Map,
    Node,
    Scan,
    StaticJoin,
    rebuilt,
)
from dovetail.sql.plan.nodes.node import over
from dovetail.sql.plan.query_plan import QueryPlan


def push_down(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_push(plan.rows, []))


def _push(node: Node, terms: list[Expr]) -> Node:
    """``node`` with ``terms`` applied to its rows, as deep as they go."""
    if isinstance(node, Scan):
        return _scan(node, terms)
    if isinstance(node, Map):
        return _map(node, terms)
    if isinstance(node, Join):
        return _join(node, terms)
    if isinstance(node, StaticJoin | LookupJoin):
        return _once(node, terms)
    below = node.filters_below(terms)
    pushed = rebuilt(node, lambda part: _push(part, below))
    return filtered(pushed, [term for term in terms if term not in below])


def _scan(scan: Scan, terms: list[Expr]) -> Node:
    if scan.stream.kind == Kind.CHANGELOG_KV or scan.stream.version:
        return filtered(scan, terms)
    return replace(scan, where=conjunction(split(scan.where) + terms))


def _map(node: Map, terms: list[Expr]) -> Node:
    by_column = dict(node.columns)
    moved = [(term, term.substituted(by_column)) for term in terms]
    held = [term for term, below in moved if len(below.text) > _LONGEST]
    pushed = [below for _, below in moved if len(below.text) <= _LONGEST]
    below = _push(node.input, split(node.where) + pushed)
    return filtered(below if _is_identity(node) else replace(node, input=below, where=None), held)


_LONGEST = 1_000
"""How long the text of a condition may become on its way down. A column that is computed from one twice (``v * v``)
doubles it, and so does each such column below."""


def _is_identity(node: Map) -> bool:
    return node.columns == identity(node.input)


def _join(join: Join, terms: list[Expr]) -> Node:
    left, right = set(join.left.schema.names), set(join.right.schema.names)
    one_of_many = join.method.takes_one
    inner = join.kind == JoinKind.INNER and not one_of_many
    unpadded_left = join.kind in (JoinKind.INNER, JoinKind.LEFT) or join.kind.is_existence
    where_left = over(terms, left) if unpadded_left else []
    where_right = over(terms, right) if join.kind in (JoinKind.INNER, JoinKind.RIGHT) and not one_of_many else []
    on_left = over(join.on, left) if inner or join.kind in (JoinKind.RIGHT, JoinKind.SEMI) else []
    on_right = over(join.on, right) if unpadded_left and not one_of_many else []
    rest = [term for term in terms if term not in where_left + where_right]
    on = [term for term in join.on if term not in on_left + on_right]
    if inner:
        # WHERE is ON, as far as its terms are about both sides: FROM a, b WHERE a.k = b.k.
        both = [term for term in rest if term.columns]
        on, rest = on + both, [term for term in rest if term not in both]
    pushed = replace(
        join,
        left=_push(join.left, where_left + on_left),
        right=_push(join.right, where_right + on_right),
        on=tuple(on),
    )
    return filtered(pushed, rest)


def _once(join: StaticJoin | LookupJoin, terms: list[Expr]) -> Node:
    """Below a join whose right side takes no conditions: what is about the left alone."""
    names = set(join.input.schema.names)
    inner = join.kind == JoinKind.INNER
    below = over(terms, names) + (over(join.on, names) if inner or join.kind == JoinKind.SEMI else [])
    rest = [term for term in terms if term not in below]
    on = [term for term in join.on if term not in below]
    if inner:
        both = [term for term in rest if term.columns]
        on, rest = on + both, [term for term in rest if term not in both]
    return filtered(replace(join, input=_push(join.input, below), on=tuple(on)), rest)
