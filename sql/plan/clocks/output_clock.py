"""The watermark of a query's output: by which columns of the topic's rows it is told, and what it is made of.

Rows leave in time where groups close, and where a range join has watermarks on both sides and its rows stay. A column
that follows the time of these rows has that watermark, a constant earlier or later. A column that padded rows leave
NULL has none: of a NULL no watermark can say that it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from joins.dataflow.ports import JoinKind
from sql.expressions.expression import Expr
from sql.plan.event_times import Passage, passage_of
from sql.plan.nodes import Aggregate, Join, Node, OutputClock
from sql.plan.properties import inputs_of

_PADDED = {JoinKind.LEFT: (False, True), JoinKind.RIGHT: (True, False), JoinKind.FULL: (True, True)}
"""By kind of join, whether padded rows lack the columns of the left side, and of the right one."""


def output_clock(node: Node, columns: Sequence[tuple[str, Expr]]) -> OutputClock | None:
    """Of the rows of ``node`` with ``columns``; None where none of them has a watermark."""
    found = [(name, passage) for name, expr in columns if (passage := _told(node, expr)) is not None]
    if not found:
        return None
    first = found[0][1]
    behind = _behind(first)
    if behind is None:
        return None
    same = [(name, passage.shift_units) for name, passage in found if passage.column == first.column]
    return OutputClock(behind, tuple(same))


def _told(node: Node, expr: Expr) -> Passage | None:
    passage = passage_of(node, expr)
    if passage is None or passage.watermark is None or _is_padded(passage):
        return None
    return passage


def _is_padded(passage: Passage) -> bool:
    node = passage.node
    if not isinstance(node, Join) or node.kind not in _PADDED:
        return False
    left, right = _PADDED[node.kind]
    return left if passage.column in node.left.schema.names else right


def _behind(passage: Passage) -> tuple[int, ...] | None:
    """By input of the operator, how much less than its watermark a time may be that is yet to leave."""
    node = passage.node
    if isinstance(node, Aggregate):
        return None if node.closing is None else (node.closing.shift,)
    if isinstance(node, Join):
        timed = replace(node, how=node.how.with_clock(passage.column))
        return timed.how.clock_shifts(inputs_of(timed))
    return node.shifts or None
