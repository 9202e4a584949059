"""The operator that makes the rows of a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import Kind
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.multiway import MultiwaySpec, Repetition, ResidualCondition
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.operators.union_all import UnionAllSpec
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.joins.partitions.waiting import WaitingSpec
from dovetail.sql.compile.join_operators import join_operator
from dovetail.sql.compile.ports import budgeted, port_of, renamed, upserts_port
from dovetail.sql.expressions.evaluate import Condition
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.group_calls import GroupCalls
from dovetail.sql.expressions.partitions.partition_calls import PartitionCalls, in_partitions
from dovetail.sql.plan.nodes import (
    Aggregate,
    Join,
    Keyed,
    MultiwayJoin,
    Node,
    Over,
    Sessions,
    SetOperation,
    TopN,
    UnionAll,
    Waiting,
)
from dovetail.sql.plan.state.shared_with import first_of
from dovetail.sql.plan.time_text import in_units

_INGEST = {
    Kind.APPEND: Ingest.APPEND,
    Kind.UPSERT: Ingest.UPSERT,
    Kind.CHANGELOG_KV: Ingest.CHANGELOG_KV,
    Kind.CHANGELOG: Ingest.CHANGELOG,
}


@singledispatch
def operator_of(node: Node) -> OperatorSpec:
    """What makes the rows of ``node`` of those of its inputs."""
    raise InternalError(f"no operator for {type(node).__name__}")


@operator_of.register
def _keyed(node: Keyed) -> OperatorSpec:
    return KeyedSpec(replace(upserts_port(node), tie_break_by_arrival=node.by_arrival))


@operator_of.register
def _union_all(node: UnionAll) -> OperatorSpec:
    return UnionAllSpec(tuple(port_of(part, part.retraction_key) for part in node.parts), node.schema)


@operator_of.register
def _set_operation(node: SetOperation) -> OperatorSpec:
    return SetOperationSpec(node.kind, *(port_of(side, node.by) for side in node.inputs))


@operator_of.register
def _over(node: Over) -> OperatorSpec:
    schema = pa.schema([pa.field(name, call.type) for name, call in node.calls])
    calls = tuple((name, in_partitions(call).text) for name, call in node.calls)
    return OverSpec(port_of(node.input, node.by), PartitionCalls(calls, schema))


@operator_of.register
def _top_n(node: TopN) -> OperatorSpec:
    return TopNSpec(
        port_of(node.input, node.by),
        node.order,
        node.rank,
        node.first,
        node.last,
        node.number,
        insertions=not node.input.retracts,
    )


@operator_of.register
def _waiting(node: Waiting) -> OperatorSpec:
    return WaitingSpec(port_of(node.input, node.by), node.closing)


@operator_of.register
def _aggregate(node: Aggregate) -> OperatorSpec:
    return AggregateSpec(
        port=port_of(node.input, node.by),
        aggregations=node.aggregations,
        insertions=not node.input.retracts,
        closing=node.closing,
        closed=node.closed,
        recomputed=_group_calls(node),
    )


@operator_of.register
def _sessions(node: Sessions) -> OperatorSpec:
    kind = node.input.schema.field(node.time).type
    return SessionsSpec(
        port=port_of(node.input, node.by),
        time=node.time,
        gap=in_units(node.gap_ms, kind),
        start=node.start,
        end=node.end,
        longest=None if node.longest_ms is None else in_units(node.longest_ms, kind),
        closing=node.closing,
        closed=node.closed,
    )


def _group_calls(node: Aggregate) -> GroupCalls | None:
    if not node.recomputed:
        return None
    schema = pa.schema([pa.field(name, call.type) for name, call in node.recomputed])
    arguments = tuple(dict.fromkeys(name for _, call in node.recomputed for name in call.columns))
    return GroupCalls(tuple((name, call.text) for name, call in node.recomputed), arguments, schema)


@operator_of.register
def _multiway(node: MultiwayJoin) -> OperatorSpec:
    links = node.links
    return MultiwaySpec(
        tuple(
            budgeted(port_of(below, keys), node.chain.max_rows_per_key)
            for below, keys in zip(node.inputs, node.keys, strict=True)
        ),
        optional=tuple(place for place, link in enumerate(links, start=1) if link.kind is JoinKind.LEFT),
        null_safe=links[0].null_safe,
        conditions=tuple(_condition(link, link.residual) for link in links if link.residual is not None),
        pad=node.chain.pad,
        max_buffered_bytes=node.chain.max_buffered_bytes,
        repetitions=tuple(_repetitions(node.inputs)),
    )


def _condition(link: Join, residual: Expr) -> ResidualCondition:
    """One that reads no column is tested beside a key."""
    return ResidualCondition(residual.columns or (link.keys[0][0],), Condition(residual.text))


def _repetitions(inputs: tuple[Node, ...]) -> Iterator[Repetition]:
    for place, part in enumerate(inputs):
        if part.shared_with:
            of = first_of(inputs, part)
            yield Repetition(place, of, renamed(inputs[of], part))


@operator_of.register
def _join(node: Join) -> OperatorSpec:
    return join_operator(node.method, node)
