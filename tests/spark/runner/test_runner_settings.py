"""The runner reads the settings that every process reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.runner_settings import RunnerSettings


def settings(folder: Path, **given: object) -> Settings:
    return Settings.model_validate({"data_dir": folder, **given})


def test_what_is_not_set_lies_in_the_data_dir(tmp_path: Path) -> None:
    read = RunnerSettings.of(settings(tmp_path, brokers="kafka:9092", driver_memory_gib=2, jar_dir=None), {})
    assert read.brokers == BrokerAddress("kafka:9092")
    assert (read.catalog_url, read.checkpoints) == (
        f"sqlite:///{tmp_path}/catalog.db",
        LocalFolder(tmp_path / "checkpoints"),
    )
    assert (read.jars, read.ready_file, read.driver_memory) == ((tmp_path / "jars" / "spark",), None, "2g")
    assert read.job.local_copy_dir == tmp_path / "state-copy"


def test_on_a_cluster_the_copies_lie_in_the_folders_of_the_executors_unless_one_is_set(tmp_path: Path) -> None:
    cluster = settings(tmp_path, brokers="kafka:9092", spark_master="spark://here:7077")
    assert RunnerSettings.of(cluster, {}).job.local_copy_dir is None
    own = settings(tmp_path, brokers="kafka:9092", spark_master="spark://here:7077", local_copy_dir="/fast")
    assert RunnerSettings.of(own, {}).job.local_copy_dir == Path("/fast")


def test_the_stack_says_where_its_jars_are_and_the_file_that_tells_that_it_is_ready(tmp_path: Path) -> None:
    environment = {"DOVETAIL_SPARK_JARS": "/jars:/more", "DOVETAIL_READY_FILE": "/ready"}
    read = RunnerSettings.of(settings(tmp_path, brokers="kafka:9092"), environment)
    assert (read.jars, read.ready_file) == ((Path("/jars"), Path("/more")), Path("/ready"))


def test_settings_of_spark_are_handed_through(tmp_path: Path) -> None:
    read = RunnerSettings.of(settings(tmp_path, brokers="kafka:9092", spark_conf="spark.cores.max=2"), {})
    assert read.spark_conf == {"spark.cores.max": "2"}


def test_it_needs_brokers(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="DOVETAIL_BROKERS is not set"):
        RunnerSettings.of(settings(tmp_path, brokers=None), {})
