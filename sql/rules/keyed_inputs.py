"""Upsert streams become changes: within the join, where its key is among the primary key, else in a level of their own.

Two records of one primary key must meet in one bucket. A join is cut by its key; if that is part of the primary key,
they do. A lookup join reads partition by partition, and the records of a primary key are in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from changelog.schema import Kind, StreamSchema
from sql.plan import Aggregate, Join, Keyed, LookupJoin, Map, Node, Scan, StaticJoin, Strategy, Window

UPSERTS = (Kind.UPSERT, Kind.CHANGELOG_KV)


def keyed_inputs(node: Node) -> Node:
    match node:
        case Scan():
            return Keyed(node) if node.stream.kind in UPSERTS else node
        case Map() | Window() | StaticJoin():
            return replace(node, input=keyed_inputs(node.input))
        case Aggregate():
            # Without keys all rows go into one bucket: the changes are made before, in many.
            return replace(node, input=_side(node.input, node.by) if node.by else keyed_inputs(node.input))
        case LookupJoin():
            # Each record of a left row is answered for itself: its memo, by the primary key, makes the changes. It
            # takes the last record of a key for its row, whatever the version.
            fused = fused_key(node.input) is not None and not fused_version(node.input)
            return node if fused else replace(node, input=keyed_inputs(node.input))
        case Join():
            left = _side(node.left, tuple(left for left, _ in node.keys))
            right = _side(node.right, tuple(right for _, right in node.keys))
            if node.strategy == Strategy.LATEST:
                left, right = _by_arrival(left), _by_arrival(right)
            return replace(node, left=left, right=right)
        case _:
            return node


def _side(node: Node, keys: tuple[str, ...]) -> Node:
    key = fused_key(node)
    return node if key is not None and set(keys) <= set(key) else keyed_inputs(node)


def _by_arrival(node: Node) -> Node:
    """The changes of ``node`` tell when their records came: what LATEST goes by."""
    match node:
        case Keyed():
            return replace(node, by_arrival=True)
        case Map() | Window() | StaticJoin():
            return replace(node, input=_by_arrival(node.input))
        case _:
            return node


def fused_key(node: Node) -> tuple[str, ...] | None:
    """The primary key of a scan of upserts as it leaves ``node``; None if ``node`` is none, or filters or loses the
    key, or the version.
    """
    found = _fused(node)
    return None if found is None else tuple(found[0][name] for name in found[1].stream.primary_key)


def fused_version(node: Node) -> str:
    """The column that tells which record of a primary key stands, as it leaves ``node``; '': the last one does."""
    found = _fused(node)
    return "" if found is None else found[0].get(found[1].stream.version, "")


def _fused(node: Node) -> tuple[Mapping[str, str], Scan] | None:
    """The scan of upserts below, and the names under which its primary key and version leave ``node``."""
    match node:
        case Scan() if node.stream.kind in UPSERTS:
            return {name: node.internal(name) for name in ruling(node.stream)}, node
        case Map() if node.where is None:
            below = _fused(node.input)
            renamed = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
            if below is None or not set(below[0].values()) <= set(renamed):
                return None
            return {name: renamed[internal] for name, internal in below[0].items()}, below[1]
        case _:
            return None


def ruling(stream: StreamSchema) -> tuple[str, ...]:
    """The columns by which upserts become changes: the primary key, and the version if one decides."""
    return stream.primary_key + ((stream.version,) if stream.version else ())
