"""Spark's JVM, as a process of this machine."""

from __future__ import annotations

import psutil
from pyspark.sql import SparkSession


def process_of(spark: SparkSession) -> psutil.Process:
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None
    return psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
