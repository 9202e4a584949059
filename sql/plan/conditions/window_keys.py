"""The equalities of a join that say: of the same window."""

from __future__ import annotations

from typing import assert_never

from dovetail.changelog.errors import Unsupported
from dovetail.sql.plan.event_times import origin_of
from dovetail.sql.plan.explain import extent
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

Pair = tuple[str, str]
Found = tuple[Window, bool]


def window_keys(join: Join) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """The keys that equate the starts, or the ends, of the same windows of both sides, and the other keys.

    Raises Unsupported for a window compared with another, or with what is none: rows would match by chance.
    """
    windows: list[Pair] = []
    others: list[Pair] = []
    for pair in join.keys:
        left, right = window_of(join.left, pair[0]), window_of(join.right, pair[1])
        if left is not None and right is not None:
            _refuse_different(left[0], right[0], join.place)
        elif (left is None) != (right is None):
            _refuse_one_sided(join, pair, left, right)
        same = left is not None and right is not None and left[1] == right[1]
        (windows if same else others).append(pair)
    return tuple(windows), tuple(others)


def window_of(node: Node, name: str) -> Found | None:
    """The window whose start (True) or end a column is; None if it is neither."""
    match node:
        case Map():
            below = next((expr.plain for column, expr in node.columns if column == name), None)
            return None if below is None else window_of(node.input, below)
        case Window() if name in (node.start, node.end):
            return node, name == node.start
        case Window() | ArrayJoin() | StaticJoin() | LookupJoin():
            return window_of(node.input, name)
        case Aggregate():
            return window_of(node.input, name) if name in node.by else None
        case Join():
            return window_of(node.left if name in node.left.schema.names else node.right, name)
        case MultiwayJoin() | DeltaJoin():
            return window_of(node.chain, name)
        case Scan() | Static() | Keyed() | UnionAll() | SetOperation() | Sessions() | Over() | TopN() | LookupTable():
            return None
        case _:
            assert_never(node)


def _refuse_different(left: Window, right: Window, place: str) -> None:
    if (left.size_ms, left.slide_ms) == (right.size_ms, right.slide_ms):
        return
    raise Unsupported(
        f"the windows of the two sides differ: {extent(left)} and {extent(right)}",
        where=place,
        fix="give both sides windows of one size (and one slide)",
    )


def _refuse_one_sided(join: Join, pair: Pair, left: Found | None, right: Found | None) -> None:
    """A column of a view may hold the windows that the view was made of."""
    found, side, name = (right, join.left, pair[0]) if left is None else (left, join.right, pair[1])
    origin = origin_of(side, column_of(side, name))
    if found is None or (origin is not None and origin.scan.trusted):
        return
    windowed = found[0].start if found[1] else found[0].end
    raise Unsupported(
        f"{windowed} is the time of a window, and the other side has no windows: only rows of the very start, or end, "
        "of a window would match",
        where=join.place,
        fix="read both sides in windows: FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) AS a JOIN TUMBLE(b, ts, INTERVAL "
        "'1' MINUTE) AS b ON a.k = b.k AND a.window_start = b.window_start",
    )
