"""Of many right rows the one that a join takes: the nearest in time, or the last that came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.sql.expressions.evaluate import mask, quoted
from dovetail.sql.plan.joins.inequality import TimeInequality
from dovetail.sql.plan.time_text import length_text
from dovetail.sql.trace.demand import literal
from dovetail.sql.trace.pairs import Pairs
from dovetail.sql.trace.traced_rows import lineage_of


def nearest(
    pairs: Pairs, inequality: TimeInequality, tie_breaks: Sequence[str] = (), tolerance: int | None = None
) -> Pairs:
    """Of each left row the pair whose right time is nearest; of equal ones the least in ``tie_breaks``, or the last."""
    pairs = _within(pairs, inequality, tolerance)
    rows = pairs.rows()
    distances = np.abs(_ordinals(rows, inequality.left) - _ordinals(rows, inequality.right)).tolist()
    ties = list(zip(*(rows.column(name).to_pylist() for name in tie_breaks), strict=True)) or _last_first(pairs)
    return _least(pairs, [(distance, *tie) for distance, tie in zip(distances, ties, strict=True)], "is nearer")


def latest(pairs: Pairs) -> Pairs:
    """Of each left row the pair whose right row came last."""
    return _least(pairs, _last_first(pairs), "came later")


def live_versions(pairs: Pairs, deleted: str) -> Pairs:
    """Those whose version is none that ended the row."""
    if not deleted:
        return pairs
    ended = np.array(pairs.rows().column(deleted).to_pylist(), dtype=np.bool_)
    for lineage in lineage_of(pairs.that(ended).rows()):
        pairs.ledger.lost(lineage, "the row had been deleted at that time")
    return pairs.that(~ended)


def _within(pairs: Pairs, inequality: TimeInequality, tolerance: int | None) -> Pairs:
    """The pairs that the inequality, and the tolerance, hold for."""
    left, right = inequality.left, inequality.right
    rows = pairs.rows()
    holds = mask(rows, f"{quoted(left)} {inequality.comparison} {quoted(right)}")
    far = np.zeros(len(holds), dtype=np.bool_)
    if tolerance is not None and holds.any():
        kept = np.flatnonzero(holds)
        near = rows.take(pa.array(kept))
        far[kept] = np.abs(_ordinals(near, left) - _ordinals(near, right)) > tolerance
    kind = rows.schema.field(left).type
    for row in np.flatnonzero(~holds | far):
        one, other = (rows.column(name)[int(row)] for name in (left, right))
        values = f"{left} = {literal(one.as_py())}, {right} = {literal(other.as_py())}"
        apart = ""
        if one.is_valid and other.is_valid:
            apart = f", {length_text(abs(_ordinal(one) - _ordinal(other)), kind)} apart"
        bound = f"at most {length_text(tolerance, kind)}" if far[row] and tolerance is not None else ""
        what = f"the distance is to be {bound}" if bound else f"{left} {inequality.comparison} {right} is false"
        pairs.ledger.lost(lineage_of(rows)[int(row)], f"ON {what}: {values}{apart}")
    return pairs.that(holds & ~far)


def _least(pairs: Pairs, ranks: Sequence[tuple[Any, ...]], reason: str) -> Pairs:
    """Of each left row the pair of the least rank."""
    best: dict[int, int] = {}
    for place, left in enumerate(pairs.places[0].tolist()):
        if left not in best or ranks[place] < ranks[best[left]]:
            best[left] = place
    kept = np.zeros(len(ranks), dtype=np.bool_)
    kept[list(best.values())] = True
    of_right = lineage_of(pairs.right.rows)
    for right in pairs.places[1][~kept].tolist():
        pairs.ledger.lost(of_right[right], f"another row of {pairs.right.source} {reason}")
    return pairs.that(kept)


def _last_first(pairs: Pairs) -> list[tuple[int, ...]]:
    of_right = lineage_of(pairs.right.rows)
    return [tuple(-one for one in pairs.ledger.arrived(of_right[right])) for right in pairs.places[1].tolist()]


def _ordinals(rows: pa.Table, name: str) -> np.ndarray:
    column = rows.column(name)
    found: np.ndarray = (column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column).to_numpy()
    return found


def _ordinal(value: pa.Scalar) -> Any:
    return pc.cast(value, pa.int64()).as_py() if pa.types.is_temporal(value.type) else value.as_py()
