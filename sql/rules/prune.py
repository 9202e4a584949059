"""Only the columns that something above reads travel; an upsert stream keeps its primary key besides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from changelog.schema import Kind
from sql.expressions import columns_of
from sql.plan import Join, Keyed, LookupJoin, LookupTable, Map, Node, Output, Scan, Static, StaticJoin
from sql.rules.keyed_inputs import UPSERTS, fused_key


def pruned(plan: Output) -> Output:
    needed = {name for _, expr in (*plan.columns, *plan.hidden) for name in expr.columns}
    return replace(plan, input=_prune(plan.input, needed))


def _prune(node: Node, needed: set[str]) -> Node:
    match node:
        case Scan():
            return _scan(node, needed)
        case Keyed():
            return replace(node, input=_scan(node.input, needed))
        case Map():
            columns = tuple((name, expr) for name, expr in node.columns if name in needed | _key_of(node))
            below = _read([expr.sql for _, expr in columns] + [node.where])
            return replace(node, input=_prune(node.input, below), columns=columns)
        case StaticJoin():
            wanted = needed | {name for pair in node.keys for name in pair} | _read([node.residual])
            fields = [field for field in node.static.schema if field.name in wanted]
            static = replace(node.static, schema=pa.schema(fields))
            return replace(node, input=_prune(node.input, wanted), static=static)
        case Join():
            return _join(node, needed)
        case LookupJoin():
            wanted = needed | {left for left, _ in node.keys} | _read([node.residual])
            table = replace(node.table, columns=tuple(pair for pair in node.table.columns if pair[0] in wanted))
            padding = tuple((name, value) for name, value in node.padding if name in wanted)
            return replace(node, input=_prune(node.input, wanted), table=table, padding=padding)
        case Static() | LookupTable():
            return node


def _scan(scan: Scan, needed: set[str]) -> Scan:
    """At least one column travels, so that a batch has a length."""
    kept = needed | _read([scan.where])
    if scan.stream.kind in UPSERTS:
        kept |= {scan.internal(name) for name in scan.stream.primary_key}
    if scan.watermark is not None and scan.stream.kind == Kind.APPEND:
        kept |= {scan.internal(scan.watermark.column)}
    columns = tuple(column for column in scan.columns if column[0] in kept)
    return replace(scan, columns=columns or scan.columns[:1])


def _key_of(node: Map) -> set[str]:
    """The primary key that a port above needs, if upserts pass through."""
    return set(fused_key(node) or ())


def _join(join: Join, needed: set[str]) -> Join:
    wanted = needed | {name for pair in join.keys for name in pair} | _read([join.residual])
    if join.asof is not None:
        wanted |= {join.asof.left, join.asof.right}
    return replace(join, left=_prune(join.left, wanted), right=_prune(join.right, wanted))


def _read(sqls: Iterable[str | None]) -> set[str]:
    return {name for sql in sqls if sql is not None for name in columns_of(sql)}
