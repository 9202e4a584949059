"""HASHED and its kin: all rows, loaded again from time to time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from dovetail.changelog.errors import ServiceUnavailable, SourceRefused
from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.loaded import Loaded
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(a="pen", b="ink")
    return source


@pytest.fixture
def loaded(source: FakeSource) -> Iterator[Loaded]:
    layout = Loaded(definition("hashed"), source)
    yield layout
    layout.close()


def test_the_first_lookup_loads_and_no_other_asks(loaded: Loaded, source: FakeSource) -> None:
    assert loaded.statistics()["status"] == "NOT_LOADED"
    assert names(loaded.lookup(["a", "x"], NOW_MS)) == ["pen", None]
    source.put(a="quill")
    assert names(loaded.lookup(["a", "b"], NOW_MS)) == ["pen", "ink"]
    assert (source.loads, source.fetched) == (1, [])
    figures = loaded.statistics()
    assert (figures["status"], figures["element_count"], figures["hit_rate"]) == ("LOADED", 2, 1.0)
    assert figures["bytes_allocated"] > 0


def test_a_refresh_of_everything_loads_again(loaded: Loaded, source: FakeSource) -> None:
    loaded.lookup(["a"], NOW_MS)
    source.put(a="quill")
    del source.rows["b"]
    assert loaded.invalidate(token="r1") == 2
    assert names(loaded.lookup(["a", "b"], NOW_MS)) == ["quill", None]
    assert loaded.invalidate(token="r1") == 0
    assert source.loads == 2


def test_a_refresh_of_keys_asks_for_these(loaded: Loaded, source: FakeSource) -> None:
    loaded.lookup(["a"], NOW_MS)
    source.put(a="quill", b="blot", n="new")
    del source.rows["b"]
    assert loaded.invalidate(["a", "b", "n"]) == 2
    assert names(loaded.lookup(["a", "b", "n"], NOW_MS)) == ["quill", None, "new"]
    assert source.loads == 1


def test_a_failed_load_keeps_the_old_rows(loaded: Loaded, source: FakeSource) -> None:
    loaded.lookup(["a"], NOW_MS)
    source.is_down = True
    with pytest.raises(ServiceUnavailable):
        loaded.invalidate(token="r1")
    assert names(loaded.lookup(["a"], NOW_MS)) == ["pen"]
    assert "down" in loaded.statistics()["last_exception"]
    source.is_down = False
    source.put(a="quill")
    assert loaded.invalidate(token="r1") == 2
    assert names(loaded.lookup(["a"], NOW_MS)) == ["quill"]


def test_without_any_rows_a_failure_is_an_error(loaded: Loaded, source: FakeSource) -> None:
    source.is_down = True
    with pytest.raises(ServiceUnavailable):
        loaded.lookup(["a"], NOW_MS)
    assert loaded.statistics()["status"] == "FAILED"
    source.is_down = False
    assert names(loaded.lookup(["a"], NOW_MS)) == ["pen"]


def test_it_loads_again_within_its_lifetime(source: FakeSource) -> None:
    loaded = Loaded(definition("flat", lifetime_s=(0, 1)), source)
    loaded.lookup(["a"], NOW_MS)
    source.put(a="quill")
    settle(lambda: names(loaded.lookup(["a"], NOW_MS)) == ["quill"])
    loaded.close()


def test_a_reload_asks_for_what_was_written_since_the_last_one(source: FakeSource) -> None:
    made = definition("hashed", lifetime_s=(0, 1), source={"update_field": "name"})
    loaded = Loaded(made, source, clock=lambda: NOW_MS)
    loaded.lookup(["a"], NOW_MS)
    source.put(a="quill")
    settle(lambda: names(loaded.lookup(["a"], NOW_MS)) == ["quill"])
    loaded.close()
    assert source.loads == 1
    assert set(source.since) == {NOW_MS}


def test_threads_that_come_first_load_once(loaded: Loaded, source: FakeSource) -> None:
    threads = [threading.Thread(target=loaded.lookup, args=(["a"], NOW_MS)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.loads == 1


def test_composite_keys_several_rows_and_nulls() -> None:
    columns = tuple(Column(name, pa.string()) for name in ("k1", "k2", "v"))
    rows = (("a", "b", "1"), ("a", "b", "2"), ("a", None, "3"))
    source = FakeSource({("a", "b"): rows})
    made = Definition("d", columns, ("k1", "k2"), SourceSpec("fake"), LayoutSpec("hashed"))
    loaded = Loaded(made, source)
    assert loaded.lookup([("a", "b"), ("b", "a")], NOW_MS) == [rows[:2], ()]
    assert loaded.invalidate(prefix="a,b") == 1
    loaded.close()


def test_a_feed_changes_the_rows_in_place() -> None:
    """However many there are: a batch takes as long as it is large."""
    source = FakeSource({f"k{number}": ((f"k{number}", "pen"),) for number in range(1000)})
    loaded = Loaded(definition("hashed"), source)
    loaded.lookup(["k0"], NOW_MS)
    held = loaded._rows  # noqa: SLF001
    source.put(k1="quill", new="ink")
    del source.rows["k2"]
    keys = ["k1", "k2", "new"]
    changed = {key: Change(number, None) for number, key in enumerate(keys)}
    loaded.apply_feed("t", 0, SourceChanges(0, 3, 3, changed), NOW_MS)
    assert names(loaded.lookup([*keys, "k3"], NOW_MS)) == ["quill", None, "ink", "pen"]
    assert loaded._rows is held  # noqa: SLF001
    assert source.loads == 1


@pytest.mark.parametrize("key", [-1, 10])
def test_flat_refuses_a_key_beyond_its_array(key: int) -> None:
    made = definition("flat", parameters={"max_array_size": 10})
    loaded = Loaded(made, FakeSource({9: ((9, "pen"),)}))
    assert names(loaded.lookup([9], NOW_MS)) == ["pen"]
    beyond = Loaded(made, FakeSource({key: ((key, "pen"),)}))
    with pytest.raises(SourceRefused, match=f"the key {key}, and MAX_ARRAY_SIZE is 10"):
        beyond.lookup([9], NOW_MS)
