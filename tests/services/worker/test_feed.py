"""A feed keeps the cache of a lookup query fresh: Debezium's records, with a TTL that never ends in the test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from pydantic import SecretStr

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.services.commands.command_codec import Stats
from dovetail.services.worker.supervisor.child_process import Child
from tests.servers.redis_server import redis_server
from tests.services.worker.conftest import World
from tests.spark.kafka import made_again

pytestmark = pytest.mark.services


@pytest.fixture
def world(broker: str, tmp_path: Path) -> Iterator[World]:
    with redis_server(tmp_path / "redis") as redis:
        made = World(broker, tmp_path, redis_url=SecretStr(f"redis://{redis.host}:{redis.port}/0"))
        yield made
        made.close()


class Shop:
    """Orders enriched by products of SQLite, whose changes go to a topic."""

    def __init__(self, world: World, settings: str = "", *, has_feed: bool = True) -> None:
        self.world = world
        self.orders, self.view = f"orders{world.number}", f"priced{world.number}"
        self.feed, self.products = f"shop.products{world.number}", f"products{world.number}"
        if has_feed:
            topics.ensure(clients.admin(BrokerAddress(world.broker)), {self.feed: 2})
        self.fill(p1="pen", p2="ink")
        world.execute(f"CREATE STREAM {self.orders} (n int, k string)")
        world.execute(
            f"CREATE DICTIONARY {self.products} (id string, name string) PRIMARY KEY id "
            f"SOURCE(SQLITE(PATH '{world.database}' TABLE 'products')) "
            f"LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'shop' MAX_HOT_KEY_COUNT 1000)) "
            f"SETTINGS(feed_topic = '{self.feed}', feed_format = 'debezium'{settings})"
        )
        world.view(
            f"CREATE MATERIALIZED VIEW {self.view} AS SELECT o.n, p.name FROM {self.orders} AS o LEFT JOIN "
            f"{self.products} AS p ON o.k = p.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
        )

    def fill(self, **names: str) -> None:
        """In the source."""
        self.world.fill("products", names.items(), "id TEXT PRIMARY KEY, name TEXT")

    def tell(self, op: str, key: str, before: str | None = None, after: str | None = None) -> None:
        """In the topic."""
        rows = [None if name is None else {"id": key, "name": name} for name in (before, after)]
        envelope = {"op": op, "before": rows[0], "after": rows[1], "source": {"table": "products"}}
        self.send(orjson.dumps({"id": key}), orjson.dumps({"schema": {}, "payload": envelope}))

    def send(self, key: bytes | None, value: bytes | None) -> None:
        producer = Producer({"bootstrap.servers": self.world.broker})
        producer.produce(self.feed, value, key)
        assert producer.flush(30) == 0

    def answers(self, first: int, *keys: str) -> list[str | None]:
        """The names that the next left rows get."""
        self.world.send(self.orders, [{"n": first + at, "k": key} for at, key in enumerate(keys)])
        wanted = range(first, first + len(keys))
        found: dict[int, str | None] = {}

        def answered() -> bool:
            # A commit is told to the writer before the broker shows it to readers.
            found.update({row["n"]: row["name"] for row in self.world.values(self.view)})
            return found.keys() >= set(wanted)

        self.world.until(answered)
        return [found[n] for n in wanted]

    def figures(self, child: Child) -> dict[str, Any]:
        [figures] = child.execute(Stats()).detail["dictionaries"]
        assert isinstance(figures, dict)
        return figures

    def await_records(self, child: Child, count: int) -> None:
        self.world.until(lambda: self.figures(child)["feed_records"] == count)


def test_the_next_row_sees_what_changed_at_the_source(world: World) -> None:
    shop = Shop(world)
    child = world.start(shop.view)
    assert shop.answers(0, "p1", "p2", "p3") == ["pen", "ink", None]
    shop.fill(p1="quill", p2="blot", p3="cap")
    assert shop.answers(10, "p1", "p2", "p3") == ["pen", "ink", None]
    shop.send(None, b"damaged")
    shop.tell("u", "p1", "pen", "quill")
    shop.tell("c", "p3", None, "cap")
    shop.await_records(child, 3)
    assert shop.answers(20, "p1", "p2", "p3") == ["quill", "ink", "cap"]
    figures = shop.figures(child)
    assert (figures["feed_invalidated"], figures["feed_rejected"]) == (2, 1)


def test_what_changed_while_no_worker_ran_is_seen_by_the_first_row(world: World) -> None:
    """What did not change is still served by Redis, and not asked for again."""
    shop = Shop(world)
    child = world.start(shop.view)
    assert shop.answers(0, "p1", "p2") == ["pen", "ink"]
    assert world.stop(child) == 0
    shop.fill(p1="quill")
    shop.tell("u", "p1", "pen", "quill")
    child = world.start(shop.view)
    assert shop.answers(10, "p1", "p2") == ["quill", "ink"]
    figures = shop.figures(child)
    assert (figures["feed_records"], figures["cold_hits"], figures["source_keys"]) == (1, 1, 1)


def test_what_a_former_feed_did_not_tell_is_asked_for_again(world: World) -> None:
    """Nobody knows what happened at the source while there was no topic."""
    shop = Shop(world)
    world.start(shop.view)
    assert shop.answers(0, "p1", "p2") == ["pen", "ink"]
    made_again(world.broker, shop.feed, partitions=2)
    shop.fill(p1="quill")
    numbers = itertools.count(10)
    world.until(lambda: shop.answers(next(numbers), "p1") == ["quill"])


def test_rows_that_records_carry_are_served_without_the_source(world: World) -> None:
    shop = Shop(world, ", feed_values = true")
    child = world.start(shop.view)
    assert shop.answers(0, "p1", "p2") == ["pen", "ink"]
    shop.tell("u", "p1", "pen", "from the feed")
    shop.tell("d", "p2", "ink")
    shop.send(b'{"id":"p2"}', None)
    shop.await_records(child, 3)
    assert shop.answers(10, "p1", "p2") == ["from the feed", None]
    assert shop.figures(child)["source_keys"] == 2


def test_a_feed_without_a_topic_ends_the_query_with_the_fix(world: World) -> None:
    shop = Shop(world, has_feed=False)
    child = world.start(shop.view)
    world.until(lambda: child.ended() is not None)
    error = world.catalog.query(shop.view).error
    assert f'topic "{shop.feed}" does not exist' in error
    assert "feed_topic" in error
