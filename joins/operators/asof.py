"""The updating ASOF join: each left row with the nearest right row in time, matched anew whenever either side changes.

**Definition.** Of the right rows under its key a left row is joined with the nearest in time for which ``left_time
<comparison> right_time`` holds: ``>=`` and ``>`` look back (the newest right row not after, or before, the left one),
``<=`` and ``<`` forward; with a tolerance, if it is no further away than that. Of equal right times the least in the
columns ``tie_break`` is taken, without such columns the last arrived. A time or key that is NULL matches nothing (NULL
equals NULL for null-safe keys). INNER gives the pairs; LEFT also each left row that matches nothing, padded. The output
is the difference this makes, batch by batch.

**Method.** A right row at time t is the nearest of the left rows from t up to the next right time (looking back; up to
and with it for ``>``), so these alone are matched anew::

    left      ────a──────b────c────d───────▶
    right     ─r1─────────────────────r2───▶
    new right ────────r                         touches b, c and d

**State.** Both sides. Where both ports have a watermark and are append-only, of what can change no output: left rows
whose match is final, and right rows that neither a left row held nor one yet to come can ask for. Looking back a left
row is final when the right watermark has passed it, and of the right rows before both watermarks the newest of each key
stays. Looking forward a left row is final when the watermarks have passed its match, which goes with it; one that has
no match stays, within the tolerance.

Source: the ASOF join of RisingWave; ``asof_join`` of Feldera's DBSP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Port
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.inputs.timed import TimedNormalizer
from dovetail.joins.matching.nearest import INCLUSIVE, LOOKS_BACK
from dovetail.joins.matching.open_rows import OpenRows
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.tie_breaks import last_arrived, least
from dovetail.joins.matching.timeline import Timeline, Versions
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.order import EARLIEST, LATEST, NEVER, Times, bound_of, shifted
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class AsofSpec(JoinSpec):
    """The updating ASOF join: each left row with the nearest right row for which ``left_time <comparison> right_time``,
    matched anew whenever either side changes.

    comparison  ``>=``, ``>``, ``<=`` or ``<``
    tie_break   columns by which the smallest of equal right times is taken; empty: the last arrived
    tolerance   greatest distance of the two times, in their unit; None: any

    Where both ports are append-only and have a watermark over their time, what can change no output goes with it.
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT)

    left_time: str
    right_time: str
    comparison: str
    tie_break: tuple[str, ...] = ()
    tolerance: int | None = None
    null_safe: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tie_break:
            object.__setattr__(self, "right", replace(self.right, tie_break_by_arrival=True))

    def open(self, store: RunStore, name: str) -> AsofOperator:
        return AsofOperator(self, store, name)


