"""Event times: the greatest of some, the first that is not behind a watermark, and those that cannot be used.

Times are compared at the precision of their column. As marks and watermarks they count in ms since the epoch, digits
beyond cut off towards the past; a whole number counts as it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.decode import REJECTED, places
from dovetail.changelog.rows import Mask
from dovetail.changelog.schema import DAY_MS, EVENT_TIME_TYPE, WRITTEN

_GREATEST = int(np.iinfo(np.int64).max)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def greatest_ms(times: pa.ChunkedArray) -> int | None:
    """The greatest of some times; None if there is none."""
    greatest = pc.max(times)
    if not greatest.is_valid:
        return None
    if pa.types.is_timestamp(times.type):
        return int(greatest.value) * 1_000 // _PER_SECOND[times.type.unit]
    return int(greatest.value) * DAY_MS if pa.types.is_date32(times.type) else int(greatest.as_py())


def not_behind(watermark: int, kind: pa.DataType) -> pa.Scalar:
    """The least value of a column of type ``kind`` that is not behind ``watermark``."""
    if pa.types.is_date32(kind):
        return pa.scalar(-(-watermark // DAY_MS), pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        least = -(-watermark * _PER_SECOND[kind.unit] // 1_000)
        return pa.scalar(min(max(least, -_GREATEST), _GREATEST), pa.int64()).cast(kind)
    bounds = np.iinfo(kind.to_pandas_dtype())
    return pa.scalar(min(max(watermark, int(bounds.min)), int(bounds.max)), kind)


def unusable(
    rows: pa.Table, records: pa.RecordBatch, column: str, *, nullable: bool, max_future_ms: int | None
) -> tuple[Mask, pa.Table]:
    """Which of the decoded ``rows`` have an event time that cannot be used, and their records (REJECTED).

    That is one that is NULL, where it is not ``nullable``: no watermark would ever pass it. And one more than
    ``max_future_ms`` after the timestamp of its record: it would make all rows late that come after it. The record's
    time draws the bound and not the clock, so that a replay decides the same.

    records   what ``rows`` were decoded from, of one partition, in order: key, value, timestamp, partition, offset
    """
    times = rows.column(column)
    missing = np.zeros(rows.num_rows, dtype=np.bool_) if nullable else pc.is_null(times).to_numpy()
    latest = None if max_future_ms is None else _latest(rows, records, times, max_future_ms)
    ahead = np.zeros(rows.num_rows, dtype=np.bool_)
    if latest is not None:
        ahead = pc.fill_null(pc.greater(times, latest), False).to_numpy()
    bad = np.flatnonzero(missing | ahead)
    if not len(bad):
        return ahead, REJECTED.empty_table()
    reasons = pa.array([f"column {column}: the event time is NULL"] * len(bad))
    if latest is not None:
        found, bounds = (texts.take(pa.array(bad)).cast(pa.string()) for texts in (times.combine_chunks(), latest))
        limit = f", the latest that max_future = {_duration(max_future_ms or 0)} allows for its record"
        too_late = pc.binary_join_element_wise(
            f"column {column}: the event time ", found, " is after ", bounds, limit, ""
        )
        reasons = pc.if_else(pa.array(ahead[bad]), too_late, reasons)
    owners = records.take(pa.array(places(rows, records)[bad]))
    return missing | ahead, pa.table([*(owners[name] for name in REJECTED.names[:-1]), reasons], schema=REJECTED)


def stamped(rows: pa.Table, records: pa.RecordBatch) -> pa.Table:
    """``rows``, some of those decoded from ``records`` of one partition, with the timestamps of theirs (WRITTEN)."""
    written = records.column("timestamp").cast(EVENT_TIME_TYPE, safe=False).cast(pa.int64())
    return rows.add_column(0, WRITTEN, written.take(pa.array(places(rows, records))))


def _latest(rows: pa.Table, records: pa.RecordBatch, times: pa.ChunkedArray, max_future_ms: int) -> pa.Array | None:
    """The latest time that each row may have; None where all have one that they may have."""
    if not pa.types.is_timestamp(times.type) or not rows.num_rows:
        return None
    written_ms = records.column("timestamp").cast(EVENT_TIME_TYPE, safe=False).cast(pa.int64()).to_numpy()
    greatest = greatest_ms(times)
    if greatest is None or greatest < written_ms.min() + max_future_ms:
        return None
    latest_ms, per_second = written_ms[places(rows, records)] + max_future_ms, _PER_SECOND[times.type.unit]
    if per_second < 1_000:
        return pa.array(latest_ms * per_second // 1_000, pa.int64()).cast(times.type)
    # In nanoseconds the product with the units of a second has more than 64 bits, and so has what lies beyond 2262.
    per_ms = per_second // 1_000
    return pa.array(np.minimum(latest_ms, _GREATEST // per_ms) * per_ms, pa.int64()).cast(times.type)


def _duration(ms: int) -> str:
    """As the settings of a query have it: ``1d``, ``90s``."""
    units = {"d": DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1_000}
    return next((f"{ms // size}{unit}" for unit, size in units.items() if ms and ms % size == 0), f"{ms}ms")
