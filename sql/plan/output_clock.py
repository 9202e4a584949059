"""The watermark of a query's output: by which columns of the topic's rows it is told, and what it is made of.

Rows leave in time where groups close, and where a range join has watermarks on both sides and its rows stay. A column
that follows the time of these rows has that watermark, a constant earlier or later. A column that padded rows leave
NULL has none: of a NULL no watermark can say that it is in.

Of windows it advances from one to the next: between two of their ends nothing is told that a reader could go by.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.event_times import passage_of
from dovetail.sql.plan.nodes import Aggregate, Join, Node, OutputClock, Passage


def output_clock(node: Node, columns: Sequence[tuple[str, Expr]]) -> OutputClock | None:
    """Of the rows of ``node`` with ``columns``; None where none of them has a watermark."""
    found = [(name, passage) for name, expr in columns if (passage := _unpadded_passage(node, expr)) is not None]
    if not found:
        return None
    first = found[0][1]
    behind = first.node.clock_shifts(first.column)
    if behind is None:
        return None
    same = [(name, passage.shift_units) for name, passage in found if passage.column == first.column]
    return OutputClock(behind, tuple(same), _grid(first))


def _unpadded_passage(node: Node, expr: Expr) -> Passage | None:
    passage = passage_of(node, expr)
    if passage is None or passage.watermark is None or _is_padded(passage):
        return None
    return passage


def _is_padded(passage: Passage) -> bool:
    return isinstance(passage.node, Join) and passage.column in passage.node.padded


def _grid(passage: Passage) -> tuple[int, int]:
    """Where the times of the rows that leave may be: windows begin at multiples of their slide, and an offset; those of
    the calendar at no multiple of anything.
    """
    groups = passage.node
    window = groups.input.window_column(passage.column) if isinstance(groups, Aggregate) else None
    if window is None or window.windows.months is not None:
        return 1, 0
    shape = window.windows
    return shape.slide_ms, (shape.offset_ms + (0 if window.is_start else shape.size_ms)) % shape.slide_ms
