"""The right side of a join as the versions of its rows: each record of a keyed stream is a row of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.event_times import origin_of, with_watermark
from dovetail.sql.plan.joins.temporal import Temporal
from dovetail.sql.plan.nodes import ArrayJoin, Keyed, Map, Node, Scan, StaticJoin


def versions(right: Node) -> Node:
    """The right side of a one-shot ASOF join: an update of a keyed stream adds a version to those that are kept, as
    does each row of a query that is read as upserts.
    """
    if isinstance(right, Keyed):
        return right.input
    if isinstance(right, Map | ArrayJoin | StaticJoin):
        return replace(right, input=versions(right.input))
    if not isinstance(right, Scan) or right.stream.kind != Kind.UPSERT:
        return right
    return replace(right, stream=replace(right.stream, kind=Kind.APPEND, version=""), records=right.stream)


@dataclass(frozen=True)
class TemporalSides:
    """Both sides of FOR SYSTEM_TIME AS OF, with their watermarks, and by which times they meet."""

    left: Node
    right: Node
    method: Temporal


def temporal_sides(left: Node, right: Node, as_of: Expr, place: str) -> TemporalSides:
    """Raises Unsupported where a side has not what the join goes by. ``as_of`` is an expression over the left."""
    timed, version_time = _timed(left, as_of, place)
    scan, stated = _version_key(right, place)
    time = scan.internal(stated.column)
    deletes = f"{scan.alias}.#deleted" if pa.types.is_timestamp(scan.schema.field(time).type) else ""
    records = replace(
        scan,
        stream=replace(scan.stream, kind=Kind.APPEND, version=""),
        records=scan.stream,
        deletes=deletes,
        watermark=stated,
    )
    return TemporalSides(timed, records, Temporal(version_time, time, deletes))


def _timed(left: Node, as_of: Expr, place: str) -> tuple[Node, str]:
    """The left side, with the watermark over the time that is asked for, and the column that this is."""
    column, origin = as_of.plain, origin_of(left, as_of)
    if column is None or origin is None or origin.shift:
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF takes a column of the left stream itself",
            where=place,
            fix="FROM l JOIN r FOR SYSTEM_TIME AS OF l.time",
        )
    stated, name = origin.upstream_watermark or origin.scan.stated, origin.scan.stream.name
    if stated is None or stated.column != origin.column:
        over = "has no WATERMARK" if stated is None else f"has its WATERMARK over {stated.column}"
        raise Unsupported(
            f'a left row waits until the watermark has passed {origin.column}, and "{name}" {over}',
            where=place,
            fix=f"declare it: WATERMARK FOR {origin.column} AS {origin.column} - INTERVAL '5 SECONDS'",
        )
    return with_watermark(left, stated), column


def _version_key(right: Node, place: str) -> tuple[Scan, Watermark]:
    """The right side, and the watermark over the time from which its versions hold."""
    fix = "CREATE TABLE r (.., PRIMARY KEY (k), WATERMARK FOR since AS since - INTERVAL '5 SECONDS')"
    if not isinstance(right, Scan) or right.trusted:
        raise Unsupported(
            "the right side of FOR SYSTEM_TIME AS OF is a table by its name: a query keeps no versions",
            where=place,
            fix=f"JOIN the table itself, declared with a primary key and a watermark: {fix}",
        )
    if right.stream.kind != Kind.UPSERT:
        raise Unsupported(
            f'"{right.stream.name}" has no primary key, so no record of it is a version of another',
            where=place,
            fix=fix,
        )
    if right.stated is None:
        raise Unsupported(
            f'"{right.stream.name}" has no WATERMARK: nothing tells from when on a version of it holds',
            where=place,
            fix=fix,
        )
    return right, right.stated
