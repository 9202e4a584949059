"""From a column back to the event time that it follows, and the watermark from there to the column.

Event times come from a scan; or from an operator that lets rows go in time, which has a watermark of its own: groups
whose windows close, a range join whose rows stay, UNION ALL of parts that each have one, in the same column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

import pyarrow as pa

from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.linear import summed
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    DeltaJoin,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    MultiwayJoin,
    Node,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
    column_of,
)
from dovetail.sql.plan.properties import changes, watermark_at

_MS = 1_000
"""Microseconds in the unit of watermarks."""


@dataclass(frozen=True)
class EventTimeOrigin:
    """A column that follows ``column`` of ``scan``, which has this declared name.

    shift  the column is not less than its origin and this, in microseconds, or the number itself
    """

    scan: Scan
    column: str
    shift: Fraction

    @property
    def type(self) -> pa.DataType:
        return self.scan.schema.field(self.scan.internal(self.column)).type

    @property
    def told(self) -> Watermark | None:
        """The watermark over it that the query tells which writes what is scanned."""
        return next((one for one in self.scan.told if one.column == self.column), None)

    @property
    def whole(self) -> bool:
        """Whether it is a whole number rather than a time."""
        return bool(pa.types.is_integer(self.type))

    @property
    def shift_units(self) -> int:
        """``shift`` in the unit of watermarks: ms, or the number itself."""
        return int(self.shift // (1 if self.whole else _MS))


@dataclass(frozen=True)
class Passage:
    """A column that follows ``column`` of an operator whose rows leave in time; ``shift`` as in ``EventTimeOrigin``."""

    node: Aggregate | Join | UnionAll
    column: str
    shift: Fraction

    @property
    def watermark(self) -> Watermark | None:
        """That of the rows that leave the operator, over ``column``."""
        if isinstance(self.node, Join):
            return watermark_at(replace(self.node, how=self.node.how.with_clock(self.column)))
        return watermark_at(self.node)

    @property
    def shift_units(self) -> int:
        whole = pa.types.is_integer(self.node.schema.field(self.column).type)
        return int(self.shift // (1 if whole else _MS))


def origin_of(node: Node, expr: Expr) -> EventTimeOrigin | None:
    """Where the values of an expression over ``node`` come from; None if not from one column of a scan, plus or minus
    a constant. ``window_start`` is later than the time of its row less the size of the window, ``window_end`` later
    than that time; both in whole milliseconds.
    """
    found = _followed(node, expr)
    return found if isinstance(found, EventTimeOrigin) else None


def passage_of(node: Node, expr: Expr) -> Passage | None:
    """The operator, and its column, that the values of an expression over ``node`` follow; None where they follow that
    of a scan, or no time.
    """
    found = _followed(node, expr)
    return found if isinstance(found, Passage) else None


def _followed(node: Node, expr: Expr) -> EventTimeOrigin | Passage | None:
    found = _column_and_shift(expr, node)
    if found is None:
        return None
    name, shift = found
    below: EventTimeOrigin | Passage | None = None
    match node:
        case Scan():
            declared = next((declared for internal, declared in node.columns if internal == name), None)
            return None if declared is None else EventTimeOrigin(node, declared, shift)
        case Map():
            computed = dict(node.columns).get(name)
            below = None if computed is None else _followed(node.input, computed)
        case Window() if name in (node.start, node.end):
            below = _followed(node.input, column_of(node.input, node.time))
            shift += (1 - (node.size_ms if name == node.start else 0)) * _MS
        case Window() | ArrayJoin() | StaticJoin():
            passes = name in node.input.schema.names
            below = _followed(node.input, column_of(node.input, name)) if passes else None
        case Aggregate():
            below = _passed(node, name)
        case Join() | UnionAll():
            below = Passage(node, name, Fraction(0)) if _passes(node, name) and not changes(node) else None
        case Static() | Keyed() | MultiwayJoin() | DeltaJoin() | SetOperation() | Sessions() | Over() | TopN():
            return None
        case LookupJoin() | LookupTable():
            return None
        case _:
            assert_never(node)
    return None if below is None else replace(below, shift=below.shift + shift)


def _passes(node: Join | UnionAll, name: str) -> bool:
    """Whether a column of all inputs, or of the join, stays an event time."""
    if isinstance(node, Join):
        return name in node.how.passing_times
    return all(_followed(part, column_of(part, name)) is not None for part in node.parts)


def _passed(node: Aggregate, name: str) -> Passage | None:
    """A key of groups that close: it follows the key by which they do, as far as both follow one event time."""
    if not node.closed or node.closing is None or name not in node.by:
        return None
    closing = node.closing.column
    if name == closing:
        return Passage(node, closing, Fraction(0))
    first, second = (_followed(node.input, column_of(node.input, column)) for column in (name, closing))
    if first is None or second is None or replace(first, shift=second.shift) != second:
        return None
    return Passage(node, closing, first.shift - second.shift)


def _column_and_shift(expr: Expr, node: Node) -> tuple[str, Fraction] | None:
    """The one column that an expression is, and what it adds to it."""
    if expr.plain is not None:
        return expr.plain, Fraction(0)
    found = summed(expr.tree, node.schema)
    if found is None or len(found.terms) != 1:
        return None
    ((term, coefficient),) = found.terms.items()
    return None if term.plain is None or coefficient != 1 else (term.plain, found.constant)


Given = Callable[[EventTimeOrigin], Watermark | None]
"""The watermark that a stream gets which states none; None: it gets none."""


def clocked(node: Node, time: Expr, given: Given) -> tuple[Node, int] | None:
    """``node`` with the watermark that ``time`` follows, and by how much it may be behind that; None: there is none."""
    found = _followed(node, time)
    if found is None:
        return None
    if isinstance(found, EventTimeOrigin):
        watermark = found.scan.watermark or found.told or given(found)
        followed = watermark is not None and watermark.column == found.column
    elif isinstance(found.node, UnionAll):
        union = _clocked_union(found.node, found.column, given)
        return None if union is None else (_carried(node, lambda _: union), found.shift_units)
    else:
        watermark = found.watermark
        followed = watermark is not None
    return (with_watermark(node, watermark), found.shift_units) if watermark is not None and followed else None


def _clocked_union(union: UnionAll, column: str, given: Given) -> UnionAll | None:
    """``union`` with the least of the watermarks that ``column`` follows in the parts; None where one has none."""
    found = [clocked(part, column_of(part, column), given) for part in union.parts]
    parts = [one for one in found if one is not None]
    if len(parts) < len(found):
        return None
    nodes, shifts = zip(*parts, strict=True)
    return replace(union, parts=nodes, clock=column, shifts=shifts)


def with_watermark(node: Node, watermark: Watermark) -> Node:
    """``node`` with the watermark set at the scan or join below it, whose column travels up to ``node``."""

    def told(below: Node) -> Node:
        if isinstance(below, Scan):
            return replace(below, watermark=watermark)
        return replace(below, how=below.how.with_clock(watermark.column)) if isinstance(below, Join) else below

    return _carried(node, told)


def _carried(node: Node, made: Callable[[Node], Node]) -> Node:
    """``node`` over what ``made`` makes of the scan or operator below, with the column of the watermark."""
    match node:
        case Map():
            return _carrying(replace(node, input=_carried(node.input, made)))
        case Window() | ArrayJoin() | StaticJoin():
            return replace(node, input=_carried(node.input, made))
        case Scan() | Join() | UnionAll():
            return made(node)
        case (
            Static()
            | Keyed()
            | MultiwayJoin()
            | DeltaJoin()
            | Aggregate()
            | Sessions()
            | SetOperation()
            | Over()
            | TopN()
        ):
            return node
        case LookupJoin() | LookupTable():
            return node
        case _:
            assert_never(node)


def _carrying(node: Map) -> Map:
    """``node`` with the column of the watermark below it, if it drops that."""
    below = watermark_at(node.input)
    if below is None or watermark_at(node) is not None:
        return node
    return replace(node, columns=(*node.columns, (below.column, column_of(node.input, below.column))))
