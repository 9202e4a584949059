"""A cache in a stream of a real broker, which others write as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.lookup import Row
from dovetail.dictionaries.layouts.mutable_cache import MutableCache
from dovetail.services.worker.tables.followers import FollowedRows, Followers
from dovetail.sql.planner import stream_of
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names
from tests.services.worker.conftest import World

pytestmark = pytest.mark.services


@pytest.fixture
def stream(world: World) -> Iterator[FollowedRows]:
    name = f"held{world.number}"
    world.execute(f"CREATE MUTABLE STREAM {name} (id string, name string) PRIMARY KEY id")
    followers = Followers(lambda name: (stream_of(world.catalog, name), ()), world.folder, BrokerAddress(world.broker))
    with closing(followers):
        yield followers.rows(name)


@pytest.mark.parametrize("fed", [("a", "quill"), None])
def test_what_a_feed_writes_while_a_key_is_fetched_stands(stream: FollowedRows, fed: Row | None) -> None:
    source = FakeSource()
    source.put(a="pen", b="ink")

    def feed(_: object) -> None:
        source.before = lambda keys: None
        if fed is None:
            del source.rows["a"]
            stream.write([], [("a", None)])
        else:
            source.rows["a"] = (fed,)
            stream.write([fed])

    source.before = feed
    made = definition("mutable_cache", parameters={"stream": "s", "update_from_source": True})
    with closing(MutableCache(made, source, stream)) as cache:
        name = fed[1] if fed else None
        assert names(cache.lookup(["a", "b"], NOW_MS)) == [name, "ink"]
        assert stream.fetch(["id"], ["a", "b"]) == ({"a": (fed,)} if fed else {}) | {"b": (("b", "ink"),)}
        source.rows["b"] = (("b", "blood"),)
        cache.invalidate(["a", "b"])
        assert names(cache.lookup(["a", "b"], NOW_MS)) == [name, "blood"]
        del source.rows["b"]
        cache.invalidate(["b"])
        assert "b" not in stream.fetch(["id"], ["b"])
