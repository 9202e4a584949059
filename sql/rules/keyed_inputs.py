"""Upsert streams become changes: within the join, where its key is among the primary key, else in a level of their own.

Two records of one primary key must meet in one bucket. A join is cut by its key; if that is part of the primary key,
they do. A lookup join reads partition by partition, and the records of a primary key are in one.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.sql.plan.nodes import Chained, Join, Keyed, LookupJoin, Node, Partitioned, Scan, SetOperation, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan


def keyed_inputs(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_keyed(plan.rows))


def _keyed(node: Node) -> Node:
    if isinstance(node, Scan):
        return Keyed(node, node.upserts.key) if node.upserts is not None else node
    if isinstance(node, Keyed):
        return node
    if isinstance(node, Join):
        return _of_join(node)
    if isinstance(node, SetOperation):
        return rebuilt(node, lambda side: _side(side, node.by))
    if isinstance(node, Partitioned) and node.partition:
        return replace(node, input=_side(node.input, node.partition))
    # Without keys all rows go into one bucket: the changes are made before, in many.
    return node if isinstance(node, LookupJoin) and _is_memo(node.input) else rebuilt(node, _keyed)


def _is_memo(node: Node) -> bool:
    """Whether a lookup makes the changes: each record of a left row is answered for itself, and its memo is by the
    primary key. It takes the last record of a key for its row, whatever the version.
    """
    return node.upserts is not None and not node.upserts.version


def _of_join(join: Join) -> Join:
    left = _side(join.left, tuple(left for left, _ in join.keys))
    right = _side(join.right, tuple(right for _, right in join.keys))
    if join.method.goes_by_arrival:
        left, right = _by_arrival(left), _by_arrival(right)
    return replace(join, left=left, right=right)


def _side(node: Node, keys: tuple[str, ...]) -> Node:
    return node if node.upserts is not None and set(keys) <= set(node.upserts.key) else _keyed(node)


def _by_arrival(node: Node) -> Node:
    """The changes of ``node`` tell when their records came."""
    if isinstance(node, Keyed):
        return replace(node, by_arrival=True)
    return replace(node, input=_by_arrival(node.input)) if isinstance(node, Chained) else node
