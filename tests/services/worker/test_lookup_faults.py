"""Redis, MariaDB and workers that go, hang and come back while orders are looked up.

What a read_committed reader finds in the end is held against what an unbroken run answers: none missing, none twice.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
from pydantic import SecretStr

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.dictionaries.open import open_layout
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.session.dictionaries.dictionary_statements import dictionary
from dovetail.services.session.dictionaries.sources import resources
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.sql.catalog import Actual, Worker
from tests.services.worker.conftest import World
from tests.services.worker.shop import (
    Goods,
    Shop,
    answered,
    await_more,
    expected,
    figure,
    found,
    holds_partitions,
    load,
    name_of,
    open_shop,
    send_to,
)
from tests.services.worker.test_worker import child_of, working

pytestmark = pytest.mark.services

_MANY_KEYS = 1_000_000_000
"""More than a test gets to: every record asks for a new key."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with open_shop(tmp_path_factory.mktemp("shop")) as running:
        yield running


@pytest.fixture
def shop(servers: Shop) -> Shop:
    servers.prepare()
    return servers


@pytest.fixture
def world(broker: str, tmp_path: Path, servers: Shop) -> Iterator[World]:
    redis_url = SecretStr(f"redis://{servers.redis.host}:{servers.redis.port}/0")
    made = World(broker, tmp_path, redis_url=redis_url, command_timeout_s=5.0)
    yield made
    made.close()


def test_redis_is_killed_and_comes_back(world: World, shop: Shop) -> None:
    """While it is gone the source answers; once it is back it is used again."""
    goods, keys = shop.goods(world), 1000
    with load(world, goods, keys) as written:
        child = world.start(goods.view)
        for _ in range(2):
            await_more(world, goods.view)
            world.until(lambda: shop.cached() > keys / 2)
            shop.redis.kill()
            world.until(lambda: figure(child, "redis_errors") > 0)
            await_more(world, goods.view)
            shop.redis.start()
            before = figure(child, "cold_hits")
            world.until(lambda before=before: figure(child, "cold_hits") > before)  # type: ignore[misc]
    world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == expected(range(written()), keys)


def test_a_slow_source_slows_and_loses_nothing(world: World, shop: Shop) -> None:
    goods = shop.goods(world)
    shop.between.latency_s = 0.05
    with load(world, goods, _MANY_KEYS) as written:
        world.start(goods.view)
        await_more(world, goods.view, least=2000)
    world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == expected(range(written()), _MANY_KEYS)
    # Slow is not gone: nothing was given up and asked for again.
    assert shop.queried_keys(goods) == list(range(written()))


@pytest.mark.parametrize("fault", ["cut", "killed", "frozen"])
def test_a_source_that_is_gone_is_waited_for(world: World, shop: Shop, fault: str) -> None:
    goods = shop.goods(world, timeout_s=0.5)
    with load(world, goods, _MANY_KEYS) as written:
        child = world.start(goods.view)
        await_more(world, goods.view)
        break_source(shop, fault)
        errors = figure(child, "source_errors")
        world.until(lambda: figure(child, "source_errors") >= errors + 3)
        world.until(lambda: world.catalog.query(goods.view).actual is Actual.RECOVERING)
        assert "MySQL" in (world.catalog.query(goods.view).error or "")
        assert child.ended() is None
        mend_source(shop, fault)
        await_more(world, goods.view)
        world.until(lambda: world.catalog.query(goods.view).actual is Actual.RUNNING)
    world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == expected(range(written()), _MANY_KEYS)
    assert sum(world.topics.ends(f"{goods.view}.dead_letter").values()) == 0


def test_records_whose_source_does_not_answer_are_dead_letters_and_the_others_are_answered(
    world: World, shop: Shop
) -> None:
    """What the tiers hold is answered without the source; nobody waits, and the query runs on."""
    goods = shop.goods(world, timeout_s=0.5, on_error="dead_letter")
    send_to(world, goods.orders, 0, [(n, n) for n in range(10)])
    child = world.start(goods.view)
    world.drained(goods.view, goods.orders)
    shop.between.close()
    send_to(world, goods.orders, 0, [(n, n % 20) for n in range(10, 40)])
    world.drained(goods.view, goods.orders)
    shop.between.open()
    assert found(world, goods.view) == [(n, name_of(n % 20)) for n in range(40) if n % 20 < 10]
    dead_letters = [dead_letter["n"] for dead_letter in world.values(f"{goods.view}.dead_letter")]
    assert sorted(dead_letters) == [n for n in range(40) if n % 20 >= 10]
    assert (child.ended(), world.catalog.query(goods.view).progress["counts"]["rejected"]) == (None, 20)


