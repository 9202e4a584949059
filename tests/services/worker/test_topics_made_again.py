"""A topic that was deleted and made again is another one: known by its id, also where it ends later than it did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import memo_topic
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.services.worker.tables import followers
from dovetail.services.worker.tables.followers import Follower
from dovetail.sql.catalog import Actual
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules
from tests.services.worker.conftest import World
from tests.services.worker.test_end_to_end import orders_and_products
from tests.spark.kafka import made_again, send

pytestmark = pytest.mark.services

SCHEMA = StreamSchema("rates", (Column("k", pa.int64()), Column("v", pa.string())), Kind.UPSERT, ("k",))


def sent(broker: str, topic: str, first: int, count: int, value: str) -> None:
    numbers = range(first, first + count)
    send(broker, topic, [{"k": n, "v": value} for n in numbers], [{"k": n} for n in numbers])


def following(broker: str, topic: str, folder: Path) -> Follower:
    return Follower(Stream(SCHEMA, topic, Rules.TIMEPLUS), (), folder / "rows.db", BrokerAddress(broker))


def rows(follower: Follower) -> dict[object, object]:
    return {row[0]: row[1] for piece in follower.store.load() for row in piece}


def caught_up(follower: Follower) -> None:
    """As a batch does, which asks again where the follower cannot answer."""
    while True:
        try:
            follower.await_caught_up()
        except ServiceUnavailable:
            continue
        return


def test_what_is_followed_is_read_anew_by_the_next_process(
    broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    topic = topics("rates")
    sent(broker, topic, 0, 3, "former")
    follower = following(broker, topic, tmp_path)
    caught_up(follower)
    follower.close()
    made_again(broker, topic)
    sent(broker, topic, 10, 5, "present")

    follower = following(broker, topic, tmp_path)
    caught_up(follower)

    assert rows(follower) == dict.fromkeys(range(10, 15), "present")
    follower.close()


@pytest.mark.parametrize("count", [1, 5], ids=["shorter", "longer"])
def test_what_is_followed_is_read_anew_while_it_is_followed(
    count: int, broker: str, topics: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "_LOOK_S", 0.0)
    topic = topics("rates")
    sent(broker, topic, 0, 3, "former")
    follower = following(broker, topic, tmp_path)
    caught_up(follower)
    made_again(broker, topic)
    sent(broker, topic, 10, count, "present")

    caught_up(follower)

    assert rows(follower) == dict.fromkeys(range(10, 10 + count), "present")
    follower.close()


def failed(world: World, view: str) -> str:
    world.until(lambda: world.catalog.query(view).actual is Actual.FAILED)
    return world.catalog.query(view).error


def test_a_query_refuses_another_input(world: World) -> None:
    orders, view = orders_and_products(world, partitions=1)
    world.send(orders, [{"n": n, "k": n} for n in range(3)])
    child = world.start(view)
    world.drained(view, orders)
    assert world.stop(child) == 0
    made_again(world.broker, orders)
    world.send(orders, [{"n": n, "k": n} for n in range(100, 110)])

    world.start(view)

    assert f'topic "{orders}" was deleted and made again' in failed(world, view)
    assert sorted(row["n"] for row in world.values(view)) == [0, 1, 2]


def test_a_query_at_work_ends_with_its_input(world: World) -> None:
    orders, view = orders_and_products(world, partitions=1)
    world.send(orders, [{"n": n, "k": n} for n in range(3)])
    world.start(view)
    world.drained(view, orders)
    made_again(world.broker, orders)

    assert f'topic "{orders}" was deleted and made again' in failed(world, view)


def test_a_query_refuses_another_memo(world: World) -> None:
    """What was written is not known any more, so it could not be taken back."""
    people, view = f"people{world.number}", f"named{world.number}"
    world.fill("towns", [(1, "Bern")], "id INTEGER PRIMARY KEY, town TEXT")
    world.execute(f"CREATE MUTABLE STREAM {people} (k int, town int) PRIMARY KEY (k)")
    world.execute(
        f"CREATE DICTIONARY towns{world.number} (id int, town string) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{world.database}' TABLE 'towns')) LAYOUT(DIRECT())"
    )
    world.view(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT p.k, t.town FROM {people} AS p "
        f"JOIN towns{world.number} AS t ON p.town = t.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
    )
    world.send(people, [{"k": 7, "town": 1}])
    child = world.start(view)
    world.drained(view, people)
    assert world.stop(child) == 0
    made_again(world.broker, memo_topic(view))

    world.start(view)

    assert f'topic "{memo_topic(view)}" was deleted and made again' in failed(world, view)
