"""The watermark of a query's output: by which columns of the topic's rows it is told, and what it is made of.

Rows leave in time where groups close, and where a range join has watermarks on both sides and its rows stay. A column
that follows the time of these rows has that watermark, a constant earlier or later. A column that padded rows leave
NULL has none: of a NULL no watermark can say that it is in.

Of windows it advances from one to the next: between two of their ends nothing is told that a reader could go by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.event_times import Passage, passage_of
from dovetail.sql.plan.nodes import Aggregate, Join, Map, Node, OutputClock, Window
from dovetail.sql.plan.properties import inputs_of

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
    return OutputClock(behind, tuple(same), _grid(first))


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


def _grid(passage: Passage) -> tuple[int, int]:
    """Where the times of the rows that leave may be: windows begin at multiples of their slide."""
    if not isinstance(passage.node, Aggregate):
        return 1, 0
    node, name = passage.node.input, passage.column
    while isinstance(node, Map):
        renamed = dict(node.columns)[name].plain
        if renamed is None:
            return 1, 0
        node, name = node.input, renamed
    if isinstance(node, Window) and name in (node.start, node.end):
        return node.slide_ms, 0 if name == node.start else node.size_ms % node.slide_ms
    return 1, 0
