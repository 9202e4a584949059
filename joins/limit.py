"""``join_max_buffered_bytes``: a query that would buffer more is aborted, with nothing half-written."""

from __future__ import annotations

from dataclasses import dataclass

from changelog.errors import StateLimitExceeded
from joins.store import RunStore


@dataclass(frozen=True)
class BufferLimit:
    """``bytes`` is the share of one bucket; None: no limit."""

    bytes: int | None
    store: RunStore

    def check(self) -> None:
        if self.bytes is None:
            return
        held = self.store.buffered_bytes
        if held > self.bytes:
            raise StateLimitExceeded(
                f"the rows buffered by the join passed join_max_buffered_bytes: "
                f"{held} bytes in one bucket, whose share of the limit is {self.bytes}",
                fix="raise join_max_buffered_bytes, bound the join in time (date_diff_within), or select fewer columns",
            )
