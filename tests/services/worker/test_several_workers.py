"""Several workers of one group, in a storm: they join, leave, hang and wake up while rows are updated and answered.

What is answered to updates depends on what was answered before, so a batch that two had written, or none, would show:
the rows that are taken back would not be those that stand.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from dovetail.services.worker.query.child import WAITS
from dovetail.services.worker.supervisor.child_process import Child
from tests.services.worker.conftest import World
from tests.services.worker.shop import answered, await_more
from tests.services.worker.test_worker import child_of, working
from tests.spark.kafka import messages

pytestmark = pytest.mark.services

_KEYS = 400
_TOWNS = 300
_SESSION_S = 6.0
Person = tuple[int, int, str | None]
"""A key, the number of its last record, and the name of its town."""


@pytest.fixture
def world(broker: str, tmp_path: Path) -> Iterator[World]:
    made = World(broker, tmp_path, worker_session_timeout_s=_SESSION_S, worker_commit_interval_ms=20)
    yield made
    made.close()


def people_and_towns(world: World, partitions: int) -> tuple[str, str]:
    """A stream whose rows are replaced all the time, and the view of each with the name of its town."""
    people, view = f"people{world.number}", f"settled{world.number}"
    world.fill("towns", [(n, f"town{n}") for n in range(_TOWNS)], "id INTEGER PRIMARY KEY, name TEXT")
    world.execute(
        f"CREATE MUTABLE STREAM {people} (k int, n int, town int) PRIMARY KEY (k) SETTINGS shards = {partitions}"
    )
    world.execute(
        f"CREATE DICTIONARY towns{world.number} (id int, name string) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{world.database}' TABLE 'towns')) LAYOUT(DIRECT())"
    )
    world.view(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT p.k, p.n, t.name FROM {people} AS p LEFT JOIN "
        f"towns{world.number} AS t ON p.town = t.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
    )
    return people, view


@contextmanager
def moving(world: World, people: str) -> Iterator[list[int]]:
    """Everybody moves all the time, some to no town at all; in the end the list has how often."""
    stopped, moves = threading.Event(), [0]

    def write() -> None:
        while not stopped.wait(0.02):
            numbers = range(moves[0], moves[0] + 100)
            world.send(people, [{"k": n % _KEYS, "n": n, "town": town_of(n)} for n in numbers])
            moves[0] += 100

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield moves
    finally:
        stopped.set()
        writer.join()


def town_of(number: int) -> int:
    return number * 7 % (_TOWNS + 50)


def last_moves(moves: int) -> set[Person]:
    last = {n % _KEYS: n for n in range(moves)}
    return {(k, n, f"town{town_of(n)}" if town_of(n) < _TOWNS else None) for k, n in last.items()}


def current_people(world: World, view: str) -> Counter[Person]:
    """The rows that are left; at no place of the changelog is one taken back that does not stand."""
    rows: Counter[Person] = Counter()
    for message in messages(world.broker, view):
        row = orjson.loads(message.value() or b"null")
        person = (row["k"], row["n"], row["name"])
        rows[person] += row["_tp_delta"]
        assert rows[person] in (0, 1), f"{person} stands {rows[person]} times at offset {message.offset()}"
    return +rows


def await_answers(world: World, view: str, *workers: str) -> None:
    for worker in workers:
        world.until(lambda worker=worker: worker in world.catalog.query(view).progress.get("by_worker", {}))  # type: ignore[misc]
        await_more(world, view, worker, least=100)


def await_answers_after(world: World, view: str, worker: str, process: Child) -> None:
    """As ``await_answers``, of a process that is supervised: where its environment has ended it, as a request to the
    broker does that was under way as it fell asleep, it is started again, and counts from 0.
    """
    seen, more = answered(world, view, worker), 0

    def enough() -> bool:
        nonlocal process, seen, more
        if process.ended() == WAITS:
            process = world.start(view, worker)
        before, seen = seen, answered(world, view, worker)
        more += max(seen - before, 0)
        return more >= 100

    world.until(enough)


def test_a_storm_of_rebalances_and_one_that_wakes_up_in_it(world: World) -> None:
    """Three at work while others come and go. Then one of the three stands still until its partitions are answered by
    others, and wakes up with a transaction that is open.
    """
    people, view = people_and_towns(world, partitions=12)
    with moving(world, people) as moves:
        hung, *_ = [world.start(view, worker) for worker in ("one", "two", "three")]
        await_answers(world, view, "one", "two", "three")
        for name in ("four", "five"):
            passing = world.start(view, name)
            await_answers(world, view, name)
            assert world.stop(passing) == 0
        await_answers(world, view, "one")
        hung.signal(signal.SIGSTOP)
        everywhere(world, view, people)
        before = answered(world, view, "one")
        everywhere(world, view, people)
        assert answered(world, view, "one") == before
        hung.signal(signal.SIGCONT)
        await_answers_after(world, view, "one", hung)
        await_answers(world, view, "two", "three")
    world.drained(view, people)
    assert set(current_people(world, view)) == last_moves(moves[0])


def everywhere(world: World, view: str, people: str) -> None:
    """Wait until each partition is answered beyond where it ends now."""
    ends = world.topics.quiescent_ends(people)

    def beyond() -> bool:
        offsets = world.catalog.query(view).progress["offsets"][people]
        return all(offsets.get(str(partition), 0) > end for partition, end in ends.items())

    world.until(beyond)


def test_a_process_that_hangs_under_its_worker_is_replaced(world: World) -> None:
    """The only one: nobody else would take its partitions, and the worker itself is well."""
    people, view = people_and_towns(world, partitions=2)
    with working(world) as worker:
        with moving(world, people) as moves:
            await_answers(world, view, worker.id)
            hung = child_of(worker)
            hung.suspend()
            hung.wait(60)
        world.drained(view, people)
    assert world.catalog.query(view).restarts == 1
    assert set(current_people(world, view)) == last_moves(moves[0])
