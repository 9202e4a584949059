"""What Spark's JVM keeps open: no more after many batches than after the first ones."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import Queries
from tests.spark.flows import orders_clicks
from tests.spark.jvm import process_of
from tests.spark.kafka import send

pytestmark = pytest.mark.services

BATCHES = 30
BUCKETS = 2
PATIENCE_S = 60.0


def test_batches_leave_no_descriptor_open(
    spark: SparkSession, broker: str, topics: Callable[..., str], queries: Queries
) -> None:
    left, right = topics("left"), topics("right")
    dataflow = orders_clicks(left, right)
    query = queries.start(dataflow, settings=queries.settings(buckets=BUCKETS))
    jvm = process_of(spark)

    def run(batches: int) -> None:
        for number in range(batches):
            send(broker, left, [{"k": number, "a": "x"}])
            queries.drain(query, dataflow)

    run(batches=5)
    before = jvm.num_fds()
    run(BATCHES)

    # One that a stateful task left open would be one for each bucket of each batch.
    _until(lambda: jvm.num_fds() < before + BATCHES * BUCKETS / 2)


def _until(holds: Callable[[], bool]) -> None:
    """What a thread of its own closes is closed a moment later."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)