class AsofOperator:
    """``on_batch([left rows, right rows]) -> changes`` of the joined rows: left columns, then right columns."""

    def __init__(self, spec: AsofSpec, store: RunStore, name: str) -> None:
        self._spec = spec
        self._back = LOOKS_BACK[spec.comparison]
        self._inclusive = INCLUSIVE[spec.comparison]
        self._pairing = RowAssembler(spec.left.schema, spec.right.schema, default_pads=spec.pad is Pad.DEFAULT)
        self._left = TimedNormalizer(spec.left, spec.left_time, store, f"{name}.left", spec.null_safe)
        self._right = TimedNormalizer(spec.right, spec.right_time, store, f"{name}.right", spec.null_safe)
        self._lefts = OpenRows.of(self._left, f"{name}.left", store)
        tie_break = least(spec.tie_break) if spec.tie_break else last_arrived
        self._rights = Versions.of(self._right, f"{name}.right", store, tie_break)
        self._kind = spec.left.schema.field(spec.left_time).type
        self._cleans = _passed_by_time(spec.left, spec.left_time) and _passed_by_time(spec.right, spec.right_time)

    @property
    def dangling(self) -> int:
        return self._left.dangling + self._right.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left = self._left.normalize(inputs[0])
        right = self._right.matchable(self._right.normalize(inputs[1]))
        before = self._rights.snapshot()
        self._rights.insert(right)
        touched = self._touched(right, before)
        parts = [self._matched(left, self._rights)]
        if len(touched):
            parts += [self._matched(touched, before).negated(), self._matched(touched, self._rights)]
        self._lefts.insert(self._left.matchable(left))
        changes = Changes.concat(parts)
        return changes if changes.only_insertions else changes.consolidated()

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        left, right = watermarks
        if self._cleans and left is not None and right is not None:
            self._clean(*(bound_of(watermark, self._kind) for watermark in (min(left, right), right)))
        return Changes.empty(self._pairing.schema)

    def _matched(self, left: Changes, rights: Versions) -> Changes:
        """``left`` with its matches among ``rights``, padded where there is none and the join asks for it."""
        at = self._left.times(left)
        found = rights.nearest(left.table, at, self._back, self._inclusive, self._spec.left.keys)
        found = found.where(self._near(at[found.probe], found))
        joined = self._pairing.of_left(left, found)
        if self._spec.kind is JoinKind.INNER:
            return joined
        return Changes.concat([joined, self._pairing.left_padded(left.where(found.unmatched(len(left))))])

    # -- which left rows are matched anew

    def _touched(self, right: Changes, before: Versions) -> Changes:
        """The left rows held whose nearest right row may be another one after the changes of the right side."""
        if len(right) == 0 or self._lefts.empty:
            return Changes.empty(self._left.schema)
        low, high = self._span(right, before.since)
        return self._lefts.found_between(right.table, low, high, self._spec.right.keys)

    def _span(self, right: Changes, before: Timeline) -> tuple[Times, Times]:
        """For each change of the right side the left times, from and to, whose match it is or was.

        A time at which there are rows before and after is the match only up to the nearer of the next right times: what
        lies beyond is touched by the change that made it.
        """
        at, away = self._right.times(right), 1 if self._back else -1
        near = at if self._inclusive else shifted(at, away)
        nearer = np.minimum if self._back else np.maximum
        far = self._far(right.table, at, self._rights.since)
        if not right.only_insertions:
            was, stays = (side.rows.counts_between(right.table, at, at) > 0 for side in (before, self._rights.since))
            formerly = self._far(right.table, at, before)
            no_further = np.where(was, formerly, shifted(near, -away))
            far = np.where(stays, np.where(was, nearer(far, formerly), far), no_further)
        if self._spec.tolerance is not None:
            far = nearer(far, shifted(at, away * self._spec.tolerance))
        return (near, far) if self._back else (far, near)

    def _far(self, rows: pa.Table, at: Times, rights: Timeline) -> Times:
        """The furthest left time for which a right row at ``at`` is the nearest of ``rights``."""
        answer, found = rights.rows.nearest_shared(rows, at, not self._back, False, self._spec.right.keys)
        beyond = np.full(answer.max(initial=-1) + 1, LATEST if self._back else EARLIEST)
        beyond[found.probe] = self._right.times(found)
        if self._inclusive:
            beyond[found.probe] = shifted(beyond[found.probe], -1 if self._back else 1)
        return beyond[answer]

    def _near(self, at: Times, found: Matches) -> Mask:
        """Which pairs of a left time and the row found for it are within the tolerance; NULL is near to nothing."""
        near: Mask = at != NEVER
        if self._spec.tolerance is not None:
            taken = self._right.times(found)
            earlier, later = (taken, at) if self._back else (at, taken)
            near &= shifted(earlier, self._spec.tolerance) >= later
        return near

    # -- what can change no output any more

    def _clean(self, both: int, right: int) -> None:
        """``both``: the time that no row of either side comes before any more; ``right``: that no right row does."""
        tolerance = self._spec.tolerance
        if self._back:
            self._lefts.drop(right if self._inclusive else right + 1)
            self._rights.forget(both, tolerance)
            return
        if tolerance is not None:
            self._lefts.drop(max(right - tolerance, EARLIEST))
        self._lefts.forget_matched(both, self._rights.since.rows.expire(both), self._right, self._inclusive)


def _passed_by_time(port: Port, time: str) -> bool:
    """Whether the watermark of the port tells that a row's ``time`` has passed, for good."""
    watermark = port.watermark if port.ingest is Ingest.APPEND else None
    return watermark is not None and watermark.column == time and watermark.drops_late
