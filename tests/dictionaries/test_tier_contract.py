"""What both tiers must do with entries: hold them exactly, until their moment, and forget what they are told to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Protocol

import pyarrow as pa
import pytest
import redis

from dovetail.changelog.lookup import Key
from dovetail.changelog.schema import Column
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cache_settings import read_settings
from dovetail.dictionaries.cache.cold.cold_tier import ColdTier
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.redis_space import RedisSpace
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.invalidation import Invalidation
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from tests.dictionaries.cache_world import NOW_MS, TTL_MS

COLUMNS = (
    Column("id", pa.string()),
    Column("price", pa.decimal128(10, 2)),
    Column("at", pa.timestamp("us", tz="UTC")),
    Column("since", pa.date32()),
    Column("code", pa.binary()),
    Column("weight", pa.float64()),
)
FULL = ("a", Decimal("1.50"), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2026, 1, 2), b"\x00\xff", 0.1)
EMPTY = (None,) * len(COLUMNS)
LATER_MS = NOW_MS + TTL_MS


class Tier(Protocol):
    def store(self, entries: Mapping[Key, CacheEntry]) -> None: ...

    def fresh(self, keys: Sequence[Key], now_ms: int) -> dict[Key, CacheEntry]:
        """The entries that may be served at that moment."""
        ...

    def forget(self, invalidation: Invalidation) -> int: ...


class Hot:
    def __init__(self) -> None:
        self._tier = HotTier(10_000, 10**9)

    def store(self, entries: Mapping[Key, CacheEntry]) -> None:
        self._tier.store(entries)

    def fresh(self, keys: Sequence[Key], now_ms: int) -> dict[Key, CacheEntry]:
        found = self._tier.lookup(keys, now_ms)
        held = self._tier.kept(keys)
        assert [key for key, rows in zip(keys, found, strict=True) if rows is not None] == list(held)
        return held

    def forget(self, invalidation: Invalidation) -> int:
        return self._tier.drop(invalidation.keys, invalidation.prefix)


class Cold:
    """Entries come in as they do in a lookup: under the locks of a claim."""

    def __init__(self, url: str) -> None:
        made = Definition(
            "d", COLUMNS, ("id",), SourceSpec("fake"), LayoutSpec("hybrid_hash_cache", {"ttl": TTL_MS / 1000})
        )
        self._codec = EntryCodec([column.type for column in COLUMNS])
        space = RedisSpace(url, made, read_settings(made), Statistics(made), lambda: None)
        self.tier = ColdTier(space, self._codec)

    def store(self, entries: Mapping[Key, CacheEntry]) -> None:
        claim = self.tier.locks.claim(list(entries), LATER_MS + TTL_MS)
        assert claim.lease is not None
        values: dict[Key, tuple[bytes, int]] = {}
        for key, entry in entries.items():
            [encoded] = self._codec.encode([entry.rows], entry.fetched_ms, entry.expires_ms)
            assert encoded is not None
            values[key] = (encoded, TTL_MS)
        self.tier.locks.store(claim.lease, values)

    def fresh(self, keys: Sequence[Key], now_ms: int) -> dict[Key, CacheEntry]:
        return {key: entry for key, entry in self.tier.entries.read(keys).items() if entry.expires_ms > now_ms}

    def forget(self, invalidation: Invalidation) -> int:
        return self.tier.invalidations.execute(invalidation)


@pytest.fixture(params=["hot", pytest.param("cold", marks=pytest.mark.services)])
def tier(request: pytest.FixtureRequest) -> Iterator[Tier]:
    if request.param == "hot":
        yield Hot()
        return
    url = str(request.getfixturevalue("redis_url"))
    with redis.Redis.from_url(url) as client:
        client.flushall()
    cold = Cold(url)
    yield cold
    cold.tier.close()


def entry(*rows: tuple[object, ...], expires_ms: int = LATER_MS) -> CacheEntry:
    return CacheEntry(rows, NOW_MS, expires_ms, 50)


def held(tier: Tier, *keys: Key, now_ms: int = NOW_MS) -> list[Key]:
    return list(tier.fresh(keys, now_ms))


def test_an_entry_comes_back_exactly(tier: Tier) -> None:
    tier.store({"a": entry(FULL), "many": entry(FULL, EMPTY, FULL), "absent": entry()})
    found = tier.fresh(["many", "absent", "a", "unknown"], NOW_MS)
    assert {key: (got.rows, got.fetched_ms, got.expires_ms) for key, got in found.items()} == {
        "many": ((FULL, EMPTY, FULL), NOW_MS, LATER_MS),
        "absent": ((), NOW_MS, LATER_MS),
        "a": ((FULL,), NOW_MS, LATER_MS),
    }
    assert [type(value) for value in found["a"].rows[0]] == [type(value) for value in FULL]


def test_an_entry_is_served_until_its_moment_and_not_in_it(tier: Tier) -> None:
    tier.store({"a": entry(FULL)})
    assert held(tier, "a", now_ms=LATER_MS - 1) == ["a"]
    assert held(tier, "a", now_ms=LATER_MS) == []


def test_the_later_entry_of_a_key_holds(tier: Tier) -> None:
    tier.store({"a": entry(FULL)})
    tier.store({"a": entry(EMPTY, expires_ms=LATER_MS + 1)})
    assert tier.fresh(["a"], NOW_MS)["a"].rows == (EMPTY,)
    assert held(tier, "a", now_ms=LATER_MS) == ["a"]


@pytest.mark.parametrize(
    ("invalidation", "left"),
    [
        (Invalidation(("a", "unknown")), ["ab", "b"]),
        (Invalidation(prefix="a"), ["b"]),
        (Invalidation(prefix=""), []),
        (Invalidation(("b",), "ab"), ["a"]),
        (Invalidation(()), ["a", "ab", "b"]),
        (Invalidation(), []),
    ],
)
def test_what_is_named_is_forgotten_and_nothing_else(tier: Tier, invalidation: Invalidation, left: list[Key]) -> None:
    tier.store({key: entry(FULL) for key in ("a", "ab", "b")})
    gone = tier.forget(invalidation)
    assert held(tier, "a", "ab", "b") == left
    assert gone == 3 - len(left) or invalidation.is_whole
    tier.store({"a": entry(FULL)})
    assert "a" in held(tier, "a")


@pytest.mark.parametrize(
    ("key", "equal", "other"),
    [
        (Decimal("1.50"), Decimal("1.5"), Decimal("1.51")),
        (7, 7, 70),
        (("eu", 1), ("eu", 1), ("e", "u1")),
        (date(2026, 1, 2), date(2026, 1, 2), date(2026, 1, 3)),
        (b"\xff", b"\xff", b"ff"),
        ("*?[a]\\", "*?[a]\\", "xya\\"),
    ],
)
def test_keys_of_all_types(tier: Tier, key: Key, equal: Key, other: Key) -> None:
    tier.store({key: entry(FULL)})
    assert held(tier, equal, other) == [equal]
    tier.forget(Invalidation((equal,)))
    assert held(tier, key) == []


def test_thousands_of_keys_at_once(tier: Tier) -> None:
    keys = [f"k{number}" for number in range(5_000)]
    tier.store({key: entry((key, *EMPTY[1:])) for key in keys})
    assert {key: got.rows[0][0] for key, got in tier.fresh(keys, NOW_MS).items()} == {key: key for key in keys}
    assert tier.forget(Invalidation(tuple(keys[:4_000]))) == 4_000
    assert held(tier, *keys) == keys[4_000:]
