"""The hot tier: bounded, exact about time, and not washed out by a scan."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.hot.hot_tier import ENTRY_BYTES, HotTier
from dovetail.dictionaries.cache.hot.scan_resistant_fifo import ScanResistantFifo
from tests.tries import tries

KEYS = st.lists(st.integers(0, 30), unique=True, max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), KEYS, st.integers(1, 40)),
        st.tuples(st.just("lookup"), KEYS, st.integers(0, 15)),
        st.tuples(st.just("drop"), KEYS, st.just(0)),
        st.tuples(st.just("clear"), st.just([]), st.just(0)),
    ),
    max_size=60,
)


def entry(key: object, fetched_ms: int = 0, expires_ms: int = 1000, size: int = 10) -> CacheEntry:
    return CacheEntry(((key, fetched_ms),), fetched_ms, expires_ms, size)


@given(STEPS, st.integers(1, 20), st.sampled_from([0, 5]), st.sampled_from([0.0, 0.3]))
@settings(max_examples=tries(150))
def test_it_answers_like_a_dict_that_may_forget(
    steps: list[tuple[str, list[int], int]], room: int, keep_ms: int, ahead: float
) -> None:
    hot = HotTier(room, 10**9, keep_ms, ahead)
    model: dict[int, CacheEntry] = {}
    now_ms = 0
    for action, keys, number in steps:
        if action == "store":
            entries = {key: entry(key, now_ms, now_ms + number) for key in keys}
            hot.store(entries)
            model |= entries
        elif action == "drop":
            hot.drop(keys)
            model = {key: held for key, held in model.items() if key not in keys}
        elif action == "clear":
            hot.drop()
            model = {}
        else:
            now_ms += number
            for key, rows in zip(keys, hot.lookup(keys, now_ms), strict=True):
                expected = model[key].rows if key in model and model[key].expires_ms > now_ms else None
                assert rows in (None, expected)
        assert len(hot) <= room
        held = hot.kept(range(31))
        assert len(held) == len(hot)
        assert all(model[key] == kept for key, kept in held.items())
        assert hot.bytes == sum(ENTRY_BYTES + kept.size for kept in held.values())


@given(st.lists(st.tuples(KEYS, KEYS), max_size=40), st.integers(1, 15))
def test_the_queues_hold_what_was_let_in_and_has_not_left(
    batches: list[tuple[list[int], list[int]]], room: int
) -> None:
    fifo = ScanResistantFifo(room)
    inside: set[int] = set()
    for keys, requested in batches:
        new = [key for key in keys if key not in inside]
        entered, left = fifo.admit(new)
        assert len(left) == len(set(left))
        assert set(entered) <= set(new)
        inside = (inside | set(entered)) - set(left)
        assert {key for key in range(31) if key in fifo} == inside
        assert len(fifo) == len(inside) <= room
        fifo.visited.update(inside.intersection(requested))


def test_an_entry_is_served_until_its_moment_and_not_in_it() -> None:
    hot = HotTier(10, 10**9)
    hot.store({"a": entry("a", 0, 100)})
    assert hot.lookup(["a"], 99) == [(("a", 0),)]
    assert hot.lookup(["a"], 100) == [None]
    assert len(hot) == 0


def test_known_to_be_absent_is_an_answer() -> None:
    hot = HotTier(10, 10**9)
    hot.store({"a": CacheEntry((), 0, 100, 10)})
    assert hot.lookup(["a", "b"], 1) == [(), None]


def test_an_expired_entry_is_kept_beside_for_a_while() -> None:
    hot = HotTier(10, 10**9, keep_ms=50)
    hot.store({"a": entry("a", 0, 100)})
    assert hot.lookup(["a"], 120) == [None]
    assert list(hot.kept(["a"])) == ["a"]
    assert hot.lookup(["a"], 150) == [None]
    assert hot.kept(["a"]) == {}


def test_what_is_asked_for_near_its_expiry_is_told_once() -> None:
    hot = HotTier(10, 10**9, ahead=0.2)
    hot.store({"a": entry("a", 0, 100), "b": entry("b", 0, 100)})
    hot.lookup(["a"], 79)
    assert hot.soon(["a"]) == []
    assert hot.lookup(["a"], 80) == [(("a", 0),)]
    assert hot.soon(["a"]) == ["a"]
    assert hot.soon(["a"]) == []
    hot.lookup(["b"], 100)
    assert hot.soon(["b"]) == [] or hot.lookup(["b"], 100) == [None]


def test_memory_is_bounded_too() -> None:
    hot = HotTier(1000, 10 * (ENTRY_BYTES + 1000))
    hot.store({key: entry(key, size=1000) for key in range(100)})
    assert 0 < len(hot) <= 10


def test_a_prefix_is_of_the_text_of_the_key() -> None:
    hot = HotTier(10, 10**9)
    hot.store({key: entry(key) for key in [("eu", 1), ("eu", 2), ("us", 1)]})
    assert hot.drop(prefix="eu,1") == 1
    assert hot.drop(prefix="eu") == 1
    assert len(hot) == 1


def test_a_limit_shortens_the_life_of_entries() -> None:
    hot = HotTier(10, 10**9)
    hot.store({"a": entry("a", 0, 1000)}, until_ms=30)
    assert hot.lookup(["a"], 30) == [None]


def test_churn_leaves_no_timers_behind() -> None:
    hot = HotTier(10, 10**9)
    for key in range(20_000):
        hot.store({key: entry(key, 0, 10_000 + key)})
    assert hot._timers.count < 2_000  # noqa: SLF001


def test_a_scan_does_not_wash_out_what_is_asked_for_again_and_again() -> None:
    hot = HotTier(100, 10**9)
    favourites = list(range(80))
    for _ in range(3):
        for at in range(0, 80, 10):
            keys = favourites[at : at + 10]
            hot.store({key: entry(key) for key, rows in zip(keys, hot.lookup(keys, 0), strict=True) if rows is None})
    once = random.Random(1).sample(range(1000, 100_000), 5_000)
    hits = 0
    for at in range(0, 5_000, 50):
        batch = once[at : at + 50] + favourites
        found = hot.lookup(batch, 0)
        hits += sum(rows is not None for rows in found[50:])
        hot.store({key: entry(key) for key, rows in zip(batch, found, strict=True) if rows is None})
    assert hits / (100 * 80) > 0.95
