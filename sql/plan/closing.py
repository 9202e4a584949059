"""Groups that close: a watermark tells when no more rows can come into them.

A group closes by the first of its keys that follows the event time of its rows: ``window_start`` and ``window_end`` of
TUMBLE and HOP, ``window_end`` of SESSION, or a time as it is. Of rows that can be taken back no group closes. Its state
goes then, where a watermark is there: that of a table's WATERMARK clause, or of what the input is made of. Asked for
rows that leave once (``output = 'append'``, EMIT ON WINDOW CLOSE), append streams under Timeplus rules get a watermark
by their groups, as late as a window, or the gap of sessions, is long, or as ``watermark_delay`` says.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import Kind
from dovetail.joins.aggregates.aggregation import Closing
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.plan.event_times import clocked, with_watermark
from dovetail.sql.plan.nodes import Aggregate, ArrayJoin, EventTimeOrigin, Map, Node, Sessions, StaticJoin, rebuilt
from dovetail.sql.plan.nodes.window_column import WindowColumn
from dovetail.sql.plan.properties import source_of
from dovetail.sql.plan.union_clocks import why_union_is_timeless
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.watermarks import as_set

_FIX = (
    "GROUP BY window_start of TUMBLE(t, ts, INTERVAL '1' MINUTE), with WATERMARK FOR ts in the table, or SETTINGS "
    "watermark_delay = '5s' for a stream; or let the rows be updated: leave it out"
)


def closing(node: Aggregate, settings: QuerySettings, once: bool) -> Aggregate:
    """``node`` with what closes its groups, if anything does. ``once``: its rows are to leave when it does."""
    if (sessions := sessions_of(node.input)) is not None:
        return _with_sessions(node, sessions, settings, once)
    if node.input.updates:
        return node
    node = replace(node, input=_timed(node.input))
    windows = {key: node.input.window_column(key) for key in node.by}
    for key, window in sorted(windows.items(), key=lambda one: not _is_end_of_months(one[1])):
        length = None if window is None else window.windows.size_ms
        beside = window is None and any(windows.values())
        found = _closed_by(node.input, key, settings, once, length, beside_window=beside)
        if found is not None:
            timed, shift = found
            return replace(node, input=timed, closing=Closing(key, shift), closed=once)
    return node


def _is_end_of_months(window: WindowColumn | None) -> bool:
    """Their ends say when windows of the calendar close; their starts, which are of no one length, do so later."""
    return window is not None and window.windows.months is not None and not window.is_start


def followed(node: Node, key: str, settings: QuerySettings) -> tuple[Node, Closing] | None:
    """``node`` with the watermark that ``key`` follows, and when a row can be the last with its value; None where it
    follows none, or rows can be taken back.
    """
    if node.updates:
        return None
    node, window = _timed(node), node.window_column(key)
    found = _closed_by(node, key, settings, once=True, length=None if window is None else window.windows.size_ms)
    return None if found is None else (found[0], Closing(key, found[1]))


def sessions_of(node: Node) -> Sessions | None:
    """The sessions that the rows are in that reach ``node`` without an operator between."""
    while isinstance(node, Map | ArrayJoin | StaticJoin):
        node = node.input
    return node if isinstance(node, Sessions) else None


def _with_sessions(node: Aggregate, sessions: Sessions, settings: QuerySettings, once: bool) -> Aggregate:
    """The groups by sessions: both go when the watermark has reached the end of the session."""
    key = next((key for key in node.by if _is_end(node.input, key, sessions)), None)
    if key is None or sessions.input.updates:
        return node
    found = _closed_by(sessions.input, sessions.time, settings, once, sessions.gap_ms)
    if found is None:
        return node
    timed, shift = found
    made = replace(sessions, input=timed, closing=shift, closed=once)
    return replace(node, input=_replaced(node.input, made), closing=Closing(key, 0, through=True), closed=once)


def _is_end(node: Node, name: str, sessions: Sessions) -> bool:
    """Whether a column is the end of the session, and nothing else."""
    column: str | None = name
    while isinstance(node, Map | ArrayJoin | StaticJoin) and column is not None:
        column, node = node.name_below(column), node.input
    return node == sessions and column == sessions.end


def _replaced(node: Node, sessions: Sessions) -> Node:
    return sessions if isinstance(node, Sessions) else rebuilt(node, lambda below: _replaced(below, sessions))


def refuse_open(node: Aggregate, place: str) -> None:
    """Raises Unsupported for groups whose rows never are final."""
    if node.closed:
        return
    if (sessions := sessions_of(node.input)) is not None:
        raise _open_sessions(node, sessions, place)
    reason = why_union_is_timeless(node.input) or "no key follows a watermark"
    if node.input.updates:
        reason = "rows can be taken back"
    by = ", ".join(node.by) or "no key"
    raise Unsupported(f"the groups by {by} never close: {reason}", where=place, fix=_FIX)


def _closed_by(
    node: Node, key: str, settings: QuerySettings, once: bool, length: int | None = None, *, beside_window: bool = False
) -> tuple[Node, int] | None:
    """The input with the watermark that ``key`` follows, and by how much it may be behind that."""

    def given(origin: EventTimeOrigin) -> Watermark | None:
        if not once or (beside_window and origin.whole and not settings.text("watermark_delay").isdecimal()):
            return None  # a number that is a key beside a window is no clock, where the delay is a length of time
        return _given(origin, settings, length)

    return clocked(node, node.column(key), given)


def _open_sessions(node: Aggregate, sessions: Sessions, place: str) -> Unsupported:
    time = sessions.time.rpartition(".")[2]
    if sessions.input.updates:
        reason, fix = "rows can be taken back", "let the rows be updated: leave EMIT out"
    elif not any(_is_end(node.input, key, sessions) for key in node.by):
        reason, fix = "no key is the end of the session", "GROUP BY window_start, window_end"
    else:
        reason = why_union_is_timeless(sessions.input) or f"there is no watermark over {time}"
        fix = f"declare WATERMARK FOR {time} in the table, or SETTINGS watermark_delay = '5s' for a stream"
    return Unsupported(f"the sessions never close: {reason}", where=place, fix=fix)


def _given(origin: EventTimeOrigin, settings: QuerySettings, length: int | None) -> Watermark | None:
    """The watermark that a stream without one gets by its groups; ``length`` of their windows."""
    scan = origin.scan
    if scan.rules != Rules.TIMEPLUS or scan.stream.kind != Kind.APPEND or not origin.is_clock:
        return None
    delay = settings.distance("watermark_delay", origin.whole)
    if delay is None and not scan.trusted:
        delay = length
    return None if delay is None else as_set(Watermark(origin.column, delay), settings)


def _timed(node: Node) -> Node:
    """``node`` with the watermark of its scan carried up to it: late rows are in no group."""
    scan = source_of(node)
    if scan is None or scan.watermark is None or node.output_watermark is not None:
        return node
    return with_watermark(node, scan.watermark)
