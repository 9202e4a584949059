"""The symmetric join of rows near in time: as bidirectional, but its state goes with the watermark.

A left row is kept while ``left - lower`` is not behind the right watermark, a right row while ``right + upper`` is not
behind the left one (``Band``). The text tells how far back of the newest row of the other side that is:

    state: left 30 s of a.at behind b.at, right all rows, unbounded: a.at - b.at has no upper bound
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind, Watermark
from dovetail.joins.operators.range import Band
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import JoinInputs, current
from dovetail.sql.plan.joins.symmetric import SymmetricJoinMethod
from dovetail.sql.plan.time_text import ceil_ms, length_text, per_unit, span_text, sum_text

__all__ = ["Band", "Range", "RangeState"]


@dataclass(frozen=True)
class Range(SymmetricJoinMethod):
    """Rows for which ``band.lower <= left - right <= band.upper`` holds.

    append   padded rows leave once, when nothing can match them any more
    closed   every row leaves once, when its time is behind the watermark (EMIT ON WINDOW CLOSE)
    clock    the column of the band whose watermark goes on with the rows that leave; empty: none does
    """

    band: Band
    append: bool = False
    closed: bool = False
    clock: str = ""

    operator: ClassVar[str] = "Range"

    @property
    def columns_read(self) -> frozenset[str]:
        return frozenset({self.band.left, self.band.right})

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return False if self.append or self.closed else super().updates(kind, left, right)

    @property
    def canonical(self) -> Form:
        band = members(
            left=self.band.left,
            right=self.band.right,
            lower=self.band.lower,
            upper=self.band.upper,
            left_shift=self.band.left_shift,
            right_shift=self.band.right_shift,
        )
        return members(kind="range", band=band, append=self.append, closed=self.closed, clock=self.clock)

    # -- event time --

    @property
    def passing_times(self) -> tuple[str, ...]:
        return (self.band.left, self.band.right)

    def with_clock(self, column: str) -> Self:
        return replace(self, clock=column)

    def clock_shifts(self, inputs: JoinInputs) -> tuple[int, int] | None:
        band = self.band
        if not self.clock or self.closed or None in (inputs.left.watermark, inputs.right.watermark):
            return None
        bound = band.lower if self.clock == band.left else band.upper
        if bound is None or band.left_shift is None or band.right_shift is None:
            return None
        kind = inputs.left.type_of(band.left)
        earlier = bound if self.clock == band.left else -bound
        behind = earlier * per_unit(kind) // 1_000 if pa.types.is_timestamp(kind) else earlier
        if self.clock == band.left:
            return band.left_shift, band.right_shift + behind
        return band.left_shift + behind, band.right_shift

    def watermark(self, inputs: JoinInputs) -> Watermark | None:
        if self.clock_shifts(inputs) is None:
            return None
        return Watermark(self.clock, 0, max_future_ms=None, drops_late=False)

    # -- EXPLAIN --

    def conditions(self, inputs: JoinInputs) -> list[str]:
        return [band_text(self.band, inputs.left.type_of(self.band.left))]

    def emission(self) -> list[str]:
        said = []
        if self.closed:
            said.append("every row once, when its window is closed")
        elif self.append:
            said.append("unmatched rows once, when nothing can match them any more")
        if self.clock:
            said.append(f"passes on the watermark of {self.clock}")
        return said

    def keeps_both(self, inputs: JoinInputs) -> bool:
        bound = self.bound(inputs)
        return bool(bound.left_open() and bound.right_open())

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        return self.bound(inputs).text()

    def bound(self, inputs: JoinInputs) -> RangeState:
        return RangeState(self.band, inputs)


def band_text(band: Band, kind: pa.DataType) -> str:
    """``a.at - b.at in [-10 s, 10 s]``."""
    lower, upper = (None if bound is None else length_text(bound, kind) for bound in (band.lower, band.upper))
    if band.lower == 0 and band.upper == 0:
        return f"{band.left} = {band.right}"
    if lower is not None and upper is not None:
        return f"{band.left} - {band.right} in [{lower}, {upper}]"
    return f"{band.left} - {band.right} {'>=' if lower is not None else '<='} {lower if lower is not None else upper}"


@dataclass(frozen=True)
class RangeState:
    """What bounds the state of a range join over ``inputs``."""

    band: Band
    inputs: JoinInputs

    def left_open(self) -> str:
        """Why left rows are kept forever; '' where they are not."""
        return self._open(self.band.lower, "lower", self.band.right, self._right, self.band.right_shift)

    def right_open(self) -> str:
        return self._open(self.band.upper, "upper", self.band.left, self._left, self.band.left_shift)

    def never_closed(self) -> str:
        """Why it is never known that no row will join another of its time; '' where it is."""
        both = (
            self._open(0, "", self.band.left, self._left, self.band.left_shift),
            self._open(0, "", self.band.right, self._right, self.band.right_shift),
        )
        return both[0] or both[1]

    @property
    def _left(self) -> Watermark | None:
        return self.inputs.left.watermark

    @property
    def _right(self) -> Watermark | None:
        return self.inputs.right.watermark

    def _open(self, bound: int | None, name: str, other: str, watermark: Watermark | None, shift: int | None) -> str:
        if self.inputs.left.updates or self.inputs.right.updates:
            return "rows can be taken back"
        if bound is None:
            return f"{self.band.left} - {self.band.right} has no {name} bound"
        return f"there is no watermark over {other}" if watermark is None or shift is None else ""

    def text(self) -> str:
        lower, upper = self.band.lower, self.band.upper
        left, right = current(self.inputs.left), current(self.inputs.right)
        if not self.inputs.left.updates:
            reason, ahead = self.left_open(), None if lower is None else -lower
            left = self._kept(reason, self.band.left, self._right, self.band.right_shift, ahead)
        if not self.inputs.right.updates:
            right = self._kept(self.right_open(), self.band.right, self._left, self.band.left_shift, upper)
        return f"left {left}, right {right}"

    def _kept(self, reason: str, own: str, watermark: Watermark | None, shift: int | None, ahead: int | None) -> str:
        """``ahead``: how far the time of a match may be ahead of that of the row."""
        if reason or watermark is None or shift is None or ahead is None:
            return f"all rows, unbounded: {reason}"
        kind = self.inputs.left.type_of(self.band.left)
        ahead = ceil_ms(ahead, kind)
        kept = span_text(watermark.delay_ms - shift + ahead, kind)
        return f"{kept} of {own} behind {watermark.column}{self._parts(ahead, watermark, shift, kind)}"

    def _parts(self, ahead: int, watermark: Watermark, shift: int, kind: pa.DataType) -> str:
        """What a length of time is made of that is longer than the range."""
        lower, upper = self.band.lower, self.band.upper
        width = None if lower is None or upper is None else ceil_ms(upper - lower, kind)
        as_wide = ", as wide as the range" if watermark.shared and watermark.delay_ms == width else ""
        delay = (watermark.delay_ms, f"watermark delay{as_wide}")
        return sum_text([(ahead, "range"), (-shift, "from it to the event time"), delay], kind)
