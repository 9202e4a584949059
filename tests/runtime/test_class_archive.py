"""Class archives: Kafka and Spark load their classes from them, and start without where there is none that fits."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.runtime.class_archive import ClassArchive
from dovetail.runtime.java import java_executable
from dovetail.runtime.settings import read_settings
from dovetail.services.class_archives import record_classes
from dovetail.services.jars import jar_folder

JARS = jar_folder(read_settings(), "broker").parent


def java(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [java_executable(), *options, "-cp", f"{JARS}/broker/*", "kafka.tools.StorageTool", "random-uuid"],
        capture_output=True,
        text=True,
        check=False,
        # What it picks up from the environment, Java says.
        env={name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"},
    )


def test_of_what_was_not_recorded_there_are_no_options(tmp_path: Path) -> None:
    assert ClassArchive.of_broker(tmp_path).options == ClassArchive.of_spark(tmp_path).options == ()


def test_other_jars_have_another_archive(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    jar = tmp_path / "broker" / "kafka.jar"
    jar.write_bytes(b"1")
    before = ClassArchive.of_broker(tmp_path)
    jar.write_bytes(b"12")
    assert ClassArchive.of_broker(tmp_path) != before


def test_what_was_recorded_is_used_until_it_is_forgotten(tmp_path: Path) -> None:
    archive, other = ClassArchive(tmp_path, "broker-1"), ClassArchive(tmp_path, "spark-1")
    archive.keep()
    assert archive.path is None
    for one in (archive, other):
        (tmp_path / f"{one.name}.recorded").write_bytes(b"classes")
        one.keep()
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.options
    ClassArchive(tmp_path, "broker-2").forget()
    assert archive.path is None
    assert other.path is not None


@pytest.mark.services
@pytest.mark.parametrize("damage", ["cut off", "other bytes", "an empty file"])
def test_a_damaged_archive_is_not_used_and_nothing_is_said(damage: str, tmp_path: Path) -> None:
    record_classes(read_settings())
    recorded = ClassArchive.of_broker(JARS).path
    assert recorded is not None
    whole = recorded.read_bytes()
    damaged = {"cut off": whole[: len(whole) // 2], "other bytes": b"x" * len(whole), "an empty file": b""}[damage]
    archive = ClassArchive(tmp_path, "broker-1")
    (tmp_path / f"broker-1-{len(whole)}.jsa").write_bytes(damaged)
    made = java(*archive.options)
    assert (made.returncode, made.stderr) == (0, "")
    assert len(made.stdout.split()) == 1


@pytest.mark.services
def test_kafka_takes_its_classes_from_its_archive() -> None:
    record_classes(read_settings())
    loaded = java(*ClassArchive.of_broker(JARS).options, "-Xlog:class+load").stdout.splitlines()
    of_kafka = [line for line in loaded if " org.apache.kafka." in line]
    archived = [line for line in of_kafka if "shared objects file (top)" in line]
    assert of_kafka
    assert len(archived) > len(of_kafka) / 2


@pytest.mark.services
def test_spark_maps_its_archive(spark: SparkSession) -> None:
    """The session began with that of its jars, if it was recorded before: ``make test`` does so."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001
    assert jvm is not None
    process = jvm.java.lang.ProcessHandle.current().pid()
    archive = ClassArchive.of_spark(JARS)
    assert archive.path is not None
    assert str(archive.path) in Path(f"/proc/{process}/maps").read_text()


@pytest.mark.services
def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    shutil.copytree(JARS / "broker", tmp_path / "broker")
    (tmp_path / "archives").write_text("no folder")
    said: list[str] = []
    record_classes(read_settings().model_copy(update={"jar_dir": tmp_path}), said.append)
    assert "not recorded" in said[-1]
