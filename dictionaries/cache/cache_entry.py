"""One cached answer."""

from __future__ import annotations

from typing import NamedTuple

from changelog.lookup import Rows


class CacheEntry(NamedTuple):
    """The rows under a key, as the source gave them at ``fetched_ms``; ``()``: known to be absent.

    Fresh while ``now_ms < expires_ms``; the moment is absolute, so both tiers forget an answer at the same time.
    ``size`` is its length in Redis, in bytes.
    """

    rows: Rows
    fetched_ms: int
    expires_ms: int
    size: int

    def soon_ms(self, ahead: float) -> int:
        """Where the last share ``ahead`` of its life begins. A share of its own: absence lives shorter than a row."""
        return self.expires_ms - int(ahead * (self.expires_ms - self.fetched_ms)) if ahead else self.expires_ms
