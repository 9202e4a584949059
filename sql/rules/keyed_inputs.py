"""Upsert streams become changes: within the join, where its key is among the primary key, else in a level of their own.

Two records of one primary key must meet in one bucket. A join is cut by its key; if that is part of the primary key,
they do. A lookup join reads partition by partition, and the records of a primary key are in one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
    rebuilt,
)
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.upserts import UPSERTS, fused_key, fused_version


def keyed_inputs(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_keyed(plan.rows))


def _keyed(node: Node) -> Node:
    match node:
        case Scan():
            return Keyed(node, fused_key(node) or ()) if node.stream.kind in UPSERTS else node
        case Map() | Window() | ArrayJoin() | StaticJoin() | UnionAll() | DeltaJoin() | Static() | LookupTable():
            return rebuilt(node, _keyed)
        case Keyed() | MultiwayJoin():
            return node
        case Aggregate() | Sessions():
            # Without keys all rows go into one bucket: the changes are made before, in many.
            return replace(node, input=_side(node.input, node.by) if node.by else _keyed(node.input))
        case Over() | TopN():
            return replace(node, input=_side(node.input, node.by) if node.by else _keyed(node.input))
        case SetOperation():
            return rebuilt(node, lambda side: _side(side, node.by))
        case LookupJoin():
            # Each record of a left row is answered for itself: its memo, by the primary key, makes the changes. It
            # takes the last record of a key for its row, whatever the version.
            fused = fused_key(node.input) is not None and not fused_version(node.input)
            return node if fused else replace(node, input=_keyed(node.input))
        case Join():
            left = _side(node.left, tuple(left for left, _ in node.keys))
            right = _side(node.right, tuple(right for _, right in node.keys))
            if node.how.goes_by_arrival:
                left, right = _by_arrival(left), _by_arrival(right)
            return replace(node, left=left, right=right)
        case _:
            assert_never(node)


def _side(node: Node, keys: tuple[str, ...]) -> Node:
    key = fused_key(node)
    return node if key is not None and set(keys) <= set(key) else _keyed(node)


def _by_arrival(node: Node) -> Node:
    """The changes of ``node`` tell when their records came."""
    match node:
        case Keyed():
            return replace(node, by_arrival=True)
        case Map() | Window() | ArrayJoin() | StaticJoin():
            return replace(node, input=_by_arrival(node.input))
        case Scan() | Static() | Join() | MultiwayJoin() | DeltaJoin() | Aggregate() | Sessions():
            return node
        case UnionAll() | SetOperation() | Over() | TopN():
            return node
        case LookupJoin() | LookupTable():
            return node
        case _:
            assert_never(node)
