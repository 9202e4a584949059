"""HYBRID_HASH_CACHE without Redis: the keys beyond the hot tier stand in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.hybrid import Hybrid
from tests.dictionaries.cache_world import NOW_MS, TTL_MS, FakeSource, definition, names

KEYS = [f"k{number}" for number in range(2000)]


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(**{key: f"name of {key}" for key in KEYS})
    return source


@pytest.fixture
def hybrid(source: FakeSource, tmp_path: Path) -> Iterator[Hybrid]:
    with closing(Hybrid(definition(hot_keys=10), source, None, local_dir=tmp_path)) as opened:
        opened.lookup([*KEYS, "x"], NOW_MS)
        source.fetched.clear()
        yield opened


def test_what_the_hot_tier_has_no_room_for_is_not_asked_again(hybrid: Hybrid, source: FakeSource) -> None:
    for _ in range(2):
        assert names(hybrid.lookup([*KEYS, "x"], NOW_MS + 9_000)) == [*(f"name of {key}" for key in KEYS), None]
    assert source.fetched == []
    assert hybrid.statistics()["cold_hits"] >= 2 * (len(KEYS) - 10)
    hybrid.lookup(["x"], NOW_MS + 10_000)
    hybrid.lookup(["k7"], NOW_MS + TTL_MS)
    assert source.fetched == [["x"], ["k7"]]


@pytest.mark.parametrize("invalidated", [{"keys": ["k1"]}, {"prefix": "k1"}, {}])
def test_it_forgets_with_the_hot_tier(hybrid: Hybrid, source: FakeSource, invalidated: dict[str, Any]) -> None:
    source.put(k1="new")
    assert hybrid.invalidate(**invalidated) >= 1
    assert names(hybrid.lookup(["k1", "k2"], NOW_MS)) == ["new", "name of k2"]
    assert source.fetched_keys == (["k1", "k2"] if invalidated == {} else ["k1"])


@pytest.mark.parametrize("invalidated", [{"keys": ["new"]}, {"prefix": "n"}, {}])
def test_what_was_fetched_before_a_refresh_is_not_stored_after_it(
    hybrid: Hybrid, source: FakeSource, invalidated: dict[str, Any]
) -> None:
    source.put(new="old")

    def changed_meanwhile(keys: Sequence[Key]) -> None:
        source.before = lambda keys: None
        source.put(new="newer")
        hybrid.invalidate(**invalidated)

    source.before = changed_meanwhile
    assert names(hybrid.lookup(["new"], NOW_MS)) == ["old"]
    assert names(hybrid.lookup(["new"], NOW_MS)) == ["newer"]


def test_a_feed_changes_it(hybrid: Hybrid, source: FakeSource) -> None:
    changes = {"k1": Change(0, (("k1", "fed"),)), "k2": Change(1, ()), "k3": Change(2, None)}
    hybrid.begin_feed("t", {0: 0})
    hybrid.lookup(KEYS, NOW_MS)
    source.fetched.clear()
    source.put(k3="asked")
    hybrid.apply_feed("t", 0, SourceChanges(0, 3, 3, changes), NOW_MS)
    hybrid.lookup(KEYS[100:200], NOW_MS)
    assert names(hybrid.lookup(["k1", "k2", "k3"], NOW_MS)) == ["fed", None, "asked"]
    assert source.fetched == [["k3"]]


def test_a_process_begins_anew_and_leaves_nothing(source: FakeSource, tmp_path: Path) -> None:
    for _ in range(2):
        with closing(Hybrid(definition(), source, None, local_dir=tmp_path)) as hybrid:
            hybrid.lookup(["k1"], NOW_MS)
            assert [path.name for path in tmp_path.iterdir()] == ["cold-d.db"]
    assert source.fetched == [["k1"], ["k1"]]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "cold-d.db").write_bytes(b"left behind by one that was killed")
    with closing(Hybrid(definition(), source, None, local_dir=tmp_path)) as hybrid:
        assert names(hybrid.lookup(["k1"], NOW_MS)) == ["name of k1"]


def test_a_file_that_cannot_be_used_is_a_miss(hybrid: Hybrid, source: FakeSource) -> None:
    assert hybrid._local is not None  # noqa: SLF001
    hybrid._local._connection.close()  # noqa: SLF001
    source.put(k1="new")
    assert names(hybrid.lookup(["k1"], NOW_MS)) == ["new"]
    assert hybrid.invalidate(["k1"]) >= 0


def test_threads_share_it(hybrid: Hybrid, source: FakeSource) -> None:
    found: list[list[str | None]] = []
    threads = [
        threading.Thread(target=lambda at=at: found.append(names(hybrid.lookup(KEYS[at : at + 100], NOW_MS))))
        for at in range(0, 2000, 100)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for names_ in found for name in names_ if name) == sorted(f"name of {key}" for key in KEYS)
    assert source.fetched == []
