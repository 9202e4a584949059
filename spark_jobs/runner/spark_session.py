"""The Spark session of Dovetail: one per runner, with the settings that make small batches cheap."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from runtime.packages import PACKAGE_ROOT
from spark_jobs.source.kafka_source import KafkaSource

WORKER_PYTHON = Path(__file__).with_name("worker-python")
"""The interpreter of Spark's Python processes on this machine. Without it they start too, each a second later."""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": "spark_jobs.daemon",
    # Code generation costs more than it saves on a handful of packed rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A task that ran twice at once would contend for one transactional id.
    "spark.speculation": "false",
    # The state: written every batch, read only where no local copy fits.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Watermarks are Dovetail's own, so a batch without records has nothing to do.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}


_LOCAL_SETTINGS = {
    # The default one forks a process per file where Hadoop's native library is missing. This one keeps a file that is
    # there already, which is wrong for a task that is tried again; with a local master none is (see
    # ``spark_jobs.state.uncommitted``).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The quick compiler only. The JVM here moves packed rows while Python works on them, on the same cores: the optimising
compiler and a parallel collector take more from the work, for minutes after the start, than they give back.
"""


def start_session(
    name: str,
    jars: Sequence[Path],
    master: str = "local[*]",
    driver_memory: str = "2g",
    polling_delay_ms: int = 50,
    java_options: str = QUICK_JAVA,
) -> SparkSession:
    """``polling_delay_ms``: between two looks at the inputs while they are silent."""
    # Workers must import the same modules with the same interpreter as the driver.
    local = master.startswith("local")
    interpreter = str(WORKER_PYTHON) if local and os.access(WORKER_PYTHON, os.X_OK) else sys.executable
    os.environ["DOVETAIL_WORKER_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = interpreter
    # No worker multiplies matrices; the threads for it would only be started and stopped.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]))
    builder = (
        SparkSession.builder.appName(name)
        .master(master)
        .config("spark.jars", ",".join(str(jar) for jar in jars))
        .config("spark.driver.memory", driver_memory)
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.pyspark.python", interpreter)
        .config("spark.sql.streaming.pollingDelay", f"{polling_delay_ms}ms")
    )
    settings = {**_SETTINGS, **(_LOCAL_SETTINGS if local else {})}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(KafkaSource)
    return session


def warm_up(session: SparkSession) -> None:
    """Load what the first query would wait for: Spark's planner, and the parents of the Python workers."""
    session.range(session.sparkContext.defaultParallelism).mapInArrow(_same, "id long").collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def bucket_keys(session: SparkSession, buckets: int) -> tuple[int, ...]:
    """One value per bucket, such that Spark's hash sends the value of bucket n to partition n of ``buckets``."""
    tried = 64 * buckets
    [row] = session.sql(f"SELECT transform(sequence(0, {tried}), i -> pmod(hash(i), {buckets})) AS p").collect()
    return tuple(list(row.p).index(bucket) for bucket in range(buckets))