@pytest.mark.parametrize("policy", ["stop", "null"])
def test_a_row_that_cannot_be_used_takes_its_own_key_with_it(world: World, policy: str) -> None:
    """One of a hundred keys that are asked for in a statement."""
    number = world.number
    world.fill(f"bad{number}", [(n, "much" if n == 42 else n * n) for n in range(100)], "id PRIMARY KEY, square")
    world.execute(f"CREATE STREAM asked{number} (n int, k int)")
    world.execute(
        f"CREATE DICTIONARY squares{number} (id int, square int) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{world.database}' TABLE 'bad{number}')) "
        f"LAYOUT(HYBRID_HASH_CACHE(TTL 60 PATH 'bad')) SETTINGS(on_error = '{policy}')"
    )
    world.view(
        f"CREATE MATERIALIZED VIEW squared{number} AS SELECT o.n, s.square FROM asked{number} AS o LEFT JOIN "
        f"squares{number} AS s ON o.k = s.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
    )
    world.send(f"asked{number}", [{"n": n, "k": n} for n in range(100)])
    world.start(f"squared{number}")
    world.drained(f"squared{number}", f"asked{number}")
    squares = [(row["n"], row["square"]) for row in world.values(f"squared{number}")]
    answered = [(n, n * n if n != 42 else None) for n in range(100) if policy == "null" or n != 42]
    assert sorted(squares) == answered
    dead_letters = [dead_letter["n"] for dead_letter in world.values(f"squared{number}.dead_letter")]
    assert dead_letters == ([] if policy == "null" else [42])


@pytest.mark.parametrize("layout", ["HYBRID_HASH_CACHE(TTL 3600 PATH 'alone')", "CACHE()"])
@pytest.mark.parametrize("statement", ["SYSTEM RELOAD DICTIONARY {name}", "{ddl}"])
def test_what_redis_holds_goes_without_a_worker(world: World, shop: Shop, layout: str, statement: str) -> None:
    """And where Redis does not answer, the refresh is not said to be done."""
    name, table = f"alone{world.number}", f"alone{world.number}"
    world.fill(table, [(1, "pen")], "id PRIMARY KEY, name")
    ddl = (
        f"CREATE OR REPLACE DICTIONARY {name} (id int, name string) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{world.database}' TABLE '{table}')) LAYOUT({layout}) LIFETIME(3600)"
    )
    world.execute(ddl)

    def looked_up() -> object:
        definition = definition_of(dictionary(world.session.context, name))
        with closing(open_layout(definition, resources(world.session.context))) as opened:
            [[row]] = opened.lookup([1], world.session.context.now_ms)
            return row[1]

    assert looked_up() == "pen"
    world.fill(table, [(1, "quill")], "id PRIMARY KEY, name")
    assert looked_up() == "pen"
    shop.redis.pause()
    with pytest.raises(ServiceUnavailable):
        world.execute(statement.format(name=name, ddl=ddl))
    shop.redis.resume()
    world.execute(statement.format(name=name, ddl=ddl))
    assert looked_up() == "quill"


def break_source(shop: Shop, fault: str) -> None:
    match fault:
        case "cut":
            shop.between.close()
        case "killed":
            shop.database.kill()
        case "frozen":
            shop.database.pause()


def mend_source(shop: Shop, fault: str) -> None:
    match fault:
        case "cut":
            shop.between.open()
        case "killed":
            shop.database.start()
        case "frozen":
            shop.database.resume()


def test_a_worker_killed_while_it_looks_up_leaves_its_batch_to_the_next(world: World, shop: Shop) -> None:
    """Each dies with a statement under way, its keys locked in Redis, and a transaction that may be open."""
    goods = shop.goods(world)
    with load(world, goods, _MANY_KEYS) as written:
        for life in range(2):
            child = world.start(goods.view, worker=f"life{life}")
            await_more(world, goods.view)
            with shop.held(goods):
                world.until(lambda: shop.is_queried(goods))
                world.kill(child)
    world.start(goods.view, worker="last")
    world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == expected(range(written()), _MANY_KEYS)


def test_workers_join_and_leave_under_load(world: World, shop: Shop) -> None:
    """Redis keeps what it was told, so no key is asked for again by whoever takes a partition over."""
    goods, keys = shop.goods(world, partitions=4), 6000
    with load(world, goods, keys) as written:
        first = world.start(goods.view, worker="first")
        await_more(world, goods.view, "first")
        second = world.start(goods.view, worker="second")
        await_more(world, goods.view, "second")
        assert world.stop(first) == 0
        await_more(world, goods.view, "second", least=1000)
    world.drained(goods.view, goods.orders)
    assert world.stop(second) == 0
    assert found(world, goods.view) == expected(range(written()), keys)
    assert shop.queried_keys(goods) == list(range(min(written(), keys)))


