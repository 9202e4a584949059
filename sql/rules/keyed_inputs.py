"""Upsert streams become changes: within the join, where its key is among the primary key, else in a level of their own.

Two records of one primary key must meet in one bucket. A join is cut by its key; if that is part of the primary key,
they do. A lookup join reads partition by partition, and the records of a primary key are in one.
"""

from __future__ import annotations

from dataclasses import replace

from changelog.schema import Kind
from sql.plan import Join, Keyed, LookupJoin, Map, Node, Scan, StaticJoin

UPSERTS = (Kind.UPSERT, Kind.CHANGELOG_KV)


def keyed_inputs(node: Node) -> Node:
    match node:
        case Scan():
            return Keyed(node) if node.stream.kind in UPSERTS else node
        case Map() | StaticJoin():
            return replace(node, input=keyed_inputs(node.input))
        case LookupJoin():
            # Each record of a left row is answered for itself: its memo, by the primary key, makes the changes.
            return node if fused_key(node.input) is not None else replace(node, input=keyed_inputs(node.input))
        case Join():
            return replace(
                node,
                left=_side(node.left, tuple(left for left, _ in node.keys)),
                right=_side(node.right, tuple(right for _, right in node.keys)),
            )
        case _:
            return node


def _side(node: Node, keys: tuple[str, ...]) -> Node:
    key = fused_key(node)
    return node if key is not None and set(keys) <= set(key) else keyed_inputs(node)


def fused_key(node: Node) -> tuple[str, ...] | None:
    """The primary key of a scan of upserts as it leaves ``node``; None if ``node`` is none, or filters or loses the
    key.
    """
    match node:
        case Scan() if node.stream.kind in UPSERTS:
            return tuple(node.internal(name) for name in node.stream.primary_key)
        case Map() if node.where is None:
            below = fused_key(node.input)
            renamed = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
            return tuple(renamed[name] for name in below) if below is not None and set(below) <= set(renamed) else None
        case _:
            return None
