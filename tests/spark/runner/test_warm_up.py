"""A session that gets ready for its first query."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dovetail.spark_jobs.runner.warm_up import warm_up, warm_up_state


@pytest.mark.services
def test_it_leaves_no_query_and_no_setting(spark: SparkSession) -> None:
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    warm_up(spark)
    for _ in range(2):
        warm_up_state(spark)
    assert spark.streams.active == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
