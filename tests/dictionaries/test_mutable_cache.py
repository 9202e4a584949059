"""MUTABLE_CACHE: the rows of a mutable stream, then the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from changelog.errors import ServiceUnavailable
from changelog.lookup import Key, Row, Rows
from dictionaries.layouts.mutable_cache import MutableCache
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names


@dataclass
class FakeStream:
    rows: dict[Key, Row] = field(default_factory=dict)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return {key: (self.rows[key],) for key in keys if key in self.rows}

    def load(self) -> Iterator[list[Row]]:
        yield list(self.rows.values())

    def store(self, rows: Sequence[Row]) -> None:
        self.rows |= {row[0]: row for row in rows}


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(a="pen", b="ink")
    return source


@pytest.fixture
def stream() -> FakeStream:
    return FakeStream({"b": ("b", "cached ink")})


def opened(source: FakeSource, stream: FakeStream, stores: bool = True, on_error: str = "stop") -> MutableCache:
    made = definition("mutable_cache", parameters={"stream": "s", "update_from_source": stores}, on_error=on_error)
    return MutableCache(made, source, stream)


def test_the_stream_wins_and_misses_are_stored(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream)
    assert names(cache.lookup(["a", "b", "x"], NOW_MS)) == ["pen", "cached ink", None]
    assert stream.rows == {"a": ("a", "pen"), "b": ("b", "cached ink")}
    source.put(a="quill")
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert source.asked == [["a", "x"]]
    figures = cache.statistics()
    assert (figures["cold_hits"], figures["misses"], figures["query_count"]) == (2, 2, 4)


def test_without_update_from_source_a_miss_is_answered_and_not_stored(source: FakeSource, stream: FakeStream) -> None:
    cache = opened(source, stream, stores=False)
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert names(cache.lookup(["a"], NOW_MS)) == ["pen"]
    assert "a" not in stream.rows
    assert len(source.asked) == 2
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
    assert source.asked == [["a"]]
