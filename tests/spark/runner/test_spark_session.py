"""What a session starts its Python processes with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.spark_jobs.runner.spark_session import WORKER_PYTHON, folder_of_sockets, is_local


def test_the_interpreter_of_the_workers_is_where_the_session_looks_for_it() -> None:
    assert os.access(WORKER_PYTHON, os.X_OK)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[4,2]", "local[*,4]"])
def test_a_local_master_runs_its_tasks_in_this_process(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", "spark://local:7077", "k8s://https://local", "yarn", "locals", "local[2"]
)
def test_any_other_master_has_executors_elsewhere(master: str) -> None:
    assert not is_local(master)


@pytest.mark.services
def test_spark_takes_the_folder_of_its_sockets_however_long_that_of_the_data_is(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None
    setting = jvm.org.apache.spark.internal.config.Python.PYTHON_UNIX_DOMAIN_SOCKET_DIR()
    kept = []
    for length in range(50, 75):
        scratch = Path("/" + "x" * (length - 1))
        chosen = jvm.org.apache.spark.SparkConf(False).set(setting.key(), folder_of_sockets(scratch))
        assert chosen.get(setting).get() == folder_of_sockets(scratch)
        kept.append(folder_of_sockets(scratch) == str(scratch))
    assert {*kept} == {True, False}


@pytest.mark.services
def test_compiled_code_has_room_for_many_views(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()

    rooms = [pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code")]

    assert sum(rooms) >= 200 << 20


@pytest.mark.services
def test_all_stores_of_states_have_their_memory_together(spark: SparkSession) -> None:
    bound = "spark.sql.streaming.stateStore.rocksdb"
    assert spark.conf.get(f"{bound}.boundedMemoryUsage") == "true"
    assert spark.conf.get(f"{bound}.maxMemoryUsageMB") == "512"
