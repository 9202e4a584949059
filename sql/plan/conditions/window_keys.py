"""The equalities of a join that say: of the same window."""

from __future__ import annotations

from dovetail.changelog.errors import Unsupported
from dovetail.sql.plan.event_times import origin_of
from dovetail.sql.plan.nodes import Join
from dovetail.sql.plan.nodes.window_column import WindowColumn

Pair = tuple[str, str]


def window_keys(join: Join) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """The keys that equate the starts, or the ends, of the same windows of both sides, and the other keys.

    Raises Unsupported for a window compared with another, or with what is none: rows would match by chance.
    """
    windows: list[Pair] = []
    others: list[Pair] = []
    for pair in join.keys:
        left, right = join.left.window_column(pair[0]), join.right.window_column(pair[1])
        if left is not None and right is not None:
            _refuse_different(left, right, join.place)
        elif (left is None) != (right is None):
            _refuse_one_sided(join, pair, left, right)
        same = left is not None and right is not None and left.is_start == right.is_start
        (windows if same else others).append(pair)
    return tuple(windows), tuple(others)


def _refuse_different(left: WindowColumn, right: WindowColumn, place: str) -> None:
    if left.windows == right.windows:
        return
    raise Unsupported(
        f"the windows of the two sides differ: {left.windows} and {right.windows}",
        where=place,
        fix="give both sides windows of one size (and one slide and offset)",
    )


def _refuse_one_sided(join: Join, pair: Pair, left: WindowColumn | None, right: WindowColumn | None) -> None:
    """A column of a view may hold the windows that the view was made of."""
    found, side, name = (right, join.left, pair[0]) if left is None else (left, join.right, pair[1])
    origin = origin_of(side, side.column(name))
    if found is None or (origin is not None and origin.scan.trusted):
        return
    raise Unsupported(
        f"{found.name} is the time of a window, and the other side has no windows: only rows of the very start, or "
        "end, of a window would match",
        where=join.place,
        fix="read both sides in windows: FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) AS a JOIN TUMBLE(b, ts, INTERVAL "
        "'1' MINUTE) AS b ON a.k = b.k AND a.window_start = b.window_start",
    )
