"""The operator of a join, and the ports that its rows enter by."""

from __future__ import annotations

from changelog.errors import InternalError
from changelog.schema import SEQUENCE, TIME, Kind
from joins.dataflow import AsofOnce, Bidirectional, Enrichment, Ingest, Operator, Port, Watermark
from joins.dataflow import Keyed as KeyedOperator
from sql.expressions import Condition
from sql.plan import Asof, Join, Keyed, Map, Node, Scan, StaticJoin, Strategy
from sql.rules.keyed_inputs import fused_key

_INGEST = {
    Kind.APPEND: Ingest.APPEND,
    Kind.UPSERT: Ingest.UPSERT,
    Kind.CHANGELOG_KV: Ingest.CHANGELOG_KV,
    Kind.CHANGELOG: Ingest.CHANGELOG,
}


def operator_of(source: Keyed | Join) -> Operator:
    if isinstance(source, Keyed):
        return KeyedOperator(port_of(source.input, source.primary_key))
    left = port_of(source.left, tuple(left for left, _ in source.keys))
    right = port_of(source.right, tuple(right for _, right in source.keys))
    residual = Condition(source.residual) if source.residual is not None else None
    if source.strategy == Strategy.ASOF and source.asof is not None:
        return _asof(source, source.asof, left, right, residual)
    kind = Bidirectional if source.strategy == Strategy.BIDIRECTIONAL else Enrichment
    return kind(source.kind, left, right, source.null_safe, residual, source.pad, source.max_buffered_bytes)


def _asof(join: Join, asof: Asof, left: Port, right: Port, residual: Condition | None) -> AsofOnce:
    return AsofOnce(
        kind=join.kind,
        left=left,
        right=right,
        left_time=asof.left,
        right_time=asof.right,
        comparison=asof.comparison,
        keep_versions=asof.keep_versions,
        condition=residual,
        pad=join.pad,
        max_buffered_bytes=join.max_buffered_bytes,
    )


def port_of(node: Node, keys: tuple[str, ...]) -> Port:
    """The port that the rows of ``node`` enter by."""
    key = fused_key(node)
    if key is not None:
        scan = _source(node)
        return Port(node.schema, keys, _INGEST[scan.stream.kind], key, identity=_identity(node, keys))
    source = _source_or_none(node)
    identity = _identity(node, keys)
    if source is None or (source.trusted and len(identity) == len(node.schema)):
        return Port(node.schema, keys, Ingest.CHANGES)
    return Port(node.schema, keys, _INGEST[source.stream.kind], watermark=_watermark(source, node), identity=identity)


def _identity(node: Node, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that tell rows apart: not the time and the place in the topic, which a retraction has of its own."""
    arrivals = _of_arrival(node) - set(keys)
    return tuple(name for name in node.schema.names if name not in arrivals)


def _of_arrival(node: Node) -> set[str]:
    """The columns that are, or are computed from, the time and the place of a record in the topic."""
    match node:
        case Scan():
            return {internal for internal, name in node.columns if name in (TIME, SEQUENCE)}
        case Map():
            below = _of_arrival(node.input)
            return {name for name, expr in node.columns if below & set(expr.columns)}
        case StaticJoin():
            return _of_arrival(node.input)
        case _:
            return set()


def _source(node: Node) -> Scan:
    found = _source_or_none(node)
    if found is None:
        raise InternalError("upserts come from a scan")
    return found


def _source_or_none(node: Node) -> Scan | None:
    """The scan whose rows reach ``node`` without an operator between; None if there is one."""
    match node:
        case Scan():
            return node
        case Map() | StaticJoin():
            return _source_or_none(node.input)
        case _:
            return None


def _watermark(scan: Scan, node: Node) -> Watermark | None:
    """The watermark of an append-only scan, under the name that its column has in ``node``."""
    if scan.watermark is None or scan.stream.kind != Kind.APPEND:
        return None
    internal = scan.internal(scan.watermark.column)
    return Watermark(internal, scan.watermark.delay_ms) if internal in node.schema.names else None
