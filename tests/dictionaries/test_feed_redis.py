"""A feed over a real Redis: who changes it, in which order, and what becomes of entries that nobody has kept fresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.hybrid import Hybrid
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle
from tests.dictionaries.test_feed import changed
from tests.servers.proxy import proxy

pytestmark = pytest.mark.services
FEED = "t/1"
Worker = Callable[..., Hybrid]


@pytest.fixture
def worker(redis_url: str, client: redis.Redis, source: FakeSource) -> Iterator[Worker]:
    workers: list[Hybrid] = []

    def open_worker(url: str = "") -> Hybrid:
        made = definition(timeout_ms=2000.0, redis_timeout_ms=1000.0, hot_keys=5_000)
        workers.append(Hybrid(made, source, url or redis_url, lambda: NOW_MS))
        settle(lambda: bool(workers[-1].statistics()["is_listening"]))
        return workers[-1]

    yield open_worker
    for opened in workers:
        opened.close()


def test_a_feed_goes_on_where_the_entries_end(worker: Worker) -> None:
    one = worker()
    assert one.feed_positions(FEED) == {}
    one.begin_feed(FEED, {0: 10, 1: 0})
    one.apply_feed(FEED, 0, changed("a", "b", start=10), NOW_MS)
    assert worker().feed_positions(FEED) == {0: 12, 1: 0}
    assert worker().feed_positions("t/2") == {}


def test_what_is_not_known_to_be_fresh_is_forgotten(worker: Worker, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.lookup(["a"], NOW_MS)
    other.lookup(["a"], NOW_MS)
    source.put(a="quill")
    one.begin_feed(FEED, {0: 5})
    assert names(one.lookup(["a"], NOW_MS)) == ["quill"]
    settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])


def test_every_worker_sees_a_row_that_one_has_stored(worker: Worker, source: FakeSource) -> None:
    one, other = worker(), worker()
    one.begin_feed(FEED, {0: 0})
    other.feed_positions(FEED)
    other.lookup(["a", "b", "c"], NOW_MS)
    one.apply_feed(FEED, 0, changed(a="quill", b="blot"), NOW_MS)
    settle(lambda: names(other.lookup(["a", "b", "c"], NOW_MS)) == ["quill", "blot", "cap"])
    assert len(source.fetched) == 1


def test_a_worker_that_is_behind_puts_no_older_row_in(worker: Worker) -> None:
    ahead, behind = worker(), worker()
    ahead.begin_feed(FEED, {0: 0})
    assert behind.feed_positions(FEED) == {0: 0}
    ahead.apply_feed(FEED, 0, changed(a="first", b="first"), NOW_MS)
    ahead.apply_feed(FEED, 0, changed(a="second", start=2), NOW_MS)
    behind.apply_feed(FEED, 0, changed(a="first", b="first"), NOW_MS)
    for worker_ in (ahead, behind):
        assert names(worker_.lookup(["a", "b"], NOW_MS)) == ["second", "first"]
    # The part that nobody has done is done.
    behind.apply_feed(FEED, 0, SourceChanges(1, 4, 3, {"a": Change(2, None), "c": Change(3, (("c", "hat"),))}), NOW_MS)
    assert names(ahead.lookup(["c", "a"], NOW_MS)) == ["hat", "second"]


def test_many_changes_go_in_pieces(worker: Worker) -> None:
    one = worker()
    one.begin_feed(FEED, {0: 0})
    keys = [f"k{number}" for number in range(1_750)]
    by_key = {key: Change(at, ((key, key.upper()),)) for at, key in enumerate(keys)}
    one.apply_feed(FEED, 0, SourceChanges(0, len(keys), len(keys), by_key), NOW_MS)
    assert names(one.lookup(keys, NOW_MS)) == [key.upper() for key in keys]
    assert one.feed_positions(FEED) == {0: 1_750}


def test_a_redis_that_was_set_back_is_not_believed(worker: Worker, source: FakeSource, client: redis.Redis) -> None:
    """Restored from a copy, it has entries again that changed since."""
    one = worker()
    one.begin_feed(FEED, {0: 0})
    one.lookup(["a", "b"], NOW_MS)
    copy = {name: client.dump(name) or b"" for name in client.scan_iter()}
    source.put(a="quill")
    one.apply_feed(FEED, 0, changed("a"), NOW_MS)
    client.flushall()
    for name, dumped in copy.items():
        client.restore(name, 0, dumped)
    one.apply_feed(FEED, 0, changed("c", start=1), NOW_MS)
    assert names(one.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
    assert one.feed_positions(FEED) == {0: 2}


def test_what_redis_could_not_be_told_is_done_before_it_is_read(
    worker: Worker, source: FakeSource, redis_url: str
) -> None:
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    with proxy("127.0.0.1", port) as between:
        one = worker(f"redis://127.0.0.1:{between.port}/0")
        one.begin_feed(FEED, {0: 0})
        one.lookup(["a", "b"], NOW_MS)
        between.close()
        source.put(a="quill")
        one.apply_feed(FEED, 0, changed("a"), NOW_MS)
        assert names(one.lookup(["a"], NOW_MS)) == ["quill"]
        between.open()
        settle(lambda: bool(one.statistics()["is_listening"]))
        settle(lambda: one.feed_positions(FEED) == {0: 0})
        assert names(one.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
        assert source.fetched_keys.count("b") == 1
        one.apply_feed(FEED, 0, changed("b", start=1), NOW_MS)
        assert one.feed_positions(FEED) == {0: 2}


def test_a_worker_that_starts_without_redis_believes_no_entry(
    worker: Worker, source: FakeSource, redis_url: str
) -> None:
    worker().lookup(["a"], NOW_MS)
    source.put(a="quill")
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    with proxy("127.0.0.1", port) as between:
        one = worker(f"redis://127.0.0.1:{between.port}/0")
        between.close()
        assert one.feed_positions(FEED) == {}
        one.begin_feed(FEED, {0: 7})
        between.open()
        settle(lambda: bool(one.statistics()["is_listening"]))
        assert names(one.lookup(["a"], NOW_MS)) == ["quill"]
