"""Times in records: texts and epoch numbers, as nanoseconds since 1970-01-01 00:00:00 UTC.

Text: ``YYYY-MM-DD``, then after a space or ``T`` ``HH[:MM[:SS[.fraction]]]``, then ``Z`` or an offset from UTC. A text
without offset is in UTC. Digits finer than a column's unit are cut off, towards the past.

Number: seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by magnitude: below 1e11 seconds,
below 1e14 milliseconds, below 1e17 microseconds. A number of milliseconds is misread only in the first three years.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
_INT64_BOUND = 2**63
_DAY = 86_400 * 10**9

_CLOCK = r"(?P<h>[01]\d|2[0-3])(?::(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.(?P<f>\d{1,9}))?)?)?"
_TIME_OF_DAY = re.compile(_CLOCK)
_INSTANT = re.compile(
    rf"(?P<date>\d{{4}}-\d\d-\d\d)(?:[T ]{_CLOCK} ?(?:Z|(?P<sign>[+-])(?P<oh>\d\d)(?::?(?P<om>[0-5]\d))?)?)?"
)
_LOCAL = r"^\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])([T ]([01]\d|2[0-3])(:[0-5]\d){0,2}(\.\d{1,9})?)?$"
_FINE = re.compile(r"\.\d{7}")
_ZONED = _LOCAL[:-2] + r"(Z|[+-]\d\d(:?\d\d)?)$"


def instant_of_text(text: str) -> int | None:
    """Nanoseconds since the epoch; None if ``text`` is no time."""
    found = _INSTANT.fullmatch(text.strip())
    day = None if found is None else day_of_text(found["date"])
    if found is None or day is None:
        return None
    offset = (int(found["oh"] or 0) * 60 + int(found["om"] or 0)) * 60 * 10**9
    return day * _DAY + _clock(found) + (offset if found["sign"] == "-" else -offset)


def instant_of_number(number: int | float | Decimal) -> int:
    """Nanoseconds since the epoch; the unit of ``number`` goes by its magnitude."""
    scale = _scale(abs(number))
    if isinstance(number, float):
        # A double holds a time of today to a quarter of a microsecond.
        return round(number * (scale / 1000)) * 1000 if scale >= 1000 else math.floor(number)
    return math.floor(number * scale)


def instants_of_numbers(numbers: pa.Array, unit: str) -> pa.Array | None:
    """``instant_of_number`` for many, in ``unit``, as int64; None if they are of different magnitudes."""
    known = np.abs(numbers.drop_null().to_numpy()).view(np.uint64)
    scale = _scale(int(known.max(initial=0)))
    if len(known) and (_scale(int(known.min())) != scale or not fits(int(known.max()) * scale, NANOSECONDS[unit])):
        return None
    return floored(numbers, scale, NANOSECONDS[unit])


def time_of_day(text: str) -> int | None:
    """Nanoseconds since midnight of ``HH[:MM[:SS[.fraction]]]``; None if ``text`` is none."""
    found = _TIME_OF_DAY.fullmatch(text.strip())
    return None if found is None else _clock(found)


def day_of_text(text: str) -> int | None:
    """Days since the epoch of ``YYYY-MM-DD``; None if there is no such day."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is None:
        return None
    try:
        return int(np.datetime64(text, "D").astype(np.int64))
    except ValueError:
        return None


def fits(instant: int, unit: int) -> bool:
    """Whether a count of ``unit`` nanoseconds can hold the time: nanoseconds end in 2262."""
    return abs(instant // unit) < _INT64_BOUND


def instants_of_texts(texts: pa.Array, unit: str) -> pa.Array | None:
    """``instant_of_text`` for many, in ``unit``, as int64; None if Arrow does not read them all in one go."""
    first = next((text for text in texts.slice(0, 100).to_pylist() if text is not None), "")
    zone = "UTC" if re.search(_ZONED, first) else None
    # A cast that fails has read all rows: there is no trying of all forms.
    for fine in ("ns",) if unit == "ns" or _FINE.search(first) else ("us", "ns"):
        try:
            instants = texts.cast(pa.timestamp(fine, zone))
        except pa.ArrowInvalid:
            continue
        return floored(instants.view(pa.int64()), NANOSECONDS[fine], NANOSECONDS[unit])
    return None


def unlike_the_others(texts: pa.Array) -> pa.Array:
    """Which texts are of no form that Arrow reads, or have an offset where most have none, or none where most have."""
    local, zoned = (pc.fill_null(pc.match_substring_regex(texts, form), True) for form in (_LOCAL, _ZONED))
    return pc.invert(max(local, zoned, key=lambda fitting: pc.sum(fitting).as_py()))


def _scale(size: Any) -> int:
    """The nanoseconds in the unit of an epoch number of this size."""
    return next((scale for bound, scale in _EPOCH_UNITS if size < bound), 1)


def floored(instants: pa.Array, unit: int, target: int) -> pa.Array:
    """int64 counts of ``unit`` nanoseconds as counts of ``target``, cut off towards the past; NULLs stay."""
    counts = instants.fill_null(0).to_numpy(zero_copy_only=False)
    scaled = counts // (target // unit) if target >= unit else counts * (unit // target)
    return pa.array(scaled, pa.int64(), mask=instants.is_null().to_numpy(zero_copy_only=False))


def _clock(found: re.Match[str]) -> int:
    seconds = (int(found["h"] or 0) * 60 + int(found["m"] or 0)) * 60 + int(found["s"] or 0)
    return seconds * 10**9 + int((found["f"] or "").ljust(9, "0"))
