"""HYBRID_HASH_CACHE over a real Redis: workers share it, and survive without it."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cold.key_locks import LOCK_MS
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.hybrid import Hybrid
from dovetail.dictionaries.wall_clock import wall_clock_ms
from tests.dictionaries.cache_world import NOW_MS, TTL_MS, FakeSource, definition, names, settle
from tests.servers import redis_server
from tests.servers.proxy import proxy

pytestmark = pytest.mark.services
Worker = Callable[..., Hybrid]


@pytest.fixture
def worker(redis_url: str, client: redis.Redis, source: FakeSource) -> Iterator[Worker]:
    workers: list[Hybrid] = []

    def open_worker(clock: Callable[[], int] = lambda: NOW_MS, url: str = "", **given: Any) -> Hybrid:
        made = definition(**({"timeout_ms": 2000.0, "redis_timeout_ms": 1000.0} | given))
        workers.append(Hybrid(made, source, url or redis_url, clock))
        settle(lambda: bool(workers[-1].statistics()["is_listening"]) or bool(url))
        return workers[-1]

    yield open_worker
    for opened in workers:
        opened.close()


def all_names(client: redis.Redis) -> list[bytes]:
    found: list[bytes] = list(client.scan_iter())
    return found


def entries(client: redis.Redis) -> list[bytes]:
    return [name for name in all_names(client) if b":e" in name]


def test_what_one_worker_fetched_another_reads(worker: Worker, source: FakeSource) -> None:
    one, other = worker(), worker()
    assert names(one.lookup(["a", "b", "x"], NOW_MS)) == ["pen", "ink", None]
    assert names(other.lookup(["x", "a", "b"], NOW_MS + 1)) == [None, "pen", "ink"]
    assert source.fetched == [["a", "b", "x"]]
    assert other.statistics()["cold_hits"] == 3


def test_the_ttl_counts_from_the_fetch_in_both_tiers(worker: Worker, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.lookup(["a"], NOW_MS)
    other.lookup(["a"], NOW_MS + TTL_MS - 1)
    source.put(a="quill")
    assert names(other.lookup(["a"], NOW_MS + TTL_MS)) == ["quill"]
    assert names(one.lookup(["a"], NOW_MS + TTL_MS)) == ["quill"]
    assert len(source.fetched) == 2


def test_entries_leave_redis_by_themselves_and_no_lock_stays(worker: Worker, client: redis.Redis) -> None:
    worker().lookup(["a", "x"], NOW_MS)
    found = entries(client)
    assert len(found) == 2
    assert all(0 < client.pttl(name) <= TTL_MS for name in found)


def test_workers_that_miss_the_same_keys_at_once_ask_once(worker: Worker, source: FakeSource) -> None:
    workers = [worker(hot_keys=2000) for _ in range(3)]
    keys = [f"k{number}" for number in range(700)]
    source.put(**{key: key for key in keys})
    source.before = lambda keys: time.sleep(0.05)
    all_in = threading.Barrier(3)

    def ask(opened: Hybrid) -> list[str | None]:
        all_in.wait()
        return names(opened.lookup(keys, NOW_MS))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, workers)) == [keys] * 3
    assert sorted(source.fetched_keys) == sorted(keys)


@pytest.mark.parametrize("forgotten", [{"keys": ["a"]}, {"prefix": "a"}, {}])
def test_an_invalidation_reaches_the_other_workers(
    worker: Worker, source: FakeSource, forgotten: dict[str, Any]
) -> None:
    one, other = worker(), worker()
    one.lookup(["a", "b"], NOW_MS)
    other.lookup(["a", "b"], NOW_MS)
    source.put(a="quill")
    started_s = time.monotonic()
    assert one.invalidate(**forgotten, token="r1") >= 1
    settle(lambda: names(other.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"])
    assert time.monotonic() - started_s < 1
    assert names(one.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
    statements = len(source.fetched)
    # The same refresh, executed by the other worker too, changes nothing more.
    assert other.invalidate(**forgotten, token="r1") == 0
    assert one.invalidate(**forgotten, token="r1") == 0
    third = worker()
    third.invalidate(**forgotten, token="r1")
    assert names(third.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
    assert len(source.fetched) == statements


@pytest.mark.parametrize("forgotten", [{"keys": ["a"]}, {"prefix": "a"}, {}])
def test_a_worker_does_not_store_what_it_fetched_before_another_invalidated(
    worker: Worker, source: FakeSource, forgotten: dict[str, Any]
) -> None:
    one, other, third = worker(), worker(), worker()

    def changed_meanwhile(keys: Sequence[Key]) -> None:
        source.before = lambda keys: None
        source.put(a="quill")
        other.invalidate(**forgotten)

    source.before = changed_meanwhile
    assert names(one.lookup(["a"], NOW_MS)) == ["pen"]
    assert names(third.lookup(["a"], NOW_MS)) == ["quill"]
    settle(lambda: names(one.lookup(["a"], NOW_MS)) == ["quill"])


def test_a_listener_whose_connection_was_cut_trusts_nothing(
    worker: Worker, client: redis.Redis, source: FakeSource
) -> None:
    one, other = worker(), worker()
    other.lookup(["a"], NOW_MS)
    for connection in client.client_list(_type="pubsub"):
        client.client_kill_filter(_id=connection["id"])
    source.put(a="quill")
    one.invalidate(["a"])
    settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])
    assert other.statistics()["dropped_untrusted"] >= 1


def test_absence_is_not_renewed_by_whoever_reads_it_in_redis(worker: Worker, source: FakeSource) -> None:
    given: dict[str, Any] = {"refresh_ahead": 0.5, "negative_ttl": 10.0}
    for _ in range(3):
        opened = worker(**given)
        assert opened.lookup(["x"], NOW_MS) == [()]
        opened._renewal._renew(["x"])  # noqa: SLF001
    assert source.fetched == [["x"]]


@pytest.mark.parametrize("skew_ms", [-120_000, 120_000, -TTL_MS // 2, 300_000])
def test_workers_whose_clocks_differ_agree_on_when_an_entry_ends(
    redis_url: str, client: redis.Redis, source: FakeSource, skew_ms: int
) -> None:
    """The fetcher's clock is wrong, the reader's right; then the other way round."""
    source.before = lambda keys: None
    for fetching_ms, reading_ms in ((skew_ms, 0), (0, skew_ms)):
        client.flushall()
        source.fetched.clear()
        started_ms = wall_clock_ms()
        with (
            closing(skewed(redis_url, source, fetching_ms)) as fetcher,
            closing(skewed(redis_url, source, reading_ms)) as reader,
        ):
            fetcher.lookup(["a"], started_ms + fetching_ms)
            assert names(reader.lookup(["a"], started_ms + reading_ms + TTL_MS - 2000)) == ["pen"]
            assert len(source.fetched) == 1
            reader.lookup(["a"], started_ms + reading_ms + TTL_MS + 2000)
            assert len(source.fetched) == 2


def skewed(redis_url: str, source: FakeSource, by_ms: int) -> Hybrid:
    def clock() -> int:
        return wall_clock_ms() + by_ms

    return Hybrid(definition(timeout_ms=2000.0, redis_timeout_ms=1000.0), source, redis_url, clock, clock)


@pytest.mark.parametrize("who", ["the process", "redis"])
def test_a_stall_is_no_reason_to_forget(tmp_path: Path, source: FakeSource, who: str) -> None:
    with redis_server(tmp_path) as server:
        url = f"redis://{server.host}:{server.port}/0"
        with closing(Hybrid(definition(), source, url)) as one, closing(Hybrid(definition(), source, url)) as other:
            settle(lambda: bool(one.statistics()["is_listening"]))
            assert names(one.lookup(["a"], NOW_MS)) == ["pen"]
            before = one.statistics()["dropped_untrusted"]
            if who == "redis":
                server.pause()
                time.sleep(1.5)
                server.resume()
            else:
                # Called so, it keeps the interpreter to itself: no thread of this process runs meanwhile.
                ctypes.PyDLL(None).usleep(1_500_000)
            time.sleep(0.5)
            assert (one.statistics()["is_listening"], one.statistics()["dropped_untrusted"]) == (True, before)
            source.put(a="quill")
            other.invalidate(["a"])
            settle(lambda: names(one.lookup(["a"], NOW_MS)) == ["quill"])


def test_without_a_listener_the_hot_tier_holds_for_a_second_only(worker: Worker, source: FakeSource) -> None:
    alone = worker(url="redis://127.0.0.1:1/0")
    assert names(alone.lookup(["a"], NOW_MS)) == ["pen"]
    source.put(a="quill")
    assert names(alone.lookup(["a"], NOW_MS + 999)) == ["pen"]
    assert names(alone.lookup(["a"], NOW_MS + 1000)) == ["quill"]
    assert alone.statistics()["redis_errors"] > 0


def test_flushed_and_evicted_entries_are_misses(worker: Worker, client: redis.Redis, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.lookup(["a", "b"], NOW_MS)
    client.delete(*entries(client)[:1])
    assert names(other.lookup(["a", "b"], NOW_MS)) == ["pen", "ink"]
    assert [len(keys) for keys in source.fetched] == [2, 1]
    client.flushall()
    assert names(worker().lookup(["a", "b"], NOW_MS)) == ["pen", "ink"]


def test_an_entry_from_before_the_version_was_lost_is_not_found_again(
    worker: Worker, client: redis.Redis, source: FakeSource
) -> None:
    worker().lookup(["a"], NOW_MS)
    client.delete(*[name for name in all_names(client) if name.endswith(b":v")])
    source.put(a="quill")
    assert names(worker().lookup(["a"], NOW_MS)) == ["quill"]


def test_a_missed_whole_refresh_is_noticed_by_the_next_read(
    worker: Worker, client: redis.Redis, source: FakeSource
) -> None:
    one = worker()
    one.lookup(["a"], NOW_MS)
    [version] = [name for name in all_names(client) if name.endswith(b":v")]
    client.set(version, "another")
    source.put(a="quill")
    assert names(one.lookup(["b"], NOW_MS)) == ["ink"]
    assert names(one.lookup(["a"], NOW_MS)) == ["quill"]


def test_garbage_in_redis_is_a_miss_and_is_replaced(worker: Worker, client: redis.Redis, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.lookup(["a"], NOW_MS)
    [name] = entries(client)
    client.set(name, b"[99999999999999,garbage")
    assert names(other.lookup(["a"], NOW_MS)) == ["pen"]
    assert len(source.fetched) == 2


def test_a_worker_that_died_with_its_locks_holds_others_up_for_a_while_only(worker: Worker, source: FakeSource) -> None:
    dead, other = worker(), worker(timeout_ms=10_000.0)
    assert dead._cold is not None  # noqa: SLF001
    assert dead._cold.locks.claim(["a"], NOW_MS).mine == ["a"]  # noqa: SLF001
    started_s = time.monotonic()
    assert names(other.lookup(["a", "b"], NOW_MS)) == ["pen", "ink"]
    assert 1 < time.monotonic() - started_s < 6
    assert source.fetched == [["b"], ["a"]]


def test_a_slow_source_is_not_asked_again_by_those_who_wait(worker: Worker, source: FakeSource) -> None:
    """However slow: the statement takes longer than a lock lives that nobody keeps."""
    workers = [worker(timeout_ms=30_000.0) for _ in range(2)]
    source.before = lambda keys: time.sleep(LOCK_MS / 1000 + 0.5)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda opened: names(opened.lookup(["a", "b"], NOW_MS)), workers))
    assert answers == [["pen", "ink"]] * 2
    assert source.fetched == [["a", "b"]]


def test_long_values_leave_no_lock_and_are_not_stored(worker: Worker, client: redis.Redis, source: FakeSource) -> None:
    one, other = worker(max_value_bytes=60), worker(max_value_bytes=60)
    source.put(a="x" * 100)
    assert names(one.lookup(["a"], NOW_MS)) == ["x" * 100]
    assert entries(client) == []
    assert names(other.lookup(["a"], NOW_MS)) == ["x" * 100]


def test_stale_entries_of_redis_help_when_the_source_is_down(worker: Worker, source: FakeSource) -> None:
    given: dict[str, Any] = {"on_error": "stale", "max_stale": 30.0, "timeout_ms": 50.0}
    one, other = worker(**given), worker(**given)
    one.lookup(["a"], NOW_MS)
    source.is_down = True
    assert names(other.lookup(["a"], NOW_MS + TTL_MS + 29_999)) == ["pen"]


def test_one_worker_renews_for_all(worker: Worker, source: FakeSource) -> None:
    later_ms = NOW_MS + int(TTL_MS * 0.95)
    one, other = (worker(clock=lambda: later_ms, refresh_ahead=0.1) for _ in range(2))
    one.lookup(["a"], NOW_MS)
    other.lookup(["a"], NOW_MS)
    source.put(a="quill")
    for opened in (one, other):
        opened.lookup(["a"], later_ms)
        settle(lambda opened=opened: names(opened.lookup(["a"], later_ms)) == ["quill"])  # type: ignore[misc]
    assert len(source.fetched) == 2


def test_a_feed_of_changes_reaches_all_workers(worker: Worker, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.begin_feed("t", {0: 0})
    other.lookup(["a"], NOW_MS)
    one.apply_feed("t", 0, SourceChanges(0, 1, 1, {"a": Change(0, (("a", "quill"),))}), NOW_MS)
    settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])
    assert len(source.fetched) == 1


def test_dictionaries_and_their_definitions_do_not_share_entries(
    worker: Worker, redis_url: str, source: FakeSource
) -> None:
    worker().lookup(["a"], NOW_MS)
    changed = Hybrid(definition(source={"table": "other"}), source, redis_url)
    changed.lookup(["a"], NOW_MS)
    changed.close()
    assert len(source.fetched) == 2


def test_redis_is_killed_and_comes_back(tmp_path: Path, source: FakeSource) -> None:
    with redis_server(tmp_path) as server:
        url = f"redis://{server.host}:{server.port}/0"
        hybrid = Hybrid(definition(timeout_ms=2000.0), source, url)
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
        source.put(a="quill")
        server.kill()
        settle(lambda: not hybrid.statistics()["is_listening"])
        started_s = time.monotonic()
        assert names(hybrid.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
        for at in range(50):
            assert hybrid.lookup([f"k{at}"], NOW_MS) == [()]
        assert time.monotonic() - started_s < 3
        with pytest.raises(ServiceUnavailable):
            hybrid.invalidate(["a"])
        server.start()
        settle(lambda: bool(hybrid.statistics()["is_listening"]))
        with redis.Redis.from_url(url) as client:

            def is_stored() -> bool:
                with suppress(ServiceUnavailable):
                    hybrid.invalidate(["c"])
                assert names(hybrid.lookup(["c"], NOW_MS)) == ["cap"]
                return len(entries(client)) == 1

            settle(is_stored)
        hybrid.close()


def test_an_invalidation_that_redis_missed_is_done_before_redis_is_used_again(
    redis_url: str, client: redis.Redis, source: FakeSource
) -> None:
    port = int(redis_url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
    with proxy("127.0.0.1", port) as between:
        cut_off = Hybrid(definition(timeout_ms=2000.0), source, f"redis://127.0.0.1:{between.port}/0")
        assert names(cut_off.lookup(["a"], NOW_MS)) == ["pen"]
        between.close()
        source.put(a="quill")
        with pytest.raises(ServiceUnavailable):
            cut_off.invalidate(["a"], token="r1")
        between.open()
        settle(lambda: bool(cut_off.statistics()["is_listening"]))
        assert names(cut_off.lookup(["a"], NOW_MS)) == ["quill"]
        # It was not done, so it may be repeated under its name.
        source.put(a="nib")
        settle(lambda: is_done(cut_off))
        assert names(cut_off.lookup(["a"], NOW_MS)) == ["nib"]
        cut_off.close()


def is_done(hybrid: Hybrid) -> bool:
    try:
        return hybrid.invalidate(["a"], token="r2") > 0
    except ServiceUnavailable:
        return False


def test_a_redis_that_hangs_does_not_eat_the_budget_of_every_batch(
    redis_url: str, client: redis.Redis, source: FakeSource
) -> None:
    port = int(redis_url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
    with proxy("127.0.0.1", port, latency_s=30) as between:
        hybrid = Hybrid(definition(redis_timeout_ms=200.0), source, f"redis://127.0.0.1:{between.port}/0")
        started_s = time.monotonic()
        for at in range(30):
            assert hybrid.lookup([f"k{at}"], NOW_MS) == [()]
        assert time.monotonic() - started_s < 4
        hybrid.close()


def test_keys_that_others_ask_for_are_not_renewed(worker: Worker, source: FakeSource) -> None:
    hybrid = worker()
    flights = hybrid._flights  # noqa: SLF001
    flight = flights.open(["a"], NOW_MS)
    with flights.flying(flight):
        flights.lead(flight, ["a"])
        hybrid._renewal._renew(["a"])  # noqa: SLF001
    assert source.fetched == []
