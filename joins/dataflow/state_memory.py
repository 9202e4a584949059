"""How much of a state may be in memory at once."""

from __future__ import annotations

from dataclasses import dataclass

_SHARES = 4
"""Of the memory that a portion of a state is a share of: who merges all of it has it as it was, together, and in its
order.
"""


@dataclass(frozen=True)
class StateMemory:
    """Of one query, or of one bucket.

    bytes   the Arrow size of the rows
    keys    how many join keys they have; None: any number
    """

    bytes: int
    keys: int | None = None

    def of_bucket(self, buckets: int) -> StateMemory:
        """The share of one of ``buckets``."""
        return StateMemory(self.bytes // buckets, None if self.keys is None else max(self.keys // buckets, 1))

    @property
    def portion_bytes(self) -> int:
        """What is held of it between batches at once, so that it holds what a batch makes of that too."""
        return self.bytes // _SHARES
