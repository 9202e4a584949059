"""Rows that are lost, or doubled, on their way through Spark: the batch fails, and is run again whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from dovetail.changelog.errors import EnvironmentFault
from dovetail.spark_jobs.source import kafka_source
from dovetail.spark_jobs.stages.job import Job
from tests.spark.conftest import Queries
from tests.spark.flows import orders_users
from tests.spark.kafka import multiset, send, values

pytestmark = pytest.mark.services


def without_one(blocks: DataFrame) -> DataFrame:
    return blocks.where("NOT (edge = 0 AND number = 0)")


def with_one_twice(blocks: DataFrame) -> DataFrame:
    times = "explode(CASE WHEN edge = 0 AND number = 0 THEN array(1, 2) ELSE array(1) END) AS time"
    return blocks.selectExpr("*", times).drop("time")


@pytest.mark.parametrize("faulty", [without_one, with_one_twice])
def test_a_batch_that_is_not_whole_is_not_computed_with(
    broker: str,
    topics: Callable[..., str],
    queries: Queries,
    monkeypatch: pytest.MonkeyPatch,
    faulty: Callable[[DataFrame], DataFrame],
) -> None:
    orders, users = topics("orders"), topics("users")
    dataflow, name = orders_users(orders, users), queries.new_name()
    send(broker, users, [{"id": n, "k": n, "name": f"user {n}"} for n in range(10)], [{"id": n} for n in range(10)])
    send(broker, orders, [{"k": n % 10, "a": f"order {n}"} for n in range(50)])

    whole = kafka_source.loaded

    def broken(session: SparkSession, job: Job, source: str, *limits: int | None) -> DataFrame:
        return faulty(whole(session, job, source, *limits))

    with monkeypatch.context() as fault:
        fault.setattr(kafka_source, "loaded", broken)
        query = queries.start(dataflow, name)
        with pytest.raises(EnvironmentFault, match="incompletely, or twice"):
            queries.drain(query, dataflow)
    assert values(broker, name) == []

    queries.drain(queries.start(dataflow, name), dataflow)
    assert multiset(values(broker, name)) == {(f"order {n}", f"user {n % 10}", 1): 1 for n in range(50)}
