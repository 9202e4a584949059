"""MUTABLE_CACHE: the rows of a mutable stream, then the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Row
from dovetail.dictionaries.layouts.mutable_cache import MutableCache
from tests.dictionaries.cache_world import NOW_MS, FakeSource, FakeStream, definition, names


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(a="pen", b="ink")
    return source


@pytest.fixture
def stream() -> FakeStream:
    return FakeStream(1, {"b": ("b", "cached ink")})


def opened(source: FakeSource, stream: FakeStream, stores: bool = True, **settings: Any) -> MutableCache:
    made = definition("mutable_cache", parameters={"stream": "s", "update_from_source": stores}, **settings)
    return MutableCache(made, source, stream)


def test_the_stream_wins_and_misses_are_stored(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream)
    assert names(cache.lookup(["a", "b", "x"], NOW_MS)) == ["pen", "cached ink", None]
    assert stream.rows == {"a": ("a", "pen"), "b": ("b", "cached ink")}
    source.put(a="quill")
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert source.fetched == [["a", "x"]]
    figures = cache.statistics()
    assert (figures["cold_hits"], figures["misses"], figures["query_count"]) == (2, 2, 4)


def test_without_update_from_source_a_miss_is_answered_and_not_stored(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream, stores=False)
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert "a" not in stream.rows
    assert len(source.fetched) == 2
    assert cache.invalidate() == 0


def test_a_refresh_writes_the_source_over_the_stream(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream)
    cache.lookup(["a"], NOW_MS)
    source.put(a="quill")
    assert cache.invalidate(["a"], token="r1") == 1
    assert cache.invalidate(["a"], token="r1") == 0
    assert names(cache.lookup(["a", "b"], NOW_MS)) == ["quill", "cached ink"]
    assert cache.invalidate(prefix="b") == 1
    assert names(cache.lookup(["b"], NOW_MS)) == ["ink"]
    assert cache.invalidate() == 2


def test_a_source_that_is_down_does_not_touch_what_the_stream_holds(source: FakeSource, stream: FakeStream) -> None:
    source.is_down = True
    cache = opened(source, stream)
    assert names(cache.lookup(["b"], NOW_MS)) == ["cached ink"]
    with pytest.raises(ServiceUnavailable):
        cache.lookup(["a", "b"], NOW_MS)
    with pytest.raises(ServiceUnavailable):
        cache.invalidate(["b"], token="r1")
    assert names(opened(source, stream, on_error="null").lookup(["a", "b"], NOW_MS)) == [None, "cached ink"]


def test_threads_that_miss_the_same_key_ask_once(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream)
    all_in = threading.Barrier(4)
    source.before = lambda keys: time.sleep(0.2)

    def ask(_: int) -> list[str | None]:
        all_in.wait()
        return names(cache.lookup(["a"], NOW_MS))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [["pen"]] * 4
    assert source.fetched == [["a"]]


@pytest.mark.parametrize("stores", [True, False])
def test_absence_is_held_until_its_time_a_refresh_or_a_row_of_the_stream(
    source: FakeSource, stream: FakeStream, stores: bool
) -> None:
    cache = opened(source, stream, stores, negative_ttl=5.0)
    for now_ms in (NOW_MS, NOW_MS + 4_999):
        assert names(cache.lookup(["x", "y"], now_ms)) == [None, None]
    assert source.fetched == [["x", "y"]]
    stream.rows["x"] = ("x", "fed")
    assert names(cache.lookup(["x", "y"], NOW_MS + 1)) == ["fed", None]
    assert source.fetched == [["x", "y"]]
    cache.invalidate(["y"])
    source.fetched.clear()
    cache.lookup(["y"], NOW_MS + 1)
    cache.lookup(["y"], NOW_MS + 5_001)
    assert source.fetched == [["y"], ["y"]]
    assert cache.statistics()["negative_stored"] == 4


def test_a_refresh_takes_away_what_the_source_no_longer_has(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream)
    del source.rows["b"]
    assert cache.invalidate(["b"]) == 1
    assert stream.rows == {}
    assert names(cache.lookup(["b"], NOW_MS)) == [None]


@pytest.mark.parametrize("new", [("a", "fed"), None])
@pytest.mark.parametrize("moment", ["while it is fetched", "while it is written"])
def test_what_a_feed_writes_meanwhile_is_not_undone(
    source: FakeSource, stream: FakeStream, new: Row | None, moment: str
) -> None:
    """The change is in the source first, then in the stream; the row that was fetched before is older than both."""
    put = stream.write

    def feed() -> None:
        source.before, stream.write = lambda keys: None, put  # type: ignore[method-assign]
        source.rows |= {"a": (new,)} if new else {}
        stream.rows |= {"a": new} if new else {}
        if new is None:
            source.rows.pop("a")
            stream.rows.pop("a", None)
        stream.watch.count["a"] += 1

    def overtaken(rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        feed()
        put(rows, deleted)

    if moment == "while it is fetched":
        source.before = lambda keys: feed()
    else:
        stream.write = overtaken  # type: ignore[method-assign]
    assert names(opened(source, stream).lookup(["a"], NOW_MS)) == [new[1] if new else None]
    assert stream.rows.get("a") == new
