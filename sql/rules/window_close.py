"""EMIT ON WINDOW CLOSE: each row once, when it is final.

The rows of a RANGE join are final when the watermarks of both sides have passed the later of their two times, or the
end of their window; padded ones when nothing can match them any more. Those of a stream are when its watermark has
passed them, and so are the values that window functions make of them: ``final_values``. WITH DELAY they wait for later
watermarks.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.joins.aggregates.aggregation import Closing
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.closing import refuse_open
from dovetail.sql.plan.joins import Range
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    Join,
    LookupJoin,
    Map,
    Node,
    Over,
    Scan,
    StaticJoin,
    TopN,
    UnionAll,
    Waiting,
    rebuilt,
)
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.rules.bands import padded_once
from dovetail.sql.rules.final_values import closed_rows

_FIX = (
    "read one table with WATERMARK FOR; or join within a range of time, or of windows: FROM TUMBLE(a, ts, INTERVAL '1' "
    "MINUTE) AS a JOIN TUMBLE(b, ts, INTERVAL '1' MINUTE) AS b ON a.k = b.k AND a.window_start = b.window_start; or "
    "leave EMIT out"
)


def window_close(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_later(_closed(plan.rows, plan.settings), plan.delay_ms)) if plan.final else plan


def _closed(node: Node, settings: QuerySettings) -> Node:
    """``node`` with its uppermost join closed, or as it is above groups, which the rule ``bands`` has closed; of UNION
    ALL in each part. The rows of a scan wait, also below window functions.

    Raises Unsupported where that is no RANGE join, or has no watermarks.
    """
    if isinstance(node, Map | ArrayJoin | StaticJoin | LookupJoin):
        return replace(node, input=_closed(node.input, settings))
    if isinstance(node, UnionAll):
        return rebuilt(node, lambda part: _closed(part, settings))
    if isinstance(node, Over | TopN):
        return closed_rows(node, settings)
    if isinstance(node, Scan) and (watermark := node.output_watermark) is not None and not node.updates:
        return Waiting(node, (watermark.column,), Closing(watermark.column, 0))
    if isinstance(node, Aggregate):
        refuse_open(node, "EMIT")
        return node
    if isinstance(node, Join) and isinstance(node.method, Range):
        return _closed_range(node, node.method)
    raise _endless()


def _later(node: Node, delay_ms: int) -> Node:
    """``node`` with the watermarks that its tables state, or its views tell, so much later."""
    if not isinstance(node, Scan):
        return rebuilt(node, lambda below: _later(below, delay_ms))
    if not delay_ms or node.watermark is None or (node.stated is None and not node.watermark.from_heartbeats):
        return node
    if not pa.types.is_timestamp(node.stream.types[node.watermark.column]):
        raise Unsupported(
            f"WITH DELAY is a length of time, and the watermark of {node.alias} counts whole numbers",
            where="EMIT",
            fix="leave it out",
        )
    return replace(node, watermark=replace(node.watermark, delay_ms=node.watermark.delay_ms + delay_ms))


def _closed_range(join: Join, method: Range) -> Join:
    if reason := method.bound(join.sides).never_closed():
        raise Unsupported(
            f"the windows of this join never close: {reason}",
            where="EMIT",
            fix="declare WATERMARK FOR in both tables, SETTINGS watermark_delay = '5s' for streams; or leave EMIT out",
        )
    outer = join.kind not in (JoinKind.INNER, JoinKind.SEMI)
    return replace(join, method=replace(padded_once(join, method, "EMIT") if outer else method, closed=True))


def _endless() -> Unsupported:
    return Unsupported(
        "EMIT ON WINDOW CLOSE is for rows, joins and groups that a watermark closes, and this query has none",
        where="EMIT",
        fix=_FIX,
    )
