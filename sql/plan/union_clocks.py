"""UNION ALL whose parts have no watermark in common, and why."""

from __future__ import annotations

from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.plan.event_times import clocked
from dovetail.sql.plan.nodes import EventTimeOrigin, Node, UnionAll
from dovetail.sql.plan.properties import origin_node
from dovetail.sql.syntax.rules import Rules


def why_union_is_timeless(node: Node) -> str:
    """Why the UNION ALL whose rows reach ``node`` has no watermark; '' where there is none, or where it has one."""
    union = origin_node(node)
    if not isinstance(union, UnionAll):
        return ""
    found = [_timed_columns(part, union) for part in union.parts]
    if set.intersection(*map(set, found)):
        return ""
    for number, columns in enumerate(found, start=1):
        if not columns:
            return f"SELECT {number} of the UNION gives no column with a watermark"
    places = (f"column {' or '.join(map(str, columns))} of SELECT {number}" for number, columns in enumerate(found, 1))
    return f"the watermarks of the UNION are in different columns: {', '.join(places)}"


def _timed_columns(part: Node, union: UnionAll) -> list[int]:
    """The columns of a part that follow a watermark, by their place."""
    names = enumerate(union.schema.names, start=1)
    return [place for place, name in names if clocked(part, part.column(name), _possible) is not None]


def _possible(origin: EventTimeOrigin) -> Watermark | None:
    """That of an append stream of Timeplus, which gets one by whatever groups or joins it."""
    scan = origin.scan
    return Watermark(origin.column, 0) if scan.rules == Rules.TIMEPLUS and scan.stream.kind == Kind.APPEND else None
