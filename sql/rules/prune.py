"""Only the columns that something above reads travel; an upsert stream keeps its primary key besides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

import pyarrow as pa

from dovetail.changelog.schema import TIME
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.joins import DynamicFilter
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
    Output,
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
from dovetail.sql.plan.properties import walk, watermark_at
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.upserts import UPSERTS, fused_key, fused_version, ruling


def prune(plan: QueryPlan) -> QueryPlan:
    """The last fragment first: what it reads of those before it is what leaves them, their keys besides."""
    made = [] if plan.output is None else [_pruned(plan.output)]
    for part in reversed(plan.upstream):
        read = {name for fragment in made for name in _columns_read(fragment, part.topic)}
        columns = tuple(column for column in part.columns if column[0] in read or column[0] in part.key)
        made.insert(0, _pruned(replace(part, columns=columns)))
    return replace(plan, upstream=tuple(made[:-1]), output=made[-1])


def _columns_read(fragment: Output, topic: str) -> set[str]:
    scans = [node for node in walk(fragment) if isinstance(node, Scan) and node.topic == topic]
    return {name for scan in scans for _, name in scan.columns}


def _pruned(fragment: Output) -> Output:
    needed = {name for _, expr in (*fragment.columns, *fragment.hidden) for name in expr.columns}
    return replace(fragment, input=_prune(fragment.input, needed))


def _prune(node: Node, needed: set[str]) -> Node:
    match node:
        case Scan():
            return _scan(node, needed)
        case Map():
            return _map(node, needed)
        case Window() | Sessions() | Keyed():
            return replace(node, input=_prune(node.input, _of_input(node, needed)))
        case ArrayJoin():
            return _array_join(node, needed)
        case Aggregate() | Over() | TopN():
            return _parted(node, needed)
        case Join() | MultiwayJoin() | DeltaJoin():
            return _of_streams(node, needed)
        case StaticJoin() | LookupJoin():
            return _table_join(node, needed)
        case UnionAll() | SetOperation():
            return _set_operation(node, needed)
        case Static() | LookupTable():
            return rebuilt(node, lambda below: _prune(below, needed))
        case _:
            assert_never(node)


def _of_input(node: Window | Sessions | Keyed, needed: set[str]) -> set[str]:
    match node:
        case Keyed():
            return needed | set(node.primary_key)
        case Window():
            return (needed | {node.time}) - {node.start, node.end}
        case Sessions():
            own = {node.time, *node.by} | _clock_of(node.input)
            return (needed | own) - {node.start, node.end}
        case _:
            assert_never(node)


def _scan(scan: Scan, needed: set[str]) -> Scan:
    """At least one column travels, so that a batch has a length."""
    kept = needed | _read([scan.where])
    if scan.stream.kind in UPSERTS:
        kept |= {scan.internal(name) for name in ruling(scan.stream)}
    if scan.watermark is not None:
        kept |= {scan.internal(scan.watermark.column)}
    if scan.deletes:
        kept |= {scan.internal(TIME)}
    columns = tuple(column for column in scan.columns if column[0] in kept)
    return replace(scan, columns=columns or scan.columns[:1])


def _key_of(node: Map) -> set[str]:
    """The primary key, and the version, that a port above needs, if upserts pass through."""
    return {*(fused_key(node) or ()), fused_version(node)}


def _map(node: Map, needed: set[str]) -> Map:
    columns = tuple((name, expr) for name, expr in node.columns if name in needed | _key_of(node))
    below = _read([*(expr for _, expr in columns), node.where])
    return replace(node, input=_prune(node.input, below), columns=columns)


def _array_join(node: ArrayJoin, needed: set[str]) -> ArrayJoin:
    """Every array stays: the longest says how many rows there are."""
    below = _prune(node.input, (needed - set(node.elements)) | _read(array for _, array in node.arrays))
    return replace(node, input=below, dropped=tuple(name for name in below.schema.names if name not in needed))


def _parted(node: Aggregate | Over | TopN, needed: set[str]) -> Node:
    match node:
        case Aggregate():
            return _aggregate(node, needed)
        case Over():
            return _over(node, needed)
        case TopN():
            return _top_n(node, needed)
        case _:
            assert_never(node)


def _aggregate(node: Aggregate, needed: set[str]) -> Aggregate:
    """At least one column leaves."""
    kept = tuple(one for one in node.aggregations if one.name in needed)
    gathered = tuple((name, call) for name, call in node.gathered if name in needed)
    if not (kept or gathered or node.by):
        kept, gathered = node.aggregations[:1], node.gathered if not node.aggregations else ()
    wanted = {*node.by, *(one.argument for one in kept if one.argument)} | _clock_of(node.input)
    wanted |= _read(call for _, call in gathered)
    below = _prune(node.input, wanted or {node.input.schema.names[0]})
    return replace(node, input=below, aggregations=kept, gathered=gathered)


def _over(node: Over, needed: set[str]) -> Node:
    """Without a call that is read the rows themselves are left."""
    calls = tuple((name, call) for name, call in node.calls if name in needed)
    passed = needed - {name for name, _ in node.calls}
    if not calls:
        return _prune(_as_changes(node.input), passed or {node.input.schema.names[0]})
    wanted = passed | set(node.by) | _read(call for _, call in calls)
    return replace(node, input=_prune(node.input, wanted or {node.input.schema.names[0]}), calls=calls)


def _as_changes(node: Node) -> Node:
    """``node`` without the operator above it, which has turned upserts into changes where they are fused with it."""
    key = fused_key(node)
    return node if key is None else Keyed(node, key)


def _top_n(node: TopN, needed: set[str]) -> TopN:
    number = node.number if node.number in needed else ""
    wanted = (needed - {node.number}) | set(node.by) | {key.column for key in node.order}
    below = _prune(node.input, wanted or {node.input.schema.names[0]})
    return replace(node, input=below, number=number)


def _set_operation(node: UnionAll | SetOperation, needed: set[str]) -> Node:
    """INTERSECT and EXCEPT compare rows by all columns. Of UNION ALL at least one column travels, and of rows that can
    be taken back all by which they are found.
    """
    if isinstance(node, SetOperation):
        return rebuilt(node, lambda side: _prune(side, set(node.by)))
    kept = [field for field in node.schema if field.name in {*needed, node.clock}] or [node.schema.field(0)]
    wanted = {field.name for field in kept}
    parts = tuple(_prune(part, wanted | (_clock_of(part) if node.clock else set())) for part in node.parts)
    return replace(node, parts=parts, schema=pa.schema(kept))


def _clock_of(node: Node) -> set[str]:
    """The column that has the watermark."""
    watermark = watermark_at(node)
    return set() if watermark is None else {watermark.column}


def _table_join(join: StaticJoin | LookupJoin, needed: set[str]) -> Node:
    return _static_join(join, needed) if isinstance(join, StaticJoin) else _lookup_join(join, needed)


def _static_join(join: StaticJoin, needed: set[str]) -> StaticJoin:
    wanted = needed | {name for pair in join.keys for name in pair} | _read([join.residual])
    fields = [field for field in join.static.schema if field.name in wanted]
    static = replace(join.static, schema=pa.schema(fields))
    return replace(join, input=_prune(join.input, wanted), static=static)


def _lookup_join(join: LookupJoin, needed: set[str]) -> LookupJoin:
    wanted = needed | {left for left, _ in join.keys} | _read([join.residual])
    table = replace(join.table, columns=tuple(pair for pair in join.table.columns if pair[0] in wanted))
    padding = tuple((name, value) for name, value in join.padding if name in wanted)
    return replace(join, input=_prune(join.input, wanted), table=table, padding=padding)


def _of_streams(node: Join | MultiwayJoin | DeltaJoin, needed: set[str]) -> Node:
    return _join(node, needed) if isinstance(node, Join) else replace(node, chain=_join(node.chain, needed))


def _join(join: Join, needed: set[str]) -> Join:
    alone = needed.isdisjoint(join.right.schema.names)
    if isinstance(join.how, DynamicFilter) and join.kind is JoinKind.INNER and alone:
        # The one row adds nothing to a left row: it is left or not.
        join = replace(join, kind=JoinKind.SEMI)
    wanted = needed | {name for pair in join.keys for name in pair} | _read([join.residual])
    wanted |= _clock_of(join.left) | _clock_of(join.right)
    wanted |= join.how.columns_read
    return replace(join, left=_prune(join.left, wanted), right=_prune(join.right, wanted))


def _read(exprs: Iterable[Expr | None]) -> set[str]:
    return {name for expr in exprs if expr is not None for name in expr.columns}
