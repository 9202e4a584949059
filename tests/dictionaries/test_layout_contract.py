"""What every layout must do, whatever it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
import redis

from dovetail.changelog.errors import DovetailError, RecordRejected, ServiceUnavailable
from dovetail.changelog.lookup import Key, LookupRejected
from dovetail.changelog.schema import Column
from dovetail.dictionaries.contracts import Layout
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.kinds import LOADED_LAYOUTS
from dovetail.dictionaries.layouts.cache import Cache
from dovetail.dictionaries.layouts.direct import Direct
from dovetail.dictionaries.layouts.hybrid import Hybrid
from dovetail.dictionaries.layouts.loaded import Loaded
from dovetail.dictionaries.layouts.mutable_cache import MutableCache
from tests.dictionaries.cache_world import NOW_MS, FakeSource, FakeStream, names, settle

COLUMNS = tuple(Column(name, pa.string()) for name in ("id", "name"))
PAIRS = tuple(Column(name, pa.string()) for name in ("a", "b", "name"))


def _hybrid(made: Definition, source: FakeSource, redis_url: str | None) -> Layout:
    opened = Hybrid(made, source, redis_url)
    settle(lambda: redis_url is None or bool(opened.statistics()["is_listening"]))
    return opened


Open = Callable[[Definition, FakeSource, str | None], Layout]
HYBRID: Mapping[str, Any] = {"ttl": 3600.0, "path": "contract", "max_hot_key_count": 100}
LAYOUTS: Mapping[str, tuple[str, Mapping[str, Any], Open]] = {
    "direct": ("direct", {}, lambda made, source, _: Direct(made, source)),
    "hashed": ("hashed", {}, lambda made, source, _: Loaded(made, source)),
    "cache": ("cache", {"size_in_cells": 100}, lambda made, source, _: Cache(made, source, None)),
    "hybrid in one process": ("hybrid_hash_cache", HYBRID, lambda made, source, _: _hybrid(made, source, None)),
    "hybrid over redis": ("hybrid_hash_cache", HYBRID, _hybrid),
    "mutable cache": (
        "mutable_cache",
        {"stream": "s", "update_from_source": True},
        lambda made, source, _: MutableCache(made, source, FakeStream(len(made.key))),
    ),
}


@dataclass
class World:
    """A source with three rows, and layouts over it."""

    layout: str
    redis_url: str | None
    source: FakeSource = field(default_factory=FakeSource)
    opened: list[Layout] = field(default_factory=list)

    def open(self, columns: tuple[Column, ...] = COLUMNS, width: int = 1, **settings: Any) -> Layout:
        kind, parameters, build = LAYOUTS[self.layout]
        key = tuple(column.name for column in columns[:width])
        given = {"timeout_ms": 50.0, **settings}
        made = Definition("d", columns, key, SourceSpec("fake"), LayoutSpec(kind, parameters), (0, 0), given)
        self.opened.append(build(made, self.source, self.redis_url))
        return self.opened[-1]


_SERVED = "hybrid over redis"


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.services] * (name == _SERVED)) for name in LAYOUTS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    url: str | None = None
    if request.param == _SERVED:
        url = str(request.getfixturevalue("redis_url"))
        with redis.Redis.from_url(url) as client:
            client.flushall()
    made = World(request.param, url)
    made.source.put(a="pen", b="ink", c="cap")
    yield made
    for layout in made.opened:
        layout.close()


def test_each_key_has_its_rows_in_order_and_absence_is_an_answer(world: World) -> None:
    layout = world.open()
    assert layout.lookup(["b", "x", "a"], NOW_MS) == [(("b", "ink"),), (), (("a", "pen"),)]
    assert layout.lookup(["a", "b", "x"], NOW_MS) == [(("a", "pen"),), (("b", "ink"),), ()]
    assert layout.lookup([], NOW_MS) == []


def test_a_row_of_nulls_is_a_row(world: World) -> None:
    world.source.rows["n"] = (("n", None),)
    layout = world.open()
    for _ in range(2):
        assert layout.lookup(["n", "x"], NOW_MS) == [(("n", None),), ()]


def test_a_key_of_several_columns(world: World) -> None:
    world.source.rows = {("a", "b"): (("a", "b", "1"),), ("a:b", ""): (("a:b", "", "2"),)}
    layout = world.open(PAIRS, width=2)
    for _ in range(2):
        found = layout.lookup([("a:b", ""), ("b", "a"), ("a", "b")], NOW_MS)
        assert found == [(("a:b", "", "2"),), (), (("a", "b", "1"),)]


def test_threads_get_the_same_answers(world: World) -> None:
    layout = world.open()
    keys = [["a", "b"], ["b", "x"], ["c", "a"], ["x", "c"]] * 5
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda some: names(layout.lookup(some, NOW_MS)), keys))
    expected = {"a": "pen", "b": "ink", "c": "cap", "x": None}
    assert found == [[expected[key] for key in some] for some in keys]


@pytest.mark.parametrize("invalidated", [{"keys": ["a", "x"]}, {"prefix": "a"}, {}])
def test_after_a_refresh_the_source_is_seen(world: World, invalidated: dict[str, Any]) -> None:
    layout = world.open()
    layout.lookup(["a", "b"], NOW_MS)
    world.source.put(a="quill")
    assert layout.invalidate(**invalidated) >= 0
    assert names(layout.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]


def test_a_refresh_is_executed_once(world: World) -> None:
    layout = world.open()
    layout.lookup(["a"], NOW_MS)
    layout.invalidate(["a"], token="r1")
    statements = len(world.source.fetched)
    assert layout.invalidate(["a"], token="r1") == 0
    assert len(world.source.fetched) == statements


@pytest.mark.parametrize(("policy", "raised"), [("stop", ServiceUnavailable), ("dead_letter", LookupRejected)])
def test_a_source_that_is_down_is_said_and_later_asked_again(
    world: World, policy: str, raised: type[DovetailError]
) -> None:
    layout = world.open(on_error=policy)
    world.source.is_down = True
    with pytest.raises(raised):
        layout.lookup(["a"], NOW_MS)
    assert "down" in layout.statistics()["last_exception"]
    world.source.is_down = False
    settle(lambda: answered(layout, raised) == ["pen"])


def answered(layout: Layout, raised: type[DovetailError]) -> list[str | None]:
    """What is found under ``a``; nothing while the source is still left alone."""
    try:
        return names(layout.lookup(["a"], NOW_MS))
    except raised:
        return []


def test_a_source_that_is_down_counts_as_absence_under_null_and_is_not_remembered(world: World) -> None:
    layout = world.open(on_error="null")
    world.source.is_down = True
    assert layout.lookup(["a", "x"], NOW_MS) == [(), ()]
    assert layout.statistics()["failed_keys"] == 2
    world.source.is_down = False
    settle(lambda: names(layout.lookup(["a"], NOW_MS)) == ["pen"])


@pytest.mark.parametrize("policy", ["null", "dead_letter", "stop"])
def test_a_row_that_cannot_be_used_takes_its_own_key_with_it(world: World, policy: str) -> None:
    layout = world.open(on_error=policy)
    if layout.statistics()["type"] in LOADED_LAYOUTS:
        # It asks for no keys: a row that is not asked for spoils nothing.
        assert names(layout.lookup(["a"], NOW_MS)) == ["pen"]
        return
    keys = [f"k{number}" for number in range(50)]
    world.source.rows |= {key: ((key, key),) for key in keys}

    def unusable(fetched: Sequence[Key]) -> None:
        if "k7" in fetched:
            raise RecordRejected("k7 cannot be used")

    world.source.before = unusable
    if policy == "null":
        assert names(layout.lookup(keys, NOW_MS)) == [None if key == "k7" else key for key in keys]
        return
    with pytest.raises(LookupRejected, match="k7 cannot be used") as rejected:
        layout.lookup(keys, NOW_MS)
    assert list(rejected.value.keys) == ["k7"]


def test_the_figures_count_keys_and_those_that_have_rows(world: World) -> None:
    layout = world.open()
    layout.lookup(["a", "x"], NOW_MS)
    layout.lookup(["b", "a"], NOW_MS)
    figures = layout.statistics()
    assert (figures["name"], figures["type"], figures["status"]) == ("d", LAYOUTS[world.layout][0], "LOADED")
    assert (figures["query_count"], figures["found_rate"]) == (4, 0.75)
    assert figures["hot_hits"] + figures["cold_hits"] + figures["misses"] == 4


def test_a_layout_that_was_never_asked_can_be_closed(world: World) -> None:
    world.open()
    assert world.source.fetched == []