def test_two_workers_that_miss_the_same_keys_at_once_ask_once(world: World, shop: Shop) -> None:
    goods, rounds, keys = shop.goods(world), 3, 400
    children = [world.start(goods.view, worker=name) for name in ("one", "other")]
    world.until(lambda: all(holds_partitions(child.metrics(), goods.view, 1) for child in children))
    for start in range(0, rounds * keys, keys):
        missed = [figure(child, "misses") for child in children]
        with shop.held(goods):
            for partition in range(2):
                orders = [(2 * key + partition, key) for key in range(start, start + keys)]
                send_to(world, goods.orders, partition, orders)
            world.until(lambda missed=missed: all(map(int.__gt__, misses(children), missed)))  # type: ignore[misc]
        world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == [(n, name_of(n // 2)) for n in range(2 * rounds * keys)]
    assert shop.queried_keys(goods) == list(range(rounds * keys))
    assert sum(figure(child, "coalesced") for child in children) > 0


def misses(children: list[Child]) -> list[int]:
    return [figure(child, "misses") for child in children]


def test_a_refresh_while_a_worker_is_down(world: World, shop: Shop) -> None:
    """The command says who did not answer; who comes back answers with what is new."""
    goods, keys = shop.goods(world), 50
    reload = f"SYSTEM RELOAD DICTIONARY {goods.dictionary}"
    with working(world) as staying:
        with working(world, killed=True) as leaving:
            share(world, goods, staying, leaving)
            sell(world, goods, range(500), keys)
            kill_with_children(leaving)
        # Its last sign of life: it counts as alive for ten seconds more.
        world.catalog.worker_seen(leaving, world.session.context.now_ms)
        shop.database.execute(f"UPDATE shop.{goods.table} SET name = CONCAT('new', id)")
        with pytest.raises(ServiceUnavailable) as refused:
            world.execute(reload)
        assert leaving.id in str(refused.value)
        assert staying.id not in str(refused.value)
        with working(world) as back:
            share(world, goods, staying, back)
            sell(world, goods, range(500, 1000), keys)
            assert world.catalog.query(goods.view).progress["by_worker"][back.id]["rows_in"] > 0
            world.until(lambda: leaving.id not in world.session.context.live_workers())
            world.execute(reload)
    old, new = expected(range(500), keys), expected(range(500, 1000), keys)
    assert found(world, goods.view) == old + [(n, name and name.replace("name", "new")) for n, name in new]


def test_the_children_of_a_worker_that_stands_still_end_before_nobody_waits_for_it(world: World, shop: Shop) -> None:
    """Else a refresh would be reported as done while they serve what was cached before."""
    goods, keys = shop.goods(world), 50
    with working(world, killed=True) as worker:
        sell(world, goods, range(500), keys)
        child = child_of(worker)
        os.kill(worker.pid, signal.SIGSTOP)
        world.until(lambda: worker.id not in world.session.context.live_workers())
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        shop.database.execute(f"UPDATE shop.{goods.table} SET name = CONCAT('new', id)")
        world.execute(f"SYSTEM RELOAD DICTIONARY {goods.dictionary}")
        os.kill(worker.pid, signal.SIGCONT)
        sell(world, goods, range(500, 1000), keys)
        kill_with_children(worker)
    old, new = expected(range(500), keys), expected(range(500, 1000), keys)
    assert found(world, goods.view) == old + [(n, name and name.replace("name", "new")) for n, name in new]


def share(world: World, goods: Goods, *workers: Worker) -> None:
    """Wait until each has one partition."""
    world.until(
        lambda: all(holds_partitions(httpx.get(f"{worker.address}/metrics").text, goods.view, 1) for worker in workers)
    )


def sell(world: World, goods: Goods, numbers: range, keys: int) -> None:
    world.send(goods.orders, [{"n": n, "k": n % keys} for n in numbers], key="n")
    world.drained(goods.view, goods.orders)


def kill_with_children(worker: Worker) -> None:
    child = child_of(worker)
    os.kill(worker.pid, signal.SIGKILL)
    child.send_signal(signal.SIGKILL)
    psutil.wait_procs([child], 20)


def test_a_source_that_refuses_is_told_of_until_it_answers(world: World, shop: Shop) -> None:
    goods = shop.goods(world, timeout_s=2.0)
    world.start(goods.view)
    send_to(world, goods.orders, 0, [(0, 0)])
    world.until(lambda: answered(world, goods.view) == 1)
    shop.database.execute(f"RENAME TABLE shop.{goods.table} TO shop.away")
    send_to(world, goods.orders, 0, [(1, 1)])
    world.until(lambda: world.catalog.query(goods.view).actual is Actual.RECOVERING)
    assert goods.table in world.catalog.query(goods.view).error
    shop.database.execute(f"RENAME TABLE shop.away TO shop.{goods.table}")
    world.until(lambda: world.catalog.query(goods.view).actual is Actual.RUNNING)
    assert world.catalog.query(goods.view).error == ""
    world.drained(goods.view, goods.orders)
    assert found(world, goods.view) == expected(range(2), 2)
