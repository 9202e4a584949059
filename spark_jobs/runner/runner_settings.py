"""What the runner takes from Dovetail's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.runtime.logs.query_logs import QueryLogFiles
from dovetail.runtime.memory import batch_bytes
from dovetail.runtime.serving.foreign_requests import hosts_of
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.places import hadoop_conf, storage_at
from dovetail.runtime.storage.spark_conf import read_conf
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.packing.choice import PackLimits
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.spark_session import is_local

_JARS = "DOVETAIL_SPARK_JARS"
_READY_FILE = "DOVETAIL_READY_FILE"


@dataclass(frozen=True)
class RunnerSettings:
    """brokers, catalog_url   where Kafka and the catalog answer
    jars                   folders of the jars that go beside PySpark's own
    ready_file             gets the pid of the runner once it takes up queries
    checkpoints            where the queries' checkpoints are: a folder, or a prefix of an object store
    spark_conf             settings of Spark, handed through
    broker_timeout_s       longest wait for Kafka at the start
    bind, port             where health and metrics are asked for
    packs                  which views share a streaming query
    """

    brokers: BrokerAddress
    catalog_url: str
    jars: tuple[Path, ...]
    ready_file: Path | None
    checkpoints: Storage
    query_logs: QueryLogFiles
    spark_master: str
    driver_memory: str
    spark_conf: Mapping[str, str] = field(repr=False)  # it may hold keys
    broker_timeout_s: float
    bind: str
    port: int
    hosts: frozenset[str]
    job: JobSettings
    packs: PackLimits = field(default_factory=PackLimits)
    python_functions: bool = True

    @staticmethod
    def of(settings: Settings, environment: Mapping[str, str] = os.environ) -> RunnerSettings:
        """Raises StackError where the brokers are not known, or settings of Spark are none.

        environment   where the stack, or an image, tells this process alone where its jars are, and its ready file
        """
        spark_conf = read_conf(settings.spark_conf or "")
        checkpoints = storage_at(settings.checkpoints, spark_conf)
        return RunnerSettings(
            brokers=settings.expect_brokers("the Spark runner"),
            catalog_url=settings.catalog_address,
            jars=_folders(environment.get(_JARS)) or tuple(settings.jars / name for name in _jar_sets(checkpoints)),
            ready_file=Path(environment[_READY_FILE]) if _READY_FILE in environment else None,
            checkpoints=checkpoints,
            query_logs=QueryLogFiles.of(settings),
            spark_master=settings.spark_master,
            driver_memory=f"{settings.driver_memory_gib}g",
            spark_conf={**hadoop_conf(checkpoints), **spark_conf},
            broker_timeout_s=settings.broker_timeout_s,
            bind=settings.runner_bind,
            port=settings.runner_port,
            hosts=hosts_of(settings.runner_bind, settings.runner_hosts),
            python_functions=settings.runs_python_functions,
            packs=PackLimits(settings.pack_after_s, settings.pack_state_bytes, settings.pack_rows_per_s),
            job=JobSettings(
                buckets=settings.buckets or os.cpu_count() or 1,
                few_buckets=settings.buckets is None,
                max_offsets_per_trigger=settings.max_offsets_per_trigger,
                max_bytes_per_trigger=settings.max_bytes_per_trigger or batch_bytes(),
                output_partitions=settings.output_partitions,
                broker_wait_s=settings.broker_wait_s,
                transaction_timeout_s=settings.transaction_timeout_s,
                local_copy_dir=settings.local_copies if is_local(settings.spark_master) else settings.local_copy_dir,
                local_copy_max_bytes=settings.local_copy_max_bytes,
                local_copies_max_bytes=settings.local_copies_max_bytes,
            ),
        )


def _folders(given: str | None) -> tuple[Path, ...]:
    return tuple(Path(folder) for folder in (given or "").split(os.pathsep) if folder)


def _jar_sets(checkpoints: Storage) -> tuple[str, ...]:
    return ("spark",) if checkpoints.folder is not None else ("spark", "s3a")
