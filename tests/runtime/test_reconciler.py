"""The loop that both engines' supervisors share, over a catalog, with a driver whose queries end when they are told."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dovetail.broker import topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.backoff import Backoff
from dovetail.runtime.leases import LEASE_S, Leases, lease_from_now
from dovetail.runtime.logs.query_logs import QueryLogFiles
from dovetail.runtime.reconciler import Reconciler, Watched
from dovetail.runtime.retry_state import Failure
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.engines import Engine

AWAY = Failure("Kafka does not answer")
DEFECT = Failure("a defect", final=True)
BACKOFF = Backoff(first_s=1.0, longest_s=15.0)


@dataclass
class Driver:
    """Holds what it has started; ``next_watched`` is what the next looks at a query show."""

    alone: bool = True
    slow_end: bool = False
    fails: Failure | None = None
    next_watched: list[Watched] = field(default_factory=list)
    defects: dict[str, Exception] = field(default_factory=dict)
    gate: threading.Event | None = None
    end_requests: int = 0
    running: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)

    def holds(self, query: Query) -> bool:
        return query.name in self.running

    def start(self, query: Query) -> Failure | None:
        self.started.append(query.name)
        if self.gate is not None and query.name == "q":
            self.gate.wait(10)
        if self.fails is None:
            self.running.add(query.name)
        return self.fails

    def watch(self, query: Query) -> Watched:
        self._raise(query)
        watched = self.next_watched.pop(0) if self.next_watched else Watched()
        if watched.failure is not None:
            self.running.discard(query.name)
        return watched

    def _raise(self, query: Query) -> None:
        if query.name in self.defects:
            raise self.defects[query.name]

    def end(self, query: Query) -> bool:
        self.end_requests += 1
        if query.desired is not Desired.RUNNING:
            self._raise(query)
        if self.slow_end and query.name in self.running:
            self.slow_end = False
            return False
        self.running.discard(query.name)
        return True

    def discard(self, query: Query) -> bool:
        self.discarded.append(query.name)
        return self.alone

    def speaks_for(self, query: Query) -> bool:
        return self.alone


@dataclass
class World:
    catalog: Catalog
    driver: Driver = field(default_factory=Driver)
    now_s: float = 0.0
    brokers: BrokerAddress | None = None
    logs: QueryLogFiles = field(default_factory=lambda: QueryLogFiles(Path("nowhere"), 1))

    def __post_init__(self) -> None:
        self._reconciler = self.reconciler()

    def reconciler(self, tasks: Executor | None = None) -> Reconciler:
        log = logging.getLogger("dovetail.test")
        leases = None if self.brokers is None else Leases(self.catalog, self.brokers, self.logs, lambda: self.now_s)
        return Reconciler(
            self.catalog, Engine.SPARK, self.driver, BACKOFF, log, lambda: self.now_s, tasks=tasks, leases=leases
        )

    def look(self) -> None:
        self._reconciler.look()

    @property
    def calm(self) -> bool:
        return self._reconciler.calm

    def actual(self) -> Actual:
        return self.catalog.query("q").actual


@pytest.fixture
def world() -> Iterator[World]:
    catalog = Catalog.open("sqlite://")
    catalog.add_query(Query("q", "SELECT 1", "", "", "q"), now_ms=0)
    catalog.add_query(Query("elsewhere", "SELECT 1", "", "", "e", engine="faust"), now_ms=0)
    yield World(catalog)
    catalog.close()


def test_what_is_to_run_is_started_once(world: World) -> None:
    world.look()
    world.look()
    assert world.driver.started == ["q"]


def test_a_lost_service_is_waited_for_with_growing_pauses(world: World) -> None:
    world.driver.fails = AWAY
    starts = []
    while world.now_s < 40:
        before = len(world.driver.started)
        world.look()
        if len(world.driver.started) > before:
            starts.append(world.now_s)
        world.now_s += 0.5
    assert starts == [0, 1, 3, 7, 15, 30]
    query = world.catalog.query("q")
    assert (query.actual, query.error, query.restarts) == (Actual.RECOVERING, "Kafka does not answer", len(starts) - 1)
    assert query.next_try_ms > 0


def test_it_is_waited_for_for_ever_and_nobody_has_to_say_that_it_is_back(world: World) -> None:
    world.driver.fails = AWAY
    while world.now_s < 24 * 3600:
        world.look()
        world.now_s += 600
    assert world.actual() is Actual.RECOVERING
    world.driver.fails, world.driver.next_watched = None, [Watched(healthy=True)]
    world.look()
    world.look()
    query = world.catalog.query("q")
    assert (query.actual, query.error, query.next_try_ms) == (Actual.RUNNING, "", 0)


def test_a_start_alone_is_no_sign_that_it_runs(world: World) -> None:
    world.look()
    world.look()
    assert (world.driver.running, world.actual()) == ({"q"}, Actual.PENDING)
    world.driver.next_watched = [Watched(healthy=True)]
    world.look()
    assert world.actual() is Actual.RUNNING


def test_one_whose_runner_was_killed_is_recovering_until_it_does_its_work(world: World) -> None:
    query = world.catalog.query("q")
    world.catalog.report(query.id, now_ms=0, actual=Actual.RUNNING)
    world.look()
    assert (world.actual(), world.catalog.query("q").restarts) == (Actual.RECOVERING, 1)
    world.driver.next_watched = [Watched(healthy=True)]
    world.look()
    assert (world.actual(), world.catalog.query("q").error) == (Actual.RUNNING, "")


def test_one_that_was_stopped_in_order_is_not_restarted_but_started(world: World) -> None:
    query = world.catalog.query("q")
    world.catalog.report(query.id, now_ms=0, actual=Actual.STOPPED)
    world.look()
    assert world.catalog.query("q").restarts == 0


def test_a_running_query_that_waits_says_for_what(world: World) -> None:
    world.driver.next_watched = [Watched(healthy=True), Watched(waits="no broker answers"), Watched(healthy=True)]
    said = []
    for _ in range(4):
        world.look()
        query = world.catalog.query("q")
        said.append((query.actual, query.error))
    assert said[1:] == [(Actual.RUNNING, ""), (Actual.RECOVERING, "no broker answers"), (Actual.RUNNING, "")]
    assert world.driver.started == ["q"]


def test_a_recovery_ends_the_trouble(world: World) -> None:
    world.driver.next_watched = [Watched(failure=AWAY), Watched(healthy=True), Watched(failure=AWAY)]
    for world.now_s in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        world.look()
    assert world.driver.started == ["q", "q", "q"]


def test_a_defect_ends_the_query_at_once(world: World) -> None:
    world.driver.fails = DEFECT
    world.look()
    assert (world.actual(), world.catalog.query("q").error) == (Actual.FAILED, "a defect")


def test_what_cannot_even_be_looked_at_holds_up_no_other(world: World) -> None:
    world.catalog.add_query(Query("r", "SELECT 1", "", "", "r"), now_ms=0)
    world.driver.defects["q"] = ValueError("a truncated file")
    for _ in range(3):
        world.look()
    assert "r" in world.driver.running
    query = world.catalog.query("q")
    assert query.actual is Actual.FAILED
    assert "ValueError: a truncated file" in query.error


def test_a_lost_catalog_is_no_trouble_of_the_query(world: World) -> None:
    world.driver.next_watched = [Watched(healthy=True)]
    world.look()
    world.look()
    world.driver.defects["q"] = ServiceUnavailable("the catalog does not answer")
    world.look()
    assert (world.actual(), world.driver.running) == (Actual.RUNNING, {"q"})


def test_it_is_calm_where_no_state_has_changed_for_a_while(world: World) -> None:
    def seen_after(seconds: float) -> bool:
        world.now_s += seconds
        world.look()
        return world.calm

    assert not seen_after(0.1)
    assert not seen_after(4.0)
    assert seen_after(2.0)
    world.catalog.want("q", Desired.PAUSED, now_ms=1)
    assert not seen_after(1.0)
    assert world.actual() is Actual.PAUSED
    assert not seen_after(1.0)
    assert seen_after(6.0)


def test_what_stands_in_the_way_of_an_end_is_tried_again_with_pauses(world: World) -> None:
    world.catalog.want("q", Desired.DROPPED, now_ms=0)
    world.driver.defects["q"] = OSError("the folder is not there")
    while world.now_s < 8:
        world.look()
        world.now_s += 0.5
    assert world.driver.end_requests == 4
    world.driver.defects.clear()
    world.now_s = 100
    world.look()
    assert {query.name for query in world.catalog.queries(dropped=True)} == {"elsewhere"}


def test_a_slow_query_stalls_no_other(tmp_path: Path) -> None:
    world = World(Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}"))
    world.catalog.add_query(Query("q", "SELECT 1", "", "", "q"), now_ms=0)
    world.catalog.add_query(Query("r", "SELECT 1", "", "", "r"), now_ms=0)
    world.driver.gate = threading.Event()
    with ThreadPoolExecutor(2) as tasks:
        reconciler = world.reconciler(tasks)
        reconciler.look()
        _until(lambda: "r" in world.driver.running)
        world.catalog.want("r", Desired.PAUSED, now_ms=0)
        _until(lambda: bool(reconciler.look()) and world.catalog.query("r").actual is Actual.PAUSED)
        assert world.driver.running == set()
        world.driver.gate.set()
        _until(lambda: "q" in world.driver.running)
    assert world.driver.started.count("q") == 1


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pause_is_said_once_the_query_has_ended(world: World) -> None:
    world.look()
    world.driver.slow_end = True
    world.catalog.want("q", Desired.PAUSED, now_ms=0)
    world.look()
    assert world.actual() is not Actual.PAUSED
    world.look()
    assert world.actual() is Actual.PAUSED


def test_who_does_not_run_it_alone_says_nothing_of_it(world: World) -> None:
    world.driver.alone = False
    world.driver.fails = AWAY
    world.look()
    assert world.catalog.query("q").error == ""
    world.catalog.want("q", Desired.PAUSED, now_ms=0)
    world.look()
    assert world.actual() is Actual.PENDING


def test_a_dropped_query_is_forgotten_when_nobody_keeps_anything(world: World) -> None:
    world.look()
    world.catalog.want("q", Desired.DROPPED, now_ms=0)
    world.driver.alone = False
    world.look()
    assert "q" in {query.name for query in world.catalog.queries(dropped=True)}
    world.driver.alone = True
    world.look()
    assert {query.name for query in world.catalog.queries(dropped=True)} == {"elsewhere"}
    assert world.driver.discarded == ["q", "q"]


@pytest.fixture
def leasing(broker: str, tmp_path: Path) -> Iterator[World]:
    """Queries of sessions: of one that is there, of one that is not, and a view."""
    catalog = Catalog.open("sqlite://")
    for name, lease_ms in (("held", lease_from_now()), ("left", 1), ("view", 0)):
        catalog.add_query(Query(name, "SELECT 1", "", "", name, lease_ms=lease_ms), now_ms=0)
    yield World(catalog, brokers=BrokerAddress(broker), logs=QueryLogFiles(tmp_path, files=2))
    catalog.close()


@pytest.mark.services
def test_a_query_whose_session_is_gone_leaves_nothing(leasing: World, broker: str) -> None:
    admin = TopicAdmin(BrokerAddress(broker), 10)
    for topic in ("held", "left", "left.dead_letter", "view"):
        admin.create(topic, TopicShape(partitions=1))
    for log in ("held.log", "left.log", "left.log.1", "view.log"):
        (leasing.logs.folder / log).write_text("a line\n")
    leasing.look()
    assert leasing.driver.started == ["held", "left", "view"]
    leasing.now_s = LEASE_S
    leasing.catalog.renew("held", lease_from_now() + 1)
    leasing.look()
    leasing.now_s += 1
    leasing.look()
    assert leasing.driver.discarded == ["left"]
    assert [query.name for query in leasing.catalog.queries(dropped=True)] == ["held", "view"]
    assert {"held", "view"} <= admin.partitions().keys()
    assert not {"left", "left.dead_letter"} & admin.partitions().keys()
    assert sorted(path.name for path in leasing.logs.folder.iterdir()) == ["held.log", "view.log"]
    leasing.catalog.renew("nothing", 1)
    leasing.now_s += LEASE_S
    leasing.look()
    assert [query.name for query in leasing.catalog.queries(dropped=True)] == ["view"]
    admin.delete(["view"])


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> BrokerAddress:
    """Where no broker answers; who asks there does not wait for long."""
    monkeypatch.setattr(topics, "_CALL_S", 0.2)
    return BrokerAddress("127.0.0.1:1")


@pytest.mark.parametrize("days", [1, -1], ids=["forward", "back"])
def test_a_session_lives_on_when_the_time_of_day_is_set(world: World, nobody: BrokerAddress, days: int) -> None:
    """Its lease is then of another day, and the runner's clock of this one, or the other way round."""
    away = World(world.catalog, driver=world.driver, brokers=nobody)
    set_ms = lease_from_now() + days * 86_400_000
    for _ in range(4):
        world.catalog.renew("q", set_ms + int(away.now_s * 1000))
        away.look()
        away.now_s += LEASE_S / 2
    assert "q" in [query.name for query in world.catalog.queries()]


@pytest.mark.parametrize("days", [0, 1, -1], ids=["in time", "ahead", "behind"])
def test_a_session_that_is_silent_is_gone_whatever_its_clock_was(
    world: World, nobody: BrokerAddress, days: int
) -> None:
    away = World(world.catalog, driver=world.driver, brokers=nobody)
    world.catalog.renew("q", lease_from_now() + days * 86_400_000)
    away.look()
    away.now_s = LEASE_S + 1
    away.look()
    assert "q" not in [query.name for query in world.catalog.queries()]


def test_the_topics_of_a_query_are_deleted_when_the_broker_is_back(world: World, nobody: BrokerAddress) -> None:
    """Until then it is not forgotten."""
    away = World(world.catalog, brokers=nobody)
    world.catalog.renew("q", 1)
    away.look()
    away.now_s = LEASE_S + 1
    away.look()
    assert "q" in [query.name for query in world.catalog.queries(dropped=True)]
    assert "q" not in [query.name for query in world.catalog.queries()]
