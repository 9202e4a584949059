"""Values of the column ``bucket``: each is sent to the partition of its bucket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys, spark_hash

_EDGES = [0, 1, -1, 2**31 - 1, -(2**31)]


@given(st.integers(1, 300))
def test_each_bucket_has_a_value_of_its_own(buckets: int) -> None:
    keys = bucket_keys(buckets)
    assert len(set(keys)) == len(keys) == buckets
    assert (spark_hash(np.array(keys, np.int32)) % buckets).tolist() == list(range(buckets))


@pytest.mark.services
def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    values = [*_EDGES, *np.random.default_rng(7).integers(-(2**31), 2**31, 500).tolist()]
    rows = spark.createDataFrame([(value,) for value in values], "value int").selectExpr("hash(value) AS found")
    assert spark_hash(np.array(values, np.int32)).tolist() == [row.found for row in rows.collect()]
