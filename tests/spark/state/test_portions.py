"""State that is five times what may be in memory, inside Spark: killed, without its copies, on a disk that is full."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.changelog.errors import EnvironmentFault, StateLimitExceeded
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.dataflow.state_memory import StateMemory
from tests.bad_disks import filled, small_disk
from tests.spark.conftest import Queries
from tests.spark.flows import in_portions, orders_clicks
from tests.spark.hosted import HostedQueries
from tests.spark.kafka import multiset, send, values
from tests.spark.runner.test_bad_disks import ended_by
from tests.spark.runner.test_kill import unbroken

pytestmark = pytest.mark.services

KILLS = 2
RECORDS = 3000


def test_kills_lose_nothing_of_what_is_not_in_memory(broker: str, topics: Callable[..., str], tmp_path: Path) -> None:
    left, right = topics("left"), topics("right")
    chance = random.Random(3)
    send(broker, left, [{"k": chance.randrange(400), "a": f"a{n}"} for n in range(RECORDS // 2)])
    send(broker, right, [{"k": chance.randrange(400), "b": f"b{n}"} for n in range(RECORDS // 2)])
    chosen: dict[str, object] = {"brokers": broker, "name": "portions", "left": left, "right": right}
    chosen["flow"] = "portions"

    for kill in range(KILLS):
        HostedQueries(tmp_path, {**chosen, "records_per_batch": 500}).kill_after(chance.uniform(0, 1.5))
        if kill == 1:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    HostedQueries(tmp_path, {**chosen, "records_per_batch": 10 * RECORDS}).finish()

    assert len(portions(tmp_path / "copy")) >= 5
    dataflow = orders_clicks(left, right, JoinKind.LEFT)
    assert multiset(values(broker, "portions")) == unbroken(broker, dataflow, tmp_path / "portions")


def portions(copies: Path) -> list[Path]:
    """The folders of the copies, one for each."""
    return [folder for folder in copies.glob("*/1-*") if folder.is_dir()]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as mounted:
        yield mounted


@pytest.fixture
def queries(spark: SparkSession, broker: str, disk: Path) -> Iterator[Queries]:
    """Whose checkpoints, and the copies of their state, are on the disk."""
    started = Queries(spark, broker, disk)
    yield started
    started.stop_all()


def test_a_disk_that_fills_while_state_is_put_there_loses_nothing(
    queries: Queries, disk: Path, broker: str, topics: Callable[..., str]
) -> None:
    left, right, name = topics("left"), topics("right"), queries.new_name()
    dataflow = in_portions(orders_clicks(left, right), StateMemory(40_000))
    send(broker, left, [{"k": k, "a": f"a{k}"} for k in range(1000)])
    query = queries.start(dataflow, name)
    queries.drain(query, dataflow)
    assert len(portions(disk / "copy")) > 2

    with filled(disk):
        send(broker, left, [{"k": k, "a": f"b{k}"} for k in range(1000)])
        error = ended_by(query)
        query.stop()

    assert isinstance(error, EnvironmentFault), str(error)
    assert "No space left on device" in error.what
    assert "free some space" in error.fix
    send(broker, right, [{"k": k, "b": "y"} for k in range(0, 1000, 100)])
    again = queries.start(dataflow, name)
    queries.drain(again, dataflow)
    assert multiset(values(broker, name)) == {(k, f"{of}{k}", "y"): 1 for k in range(0, 1000, 100) for of in "ab"}


def test_a_key_that_is_larger_than_the_memory_ends_the_query_with_what_it_needs(
    queries: Queries, broker: str, topics: Callable[..., str]
) -> None:
    left, right = topics("left"), topics("right")
    dataflow = in_portions(orders_clicks(left, right), StateMemory(40_000))
    send(broker, left, [{"k": 7, "a": f"a{n}"} for n in range(2000)])
    error = ended_by(queries.start(dataflow))
    assert isinstance(error, StateLimitExceeded), str(error)
    assert "l.k = 7" in error.what
    assert "raise join_max_buffered_bytes to" in error.fix
