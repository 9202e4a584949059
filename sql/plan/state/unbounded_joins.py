"""Joins that keep two inputs forever, and what would bound them.

Not an error: a join of two streams that only grow means just that. But its state ends with the disk, so it is said when
the query is made.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from dovetail.changelog.schema import TIME, Kind
from dovetail.sql.plan.joins import Asof, Range
from dovetail.sql.plan.nodes import DeltaJoin, Join, MultiwayJoin, Node, Output, Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.syntax.rules import Rules

_ENDS = "join_max_buffered_bytes says at what size of its state the query ends"
_SPILLS = "what is more than join_max_buffered_bytes is on disk only, and ends with it"


def unbounded_joins(plan: Output | Node) -> Iterator[str]:
    """A line for each join of two inputs that grow, of both of which it keeps all rows."""
    ends = _SPILLS if isinstance(plan, Output) and plan.hybrid is not None and plan.hybrid.joins else _ENDS
    for join in _joins(plan):
        inputs = join.sides
        if inputs.left.grows and inputs.right.grows and join.method.keeps_both(inputs):
            yield _warning(join, ends)


def _joins(plan: Output | Node) -> Iterator[Join]:
    """Those of two inputs, the uppermost first."""
    for node in walk(plan):
        if isinstance(node, Join):
            yield node
        elif isinstance(node, MultiwayJoin | DeltaJoin):
            yield from reversed(node.links)


def _warning(join: Join, ends: str) -> str:
    left, right = _growing(join.left), _growing(join.right)
    names = f"{' and '.join(map(_name, left))} with {' and '.join(map(_name, right))}"
    wanted = [*_watermarks([left[0], right[0]]), *_range(join, left[0], right[0])]
    bounds = f"{', and '.join(wanted)} would bound them; " if wanted else ""
    return f"the join of {names} keeps all rows of both forever: {bounds}{ends}"


def _growing(side: Node) -> list[Scan]:
    return [node for node in walk(side) if isinstance(node, Scan) and node.stream.kind == Kind.APPEND]


def _name(scan: Scan) -> str:
    return scan.stream.name + (f" AS {scan.alias}" if scan.alias != scan.stream.name else "")


def _watermarks(scans: list[Scan]) -> list[str]:
    """The clauses that tables lack; the streams of Timeplus have a watermark where a range asks for one."""
    lacking = dict.fromkeys(scan.stream.name for scan in scans if scan.rules != Rules.TIMEPLUS and scan.stated is None)
    times = {scan.stream.name: _time(scan) for scan in scans}
    return [f"WATERMARK FOR {times[name]} AS {times[name]} - INTERVAL '5 seconds' in {name}" for name in lacking]


def _range(join: Join, left: Scan, right: Scan) -> list[str]:
    """The condition on the times of both sides that ON lacks; an ASOF join has its own."""
    if isinstance(join.method, Asof):
        return []
    if isinstance(join.method, Range) and None not in (join.method.band.lower, join.method.band.upper):
        return []
    first, second = f"{left.alias}.{_time(left)}", f"{right.alias}.{_time(right)}"
    if left.rules == right.rules == Rules.TIMEPLUS:
        return [f"AND date_diff_within(10m, {first}, {second}) in ON"]
    minutes = "INTERVAL '10 minutes'"
    return [f"AND {first} BETWEEN {second} - {minutes} AND {second} + {minutes} in ON"]


def _time(scan: Scan) -> str:
    """The column that the times of its rows are in."""
    if scan.rules == Rules.TIMEPLUS:
        return scan.stream.event_time or TIME
    times = [column.name for column in scan.stream.columns if pa.types.is_timestamp(column.type)]
    return scan.stated.column if scan.stated is not None else next(iter(times), "t")
