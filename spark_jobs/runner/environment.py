"""The settings of the runner, from the environment that the stack or a container gives it.

The variables are those of Dovetail's settings (``DOVETAIL_<NAME>``); the stack sets every one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from broker.address import BrokerAddress
from changelog.errors import StackError
from spark_jobs.runner.job_settings import JobSettings

T = TypeVar("T")


@dataclass(frozen=True)
class RunnerSettings:
    """brokers, catalog_url   where Kafka and the catalog answer
    jars                   folder of the jars that go beside PySpark's own
    ready_file             gets the pid of the runner once it takes up queries
    checkpoints            folder of the queries' checkpoints
    broker_timeout_s       longest wait for Kafka at the start
    """

    brokers: BrokerAddress
    catalog_url: str
    jars: Path
    ready_file: Path | None
    checkpoints: Path
    spark_master: str
    driver_memory: str
    log_level: str
    log_format: str
    broker_timeout_s: float
    job: JobSettings

    @staticmethod
    def read(environment: Mapping[str, str] = os.environ) -> RunnerSettings:
        """Raises StackError that names the variable that is missing or wrong."""
        read = _Variables(environment)
        data_dir = read("DATA_DIR", Path, Path(".dovetail"))
        default = JobSettings()
        return RunnerSettings(
            brokers=read("BROKERS", BrokerAddress, None),
            # The address may hold a password, so it never shows in a message.
            catalog_url=read("CATALOG_URL", str, f"sqlite:///{data_dir.absolute() / 'catalog.db'}"),
            jars=read("SPARK_JARS", Path, data_dir / "jars" / "spark"),
            ready_file=Path(environment["DOVETAIL_READY_FILE"]) if "DOVETAIL_READY_FILE" in environment else None,
            checkpoints=read("CHECKPOINT_DIR", Path, data_dir / "checkpoints"),
            spark_master=read("SPARK_MASTER", str, "local[*]"),
            driver_memory=f"{read('DRIVER_MEMORY_GIB', int, 3)}g",
            log_level=read("LOG_LEVEL", str, "INFO"),
            log_format=read("LOG_FORMAT", str, "console"),
            broker_timeout_s=read("BROKER_TIMEOUT_S", float, 30.0),
            job=JobSettings(
                buckets=read("BUCKETS", int, default.buckets),
                max_offsets_per_trigger=read("MAX_OFFSETS_PER_TRIGGER", int, default.max_offsets_per_trigger),
                output_partitions=read("OUTPUT_PARTITIONS", int, default.output_partitions),
                broker_wait_s=read("BROKER_WAIT_S", float, default.broker_wait_s),
                transaction_timeout_s=read("TRANSACTION_TIMEOUT_S", float, default.transaction_timeout_s),
                local_copy_dir=read("LOCAL_COPY_DIR", Path, data_dir / "state-copy"),
                local_copy_max_bytes=read("LOCAL_COPY_MAX_BYTES", int, default.local_copy_max_bytes),
            ),
        )


@dataclass(frozen=True)
class _Variables:
    environment: Mapping[str, str]

    def __call__(self, name: str, kind: Callable[[str], T], default: T | None) -> T:
        text = self.environment.get(f"DOVETAIL_{name}", "")
        if not text:
            if default is None:
                raise StackError(
                    f"DOVETAIL_{name} is not set", where="the Spark runner", fix="start it by: dovetail up"
                )
            return default
        try:
            return kind(text)
        except ValueError:
            raise StackError(
                f"DOVETAIL_{name} is '{text}'", where="the Spark runner", fix=f"correct or unset DOVETAIL_{name}"
            ) from None
