"""``lag_behind``: the watermarks of both sides that tell a one-shot join how long its left rows wait."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.plan.event_times import origin_of, with_watermark
from dovetail.sql.plan.joins.alignment import Alignment
from dovetail.sql.plan.joins.unresolved_join import LAG_BEHIND, Lag
from dovetail.sql.plan.nodes import EventTimeOrigin, Node
from dovetail.sql.query_settings import QuerySettings

LAG_FORM = f"{LAG_BEHIND}(20ms, l.time, r.time)"


@dataclass(frozen=True)
class AlignedSides:
    """Both sides of a join, with the watermarks that ``alignment`` needs."""

    left: Node
    right: Node
    alignment: Alignment


def aligned(left: Node, right: Node, lag: Lag, settings: QuerySettings) -> AlignedSides:
    """Raises SqlError and Unsupported for columns that are no times of two streams."""
    on_left = [column for column in lag.columns if column in left.schema.names]
    on_right = [column for column in lag.columns if column in right.schema.names]
    if len(on_left) != 1 or len(on_right) != 1:
        raise SqlError(f"{LAG_BEHIND} compares a column of each side", where=lag.place, fix=LAG_FORM)
    if not pa.types.is_timestamp(left.schema.field(on_left[0]).type):
        raise SqlError(f"{LAG_BEHIND} compares times", where=lag.place, fix=LAG_FORM)
    idle_ms = settings.number("join_quiesce_threshold_ms") or settings.duration_ms("idle_timeout")
    origin = _origin(right, on_right[0], lag.place)
    right = with_watermark(right, replace(_watermark_of(origin, 0, settings), idle_ms=idle_ms))
    if idle_ms is not None:
        # A silent right side stands where the left one does: past all left rows that there are, by the lag.
        before = _origin(left, on_left[0], lag.place)
        left = left if before.scan.watermark else with_watermark(left, _watermark_of(before, -lag.ms, settings))
    return AlignedSides(left, right, Alignment(on_left[0], lag.ms))


def _origin(node: Node, column: str, place: str) -> EventTimeOrigin:
    origin = origin_of(node, node.column(column))
    if origin is None or origin.shift or not pa.types.is_timestamp(origin.type):
        raise Unsupported(f"{LAG_BEHIND} compares times that are columns of two streams", where=place, fix=LAG_FORM)
    return origin


def _watermark_of(origin: EventTimeOrigin, delay_ms: int, settings: QuerySettings) -> Watermark:
    """How far the rows of a scan have come: what is stated of it, or told by the query that writes it, else a watermark
    behind which no row is late.
    """
    known = origin.scan.watermark or origin.upstream_watermark
    if known is not None and known.column == origin.column:
        return known
    future_ms = settings.duration_ms("max_future")
    return Watermark(origin.column, delay_ms, max_future_ms=future_ms, drops_late=False)
