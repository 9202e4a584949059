"""The cold tier on a Redis Cluster: the dictionaries spread over its nodes, each as a whole on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.hybrid import Hybrid
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle
from tests.servers import Server, redis_cluster

pytestmark = pytest.mark.services
Nodes = tuple[Server, Server]
PATHS = ["shop", "a{b}c", "{}", "}{", "x{", "%{y"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def source(nodes: Nodes) -> FakeSource:
    for node in nodes:
        node.execute("FLUSHALL")
    source = FakeSource()
    source.put(a="pen", b="ink")
    return source


def opened(node: Server, backend: FakeSource, **given: Any) -> Hybrid:
    made = definition(**({"timeout_ms": 2000.0, "redis_timeout_ms": 1000.0} | given))
    hybrid = Hybrid(made, backend, f"redis://{node.host}:{node.port}/0")
    settle(lambda: bool(hybrid.statistics()["is_listening"]))
    return hybrid


def stored(node: Server) -> int:
    [(count,)] = node.rows("DBSIZE")
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("path", PATHS)
def test_workers_share_what_either_fetched(nodes: Nodes, source: FakeSource, path: str) -> None:
    """Whichever node each was told of."""
    given: dict[str, Any] = {"parameters": {"path": path}}
    with closing(opened(nodes[0], source, **given)) as one, closing(opened(nodes[1], source, **given)) as other:
        assert names(one.lookup(["a", "x"], NOW_MS)) == ["pen", None]
        assert names(other.lookup(["x", "b", "a"], NOW_MS)) == [None, "ink", "pen"]
        assert source.fetched == [["a", "x"], ["b"]]
        assert [figures.statistics()["redis_errors"] for figures in (one, other)] == [0, 0]
    assert sorted(map(bool, map(stored, nodes))) == [False, True]


@pytest.mark.parametrize("invalidated", [{"keys": ["a"]}, {"prefix": "a"}, {}])
@pytest.mark.parametrize("table", ["t1", "t2", "t3"])
def test_an_invalidation_reaches_the_other_workers(
    nodes: Nodes, source: FakeSource, invalidated: dict[str, Any], table: str
) -> None:
    given: dict[str, Any] = {"source": {"table": table}}
    with closing(opened(nodes[0], source, **given)) as one, closing(opened(nodes[1], source, **given)) as other:
        for opened_ in (one, other):
            opened_.lookup(["a"], NOW_MS)
        source.put(a="quill")
        assert one.invalidate(**invalidated, token="r1") >= 1
        settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])
        assert names(one.lookup(["a"], NOW_MS)) == ["quill"]


def test_a_feed_and_its_positions(nodes: Nodes, source: FakeSource) -> None:
    with closing(opened(nodes[0], source)) as one, closing(opened(nodes[1], source)) as other:
        one.begin_feed("t", {0: 0})
        other.lookup(["a"], NOW_MS)
        one.apply_feed("t", 0, SourceChanges(0, 1, 1, {"a": Change(0, (("a", "quill"),))}), NOW_MS)
        settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])
        assert other.feed_positions("t") == {0: 1}


def test_the_dictionaries_spread(nodes: Nodes, source: FakeSource) -> None:
    for number in range(20):
        with closing(opened(nodes[0], source, source={"table": f"t{number}"})) as hybrid:
            hybrid.lookup(["a"], NOW_MS)
            assert hybrid.statistics()["redis_errors"] == 0
    assert all(map(stored, nodes))


def test_a_node_that_hangs_is_a_miss_and_is_used_again(nodes: Nodes, source: FakeSource) -> None:
    with closing(opened(nodes[0], source, redis_timeout_ms=200.0)) as hybrid:
        hybrid.lookup(["a"], NOW_MS)
        [home] = [node for node in nodes if stored(node)]
        home.pause()
        assert names(hybrid.lookup(["b"], NOW_MS)) == ["ink"]
        home.resume()

        def is_stored() -> bool:
            before = stored(home)
            key = f"k{len(source.fetched)}"
            hybrid.lookup([key], NOW_MS)
            return stored(home) > before

        settle(is_stored)
