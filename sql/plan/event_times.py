"""From a column back to the event time that it follows, and the watermark from there to the column.

Event times come from a scan; or from an operator that lets rows go in time, which has a watermark of its own: groups
whose windows close, a range join whose rows stay, UNION ALL of parts that each have one, in the same column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.nodes import Chained, EventTimeOrigin, Join, Map, Node, Passage, Scan, UnionAll

Given = Callable[[EventTimeOrigin], Watermark | None]
"""The watermark that a stream gets which states none; None: it gets none."""


def origin_of(node: Node, expr: Expr) -> EventTimeOrigin | None:
    """The column of a scan that the values of an expression over ``node`` follow; None if they follow none."""
    found = node.event_time(expr)
    return found if isinstance(found, EventTimeOrigin) else None


def passage_of(node: Node, expr: Expr) -> Passage | None:
    """The operator, and its column, that the values of an expression over ``node`` follow; None where they follow that
    of a scan, or no time.
    """
    found = node.event_time(expr)
    return found if isinstance(found, Passage) else None


def clocked(node: Node, time: Expr, given: Given) -> tuple[Node, int] | None:
    """``node`` with the watermark that ``time`` follows, and by how much it may be behind that; None: there is none."""
    found = node.event_time(time)
    if isinstance(found, EventTimeOrigin):
        watermark = found.scan.watermark or found.upstream_watermark or given(found)
        followed = watermark if watermark is not None and watermark.column == found.column else None
    elif isinstance(found, Passage):
        if isinstance(found.node, UnionAll):
            union = _clocked_union(found.node, found.column, given)
            return None if union is None else (_carried(node, lambda _: union), found.shift_units)
        followed = found.watermark
    else:
        return None
    return None if followed is None else (with_watermark(node, followed), found.shift_units)


def _clocked_union(union: UnionAll, column: str, given: Given) -> UnionAll | None:
    """``union`` with the least of the watermarks that ``column`` follows in the parts; None where one has none."""
    found = [clocked(part, part.column(column), given) for part in union.parts]
    parts = [one for one in found if one is not None]
    if len(parts) < len(found):
        return None
    nodes, shifts = zip(*parts, strict=True)
    return replace(union, parts=nodes, clock=column, shifts=shifts)


def with_watermark(node: Node, watermark: Watermark) -> Node:
    """``node`` with the watermark set at the scan or join below it, whose column travels up to ``node``."""

    def clocked(below: Node) -> Node:
        if isinstance(below, Scan):
            return replace(below, watermark=watermark)
        return replace(below, method=below.method.with_clock(watermark.column)) if isinstance(below, Join) else below

    return _carried(node, clocked)


def _carried(node: Node, made: Callable[[Node], Node]) -> Node:
    """``node`` over what ``made`` makes of the scan or operator below, with the column of the watermark."""
    if not isinstance(node, Chained):
        return made(node) if isinstance(node, Scan | Join | UnionAll) else node
    lifted = replace(node, input=_carried(node.input, made))
    return lifted.with_clock() if isinstance(lifted, Map) else lifted
