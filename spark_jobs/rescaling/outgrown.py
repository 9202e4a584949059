"""Which views have outgrown their one bucket: those whose batches have been long for a while.

A batch reads what has come during the one before. So where one core keeps up, batches are short, whatever comes; where
it does not, each is longer than the last. The clock is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LONG_MS = 2_000
"""A batch that takes so long. Where one core keeps up, they take a tenth."""
FOR_S = 30.0
BATCHES = 3
"""So many of them, one after the other, and for so long: what came during an outage is read in one or two."""


@dataclass
class _LongBatches:
    since_s: float
    count: int
    last: int


@dataclass
class OutgrownViews:
    """By id."""

    _long: dict[int, _LongBatches] = field(default_factory=dict)

    def note(self, view: int, batch: int, batch_ms: int, now_s: float) -> None:
        """The number of its last batch, and how long that took."""
        known = self._long.get(view)
        if known is not None and known.last == batch:
            return
        if batch_ms < LONG_MS:
            self._long.pop(view, None)
        elif known is None:
            self._long[view] = _LongBatches(now_s - batch_ms / 1_000, 1, batch)
        else:
            known.count, known.last = known.count + 1, batch

    def forget(self, view: int) -> None:
        """It does not run, or has nothing to do."""
        self._long.pop(view, None)

    def has(self, view: int, now_s: float) -> bool:
        known = self._long.get(view)
        return known is not None and known.count >= BATCHES and now_s - known.since_s >= FOR_S
