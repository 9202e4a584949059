"""The loop that both engines' supervisors share, over a catalog, with a driver whose queries end when they are told."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from broker.address import BrokerAddress
from broker.topic_shapes import TopicAdmin, TopicShape
from runtime.leases import Leases, lease_from_now
from runtime.reconciler import Reconciler, Watched
from runtime.troubles import Patience, Setback
from sql.catalog import Actual, Catalog, Desired, Query
from sql.fragments import Engine

AWAY = Setback("waits for a service", "Kafka does not answer")
DEFECT = Setback("fails", "a defect", final=True)
CRASH = Setback("crashed", "killed", "killed, again and again", crash=True)
PATIENCE = Patience(first_pause_s=1.0, wait_s=100.0, crashes=3)


@dataclass
class Driver:
    """Holds what it has started; ``next_watched`` is what the next looks at a query show."""

    alone: bool = True
    slow_end: bool = False
    fails: Setback | None = None
    next_watched: list[Watched] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)

    def holds(self, query: Query) -> bool:
        return query.name in self.running

    def start(self, query: Query) -> Setback | None:
        self.started.append(query.name)
        if self.fails is None:
            self.running.add(query.name)
        return self.fails

    def watch(self, query: Query) -> Watched:
        watched = self.next_watched.pop(0) if self.next_watched else Watched()
        if watched.setback is not None:
            self.running.discard(query.name)
        return watched

    def end(self, query: Query) -> bool:
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

    def __post_init__(self) -> None:
        log = logging.getLogger("dovetail.test")
        leases = None if self.brokers is None else Leases(self.catalog, self.brokers)
        self._reconciler = Reconciler(
            self.catalog, Engine.SPARK, self.driver, PATIENCE, log, lambda: self.now_s, leases=leases
        )

    def look(self) -> None:
        self._reconciler.look()

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
    assert (world.actual(), world.catalog.query("q").error) == (Actual.PENDING, "Kafka does not answer")


def test_it_is_not_waited_for_for_ever(world: World) -> None:
    world.driver.fails = AWAY
    while world.now_s < 120:
        world.look()
        world.now_s += 1
    assert world.actual() is Actual.FAILED
    started = len(world.driver.started)
    world.look()
    assert len(world.driver.started) == started


def test_a_recovery_ends_the_trouble(world: World) -> None:
    world.driver.next_watched = [Watched(setback=AWAY), Watched(recovered=True), Watched(setback=AWAY)]
    for world.now_s in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        world.look()
    assert world.driver.started == ["q", "q", "q"]


def test_a_defect_ends_the_query_at_once(world: World) -> None:
    world.driver.fails = DEFECT
    world.look()
    assert (world.actual(), world.catalog.query("q").error) == (Actual.FAILED, "a defect")


def test_crashes_on_end_are_no_outage(world: World) -> None:
    world.driver.next_watched = [Watched(setback=CRASH)] * 3
    while world.actual() is not Actual.FAILED:
        world.look()
        world.now_s += 10
    assert len(world.driver.started) == 3
    assert world.catalog.query("q").error == "killed, again and again"


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
def leasing(broker: str) -> Iterator[World]:
    """Queries of sessions: of one that is there, of one that is not, and a view."""
    catalog = Catalog.open("sqlite://")
    for name, lease_ms in (("held", lease_from_now()), ("left", 1), ("view", 0)):
        catalog.add_query(Query(name, "SELECT 1", "", "", name, lease_ms=lease_ms), now_ms=0)
    yield World(catalog, brokers=BrokerAddress(broker))
    catalog.close()


@pytest.mark.services
def test_a_query_whose_session_is_gone_leaves_nothing(leasing: World, broker: str) -> None:
    admin = TopicAdmin(BrokerAddress(broker), 10)
    for topic in ("held", "left", "left.dead_letter", "view"):
        admin.create(topic, TopicShape(partitions=1))
    leasing.look()
    assert leasing.driver.started == ["held", "view"]
    assert leasing.driver.discarded == ["left"]
    assert [query.name for query in leasing.catalog.queries(dropped=True)] == ["held", "view"]
    assert {"held", "view"} <= admin.partitions().keys()
    assert not {"left", "left.dead_letter"} & admin.partitions().keys()
    leasing.catalog.renew("held", 1)
    leasing.catalog.renew("nothing", 1)
    leasing.look()
    assert [query.name for query in leasing.catalog.queries(dropped=True)] == ["view"]
    admin.delete(["view"])


def test_the_topics_of_a_query_are_deleted_when_the_broker_is_back(world: World) -> None:
    """Until then it is not forgotten."""
    away = World(world.catalog, brokers=BrokerAddress("127.0.0.1:1"))
    world.catalog.renew("q", 1)
    away.look()
    assert "q" in [query.name for query in world.catalog.queries(dropped=True)]
    assert "q" not in [query.name for query in world.catalog.queries()]
