"""A batch is bounded by the bytes of its records, which nobody knows before they are read: they are weighed.

Small batches are what a query that keeps up reads; they are taken as they are. One that has much to catch up takes as
much at once as its memory allows: of what a batch costs, the most does not depend on how many records it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.broker.offset_ranges import OffsetRange
from dovetail.broker.record_sizes import RecordSizes
from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES

_SMALL = 1_000
"""Records. So many are only weighed where those before were large."""


@dataclass
class BatchBytes:
    """``most``: bytes of one batch, all its records together."""

    most: int
    sizes: RecordSizes
    _known: float = float(MESSAGE_BYTES)
    """Bytes of a record, as of the last look; before the first one it may be as large as any."""

    def limit(self, ranges: Sequence[OffsetRange]) -> int | None:
        """How many records of ``ranges`` a batch may have, each range its share of them; None: all."""
        self.sizes.rest()
        count = sum(one.length for one in ranges)
        if not count or (count <= _SMALL and count * self._known <= self.most):
            return None
        weight = self.sizes.weigh(ranges)
        if weight is not None:
            self._known = weight / count
        return None if count * self._known <= self.most else max(int(self.most / self._known), 1)
