"""Upsert streams as inputs of a join: whether the join itself turns them into changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from dovetail.changelog.schema import Kind, StreamSchema
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
)


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
        case Scan():
            known = node.stream.kind in UPSERTS
            return ({name: node.internal(name) for name in ruling(node.stream)}, node) if known else None
        case Map():
            return _through(node)
        case (
            Static()
            | Keyed()
            | Window()
            | ArrayJoin()
            | Join()
            | MultiwayJoin()
            | DeltaJoin()
            | Aggregate()
            | Sessions()
            | UnionAll()
            | SetOperation()
            | Over()
            | TopN()
        ):
            return None
        case StaticJoin() | LookupJoin() | LookupTable():
            return None
        case _:
            assert_never(node)


def _through(node: Map) -> tuple[Mapping[str, str], Scan] | None:
    below = _fused(node.input)
    renamed = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
    if node.where is not None or below is None or not set(below[0].values()) <= set(renamed):
        return None
    return {name: renamed[internal] for name, internal in below[0].items()}, below[1]


def ruling(stream: StreamSchema) -> tuple[str, ...]:
    """The columns by which upserts become changes: the primary key, and the version if one decides."""
    return stream.primary_key + ((stream.version,) if stream.version else ())


UPSERTS = (Kind.UPSERT, Kind.CHANGELOG_KV)
