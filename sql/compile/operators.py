"""The operator of a join or of groups, and the ports that its rows enter by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict, assert_never

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import Kind
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.renamed_rows import Names
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.multiway import MultiwaySpec, Repetition, ResidualCondition
from dovetail.joins.operators.range import RangeSpec
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.operators.union_all import UnionAllSpec
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.sql.expressions.evaluate import Condition
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.group_calls import GroupCalls
from dovetail.sql.expressions.partitions.partition_calls import PartitionCalls, in_partitions
from dovetail.sql.plan.explain import line
from dovetail.sql.plan.joins import (
    Apply,
    Asof,
    AsofOnce,
    AsWritten,
    Bidirectional,
    DynamicFilter,
    Enrichment,
    Latest,
    Range,
    Temporal,
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
from dovetail.sql.plan.properties import retracts, source_of, watermark_at
from dovetail.sql.plan.state.kept_with import first_of, kept_with
from dovetail.sql.plan.state.same_rows import same_rows
from dovetail.sql.plan.time_text import in_units
from dovetail.sql.plan.unique_keys import cut_by, found_by
from dovetail.sql.plan.upserts import fused_key, fused_version

_INGEST = {
    Kind.APPEND: Ingest.APPEND,
    Kind.UPSERT: Ingest.UPSERT,
    Kind.CHANGELOG_KV: Ingest.CHANGELOG_KV,
    Kind.CHANGELOG: Ingest.CHANGELOG,
}


def operator_of(
    source: Keyed | Join | MultiwayJoin | Aggregate | Sessions | UnionAll | SetOperation | Over | TopN,
) -> OperatorSpec:
    match source:
        case Keyed():
            return KeyedSpec(replace(_upserts(source), tie_break_by_arrival=source.by_arrival))
        case Join():
            return _join(source)
        case MultiwayJoin():
            return _multiway(source)
        case Aggregate():
            return _aggregate(source)
        case Sessions():
            return _sessions(source)
        case UnionAll():
            ports = tuple(port_of(part, found_by(part)) for part in source.parts)
            return UnionAllSpec(ports, source.schema)
        case SetOperation():
            return SetOperationSpec(source.kind, *(port_of(side, source.by) for side in source.inputs))
        case Over():
            return OverSpec(port_of(source.input, source.by), _partition_calls(source))
        case TopN():
            return TopNSpec(
                port_of(source.input, source.by),
                source.order,
                source.rank,
                source.first,
                source.last,
                source.number,
                insertions=not retracts(source.input),
            )
        case _:
            assert_never(source)


class _Shared(TypedDict):
    """What every join says of itself."""

    kind: JoinKind
    left: Port
    right: Port
    pad: Pad
    max_buffered_bytes: int | None


def _join(join: Join) -> OperatorSpec:
    """A kind of join is missing here as soon as it is one: mypy says so."""
    # A dynamic filter has no key: what cuts its left rows finds them again.
    held_by = cut_by(join) if isinstance(join.how, DynamicFilter) else tuple(left for left, _ in join.keys)
    left = port_of(join.left, held_by)
    right = port_of(join.right, tuple(right for _, right in join.keys))
    right = replace(right, everywhere=join.how.everywhere)
    left, right = (_budgeted(port, join.max_rows_per_key) for port in (left, right))
    residual = Condition(join.residual.text) if join.residual is not None else None
    shared: _Shared = {
        "kind": join.kind,
        "left": left,
        "right": right,
        "pad": join.pad,
        "max_buffered_bytes": join.max_buffered_bytes,
    }
    how = join.how
    match how:
        case Bidirectional():
            return BidirectionalSpec(
                **shared,
                null_safe=join.null_safe,
                condition=residual,
                mark=join.mark,
                right_as_left=_names(join.left, join.right) if kept_with(join.right) else (),
            )
        case Range():
            return RangeSpec(
                **shared,
                band=how.band,
                null_safe=join.null_safe,
                condition=residual,
                append=how.append,
                closed=how.closed,
            )
        case Enrichment():
            return EnrichmentSpec(
                **shared, null_safe=join.null_safe, condition=residual, alignment=how.alignment, mark=join.mark
            )
        case AsofOnce():
            return AsofOnceSpec(
                **shared,
                left_time=how.inequality.left,
                right_time=how.inequality.right,
                comparison=how.inequality.comparison,
                keep_versions=how.keep_versions,
                condition=residual,
                alignment=how.alignment,
            )
        case Latest():
            return LatestSpec(**shared, alignment=how.alignment)
        case Asof():
            return AsofSpec(
                **shared,
                left_time=how.inequality.left,
                right_time=how.inequality.right,
                comparison=how.inequality.comparison,
                tie_break=how.tie_breaks,
                tolerance=how.tolerance,
                null_safe=join.null_safe,
            )
        case Temporal():
            return TemporalSpec(
                **shared,
                left_time=how.left,
                right_time=how.right,
                deleted=how.deleted,
                null_safe=join.null_safe,
                condition=residual,
            )
        case DynamicFilter():
            return DynamicFilterSpec(**shared, condition=residual, bound=how.bound)
        case AsWritten() | Apply():
            raise InternalError(f"no operator for {line(join)}")
        case _:
            assert_never(how)


def _multiway(node: MultiwayJoin) -> MultiwaySpec:
    links = node.links
    return MultiwaySpec(
        tuple(
            _budgeted(port_of(below, keys), node.chain.max_rows_per_key)
            for below, keys in zip(node.inputs, node.keys, strict=True)
        ),
        optional=tuple(place for place, link in enumerate(links, start=1) if link.kind is JoinKind.LEFT),
        null_safe=links[0].null_safe,
        conditions=tuple(_condition(link, link.residual) for link in links if link.residual is not None),
        pad=node.chain.pad,
        max_buffered_bytes=node.chain.max_buffered_bytes,
        repetitions=tuple(_repetitions(node.inputs)),
    )


def _budgeted(port: Port, most: int | None) -> Port:
    """A retraction may be of a row that was refused: it is looked for, though the topic is consistent by itself."""
    if most is None:
        return port
    ingest = Ingest.CHANGELOG if port.ingest is Ingest.CHANGES else port.ingest
    return replace(port, ingest=ingest, max_rows_per_key=most)


def _repetitions(inputs: tuple[Node, ...]) -> Iterator[Repetition]:
    for place, part in enumerate(inputs):
        if kept_with(part):
            of = first_of(inputs, part)
            yield Repetition(place, of, _names(inputs[of], part))


def _names(kept: Node, repeated: Node) -> Names:
    """Of each column of an input the one of the input that it is kept with."""
    found = same_rows(kept, repeated)
    if found is None:
        raise InternalError("an input is kept with one that has other rows")
    return tuple(found.names.items())


def _condition(link: Join, residual: Expr) -> ResidualCondition:
    """One that reads no column is tested beside a key."""
    return ResidualCondition(residual.columns or (link.keys[0][0],), Condition(residual.text))


def _aggregate(node: Aggregate) -> AggregateSpec:
    return AggregateSpec(
        port=port_of(node.input, node.by),
        aggregations=node.aggregations,
        insertions=not retracts(node.input),
        closing=node.closing,
        closed=node.closed,
        gathered=_group_calls(node),
    )


def _sessions(node: Sessions) -> SessionsSpec:
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
    if not node.gathered:
        return None
    schema = pa.schema([pa.field(name, call.type) for name, call in node.gathered])
    arguments = tuple(dict.fromkeys(name for _, call in node.gathered for name in call.columns))
    return GroupCalls(tuple((name, call.text) for name, call in node.gathered), arguments, schema)


def _partition_calls(node: Over) -> PartitionCalls:
    schema = pa.schema([pa.field(name, call.type) for name, call in node.calls])
    return PartitionCalls(tuple((name, in_partitions(call).text) for name, call in node.calls), schema)


def port_of(node: Node, keys: tuple[str, ...]) -> Port:
    """The port that the rows of ``node`` enter by."""
    key = fused_key(node)
    if key is not None:
        stream = _source(node).stream
        return Port(
            node.schema,
            keys,
            _INGEST[stream.kind],
            key,
            watermark=watermark_at(node),
            identity=_identity(node, keys),
            version=fused_version(node),
            first_stays=stream.first_stays,
        )
    source, watermark = source_of(node), watermark_at(node)
    identity = _identity(node, keys)
    if source is None:
        # What was late has been left out where the rows came in; what got past that is taken back by its like.
        told = replace(watermark, drops_late=False) if watermark is not None else None
        return Port(node.schema, keys, Ingest.CHANGES, watermark=told)
    if source.trusted and source.stream.kind != Kind.APPEND and len(identity) == len(node.schema):
        return Port(node.schema, keys, Ingest.CHANGES)
    return Port(node.schema, keys, _INGEST[source.stream.kind], watermark=watermark, identity=identity)


def _upserts(node: Keyed) -> Port:
    """The port of rows each of which takes the place of the one before it of its key."""
    if fused_key(node.input) is not None:
        return port_of(node.input, node.primary_key)
    return Port(node.schema, node.primary_key, Ingest.UPSERT, node.primary_key)


def _identity(node: Node, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that tell rows apart: not the time and the place in the topic, which a retraction has of its own."""
    arrivals = _of_arrival(node) - set(keys)
    return tuple(name for name in node.schema.names if name not in arrivals)


def _of_arrival(node: Node) -> set[str]:
    """The columns that are, or are computed from, the time and the place of a record in the topic."""
    match node:
        case Scan():
            return {internal for internal, name in node.columns if node.stream.of_record(name)}
        case Map():
            below = _of_arrival(node.input)
            return {name for name, expr in node.columns if below & set(expr.columns)}
        case Window():
            below = _of_arrival(node.input)
            return below | {node.start, node.end} if node.time in below else below
        case ArrayJoin():
            below = _of_arrival(node.input)
            return below | {name for name, array in node.arrays if below & set(array.columns)}
        case StaticJoin():
            return _of_arrival(node.input)
        case (
            Static()
            | Keyed()
            | Join()
            | MultiwayJoin()
            | DeltaJoin()
            | Aggregate()
            | Sessions()
            | UnionAll()
            | Over()
            | TopN()
        ):
            return set()
        case SetOperation() | LookupJoin() | LookupTable():
            return set()
        case _:
            assert_never(node)


def _source(node: Node) -> Scan:
    found = source_of(node)
    if found is None:
        raise InternalError("upserts come from a scan")
    return found
