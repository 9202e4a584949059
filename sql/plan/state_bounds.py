"""What a range join keeps of its sides, and what clears it, as EXPLAIN says it.

A left row is kept while ``left - lower`` is not behind the right watermark, a right row while ``right + upper`` is not
behind the left one (``Band``). The text tells how far back of the newest row of the other side that is:

    state: left 30 s of a.at behind b.at, right all rows, unbounded: a.at - b.at has no upper bound
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from changelog.schema import DAY_MS
from joins.dataflow.ports import Watermark
from joins.operators.range import Band

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds in the unit of a timestamp; our timestamps are no finer."""


def per_unit(kind: pa.DataType) -> int:
    """Microseconds in one unit of a time; 1 for whole numbers, which have no unit."""
    return _MICROS[kind.unit] if pa.types.is_timestamp(kind) else 1


def length_text(value: int, kind: pa.DataType) -> str:
    """A distance of two values of a column, in its unit."""
    if not pa.types.is_timestamp(kind):
        return str(value)
    micros = value * per_unit(kind)
    for unit, size in (("s", 1_000_000), ("ms", 1_000)):
        if micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} us"


def watermark_text(watermark: Watermark, kind: pa.DataType) -> str:
    """``watermark=at-20 s (of the slower input, idle after 30 s)``."""
    whole = pa.types.is_integer(kind)
    delay = length_text(abs(watermark.delay_ms), kind if whole else pa.timestamp("ms"))
    notes = ["of the slower input"] if watermark.shared else []
    if watermark.idle_ms is not None:
        notes.append(f"idle after {length_text(watermark.idle_ms, pa.timestamp('ms'))}")
    if watermark.max_future_ms != DAY_MS and not whole:
        future = watermark.max_future_ms
        ahead = "any time ahead" if future is None else f"{length_text(future, pa.timestamp('ms'))} ahead at most"
        notes.append(ahead)
    notes += [] if watermark.drops_late else ["no row is late"]
    sign = "-" if watermark.delay_ms >= 0 else "+"
    return f"watermark={watermark.column}{sign}{delay}" + (f" ({', '.join(notes)})" if notes else "")


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
    """What is known of a range join over columns of type ``kind``.

    left, right                  the watermarks of the ports; None: there is none
    left_updates, right_updates  whether rows of the side can be taken back
    """

    band: Band
    kind: pa.DataType
    left: Watermark | None
    right: Watermark | None
    left_updates: bool
    right_updates: bool

    def left_open(self) -> str:
        """Why left rows are kept for ever; '' where they are not."""
        return self._open(self.band.lower, "lower", self.band.right, self.right, self.band.right_shift)

    def right_open(self) -> str:
        return self._open(self.band.upper, "upper", self.band.left, self.left, self.band.left_shift)

    def never_closed(self) -> str:
        """Why it is never known that no row will join another of its time; '' where it is."""
        both = (
            self._open(0, "", self.band.left, self.left, self.band.left_shift),
            self._open(0, "", self.band.right, self.right, self.band.right_shift),
        )
        return both[0] or both[1]

    def _open(self, bound: int | None, name: str, other: str, watermark: Watermark | None, shift: int | None) -> str:
        if self.left_updates or self.right_updates:
            return "rows can be taken back"
        if bound is None:
            return f"{self.band.left} - {self.band.right} has no {name} bound"
        return f"there is no watermark over {other}" if watermark is None or shift is None else ""

    def text(self) -> str:
        lower, upper = self.band.lower, self.band.upper
        left, right = "the current rows", "the current rows"
        if not self.left_updates:
            reason, ahead = self.left_open(), None if lower is None else -lower
            left = self._kept(reason, self.band.left, self.right, self.band.right_shift, ahead)
        if not self.right_updates:
            right = self._kept(self.right_open(), self.band.right, self.left, self.band.left_shift, upper)
        return f"left {left}, right {right}"

    def _kept(self, reason: str, own: str, watermark: Watermark | None, shift: int | None, ahead: int | None) -> str:
        """``ahead``: how far the time of a match may be ahead of that of the row."""
        if reason or watermark is None or shift is None or ahead is None:
            return f"all rows, unbounded: {reason}"
        behind = str(watermark.delay_ms - shift + ahead)
        if pa.types.is_timestamp(self.kind):
            # Whole milliseconds: the watermark has no finer ones.
            behind = _rounded(watermark.delay_ms - shift - (-ahead * per_unit(self.kind) // 1_000))
        return f"{behind} of {own} behind {watermark.column}"


def _rounded(ms: int) -> str:
    """Up to the second, from the second on."""
    return length_text(ms if abs(ms) < 1_000 else -(-ms // 1_000) * 1_000, pa.timestamp("ms"))


def span_text(distance: int, kind: pa.DataType) -> str:
    """A distance in the unit of watermarks, ms or the number itself, between values of a column."""
    return _rounded(distance) if pa.types.is_timestamp(kind) else str(distance)
