"""The class archives of Kafka and Spark, recorded once for the jars of a checkout: both start in half the time then."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dovetail.changelog.errors import DovetailError
from dovetail.runtime.class_archive import ClassArchive
from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.stack.processes import ProcessIdentity, end_group
from dovetail.services.stack.servers.kafka import KafkaBroker
from dovetail.services.stack.temporary import temporary_settings

_JOIN = "dovetail.spark_jobs.runner.rehearsal"
_START_S = 60.0
_REHEARSAL_S = 300.0
_STOP_S = 60.0


def record_classes(settings: Settings, on_progress: Callable[[str], None] = lambda line: None) -> None:
    """Start Kafka and run a small join in Spark, unless both have an archive for the Java and the jars of now.

    Where that fails, ``on_progress`` gets the reason, and Kafka and Spark start without.
    """
    broker, spark = ClassArchive.of_broker(settings.jars), ClassArchive.of_spark(settings.jars)
    if broker.path is not None and spark.path is not None:
        return
    on_progress("recording which classes Kafka and Spark load, once: they start in half the time then")
    try:
        broker.forget()
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
            _rehearse(temporary_settings(Path(folder)), broker, Path(folder))
    except (DovetailError, OSError, subprocess.SubprocessError) as fault:
        on_progress(f"not recorded, so that each start takes longer: {fault}")


def _rehearse(settings: Settings, broker: ClassArchive, folder: Path) -> None:
    kafka = KafkaBroker()
    launch = kafka.prepare(settings)
    java, *rest = launch.argv
    join = (sys.executable, "-m", _JOIN, launch.endpoint, str(settings.jars), str(folder))
    with subprocess.Popen([java, *broker.recording, *rest], stdout=subprocess.DEVNULL, cwd=PACKAGE_ROOT) as process:
        broker_process = ProcessIdentity.of(process.pid)
        try:
            _await_answer(kafka, settings, launch.endpoint, process)
            subprocess.run(join, check=True, timeout=_REHEARSAL_S, capture_output=True, cwd=PACKAGE_ROOT)
        finally:
            end_group(broker_process, _STOP_S)
    broker.keep()


def _await_answer(kafka: KafkaBroker, settings: Settings, endpoint: str, process: subprocess.Popen[bytes]) -> None:
    """Raises SubprocessError where it ends, or does not answer in time."""
    deadline = time.monotonic() + _START_S
    while not kafka.answers(settings, endpoint, process.pid):
        if process.poll() is not None or time.monotonic() > deadline:
            raise subprocess.SubprocessError(f"Kafka did not answer at {endpoint}")
        time.sleep(0.05)


def main() -> int:
    record_classes(read_settings(), lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
