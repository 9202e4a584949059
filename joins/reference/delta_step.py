"""A step of a delta join, in plain loops."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.joins.reference.rows import Record, Row, difference, keys_equal, part
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceDeltaStep:
    """Each of ``probes``: the changes of the first side, with what the second holds; after the batch, or before it.

    A row has the columns of all sides, None for those that it is not made of, and the number of the probe last.
    """

    sides: Sequence[ReferenceSide]
    widths: tuple[int, ...]
    probes: Sequence[tuple[int, int, bool]]
    null_safe: tuple[bool, ...] = ()

    def on_batch(self, *batches: Sequence[Record]) -> Counter[Row]:
        before = [Counter(side.content) for side in self.sides]
        for side, records in zip(self.sides, batches, strict=True):
            side.take(records)
        result: Counter[Row] = Counter()
        for number, (asks, of, after) in enumerate(self.probes):
            held = self.sides[of].content if after else before[of]
            changed = difference(self.sides[asks].content, before[asks])
            for (row, count), (found, held_count) in itertools.product(changed.items(), held.items()):
                key, other = part(row, self.sides[asks].key), part(found, self.sides[of].key)
                if keys_equal(key, other, self.null_safe):
                    result[*self._together({asks: row, of: found}), number] += count * held_count
        return difference(result, Counter())

    def _together(self, rows: dict[int, Row]) -> Row:
        return tuple(itertools.chain(*(rows.get(place, (None,) * width) for place, width in enumerate(self.widths))))
