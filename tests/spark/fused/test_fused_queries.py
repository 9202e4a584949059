"""A query in one bucket, whose state is found again wherever it was left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.changelog.errors import CheckpointMismatch, DovetailError
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.source.batch_log import BATCHES_TOPIC
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from tests.spark.conftest import Queries
from tests.spark.flows import orders_users
from tests.spark.kafka import Value, made_again, send, values

pytestmark = pytest.mark.services

Rows = list[Value]
USERS: Rows = [{"id": n, "k": n, "name": f"user {n}"} for n in range(10)]
KEYS: Rows = [{"id": n} for n in range(10)]


@pytest.fixture
def dataflow(topics: Callable[..., str]) -> Dataflow:
    return orders_users(topics("orders"), topics("users"))


def drained(queries: Queries, dataflow: Dataflow, name: str, **changed: object) -> RunningQuery:
    """The query started or resumed, its inputs read to their end, stopped."""
    query = queries.start(dataflow, name, settings=queries.settings(buckets=1, **changed))
    queries.drain(query, dataflow)
    query.stop()
    return query


@pytest.fixture
def query(broker: str, dataflow: Dataflow, queries: Queries) -> str:
    """The name of one that has had three batches, and a user for each order to come."""
    name = queries.new_name()
    for number in range(3):
        send(broker, dataflow.scans[0].topic, [{"k": 1, "a": f"order {number}"}])
        if number == 1:
            send(broker, dataflow.scans[1].topic, USERS, KEYS)
        drained(queries, dataflow, name)
    return name


def versions(folder: Path) -> list[Path]:
    """The oldest first."""
    return sorted((folder / "state").glob("*.json"))


def joined_after_one_more(broker: str, dataflow: Dataflow, queries: Queries, name: str) -> list[object]:
    """The orders that the output has, once another one has come."""
    send(broker, dataflow.scans[0].topic, [{"k": 1, "a": "order 3"}])
    drained(queries, dataflow, name)
    written = values(broker, name)
    assert all(row["_tp_delta"] == 1 for row in written)
    return sorted(row["l.a"] for row in written)  # type: ignore[type-var]


EVERY_ORDER = [f"order {number}" for number in range(4)]


def test_spark_keeps_no_state_of_it(queries: Queries, query: str) -> None:
    folder = queries.checkpoint(query)
    assert Checkpoint(LocalFolder(folder)).expect_origin().fused
    assert Checkpoint(LocalFolder(folder)).has_state
    assert not (folder / "spark" / "state").exists()


@pytest.mark.parametrize("left", ["the last version", "an older version", "the batches alone", "a damaged version"])
def test_without_a_local_copy_it_goes_on_from(
    left: str, broker: str, dataflow: Dataflow, queries: Queries, query: str, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "copy")
    found = versions(queries.checkpoint(query))
    assert len(found) == 2
    match left:
        case "an older version":
            found[-1].unlink()
        case "the batches alone":
            shutil.rmtree(queries.checkpoint(query) / "state")
        case "a damaged version":
            found[-1].write_text("{")
    assert joined_after_one_more(broker, dataflow, queries, query) == EVERY_ORDER


def test_with_its_local_copy_it_needs_no_version(broker: str, dataflow: Dataflow, queries: Queries, query: str) -> None:
    made_again(broker, BATCHES_TOPIC, partitions=16)
    shutil.rmtree(queries.checkpoint(query) / "state")
    assert joined_after_one_more(broker, dataflow, queries, query) == EVERY_ORDER


def test_what_nothing_leads_to_is_refused_and_nothing_is_written(
    broker: str, dataflow: Dataflow, queries: Queries, query: str, tmp_path: Path
) -> None:
    before = len(values(broker, query))
    made_again(broker, BATCHES_TOPIC, partitions=16)
    shutil.rmtree(tmp_path / "copy")
    shutil.rmtree(queries.checkpoint(query) / "state")
    with pytest.raises(DovetailError, match="the state of the query is gone") as refused:
        joined_after_one_more(broker, dataflow, queries, query)
    assert isinstance(refused.value, CheckpointMismatch)
    assert len(values(broker, query)) == before


def test_each_batch_is_durable_where_no_copy_can_be_kept(broker: str, dataflow: Dataflow, queries: Queries) -> None:
    name = queries.new_name()
    send(broker, dataflow.scans[1].topic, USERS, KEYS)
    for number in range(3):
        send(broker, dataflow.scans[0].topic, [{"k": 1, "a": f"order {number}"}])
        drained(queries, dataflow, name, local_copy_max_bytes=0)
    made_again(broker, BATCHES_TOPIC, partitions=16)
    assert joined_after_one_more(broker, dataflow, queries, name) == EVERY_ORDER
