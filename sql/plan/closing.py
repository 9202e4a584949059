"""Groups that close: a watermark tells when no more rows can come into them.

A group closes by the first of its keys that follows the event time of its rows: ``window_start`` and ``window_end`` of
TUMBLE and HOP, or a time as it is. Of rows that can be taken back no group closes. Its state goes then, where a
watermark is there: that of a table's WATERMARK clause, or of what the input is made of. Asked for rows that leave once
(``output = 'append'``, EMIT ON WINDOW CLOSE), append streams under Timeplus rules get a watermark by their groups, as
late as a window is long, or as ``watermark_delay`` says.
"""

from __future__ import annotations

from dataclasses import replace

from changelog.errors import Unsupported
from changelog.schema import Kind
from joins.aggregates.aggregation import Closing
from joins.dataflow.ports import Watermark
from sql.plan.conditions.window_keys import window_of
from sql.plan.event_times import EventTimeOrigin, origin_of, passage_of, with_watermark
from sql.plan.nodes import Aggregate, Node, column_of
from sql.plan.properties import changes, source_of, watermark_at
from sql.query_settings import QuerySettings
from sql.syntax.rules import Rules
from sql.watermarks import as_set

_FIX = (
    "GROUP BY window_start of TUMBLE(t, ts, INTERVAL '1' MINUTE), with WATERMARK FOR ts in the table, or SETTINGS "
    "watermark_delay = '5s' for a stream; or let the rows be updated: leave it out"
)


def closing(node: Aggregate, settings: QuerySettings, once: bool) -> Aggregate:
    """``node`` with what closes its groups, if anything does. ``once``: its rows are to leave when it does."""
    if changes(node.input):
        return node
    node = replace(node, input=_timed(node.input))
    for key in node.by:
        found = _closed_by(node.input, key, settings, once)
        if found is not None:
            timed, shift = found
            return replace(node, input=timed, closing=Closing(key, shift), closed=once)
    return node


def refuse_open(node: Aggregate, place: str) -> None:
    """Raises Unsupported for groups whose rows never are final."""
    if node.closed:
        return
    reason = "rows can be taken back" if changes(node.input) else "no key follows a watermark"
    by = ", ".join(node.by) or "no key"
    raise Unsupported(f"the groups by {by} never close: {reason}", where=place, fix=_FIX)


def _closed_by(node: Node, key: str, settings: QuerySettings, once: bool) -> tuple[Node, int] | None:
    """The input with the watermark that ``key`` follows, and by how much it may be behind that."""
    column = column_of(node, key)
    passage = passage_of(node, column)
    if passage is not None:
        watermark = passage.watermark
        return None if watermark is None else (with_watermark(node, watermark), passage.shift_units)
    origin = origin_of(node, column)
    if origin is None:
        return None
    watermark = origin.scan.watermark or (_given(node, key, origin, settings) if once else None)
    if watermark is None or watermark.column != origin.column:
        return None
    return with_watermark(node, watermark), origin.shift_units


def _given(node: Node, key: str, origin: EventTimeOrigin, settings: QuerySettings) -> Watermark | None:
    """The watermark that a stream without one gets by its groups."""
    scan = origin.scan
    if scan.rules != Rules.TIMEPLUS or scan.stream.kind != Kind.APPEND:
        return None
    delay = settings.distance("watermark_delay", origin.whole)
    window = window_of(node, key)
    if delay is None and window is not None and not scan.trusted:
        delay = window[0].size_ms
    return None if delay is None else as_set(Watermark(origin.column, delay), settings)


def _timed(node: Node) -> Node:
    """``node`` with the watermark of its scan carried up to it: late rows are in no group."""
    scan = source_of(node)
    if scan is None or scan.watermark is None or watermark_at(node) is not None:
        return node
    return with_watermark(node, scan.watermark)
