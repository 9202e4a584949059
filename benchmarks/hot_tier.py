"""The hot tier against plain LRU: hit ratio and speed, on Zipf keys alone and with scans between.

    .venv/bin/python -m benchmarks.hot_tier

200,000 keys by Zipf's law, room for 10,000, one million records in batches of 5,000; with scans: after every fourth
batch one of 5,000 keys that never come again. A batch looks its distinct keys up, then stores those that were missing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dovetail.changelog.lookup import Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.hot.hot_tier import HotTier

KEYS, CAPACITY, BATCHES, BATCH_RECORDS, SCAN_EVERY = 200_000, 10_000, 200, 5_000, 4
_EXPIRES_MS = 10**9


class Cache(Protocol):
    def lookup(self, keys: Sequence[str]) -> list[Rows | None]: ...

    def store(self, keys: Sequence[str]) -> None: ...


class Hot:
    """The tier as it is, with its clock, byte count and statistics."""

    def __init__(self) -> None:
        self._tier = HotTier(CAPACITY, 10**12)

    def lookup(self, keys: Sequence[str]) -> list[Rows | None]:
        return self._tier.lookup(keys, 0)

    def store(self, keys: Sequence[str]) -> None:
        self._tier.store({key: CacheEntry(((key,),), 0, _EXPIRES_MS, 50) for key in keys})


class Lru:
    """The least recently used key leaves; no clock, no bytes."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, Rows] = OrderedDict()

    def lookup(self, keys: Sequence[str]) -> list[Rows | None]:
        rows, touch = self._rows, self._rows.move_to_end
        found = [rows.get(key) for key in keys]
        for key, row in zip(keys, found, strict=True):
            if row is not None:
                touch(key)
        return found

    def store(self, keys: Sequence[str]) -> None:
        rows = self._rows
        for key in keys:
            rows[key] = ((key,),)
            if len(rows) > CAPACITY:
                rows.popitem(last=False)


@dataclass(frozen=True)
class Result:
    hit_ratio: float
    lookups_per_s: float


def batches(exponent: float, scans: bool) -> Iterator[tuple[bool, list[str]]]:
    """(whether it is a scan, distinct keys)."""
    generator = np.random.default_rng(7)
    weights = np.arange(1, KEYS + 1, dtype=np.float64) ** -exponent
    cumulative = np.cumsum(weights / weights.sum())
    for number in range(BATCHES):
        drawn = np.searchsorted(cumulative, generator.random(BATCH_RECORDS))
        yield False, [f"key{key}" for key in np.unique(drawn)]
        if scans and number % SCAN_EVERY == 0:
            yield True, [f"scan{number}.{key}" for key in range(BATCH_RECORDS)]


def measured(cache: Cache, prepared: Sequence[tuple[bool, list[str]]]) -> Result:
    """Hits are those of the Zipf batches; the speed is that of all, in processor time."""
    hits = queried = lookups = 0
    started_s = time.process_time()
    for is_scan, keys in prepared:
        found = cache.lookup(keys)
        missing = [key for key, rows in zip(keys, found, strict=True) if rows is None]
        cache.store(missing)
        lookups += len(keys)
        if not is_scan:
            queried += len(keys)
            hits += len(keys) - len(missing)
    return Result(hits / queried, lookups / (time.process_time() - started_s))


def hot_speed(make: Callable[[], Cache]) -> float:
    """Lookups per second where every key is held: five hundred batches of 5,000 of 8,000 keys."""
    cache = make()
    keys = [f"key{key}" for key in range(8_000)]
    cache.store(keys)
    cache.lookup(keys)
    started_s = time.process_time()
    for number in range(500):
        first = number % 3_000
        cache.lookup(keys[first : first + 5_000])
    return 500 * 5_000 / (time.process_time() - started_s)


def main() -> None:
    policies: dict[str, Callable[[], Cache]] = {"hot tier": Hot, "LRU": Lru}
    for exponent in (0.8, 1.0, 1.2):
        for scans in (False, True):
            prepared = list(batches(exponent, scans))
            for name, make in policies.items():
                result = measured(make(), prepared)
                label = f"zipf {exponent}{' with scans' if scans else ''}"
                print(f"{label:22} {name:9} hits {result.hit_ratio:6.1%}  {result.lookups_per_s:12,.0f} keys/s")
    for name, make in policies.items():
        print(f"{'every key held':22} {name:9} {hot_speed(make):25,.0f} keys/s")


if __name__ == "__main__":
    main()
