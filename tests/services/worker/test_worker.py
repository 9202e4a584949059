"""The worker as a process: it follows the catalog, commands and signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
import psutil
import pytest

from dovetail.broker.query_origin import QueryOrigin
from dovetail.services.cli.view_log import view_log
from dovetail.services.commands.command_codec import Refresh, Stats, UnknownCommand
from dovetail.sql.catalog import Actual, Desired, Worker
from tests.paths import ROOT
from tests.services.worker.conftest import World
from tests.services.worker.test_end_to_end import orders_and_products

pytestmark = pytest.mark.services

_LONG_AGO_MS = 0


@contextmanager
def working(world: World, *, killed: bool = False) -> Iterator[Worker]:
    """A worker, seen in the catalog; at the end it is told to stop, and must end well, unless it is ``killed``."""
    log = (world.folder / f"worker-{world.number}.log").open("w+")
    known = {worker.id for worker in world.catalog.workers(_LONG_AGO_MS)}
    process = subprocess.Popen(
        [sys.executable, "-m", "dovetail.services.worker"],
        cwd=ROOT,
        env=os.environ | world.settings.as_environment(),
        stdout=log,
        stderr=log,
    )
    try:
        world.until(lambda: bool(new(world, known)))
        yield new(world, known)[0]
        if not killed:
            process.terminate()
            assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        log.seek(0)
        print(log.read())
        log.close()


def new(world: World, known: set[str]) -> list[Worker]:
    return [worker for worker in world.catalog.workers(_LONG_AGO_MS) if worker.id not in known and worker.address]


def is_now(world: World, query: str, actual: Actual) -> bool:
    return world.catalog.query(query).actual is actual


def child_of(worker: Worker) -> psutil.Process:
    """The process of the only query, forked by the only child of the worker itself."""
    [fork_server] = psutil.Process(worker.pid).children()
    [child] = fork_server.children()
    return child


def reported_lookups(world: World, query: str) -> Mapping[str, list[int]]:
    """What the catalog has of the dictionaries of a query, from its only worker."""
    [held] = world.catalog.query(query).progress.get("held_by_worker", {"": {}}).values()
    tables: Mapping[str, list[int]] = held.get("tables", {})
    return tables


def test_a_query_is_run_paused_resumed_and_dropped(world: World) -> None:
    orders, view = orders_and_products(world)
    world.send(orders, [{"n": 0, "k": 0}])
    with working(world) as worker:
        world.until(lambda: is_now(world, view, Actual.RUNNING))
        world.drained(view, orders)
        assert httpx.get(f"{worker.address}/healthz").json()["queries"] == [view]
        world.until(lambda: httpx.get(f"{worker.address}/readyz").is_success)
        metrics = httpx.get(f"{worker.address}/metrics").text.splitlines()
        dictionary = f'{{dictionary="products{world.number}",query="{view}"}}'
        for line in (
            f'dovetail_worker_rows_in_total{{query="{view}"}} 1.0',
            f'dovetail_worker_restarts_total{{query="{view}"}} 0.0',
            f'dovetail_worker_memo_rows{{query="{view}"}} 0.0',
            "# TYPE dovetail_dictionary_query_count_total counter",
            f"dovetail_dictionary_query_count_total{dictionary} 1.0",
            "# TYPE dovetail_dictionary_loading_duration_seconds gauge",
            "# TYPE dovetail_dictionary_age_max_seconds gauge",
            "# TYPE dovetail_dictionary_element_count gauge",
        ):
            assert line in metrics
        world.until(lambda: reported_lookups(world, view).get(f"products{world.number}", [0] * 5)[2] == 1)
        world.catalog.want(view, Desired.PAUSED, now_ms=0)
        world.until(lambda: is_now(world, view, Actual.PAUSED))
        world.send(orders, [{"n": 1, "k": 1}])
        world.catalog.want(view, Desired.RUNNING, now_ms=0)
        world.drained(view, orders)
        assert [row["n"] for row in world.values(view)] == [0, 1]
        logged = list(view_log(world.settings, view, follow=False, lines=100))
        assert [line for line in logged if not re.match(rf"\S+Z [A-Z]+ {view} batch (-|\d+): ", line)] == []
        assert any(f" INFO {view} batch -: starting" in line for line in logged)
        assert any(f" INFO {view} batch 1: 1 records read, 1 written" in line for line in logged)
        world.catalog.want(view, Desired.DROPPED, now_ms=0)
        world.until(lambda: all(query.name != view for query in world.catalog.queries(dropped=True)))
        assert [path for path in (world.folder / "worker" / "1").iterdir() if path.is_dir()] == []
    assert world.catalog.workers(_LONG_AGO_MS) == []


def test_a_child_that_dies_is_started_again(world: World) -> None:
    orders, view = orders_and_products(world)
    with working(world) as worker:
        world.until(lambda: is_now(world, view, Actual.RUNNING))
        world.send(orders, [{"n": n, "k": 1} for n in range(100)])
        world.drained(view, orders)
        child_of(worker).send_signal(signal.SIGKILL)
        world.send(orders, [{"n": n, "k": 1} for n in range(100, 200)])
        world.drained(view, orders)
        assert sorted(row["n"] for row in world.values(view)) == list(range(200))
    assert is_now(world, view, Actual.STOPPED)


def test_a_worker_that_dies_takes_its_children_along(world: World) -> None:
    _, view = orders_and_products(world)
    with working(world, killed=True) as worker:
        world.until(lambda: is_now(world, view, Actual.RUNNING))
        child = child_of(worker)
        os.kill(worker.pid, signal.SIGKILL)
        child.wait(20)


def test_a_query_that_cannot_run_says_why(world: World) -> None:
    _, view = orders_and_products(world)
    world.database.unlink()
    world.catalog.set_checkpoint(
        world.catalog.query(view).id,
        QueryOrigin("i", "1:of another plan", "", ()).text,
    )
    with working(world):
        world.until(lambda: is_now(world, view, Actual.FAILED))
    assert "was started with another plan" in world.catalog.query(view).error


def test_commands_are_answered_once_by_each_worker(world: World) -> None:
    orders, view = orders_and_products(world)
    world.send(orders, [{"n": 0, "k": 0}])
    with working(world) as worker:
        world.drained(view, orders)
        commander = world.session.context.commander
        answers = commander.give(Stats(), lambda: [worker.id])
        [figures] = answers.given[0].outcome.detail["dictionaries"]
        assert figures["name"] == f"products{world.number}"
        refreshed = commander.give(Refresh(f"products{world.number}"), lambda: [worker.id])
        assert (refreshed.silent, refreshed.failed) == ((), ())
        [unknown] = commander.give(UnknownCommand("dance"), lambda: [worker.id]).given
        assert "dance" in unknown.outcome.error


def test_a_row_of_a_looked_up_stream_is_seen_by_what_comes_after_it(world: World) -> None:
    """Also after a restart, which reads the stream from where it stopped."""
    orders, goods, view = f"orders{world.number}", f"goods{world.number}", f"stocked{world.number}"
    world.execute(f"CREATE STREAM {orders} (n int, k int)")
    world.execute(f"CREATE MUTABLE STREAM {goods} (k int, name string) PRIMARY KEY (k)")
    world.view(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT o.n, g.name FROM {orders} AS o "
        f"JOIN {goods} AS g ON o.k = g.k SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
    )
    child = world.start(view)
    for n in range(5):
        world.send(goods, [{"k": 1, "name": f"name{n}"}])
        world.send(orders, [{"n": n, "k": 1}])
        world.drained(view, orders)
    assert world.stop(child) == 0
    world.send(goods, [{"k": 1, "name": "name5"}])
    world.send(orders, [{"n": 5, "k": 1}])
    world.start(view)
    world.drained(view, orders)
    assert [(row["n"], row["name"]) for row in world.values(view)] == [(n, f"name{n}") for n in range(6)]
