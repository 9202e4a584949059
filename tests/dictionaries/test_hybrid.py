"""HYBRID_HASH_CACHE without Redis: time, failures, single flight, and invalidations that race with fetches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dovetail.changelog.errors import RecordRejected, ServiceUnavailable, SqlError
from dovetail.changelog.lookup import Key, LookupRejected
from dovetail.dictionaries.cache.cache_settings import FOR_EVER_MS, read_settings
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.cache import Cache
from dovetail.dictionaries.layouts.hybrid import Hybrid
from tests.dictionaries.cache_world import NOW_MS, TTL_MS, FakeSource, definition, names, settle

Open = Callable[..., Hybrid]


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(a="pen", b="ink", c="cap")
    return source


@pytest.fixture(params=["memory", "file"])
def opened(source: FakeSource, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """In memory alone, and with a cold tier in a file."""
    layouts: list[Hybrid] = []
    local_dir = tmp_path if request.param == "file" else None

    def open_hybrid(clock: Callable[[], int] = lambda: NOW_MS, **given: Any) -> Hybrid:
        layouts.append(Hybrid(definition(**given), source, None, clock, local_dir=local_dir))
        return layouts[-1]

    yield open_hybrid
    for layout in layouts:
        layout.close()


def test_a_key_is_asked_for_once_until_its_ttl(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    assert names(hybrid.lookup(["a", "b"], NOW_MS)) == ["pen", "ink"]
    source.put(a="quill")
    assert names(hybrid.lookup(["b", "a"], NOW_MS + TTL_MS - 1)) == ["ink", "pen"]
    assert source.fetched == [["a", "b"]]
    assert names(hybrid.lookup(["a"], NOW_MS + TTL_MS)) == ["quill"]


def test_absence_has_its_own_ttl(opened: Open, source: FakeSource) -> None:
    hybrid = opened(negative_ttl=5.0)
    assert hybrid.lookup(["x"], NOW_MS) == [()]
    source.put(x="axe")
    assert hybrid.lookup(["x"], NOW_MS + 4_999) == [()]
    assert names(hybrid.lookup(["x"], NOW_MS + 5_000)) == ["axe"]
    assert hybrid.statistics()["negative_stored"] == 1


def test_absence_is_not_cached_with_a_ttl_of_zero(opened: Open, source: FakeSource) -> None:
    hybrid = opened(negative_ttl=0.0)
    hybrid.lookup(["x"], NOW_MS)
    hybrid.lookup(["x"], NOW_MS)
    assert len(source.fetched) == 2


def test_jitter_makes_a_life_shorter_and_never_longer(opened: Open, source: FakeSource) -> None:
    hybrid = opened(ttl_jitter=0.5, hot_keys=1000)
    for key in map(str, range(200)):
        source.put(**{key: key})
        hybrid.lookup([key], NOW_MS)
    held = [entry.expires_ms - NOW_MS for entry in hybrid._hot.kept(list(map(str, range(200)))).values()]  # noqa: SLF001
    assert TTL_MS / 2 <= min(held) < TTL_MS * 0.6
    assert TTL_MS * 0.9 < max(held) <= TTL_MS


def test_who_waited_for_a_key_that_was_left_out_asks_for_it(opened: Open) -> None:
    hybrid = opened()
    flights = hybrid._flights  # noqa: SLF001
    flight = flights.open(["a"], NOW_MS)
    with ThreadPoolExecutor(1) as pool:
        with flights.flying(flight):
            flights.lead(flight, ["a"])
            answered = pool.submit(hybrid.lookup, ["a"], NOW_MS)
            settle(lambda: hybrid.statistics()["coalesced"] == 1)
            assert not answered.done()
        assert names(answered.result(5)) == ["pen"]


def test_who_waits_for_another_gets_its_answers_and_no_error_of_its(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    fetched, go_on = threading.Event(), threading.Event()

    def unfit(keys: Sequence[Key]) -> None:
        fetched.set()
        go_on.wait()
        if "b" in keys:
            raise RecordRejected("a value of b does not fit")

    source.before = unfit
    with ThreadPoolExecutor(2) as pool:
        failing = pool.submit(hybrid.lookup, ["a", "b"], NOW_MS)
        fetched.wait()
        waiting = pool.submit(hybrid.lookup, ["a"], NOW_MS)
        settle(lambda: hybrid.statistics()["coalesced"] == 1)
        go_on.set()
        assert isinstance(failing.exception(5), RecordRejected)
        assert names(waiting.result(5)) == ["pen"]


def test_what_was_spoiled_is_given_to_nobody_who_comes_later(opened: Open) -> None:
    hybrid = opened()
    flights = hybrid._flights  # noqa: SLF001
    flight = flights.open(["a"], NOW_MS)
    with flights.flying(flight):
        hybrid.invalidate(["a"])
        assert flights.lead(flight, ["a"]) == {}
        flight.answers["a"] = (("a", "old"),)
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]


def test_a_thousand_keys_make_a_statement_and_more_are_shared_out_evenly(opened: Open, source: FakeSource) -> None:
    hybrid = opened(hot_keys=5000)
    hybrid.lookup(list(map(str, range(2401))), NOW_MS)
    assert sorted(map(len, source.fetched)) == [799, 801, 801]
    assert hybrid.statistics()["source_statements"] == 3


def test_a_failing_statement_is_repeated(opened: Open, source: FakeSource) -> None:
    hybrid = opened(timeout_ms=5000.0)
    source.is_down = True
    threading.Timer(0.1, lambda: setattr(source, "is_down", False)).start()
    assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
    assert hybrid.statistics()["source_errors"] > 0


def test_stop_raises_and_loses_nothing(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    source.is_down = True
    with pytest.raises(ServiceUnavailable):
        hybrid.lookup(["a"], NOW_MS)
    assert hybrid.statistics()["status"] == "FAILED"


def test_null_counts_as_absent_and_is_not_cached(opened: Open, source: FakeSource) -> None:
    hybrid = opened(on_error="null")
    source.is_down = True
    assert hybrid.lookup(["a"], NOW_MS) == [()]
    source.is_down = False
    settle(lambda: names(hybrid.lookup(["a"], NOW_MS)) == ["pen"])


def test_dead_letter_rejects(opened: Open, source: FakeSource) -> None:
    hybrid = opened(on_error="dead_letter")
    source.is_down = True
    with pytest.raises(LookupRejected):
        hybrid.lookup(["a"], NOW_MS)


def test_stale_is_served_up_to_its_ceiling(opened: Open, source: FakeSource) -> None:
    hybrid = opened(on_error="stale", max_stale=30.0)
    hybrid.lookup(["a"], NOW_MS)
    source.is_down = True
    ceiling_ms = NOW_MS + TTL_MS + 30_000
    assert names(hybrid.lookup(["a"], ceiling_ms - 1)) == ["pen"]
    assert hybrid.statistics()["stale_served"] == 1
    with pytest.raises(ServiceUnavailable):
        hybrid.lookup(["a"], ceiling_ms)
    with pytest.raises(ServiceUnavailable):
        hybrid.lookup(["b"], ceiling_ms - 1)


def test_a_source_that_is_down_is_left_alone_for_a_while(opened: Open, source: FakeSource) -> None:
    hybrid = opened(on_error="null")
    source.is_down = True
    hybrid.lookup(["a"], NOW_MS)
    statements = len(source.fetched)
    for _ in range(20):
        hybrid.lookup(["a"], NOW_MS)
    assert len(source.fetched) == statements


def test_an_expired_entry_is_served_while_it_is_renewed(opened: Open, source: FakeSource) -> None:
    later_ms = NOW_MS + TTL_MS + 5_000
    hybrid = opened(clock=lambda: later_ms, stale_while_revalidate=10.0)
    hybrid.lookup(["a"], NOW_MS)
    source.put(a="quill")
    assert names(hybrid.lookup(["a"], later_ms)) == ["pen"]
    settle(lambda: names(hybrid.lookup(["a"], later_ms)) == ["quill"])
    assert hybrid.statistics()["refreshed"] == 1


def test_an_entry_that_is_asked_for_is_renewed_before_it_expires(opened: Open, source: FakeSource) -> None:
    later_ms = NOW_MS + int(TTL_MS * 0.95)
    hybrid = opened(clock=lambda: later_ms, refresh_ahead=0.1)
    hybrid.lookup(["a", "b"], NOW_MS)
    source.put(a="quill")
    assert names(hybrid.lookup(["a"], NOW_MS + int(TTL_MS * 0.89))) == ["pen"]
    assert names(hybrid.lookup(["a"], later_ms)) == ["pen"]
    settle(lambda: names(hybrid.lookup(["a"], later_ms)) == ["quill"])
    assert source.fetched == [["a", "b"], ["a"]]


def test_a_long_value_is_served_and_not_cached(opened: Open, source: FakeSource) -> None:
    hybrid = opened(max_value_bytes=100)
    source.put(a="x" * 200)
    for _ in range(2):
        assert names(hybrid.lookup(["a", "b"], NOW_MS)) == ["x" * 200, "ink"]
    assert source.fetched == [["a", "b"], ["a"]]
    assert hybrid.statistics()["oversize"] == 2


def test_invalidation_by_key_prefix_and_whole(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    hybrid.lookup(["a", "b", "c", "x"], NOW_MS)
    source.fetched.clear()
    assert hybrid.invalidate(["a", "zzz"]) == 1
    assert hybrid.invalidate(prefix="b") == 1
    hybrid.lookup(["a", "b", "c", "x"], NOW_MS)
    assert source.fetched == [["a", "b"]]
    assert hybrid.invalidate() == 4


def test_a_refresh_is_executed_once(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    hybrid.lookup(["a"], NOW_MS)
    assert hybrid.invalidate(token="r1") == 1
    hybrid.lookup(["a"], NOW_MS)
    assert hybrid.invalidate(token="r1") == 0
    hybrid.lookup(["a"], NOW_MS)
    assert len(source.fetched) == 2
    assert hybrid.invalidate(token="r2") == 1


@pytest.mark.parametrize("invalidated", [{"keys": ["a"]}, {"prefix": "a"}, {}])
def test_what_was_fetched_before_an_invalidation_is_not_stored_after_it(
    opened: Open, source: FakeSource, invalidated: dict[str, Any]
) -> None:
    hybrid = opened()

    def changed_meanwhile(keys: Sequence[Key]) -> None:
        source.before = lambda keys: None
        source.put(a="quill")
        hybrid.invalidate(**invalidated)
        # Asked after the invalidation: must not join the flight that began before it.
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["quill"]

    source.before = changed_meanwhile
    assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
    assert names(hybrid.lookup(["a"], NOW_MS)) == ["quill"]


def test_threads_that_miss_the_same_key_ask_once(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    all_in = threading.Barrier(8)
    source.before = lambda keys: time.sleep(0.1)

    def ask(_: int) -> list[str | None]:
        all_in.wait()
        return names(hybrid.lookup(["a", "b"], NOW_MS))

    with ThreadPoolExecutor(8) as pool:
        assert set(map(tuple, pool.map(ask, range(8)))) == {("pen", "ink")}
    assert sorted(source.fetched_keys) == ["a", "b"]
    assert hybrid.statistics()["coalesced"] + hybrid.statistics()["hot_hits"] == 14


def test_a_feed_of_changes_replaces_entries(opened: Open, source: FakeSource) -> None:
    hybrid = opened()
    hybrid.lookup(["a"], NOW_MS)
    by_key: dict[Key, Change] = {"a": Change(0, (("a", "quill"),)), "b": Change(1, ())}
    hybrid.apply_feed("t", 0, SourceChanges(0, 2, 2, by_key), NOW_MS)
    assert names(hybrid.lookup(["a", "b"], NOW_MS)) == ["quill", None]
    assert len(source.fetched) == 1


def test_figures(opened: Open) -> None:
    hybrid = opened()
    hybrid.lookup(["a", "x"], NOW_MS)
    hybrid.lookup(["a", "x"], NOW_MS + 1000)
    figures = hybrid.statistics()
    assert figures["status"] == "LOADED"
    assert figures["query_count"] == 4
    assert figures["hit_rate"] == 0.5
    assert figures["found_rate"] == 0.5
    assert (figures["element_count"], figures["hot_hits"], figures["misses"]) == (2, 2, 2)
    assert figures["age_max_ms"] == 1000
    assert figures["last_successful_update_time"] == NOW_MS


def test_the_cells_of_cache_live_between_the_bounds_of_lifetime(source: FakeSource) -> None:
    made = definition("cache", lifetime_s=(30, 60), parameters={"size_in_cells": 7})
    read = read_settings(made)
    assert (read.ttl_ms, read.jitter, read.hot_keys) == (60_000, 0.5, 7)
    cache = Cache(made, source, None)
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    cache.close()
    assert read_settings(definition("cache")).ttl_ms == FOR_EVER_MS


@pytest.mark.parametrize("wrong", [{"on_error": "stpo"}, {"refresh_ahead": 1.5}, {"ttl_jitter": -1}])
def test_settings_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SqlError) as refused:
        read_settings(definition(**wrong))
    assert refused.value.fix


def test_absence_is_cached_beside_a_long_refresh_ahead(opened: Open, source: FakeSource) -> None:
    """A tenth of the TTL is longer than absence lives at all: it has a tenth of its own life."""
    hybrid = opened(refresh_ahead=0.5, negative_ttl=10.0)
    for now_ms in range(NOW_MS, NOW_MS + 5_000, 100):
        assert hybrid.lookup(["x"], now_ms) == [()]
    time.sleep(0.05)
    assert (len(source.fetched), hybrid.statistics()["refreshed"]) == (1, 0)


def test_who_waits_for_a_key_does_not_wait_for_all_that_another_asks_for(opened: Open, source: FakeSource) -> None:
    """Two statements: the first is answered, the second hangs."""
    hybrid = opened(hot_keys=5000, max_threads_for_updates=1, timeout_ms=60_000.0)
    keys = [f"k{number}" for number in range(1500)]
    source.put(**{key: key for key in keys})
    is_held, first_in = threading.Event(), threading.Event()

    def hang(fetched: Sequence[Key]) -> None:
        if keys[-1] in fetched:
            first_in.set()
            assert is_held.wait(10)

    source.before = hang
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(hybrid.lookup, keys, NOW_MS)
        assert first_in.wait(10)
        hybrid._hot.drop()  # noqa: SLF001 - so that the flight alone has the answer
        assert names(pool.submit(hybrid.lookup, [keys[0]], NOW_MS).result(5)) == [keys[0]]
        assert not whole.done()
        is_held.set()
        assert names(whole.result(10)) == keys
    assert sorted(source.fetched_keys) == sorted(keys)
