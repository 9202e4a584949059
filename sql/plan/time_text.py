"""Distances in time, and watermarks, as EXPLAIN writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dovetail.changelog.schema import DAY_MS
from dovetail.joins.dataflow.ports import Watermark

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds in the unit of a timestamp; our timestamps are no finer."""


def per_unit(kind: pa.DataType) -> int:
    """Microseconds in one unit of a time; 1 for whole numbers, which have no unit."""
    return _MICROS[kind.unit] if pa.types.is_timestamp(kind) else 1


def in_units(ms: int, kind: pa.DataType) -> int:
    """A length in the unit of a timestamp, up to the next whole one: times a gap apart are so in any unit."""
    return -(-ms * 1_000 // per_unit(kind))


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
    notes += ["told by its query"] if watermark.from_heartbeats else []
    if watermark.max_future_ms != DAY_MS and not whole and not watermark.from_heartbeats:
        future = watermark.max_future_ms
        ahead = "any time ahead" if future is None else f"{length_text(future, pa.timestamp('ms'))} ahead at most"
        notes.append(ahead)
    notes += [] if watermark.drops_late else ["no row is late"]
    sign = "-" if watermark.delay_ms >= 0 else "+"
    return f"watermark={watermark.column}{sign}{delay}" + (f" ({', '.join(notes)})" if notes else "")


def rounded(ms: int) -> str:
    """Up to the second, from the second on."""
    return length_text(ms if abs(ms) < 1_000 else -(-ms // 1_000) * 1_000, pa.timestamp("ms"))


def ceil_ms(distance: int, kind: pa.DataType) -> int:
    """A distance of two values of a column in the unit of watermarks: whole milliseconds, or the number itself."""
    return -(-distance * per_unit(kind) // 1_000) if pa.types.is_timestamp(kind) else distance


def span_text(distance: int, kind: pa.DataType) -> str:
    """A distance in the unit of watermarks, ms or the number itself, between values of a column."""
    return rounded(distance) if pa.types.is_timestamp(kind) else str(distance)


def sum_text(parts: Sequence[tuple[int, str]], kind: pa.DataType) -> str:
    """What a span is the sum of, `` (10 s range + 5 s watermark delay)``; '' where it is one thing alone."""
    # A millisecond is what a window ends after its last row.
    least = 1 if pa.types.is_timestamp(kind) else 0
    shown = [f"{span_text(length, kind)} {name}" for length, name in parts if abs(length) > least]
    return f" ({' + '.join(shown)})" if len(shown) > 1 else ""
