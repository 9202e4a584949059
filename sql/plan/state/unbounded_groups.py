"""State of groups that only grows, and what would bound it."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from dovetail.sql.plan.event_times import origin_of
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
from dovetail.sql.plan.properties import changes, grows
from dovetail.sql.syntax.rules import Rules


def unbounded(node: Aggregate, values: bool) -> str:
    """Why the state of groups that no watermark closes grows without end, and what would bound it; '' where it does
    not. ``values``: they keep the values of their rows one by one.
    """
    if not grows(node.input):
        return ""
    if any(_grows(node.input, key) for key in node.by):
        return _groups(node)
    return "they are kept one by one" if values else ""


def unbounded_partitions(node: TopN) -> str:
    """Why the first rows of partitions become ever more; '' where they do not."""
    grown = next((name for name in node.by if grows(node.input) and _grows(node.input, name)), "")
    return f"{grown} has ever more values" if grown else ""


def unbounded_set(node: SetOperation) -> str:
    """Why the rows that a set operation counts become ever more; '' where they do not."""
    grown = (name for name in node.by if any(grows(side) and _grows(side, name) for side in node.inputs))
    name = next(grown, "")
    return f"{name} has ever more values" if name else ""


def _grows(node: Node, column: str) -> bool:
    """Whether ``column`` has ever more values: those of a stream that only grows."""
    match node:
        case Scan():
            return grows(node)
        case Map():
            read = dict(node.columns)[column].columns
            return any(_grows(node.input, name) for name in read)
        case Window() | Sessions():
            return _grows(node.input, node.time if column in (node.start, node.end) else column)
        case ArrayJoin():
            arrays = dict(node.arrays)
            read = arrays[column].columns if column in arrays else (column,)
            return any(_grows(node.input, name) for name in read)
        case StaticJoin() | LookupJoin() | TopN():
            return column in node.input.schema.names and _grows(node.input, column)
        case Join() | MultiwayJoin() | DeltaJoin():
            # A mark is of neither side: it has two values.
            return any(_grows(side, column) for side in node.inputs if column in side.schema.names)
        case Aggregate() | Over():
            return _grows(node.input, column) if column in node.by else grows(node)
        case UnionAll() | SetOperation():
            return any(_grows(part, column) for part in node.inputs)
        case Keyed() | Static() | LookupTable():
            return False
        case _:
            assert_never(node)


def _groups(node: Aggregate) -> str:
    if changes(node.input):
        return "no watermark closes groups of rows that can be taken back"
    for key in node.by:
        origin = origin_of(node.input, column_of(node.input, key))
        if origin is None or not pa.types.is_timestamp(origin.type):
            continue
        time = origin.scan.internal(origin.column)
        given = f"WATERMARK FOR {origin.column} in the table"
        if origin.scan.rules == Rules.TIMEPLUS:
            given = "EMIT AFTER WINDOW CLOSE"
        return f"there is no watermark over {time}; {given} would bound them"
    return "no key follows an event time; window_start of TUMBLE or HOP, with a watermark, would bound them"
