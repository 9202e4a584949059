"""Order within a key: rows by time, and searches in it for a whole batch of needles at once.

A time is the number behind a timestamp or a date, or the whole number itself, as int64. NULL comes after all times, and
no search finds it. A **span** is the half-open range of positions, in one sorted run, of the rows under the word of a
needle.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from changelog.event_times import not_behind
from changelog.hashing import Hashes
from changelog.rows import Mask, Positions, expand

Times = npt.NDArray[np.int64]

NEVER = int(np.iinfo(np.int64).max)
"""The order of NULL."""
LATEST = NEVER - 1
"""The greatest time; unsigned numbers beyond it count as it."""
EARLIEST = int(np.iinfo(np.int64).min)


def times_of(column: pa.ChunkedArray) -> Times:
    """The order of each row of a column of times or numbers; without a copy of timestamps and 64-bit integers.

    The order of a float is no number to count with: its neighbours are the next floats. NaN is above all numbers. Of
    decimals the digits count, those beyond 64 bits as the greatest or the least.
    """
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
    elif pa.types.is_uint64(array.type):
        array = pc.min_element_wise(array, pa.scalar(LATEST, pa.uint64()), skip_nulls=False)
    elif pa.types.is_floating(array.type):
        array = _of_floats(array.cast(pa.float64()))
    elif pa.types.is_decimal(array.type):
        array = _of_decimals(array)
    array = array.cast(pa.int64())
    values: Times = (array.fill_null(NEVER) if array.null_count else array).to_numpy(zero_copy_only=False)
    return values


def bound_of(watermark: int, kind: pa.DataType) -> int:
    """``watermark`` as an order of a column of type ``kind``: what is behind the one is less than the other."""
    return int(times_of(pa.chunked_array([pa.array([not_behind(watermark, kind)])]))[0])


def _of_floats(array: pa.Array) -> pa.Array:
    """The bits of a float grow with it, those of a negative one against it."""
    values = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(bits ^ ((bits >> 63) & np.iinfo(np.int64).max), mask=_nulls(array))


def _of_decimals(array: pa.Array) -> pa.Array:
    words = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[::2], words[1::2]
    beyond = np.where(high < 0, EARLIEST, LATEST)
    return pa.array(np.where(high == low >> 63, low, beyond), mask=_nulls(array))


def _nulls(array: pa.Array) -> Mask | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def shifted(times: Times, shift: int) -> Times:
    """``times + shift``, kept between EARLIEST and LATEST where the sum would be beyond them."""
    if shift >= 0:
        return np.minimum(times, LATEST - shift) + shift
    return np.maximum(times, EARLIEST - shift) + shift


def by_word_and_time(words: Hashes, times: Times) -> Positions:
    """The stable order by word, then time. Streams come nearly in order of time, so few keys need a second sort."""
    order = np.argsort(words, kind="stable")
    words, times = words[order], times[order]
    same = words[1:] == words[:-1]
    descents = same & (times[1:] < times[:-1])
    if not descents.any():
        return order
    group = np.concatenate(([0], np.cumsum(~same)))
    unsorted = np.zeros(group[-1] + 1, dtype=np.bool_)
    unsorted[group[1:][descents]] = True
    members = np.flatnonzero(unsorted[group])
    order[members] = order[members[np.lexsort((times[members], group[members]))]]
    return order


def bisected(times: Times, span: tuple[Positions, Positions], bounds: Times, *, after: bool) -> Positions:
    """In each span, the first position whose time is not before its bound (``after``: whose time is after it).

    The ends of the spans are looked at first: bounds are often beyond all times of a run, or before them.
    """
    low, high = span[0].copy(), span[1].copy()

    def passed(needles: Positions, positions: Positions) -> Mask:
        return times[positions] <= bounds[needles] if after else times[positions] < bounds[needles]

    active = np.flatnonzero(low < high)
    active = active[passed(active, low[active])]
    beyond = passed(active, high[active] - 1)
    low[active[beyond]] = high[active[beyond]]
    active = active[~beyond]
    while len(active):
        middle = (low[active] + high[active]) >> 1
        after_middle = passed(active, middle)
        low[active[after_middle]] = middle[after_middle] + 1
        high[active[~after_middle]] = middle[~after_middle]
        active = active[low[active] < high[active]]
    return low


def covered(low: Positions, high: Positions) -> Positions:
    """The positions that lie in one of the spans, each once, ascending."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    reach = np.concatenate(([0], np.maximum.accumulate(high)[:-1])) if len(high) else high
    return expand(np.maximum(low, reach), np.maximum(high, reach))[1]


def located(words: Hashes, among: Hashes) -> tuple[Positions, Positions]:
    """All pairs (i, p) with ``words[i] == among[p]``, neither sorted."""
    order = np.argsort(among, kind="stable")
    held = among[order]
    owners, positions = expand(np.searchsorted(held, words, "left"), np.searchsorted(held, words, "right"))
    return owners, order[positions]


class Approach:
    """The search for the nearest live rows in time, over spans of several runs: in steps away from the needle.

    A step looks at all rows of a needle, in whatever run, from its edge up to the time that lies ``reach`` rows further
    in one of the runs. Where their counts cancel out the next step begins behind them, and reaches four times as far:
    so a long stretch of retracted rows costs a number of steps that is logarithmic in its length.

    newest   the edge is the end of each span, and steps go back in time; else its beginning, and they go forward
    """

    def __init__(self, times: list[Times], spans: list[tuple[Positions, Positions]], newest: bool) -> None:
        self._times = times
        self._low = [low.copy() for low, _ in spans]
        self._high = [high.copy() for _, high in spans]
        self._newest = newest
        self._reach = 1

    def unfinished(self, needles: Positions) -> Positions:
        """Which of ``needles`` have rows left to look at."""
        remaining: Mask = np.zeros(len(needles), dtype=np.bool_)
        for low, high in zip(self._low, self._high, strict=True):
            remaining |= low[needles] < high[needles]
        return needles[remaining]

    def step(self, needles: Positions) -> list[tuple[Positions, Positions]]:
        """For each run the span that this step looks at, by needle; the next one leaves it out."""
        limits = self._limits(needles)
        steps = []
        for times, low, high in zip(self._times, self._low, self._high, strict=True):
            span = low[needles], high[needles]
            if self._newest:
                edge = bisected(times, span, limits, after=False)
                high[needles] = edge
                steps.append((edge, span[1]))
            else:
                edge = bisected(times, span, limits, after=True)
                low[needles] = edge
                steps.append((span[0], edge))
        self._reach *= 4
        return steps

    def _limits(self, needles: Positions) -> Times:
        """The time up to which a step goes: the nearest one of those ``reach`` rows away, over the runs."""
        limits = np.full(len(needles), EARLIEST if self._newest else LATEST)
        nearer = np.maximum if self._newest else np.minimum
        for times, low, high in zip(self._times, self._low, self._high, strict=True):
            first, last = low[needles], high[needles]
            held = np.flatnonzero(first < last)
            if self._newest:
                there = np.maximum(last[held] - self._reach, first[held])
            else:
                there = np.minimum(first[held] + self._reach, last[held]) - 1
            limits[held] = nearer(limits[held], times[there])
        return limits
