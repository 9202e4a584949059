"""The canonical form of a plan: what its state and its output depend on, and nothing else.

A checkpoint outlives the release that wrote it. So the form has words of its own, here, that no renamed class and no
reworded EXPLAIN changes. It leaves out what only messages say, what limits state without making another one of it, and
what the query does not read of its streams.
"""

from __future__ import annotations

from typing import assert_never

from dovetail.changelog.schema import Column, Included
from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.fingerprint.canonical_joins import canonical_method
from dovetail.sql.plan.fingerprint.canonical_values import (
    Form,
    aggregation,
    closing,
    computed,
    declaration,
    expression,
    expressions,
    fields,
    members,
    pairs,
    record_format,
    stream,
    watermark,
)
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
)


def canonical(node: Output | Node) -> Form:
    """The node as an object of JSON, its inputs inside."""
    match node:
        case Output():
            return _output(node)
        case Scan():
            return _scan(node)
        case Static():
            return members(
                node="static",
                alias=node.alias,
                relations=list(node.relations),
                sql=node.sql,
                columns=fields(node.schema),
            )
        case Keyed():
            return members(
                node="keyed",
                primary_key=list(node.primary_key),
                by_arrival=node.by_arrival,
                input=canonical(node.input),
            )
        case Map() | Window() | ArrayJoin():
            return _row_by_row(node)
        case Join() | StaticJoin() | LookupJoin():
            return _joined(node)
        case MultiwayJoin() | DeltaJoin():
            return _chain(node)
        case LookupTable():
            return _lookup_table(node)
        case UnionAll() | SetOperation() | Aggregate() | Sessions() | Over() | TopN():
            return _of_rows(node)
        case _:
            assert_never(node)


def _chain(node: MultiwayJoin | DeltaJoin) -> Form:
    if isinstance(node, MultiwayJoin):
        return members(node="multiway_join", joins=node.joins, chain=canonical(node.chain))
    paths: list[Form] = [list(path) for path in node.paths]
    return members(node="delta_join", joins=node.joins, paths=paths, chain=canonical(node.chain))


def _of_rows(node: UnionAll | SetOperation | Aggregate | Sessions | Over | TopN) -> Form:
    match node:
        case UnionAll():
            return members(
                node="union_all",
                columns=fields(node.schema),
                clock=node.clock,
                shifts=list(node.shifts),
                parts=[canonical(part) for part in node.parts],
            )
        case SetOperation():
            return members(
                node="set_operation",
                kind=node.kind.value,
                columns=fields(node.schema),
                left=canonical(node.left),
                right=canonical(node.right),
            )
        case Over():
            return members(node="over", by=list(node.by), calls=computed(node.calls), input=canonical(node.input))
        case TopN():
            return members(
                node="top_n",
                by=list(node.by),
                order=[[key.column, key.descending, key.nulls_first] for key in node.order],
                rank=node.rank.value,
                first=node.first,
                last=node.last,
                number=node.number,
                input=canonical(node.input),
            )
        case Aggregate() | Sessions():
            return _grouped(node)
        case _:
            assert_never(node)


def _output(node: Output) -> Form:
    return members(
        node="output",
        name=node.name,
        topic=node.topic,
        columns=computed(node.columns),
        hidden=computed(node.hidden),
        key=list(node.key),
        key_names=list(node.key_names),
        updating=node.updating,
        marked=node.marked,
        exchanged=node.exchanged,
        format=node.format,
        subplans_once=node.subplans_once,
        value_format=record_format(node.value_format),
        key_format=record_format(node.key_format),
        input=canonical(node.input),
    )


def _scan(node: Scan) -> Form:
    declared = {column.name: column for column in node.stream.readable}
    return members(
        node="scan",
        alias=node.alias,
        topic=node.topic,
        rules=node.rules.value,
        stream=stream(node.stream),
        columns=[_scanned(internal, name, node, declared.get(name)) for internal, name in node.columns],
        where=expression(node.where),
        trusted=node.trusted,
        begins="latest" if node.latest else node.seek,
        watermark=watermark(node.watermark),
        records=None if node.records is None else stream(node.records),
        deletes=node.deletes,
        kept_with=node.kept_with,
    )


def _scanned(internal: str, name: str, scan: Scan, column: Column | Included | None) -> Form:
    """A column that travels; ``column`` is None of one that every record has."""
    kind = str(scan.schema.field(internal).type)
    return {"name": internal, "of": name, "type": kind, **(declaration(column) if column is not None else {})}


def _row_by_row(node: Map | Window | ArrayJoin) -> Form:
    match node:
        case Map():
            return members(
                node="map",
                columns=computed(node.columns),
                where=expression(node.where),
                input=canonical(node.input),
            )
        case Window():
            return members(
                node="window",
                time=node.time,
                size_ms=node.size_ms,
                slide_ms=node.slide_ms,
                start=node.start,
                end=node.end,
                input=canonical(node.input),
            )
        case ArrayJoin():
            return members(
                node="array_join",
                arrays=computed(node.arrays),
                left=node.left,
                dropped=list(node.dropped),
                input=canonical(node.input),
            )
        case _:
            assert_never(node)


def _grouped(node: Aggregate | Sessions) -> Form:
    match node:
        case Aggregate():
            return members(
                node="aggregate",
                by=list(node.by),
                aggregations=[aggregation(one) for one in node.aggregations],
                gathered=computed(node.gathered),
                closing=closing(node.closing),
                closed=node.closed,
                input=canonical(node.input),
            )
        case Sessions():
            return members(
                node="sessions",
                keys="none yet" if node.keys is None else list(node.keys),
                time=node.time,
                gap_ms=node.gap_ms,
                longest_ms=node.longest_ms,
                start=node.start,
                end=node.end,
                closing=node.closing,
                closed=node.closed,
                input=canonical(node.input),
            )
        case _:
            assert_never(node)


def _joined(node: Join | StaticJoin | LookupJoin) -> Form:
    shared = _shared(node.kind, node.pad, node.on, node.keys, node.residual)
    match node:
        case Join():
            own = members(
                node="join",
                how=canonical_method(node.how),
                null_safe=list(node.null_safe),
                mark=node.mark,
                budgeted=node.max_rows_per_key is not None,
                left=canonical(node.left),
                right=canonical(node.right),
            )
        case StaticJoin():
            own = members(
                node="static_join",
                null_safe=list(node.null_safe),
                mark=node.mark,
                input=canonical(node.input),
                static=canonical(node.static),
            )
        case LookupJoin():
            own = members(
                node="lookup_join",
                index=node.index,
                padding=[[name, repr(value)] for name, value in node.padding],
                mark=node.mark,
                input=canonical(node.input),
                table=canonical(node.table),
            )
        case _:
            assert_never(node)
    return {**own, **shared}


def _shared(
    kind: JoinKind, pad: Pad, on: tuple[Expr, ...], keys: tuple[tuple[str, str], ...], residual: Expr | None
) -> dict[str, Form]:
    return members(
        kind=kind.value, unmatched=pad.value, on=expressions(on), keys=pairs(keys), residual=expression(residual)
    )


def _lookup_table(node: LookupTable) -> Form:
    """Its index is that of the join."""
    return members(
        node="lookup_table",
        alias=node.alias,
        target=node.target.value,
        name=node.name,
        columns=[{"name": internal, "of": name, "type": str(node.type_of(name))} for internal, name in node.columns],
        primary_key=list(node.primary_key),
    )
