"""A view whose checkpoint is on a disk that is full, or cannot be written to: it says so, and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.changelog.errors import DovetailError, EnvironmentFault
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.runner.failure import of_driver
from dovetail.spark_jobs.runner.query import RunningQuery
from tests.bad_disks import filled, read_only, small_disk
from tests.spark.conftest import Queries
from tests.spark.flows import orders_clicks
from tests.spark.kafka import multiset, send, values

pytestmark = pytest.mark.services
WAIT_S = 60.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as mounted:
        yield mounted


@pytest.fixture
def queries(spark: SparkSession, broker: str, disk: Path) -> Iterator[Queries]:
    """Whose checkpoints are on the disk."""
    started = Queries(spark, broker, disk)
    yield started
    started.stop_all()


def ended_by(query: RunningQuery) -> DovetailError:
    deadline = time.monotonic() + WAIT_S
    while (error := query.error()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return error


def in_trouble_at_work(
    queries: Queries, dataflow: Dataflow, name: str, disk: Path, send_more: Callable[[], None]
) -> DovetailError:
    """What ends a query whose disk fills up under it."""
    query = queries.start(dataflow, name)
    with filled(disk):
        send_more()
        error = ended_by(query)
        query.stop()
    return error


def in_trouble_at_its_start(
    queries: Queries, dataflow: Dataflow, name: str, disk: Path, send_more: Callable[[], None]
) -> DovetailError:
    """What stands in the way of a query whose disk was mounted for reading only."""
    send_more()
    with read_only(disk):
        try:
            query = queries.start(dataflow, name)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the runner tells it so
            return of_driver(failure, name)
        error = ended_by(query)
        query.stop()
        return error


@pytest.mark.parametrize(
    ("in_trouble", "reason", "fix"),
    [
        (in_trouble_at_work, "No space left on device", "free some space"),
        (in_trouble_at_its_start, "Read-only file system", "for writing"),
    ],
    ids=["full", "read-only"],
)
def test_a_query_waits_for_its_disk_and_loses_nothing(
    in_trouble: Callable[..., DovetailError],
    reason: str,
    fix: str,
    queries: Queries,
    disk: Path,
    broker: str,
    topics: Callable[..., str],
) -> None:
    left, right, name = topics("left"), topics("right"), queries.new_name()
    dataflow = orders_clicks(left, right)
    send(broker, left, [{"k": 1, "a": "x"}])
    send(broker, right, [{"k": 1, "b": "y"}, {"k": 2, "b": "z"}])
    query = queries.start(dataflow, name)
    queries.drain(query, dataflow)
    query.stop()

    error = in_trouble(queries, dataflow, name, disk, lambda: send(broker, left, [{"k": 2, "a": "w"}]))

    assert isinstance(error, EnvironmentFault), str(error)
    assert reason in error.what
    assert fix in error.fix
    again = queries.start(dataflow, name)
    queries.drain(again, dataflow)
    assert multiset(values(broker, name)) == {(1, "x", "y"): 1, (2, "w", "z"): 1}
