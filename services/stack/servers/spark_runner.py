"""The Spark runner: the process that runs every query with state."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from dovetail.runtime.processes.listener import host_and_port
from dovetail.runtime.settings import Settings
from dovetail.services.jars import jar_folder, spark_sets
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import choose_ports


@dataclass(frozen=True)
class SparkRunner:
    """Healthy once it has written its pid into the file that ``DOVETAIL_READY_FILE`` names.

    ``DOVETAIL_SPARK_JARS`` names the folders whose jars go beside PySpark's own.
    """

    name: str = "spark"
    after: tuple[str, ...] = ()
    beside: tuple[str, ...] = ("kafka", "registry")
    module: str = "dovetail.spark_jobs.runner"
    reads_secrets: bool = False

    def prepare(self, settings: Settings) -> Launch:
        ready_file = _ready_file(settings)
        ready_file.unlink(missing_ok=True)
        (port,) = choose_ports(settings.runner_port)
        # The driver's helper processes otherwise take the first python3 of the PATH.
        environment = {
            "DOVETAIL_READY_FILE": str(ready_file),
            "DOVETAIL_SPARK_JARS": os.pathsep.join(str(jar_folder(settings, jars)) for jars in spark_sets(settings)),
            "PYSPARK_PYTHON": sys.executable,
            "DOVETAIL_RUNNER_PORT": str(port),
            # It may be started before the broker answers, which has that long.
            "DOVETAIL_BROKER_TIMEOUT_S": str(max(settings.broker_timeout_s, settings.start_timeout_s)),
        }
        return Launch.of_module(
            self.module,
            endpoint=f"http://{host_and_port(settings.runner_bind, port)}",
            environment=environment,
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        ready_file = _ready_file(settings)
        return ready_file.exists() and ready_file.read_text().strip() == str(pid)

    def provided(self, settings: Settings) -> bool:
        return False

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings


def _ready_file(settings: Settings) -> Path:
    return settings.data_dir / "spark.ready"
