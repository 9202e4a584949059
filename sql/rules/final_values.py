"""EMIT ON WINDOW CLOSE over window functions and first rows: what waits below them, and which values are final then.

Rows that come to a partition in the order of its time find it complete up to there. Where they wait for a watermark
that the column of ORDER BY follows, a value that depends on rows before it is final when it is computed; one that
depends on so many rows after it is when these are there. Where they wait for a column of PARTITION BY, such as the end
of a window, a partition comes as a whole, and all is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.expressions.expression import Expr, Structure, column_named, structure
from dovetail.sql.expressions.partitions.window_calls import called_in, frame_kind, name_of
from dovetail.sql.functions.typed import filled
from dovetail.sql.plan.closing import followed
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.maps import filtered
from dovetail.sql.plan.nodes import Node, Over, TopN, Waiting
from dovetail.sql.plan.properties import source_of
from dovetail.sql.query_settings import QuerySettings

_FIX = (
    "ORDER BY the column of the watermark, as in row_number() OVER (PARTITION BY k ORDER BY at), or PARTITION BY "
    "window_start of TUMBLE; or leave EMIT out"
)
_NUMBERING = frozenset({"row_number", "rank", "dense_rank"})
"""Functions of the rows before a row, and of its peers."""
_OF_ALL = frozenset({"ntile", "percent_rank", "cume_dist"})

Rows = Over | TopN


def closed_rows(node: Rows, settings: QuerySettings) -> Node:
    """``node``, and those of other partitions below it, over rows that wait, without values that are not final yet.

    Raises Unsupported where some never are.
    """
    nodes: list[Rows] = [node]
    while isinstance(below := nodes[-1].input, Over):
        nodes.append(below)
    waiting = _whole(nodes, settings)
    if waiting is not None:
        return _rebuilt(nodes, waiting)
    waiting = _in_order(nodes, settings)
    return _complete(nodes, waiting)


def _rebuilt(nodes: list[Rows], waiting: Node) -> Node:
    made = waiting
    for node in reversed(nodes):
        made = replace(node, input=made, closed=True)
    return made


def _whole(nodes: list[Rows], settings: QuerySettings) -> Waiting | None:
    """The rows as they wait for a column by which all are parted; None where there is none. A number is a time only
    where the watermark is stated to be over it.
    """
    rows = nodes[-1].input
    source = source_of(rows)
    stated = source is not None and source.watermark is not None
    shared = (name for name in nodes[-1].by if all(name in node.by for node in nodes))
    times = (name for name in shared if stated or pa.types.is_timestamp(rows.schema.field(name).type))
    return _first_waiting(nodes, times, settings)


def _in_order(nodes: list[Rows], settings: QuerySettings) -> Waiting:
    orders = {column for node in nodes for column in _orders(node)}
    made = _first_waiting(nodes, orders, settings) if len(orders) == 1 and "" not in orders else None
    if made is None:
        reason = "their ORDER BY follows no watermark"
        if nodes[-1].input.updates:
            reason = "rows can be taken back"
        elif source_of(nodes[-1].input) is None:
            reason = "their rows are those of no stream, but of a join or of groups"
        raise _never(reason)
    return made


def _first_waiting(nodes: list[Rows], columns: Iterable[str], settings: QuerySettings) -> Waiting | None:
    rows = nodes[-1].input
    if source_of(rows) is None:
        return None
    for column in columns:
        if (found := followed(rows, column, settings)) is not None:
            timed, closing = found
            return Waiting(timed, nodes[-1].by, closing)
    return None


def _orders(node: Rows) -> Iterator[str]:
    """The first column of each ORDER BY; '' where there is none that ascends."""
    if isinstance(node, TopN):
        yield node.order[0].column if node.order and not node.order[0].descending else ""
        return
    for _, call in node.calls:
        order = call.tree.args.get("order")
        first = order.expressions[0] if order is not None else None
        yield "" if first is None or first.args.get("desc") else first.this.name


def _complete(nodes: list[Rows], waiting: Waiting) -> Node:
    """Without the rows whose values depend on rows that are not there yet."""
    made: list[Rows] = []
    flags: list[str] = []
    for node in nodes:
        if isinstance(node, TopN) or node.of_gaps:
            made.append(node)
            continue
        told = _told(node, waiting)
        made.append(replace(node, calls=(*node.calls, *told)))
        flags += [name for name, _ in told]
    there = (Expr.condition(exp.Not(this=exp.Is(this=column_named(name), expression=exp.null()))) for name in flags)
    return filtered(_rebuilt(made, waiting), list(there))


def _told(node: Over, waiting: Waiting) -> list[tuple[str, Expr]]:
    """Columns that are NULL while the rows after a row are not there that its values depend on: one for each order, as
    rows of one time may be in several.
    """
    column = waiting.closing.column
    told: dict[Structure, tuple[str, Expr]] = {}
    for _, call in node.calls:
        window = call.tree
        assert isinstance(window, exp.Window)
        after = _rows_after(window)
        if after is None:
            raise _never(f"{name_of(called_in(window))}() depends on all rows that follow, or on too many to tell")
        if after:
            lead = exp.Window(
                this=filled(f"lead({{0}}, {after})", [column_named(column)]), order=window.args["order"].copy()
            )
            name = unused(f"complete after {node.by} #{len(told)}", node.schema.names)
            told.setdefault(structure(lead), (name, Expr(lead, waiting.schema.field(column).type)))
    return list(told.values())


def _rows_after(window: exp.Window) -> int | None:
    """So many rows after a row the value of a window depends on; None: on all of them."""
    call = called_in(window)
    name = name_of(call)
    if name in _NUMBERING:
        return 0
    if name in _OF_ALL or (name == "lead" and isinstance(window.this, exp.IgnoreNulls)):
        return None
    if name in ("lag", "lead"):
        given = call.expressions[1:2] if isinstance(call, exp.Anonymous) else [call.args.get("offset")]
        offset = _whole_number(given[0]) if given and given[0] is not None else 1
        return offset if name == "lead" or offset is None else 0
    spec = window.args.get("spec")
    if spec is None or spec.args.get("end") in (None, "CURRENT ROW"):
        return 0
    if str(spec.args.get("end_side")).upper() == "PRECEDING":
        return 0
    return _whole_number(spec.args["end"]) if frame_kind(window) == "ROWS" else None


def _whole_number(tree: object) -> int | None:
    number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal()
    return int(tree.name) if number and isinstance(tree, exp.Literal) else None


def _never(reason: str) -> Unsupported:
    return Unsupported(f"the values of these window functions are never final: {reason}", where="EMIT", fix=_FIX)
