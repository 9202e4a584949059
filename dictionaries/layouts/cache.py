"""CACHE: a fixed number of cells in the process, over the same cold tier as HYBRID_HASH_CACHE."""

from __future__ import annotations

from dovetail.dictionaries.layouts.hybrid import Hybrid


class Cache(Hybrid):
    """SIZE_IN_CELLS is the room of the hot tier. Entries live for a random time within LIFETIME(MIN .. MAX ..).

    ALLOW_READ_EXPIRED_KEYS serves an expired entry for one more LIFETIME while it is renewed behind the lookup.
    """
