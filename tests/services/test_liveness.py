"""What is believed of runners and workers, also when the time of day was set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.runtime.sole_holder import LEASE_S
from dovetail.services.liveness import DOWN, FINISHED, query_statuses
from dovetail.sql.catalog import Actual, Catalog, Leadership, Query, Worker
from dovetail.sql.engines import Engine

NOW_MS = 1_704_110_400_000
DAY_MS = 86_400_000
LEASE_MS = int(LEASE_S * 1000)
THREE_ROWS = "CREATE TABLE t (id int, PRIMARY KEY (id)) WITH (connector = 'datagen', 'number-of-rows' = 3)"


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """A running query of each engine; their runners have just given a sign of life."""
    opened = Catalog.open("sqlite://")
    alive_at(opened, NOW_MS)
    for engine in Engine:
        sql = THREE_ROWS if engine is Engine.DATAGEN else "SELECT 1"
        added = opened.add_query(Query(f"of_{engine}", sql, "", "", "t", engine=engine), now_ms=0)
        opened.report(added.id, now_ms=0, actual=Actual.RUNNING)
    yield opened
    opened.close()


def alive_at(catalog: Catalog, now_ms: int) -> None:
    held = catalog.take_leadership(Leadership(Engine.SPARK, "host:1", now_ms + LEASE_MS), now_ms=0)
    catalog.renew_leadership(held, now_ms + LEASE_MS)
    catalog.worker_seen(Worker("w", "host", 2), now_ms)


def states(catalog: Catalog, now_ms: int) -> set[str]:
    return {one.state for one in query_statuses(catalog, now_ms)}


def test_a_sign_of_life_is_good_for_ten_seconds(catalog: Catalog) -> None:
    assert states(catalog, NOW_MS + LEASE_MS - 1) == {Actual.RUNNING}
    assert states(catalog, NOW_MS + LEASE_MS + 1) == {DOWN}


@pytest.mark.parametrize("days", [1, -1], ids=["forward", "back"])
def test_when_the_time_of_day_is_set_the_next_sign_of_life_is_the_one_that_counts(catalog: Catalog, days: int) -> None:
    """One that has died does not live for a day because of it."""
    set_ms = NOW_MS + days * DAY_MS
    assert states(catalog, set_ms) == {DOWN}
    alive_at(catalog, set_ms)
    assert states(catalog, set_ms) == {Actual.RUNNING}


def test_a_runner_that_has_just_begun_runs_no_query_until_it_says_so(catalog: Catalog) -> None:
    """Else `up` would take the word of the one before it, and say that all is well while nothing runs yet."""
    catalog.take_leadership(Leadership(Engine.SPARK, "host:2", NOW_MS + 2 * LEASE_MS), now_ms=NOW_MS + LEASE_MS + 1)
    of_spark, of_faust, generated = query_statuses(catalog, NOW_MS)
    assert generated.state == Actual.RECOVERING
    assert (of_spark.state, of_spark.why) == (Actual.RECOVERING, "what ran it has gone")
    assert of_faust.state == Actual.RUNNING
    catalog.note_runner_gone(Engine.FAUST)
    assert states(catalog, NOW_MS) == {Actual.RECOVERING}


@pytest.mark.parametrize(("rows", "state"), [(2, Actual.RUNNING), (3, FINISHED)])
def test_a_generator_has_finished_once_all_its_rows_are_made(catalog: Catalog, rows: int, state: str) -> None:
    query = catalog.query(f"of_{Engine.DATAGEN}")
    catalog.report(query.id, now_ms=0, progress={"counts": {"rows_out": rows}})
    made = next(one for one in query_statuses(catalog, NOW_MS) if one.query.id == query.id)
    assert (made.state, made.healthy) == (state, True)
    catalog.report(query.id, now_ms=0, actual=Actual.RECOVERING)
    assert next(one for one in query_statuses(catalog, NOW_MS) if one.query.id == query.id).state == Actual.RECOVERING
