"""Processes that die, join and leave: what a read_committed reader finds is what an unbroken run would have written."""

from __future__ import annotations

import signal
import time

import pytest

from tests.services.worker.conftest import World
from tests.services.worker.test_end_to_end import orders_and_products

pytestmark = pytest.mark.services

_KEYS = 150
_PRODUCTS = 100


def expected(count: int) -> list[tuple[int, str | None]]:
    return [(n, f"name{n % _KEYS}" if n % _KEYS < _PRODUCTS else None) for n in range(count)]


def found(world: World, view: str) -> list[tuple[int, str | None]]:
    return sorted((row["n"], row["name"]) for row in world.values(view))


def await_rows(world: World, view: str, least: int) -> None:
    world.until(lambda: world.catalog.query(view).progress.get("counts", {}).get("rows_in", 0) >= least)


def test_killed_several_times_it_writes_everything_once(world: World) -> None:
    orders, view = orders_and_products(world)
    with world.load(orders, _KEYS, chunk=200, pause_s=0.01) as written:
        for life in range(3):
            child = world.start(view, worker=f"life{life}")
            await_rows(world, view, (life + 1) * 2000)
            world.kill(child)
    world.start(view, worker="last")
    world.drained(view, orders)
    assert found(world, view) == expected(written())


def test_a_second_worker_joins_and_leaves_under_load(world: World) -> None:
    orders, view = orders_and_products(world, partitions=4)
    with world.load(orders, _KEYS, chunk=200, pause_s=0.01) as written:
        first = world.start(view, worker="first")
        await_rows(world, view, 1000)
        second = world.start(view, worker="second")
        world.until(lambda: world.catalog.query(view).progress["by_worker"].get("second", {}).get("rows_in", 0) > 1000)
        assert world.stop(first) == 0
        before = world.catalog.query(view).progress["by_worker"]["second"]["rows_in"]
        world.until(lambda: world.catalog.query(view).progress["by_worker"]["second"]["rows_in"] > before + 1000)
    world.drained(view, orders)
    assert world.stop(second) == 0
    assert found(world, view) == expected(written())


def test_a_worker_that_hangs_is_replaced_and_refused_when_it_wakes(world: World) -> None:
    orders, view = orders_and_products(world)
    with world.load(orders, _KEYS, chunk=200, pause_s=0.01) as written:
        hung = world.start(view, worker="hung")
        await_rows(world, view, 1000)
        hung.signal(signal.SIGSTOP)
        world.start(view, worker="other")
        world.until(lambda: world.catalog.query(view).progress["by_worker"].get("other", {}).get("rows_in", 0) > 1000)
        hung.signal(signal.SIGCONT)
        time.sleep(1)
    world.drained(view, orders)
    assert found(world, view) == expected(written())


def test_a_poison_record_is_a_dead_letter(world: World) -> None:
    orders, view = orders_and_products(world)
    world.send(orders, [{"n": 0, "k": 0}])
    world.send_bytes(orders, b"{poison")
    world.send(orders, [{"n": 1, "k": 1}])
    world.start(view)
    world.drained(view, orders)
    assert found(world, view) == expected(2)
    assert world.topics.ends(f"{view}.dead_letter")[0] > 0


def test_a_memo_is_restored_where_nothing_is_kept(world: World) -> None:
    """What was answered is taken back as it was, on another machine and after the source has changed."""
    people, view = f"people{world.number}", f"named{world.number}"
    world.fill("towns", [(1, "Bern"), (2, "Rome")], "id INTEGER PRIMARY KEY, town TEXT")
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
    child = world.start(view, worker="here")
    world.drained(view, people)
    assert world.stop(child) == 0
    world.fill("towns", [(1, "Berne")], "id INTEGER PRIMARY KEY, town TEXT")
    world.start(view, worker="there")
    world.send(people, [{"k": 7, "town": 2}])
    world.drained(view, people)
    assert [(row["k"], row["town"], row["_tp_delta"]) for row in world.values(view)] == [
        (7, "Bern", 1),
        (7, "Bern", -1),
        (7, "Rome", 1),
    ]
