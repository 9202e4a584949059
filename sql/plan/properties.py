"""What is true of the rows that leave a node of a plan, told from the nodes below it: whether they can be taken back,
their watermark, the engine that makes them, the rules that they follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

import pyarrow as pa

from changelog.schema import Kind
from joins.dataflow.ports import JoinKind, Watermark
from sql.plan.nodes import (
    Aggregate,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    Node,
    Output,
    Scan,
    Static,
    StaticJoin,
    Strategy,
    Window,
)
from sql.plan.state_bounds import RangeState, per_unit
from sql.syntax.types import Rules


def walk(node: Output | Node) -> Iterator[Output | Node]:
    """The node and all below it, parents first, left before right."""
    yield node
    for below in node.inputs:
        yield from walk(below)


def source_of(node: Node) -> Scan | None:
    """The scan whose rows reach ``node`` without an operator between; None if there is one."""
    match node:
        case Scan():
            return node
        case Map() | Window() | StaticJoin():
            return source_of(node.input)
        case _:
            return None


def changes(node: Node) -> bool:
    """Whether rows that leave the node can be taken back."""
    match node:
        case Scan():
            return node.stream.kind != Kind.APPEND
        case Static() | LookupTable():
            return False
        case Keyed():
            return True
        case Map() | Window() | StaticJoin() | LookupJoin():
            return changes(node.input)
        case Join():
            if node.append or node.closed:
                return False
            if node.strategy == Strategy.ASOF_UPDATING:
                return True
            if node.strategy not in (Strategy.BIDIRECTIONAL, Strategy.RANGE):
                return node.strategy != Strategy.LATEST and changes(node.left)
            pads = node.kind not in (JoinKind.INNER, JoinKind.SEMI)
            return pads or changes(node.left) or changes(node.right)
        case Aggregate():
            return not node.closed


def watermark_at(node: Node) -> Watermark | None:
    """The watermark of the scan whose rows reach ``node`` without an operator between, under the name that its column
    has there; None where there is none, or where the column does not travel so far.
    """
    match node:
        case Scan() if node.watermark is not None:
            internal = next((name for name, declared in node.columns if declared == node.watermark.column), None)
            return None if internal is None else replace(node.watermark, column=internal)
        case Map():
            below = watermark_at(node.input)
            named = {expr.plain: name for name, expr in reversed(node.columns) if expr.plain is not None}
            return replace(below, column=named[below.column]) if below is not None and below.column in named else None
        case Keyed() | Window() | StaticJoin():
            return watermark_at(node.input)
        case Aggregate() if node.closed and node.closing is not None:
            below = watermark_at(node.input)
            column, shift = node.closing.column, node.closing.shift
            if below is None:
                return None
            return replace(below, column=column, delay_ms=below.delay_ms - shift, drops_late=False)
        case Join() if node.clock and clock_shifts(node) is not None:
            return Watermark(node.clock, 0, max_future_ms=None, drops_late=False)
        case _:
            return None


def clock_shifts(join: Join) -> tuple[int, int] | None:
    """RANGE: by how much the rows that are yet to leave may be behind the watermarks of both sides, in ``clock``;
    None where nothing tells.
    """
    band = join.band
    if band is None or join.closed or None in (watermark_at(join.left), watermark_at(join.right)):
        return None
    bound = band.lower if join.clock == band.left else band.upper
    if bound is None or band.left_shift is None or band.right_shift is None:
        return None
    kind = join.band_type
    earlier = bound if join.clock == band.left else -bound
    behind = earlier * per_unit(kind) // 1_000 if pa.types.is_timestamp(kind) else earlier
    if join.clock == band.left:
        return band.left_shift, band.right_shift + behind
    return band.left_shift + behind, band.right_shift


def range_state(join: Join) -> RangeState | None:
    """What bounds the state of a RANGE join."""
    if join.band is None:
        return None
    left, right = watermark_at(join.left), watermark_at(join.right)
    return RangeState(join.band, join.band_type, left, right, changes(join.left), changes(join.right))


class Engine(StrEnum):
    """Who runs a part of a query: Spark what keeps state of its inputs, the Faust workers what looks up."""

    SPARK = "spark"
    FAUST = "faust"


def runs_on(node: Node) -> Engine | None:
    """The engine of the uppermost operator; None where there is none: either can do it."""
    match node:
        case LookupJoin():
            return Engine.FAUST
        case Keyed() | Join() | Aggregate():
            return Engine.SPARK
        case Map() | Window() | StaticJoin():
            return runs_on(node.input)
        case _:
            return None


def rules_of(node: Node) -> Rules:
    """Timeplus rules, where every stream below has them."""
    scans = [below for below in walk(node) if isinstance(below, Scan)]
    return Rules.TIMEPLUS if all(scan.rules == Rules.TIMEPLUS for scan in scans) else Rules.RISINGWAVE
