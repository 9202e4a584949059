"""One cached answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.changelog.lookup import Key, Rows


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


def misses_of(entries: Mapping[Key, CacheEntry], now_ms: int) -> dict[Key, tuple[int, int]]:
    """Of those that are fresh and known to be absent: since when, and until when."""
    return {
        key: (entry.fetched_ms, entry.expires_ms)
        for key, entry in entries.items()
        if not entry.rows and now_ms < entry.expires_ms
    }
