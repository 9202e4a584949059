"""The Spark session of Dovetail: one per runner, with the settings that make small batches cheap."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from dovetail.runtime.class_archive import ClassArchive
from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.daemon import STAGES
from dovetail.spark_jobs.fused.source import FusedSource
from dovetail.spark_jobs.runner.shipped_code import ShippedCode
from dovetail.spark_jobs.runner.spark_security import SECURITY, expect_authenticated, start_java
from dovetail.spark_jobs.source.kafka_source import KafkaSource

WORKER_PYTHON = Path(__file__).with_name("worker-python")
"""The interpreter of Spark's Python processes on this machine. Without it they start too, each a second later."""
FORK_SERVER = "DOVETAIL_FORK_SERVER"
PRELOADED = (
    *STAGES,
    "dovetail.spark_jobs.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
)
"""What Spark runs, five processes for a query, and what these import, the code of the stages among it: a process would
take the better part of a second for that, and have 50 MiB of its own.
"""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": "dovetail.spark_jobs.daemon",
    # Spark and its Python processes meet at sockets in a folder. At a port the first to connect is taken for the
    # worker: a foreign connection, a scan of ports say, would leave a query standing still forever.
    "spark.python.unix.domain.socket.enabled": "true",
    # A worker that says nothing for so long hangs: its task is ended, and the batch run again.
    "spark.python.worker.idleTimeoutSeconds": "3600",
    "spark.python.worker.killOnIdleTimeout": "true",
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
    # There is a store for each bucket of each level of each query: what is cached and what is not yet on the disk is
    # bounded for all of them together.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "512",
    # Watermarks are Dovetail's own, so a batch without records has nothing to do.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "60",
    # What is kept for a user interface that there is not: of each batch its plan as text and as a graph, its jobs,
    # stages and tasks. By default those of the last thousand.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.ui.dagGraph.retainedRootRDDs": "10",
}


_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL_SETTINGS = {
    # No other machine has to find this one. Elsewhere Spark tells its executors the address of this host.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Hadoop gives files the mode that this leaves, and not that of the process.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    # By way of ``_FILE_SYSTEM``. It keeps a file that is there already, which is wrong for a task that is tried again;
    # with a local master none is (see ``spark_jobs.state.uncommitted``).
    _FILE_MANAGER: ("org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"),
}
_FILE_SYSTEM_JAR = "hadoop-bare-naked-local-fs"
_FILE_SYSTEM = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""Where its native library is missing, that of Hadoop runs ``chmod`` for each file that it makes, and for its sum: 20
ms of the 100 that a small batch takes. This one asks Java.
"""
_CLASS_PATH = "spark.driver.extraClassPath"
_PUTS_OBJECTS = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
"""Puts a file as one object, or not at all. The others write it under another name, and rename it."""
_CLUSTER_SETTINGS = {
    # A lost part of a batch ends the batch, as ``refuse_second_attempt`` does: a stage is not run twice.
    "spark.stage.maxConsecutiveAttempts": "1",
}
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms64m -XX:ReservedCodeCacheSize=240m"
"""The quick compiler only. The JVM here moves packed rows while Python works on them, on the same cores: the optimising
compiler and a parallel collector take more from the work, for minutes after the start, than they give back. The heap
begins small, since it never becomes smaller than it began (``spark_jobs.runner.java_heap``). The code cache is as large
as for both compilers: alone this one has 48 MB, of which twenty views fill 40 in some minutes, and a full one throws
away what is compiled.
"""


_LOCAL_MASTER = re.compile(r"local(\[[^\]]*\])?")
_PYTHON = "spark.pyspark.python"
_EXECUTOR_PATH = "spark.executorEnv.PYTHONPATH"


def is_local(master: str) -> bool:
    """Whether the tasks run in the driver's own process: ``local-cluster[..]`` starts others."""
    return _LOCAL_MASTER.fullmatch(master) is not None


def has_remote_executors(session: SparkSession) -> bool:
    """Whether the tasks of ``session`` run in executors, which may be on other machines."""
    return not is_local(session.sparkContext.master or "")


def start_session(
    name: str,
    jars: Sequence[Path],
    master: str = "local[*]",
    driver_memory: str = "2g",
    polling_delay_ms: int = 50,
    java_options: str = QUICK_JAVA,
    conf: Mapping[str, str] | None = None,
    scratch: Path | None = None,
) -> SparkSession:
    """polling_delay_ms   between two looks at the inputs while they are silent
    conf               settings of Spark that stand before Dovetail's own (``read_conf``)
    scratch            what the driver unpacks and spills, until its end; None: the machine's folder for such

    Raises StackError for settings by which others would get in.
    """
    driver_options = _with_class_archive(java_options, jars) if is_local(master) else java_options
    chosen = {
        "spark.executor.extraJavaOptions": java_options,
        "spark.driver.extraJavaOptions": driver_options,
        **({} if scratch is None else _keeps_files_in(scratch, driver_options)),
        "spark.sql.streaming.pollingDelay": f"{polling_delay_ms}ms",
        **SECURITY,
        **_SETTINGS,
        **(_LOCAL_SETTINGS if is_local(master) else _CLUSTER_SETTINGS),
        **(conf or {}),
        **(_with_file_system(jars, (conf or {}).get(_CLASS_PATH)) if is_local(master) else {}),
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": driver_memory,
    }
    chosen[_PYTHON] = _set_interpreter(master, chosen.get(_PYTHON))
    code = None if is_local(master) else ShippedCode.of_this_process()
    if code is not None:
        # Spark unpacks what it ships in the folder that an executor begins in, before the first task: so its parent of
        # workers, which has nothing yet but this variable, finds the code as well.
        chosen[_EXECUTOR_PATH] = os.pathsep.join(filter(None, [code.folder, chosen.get(_EXECUTOR_PATH)]))
    chosen |= {"spark.app.name": name, "spark.master": master}
    expect_authenticated(chosen, master)
    start_java(chosen)
    session = SparkSession.builder.config(map={**chosen}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if code is not None:
        # From there it is served to executors as long as the session lives, and removed with it.
        folder = tempfile.mkdtemp(dir=SparkFiles.getRootDirectory())
        session.sparkContext.addArchive(f"{code.write(Path(folder))}#{code.folder}")
    session.dataSource.register(KafkaSource)
    session.dataSource.register(FusedSource)
    return session


def _with_file_system(jars: Sequence[Path], class_path: str | None) -> dict[str, str]:
    """Asked for before Spark has loaded any of its jars, so it has to be on the class path."""
    found = [str(jar) for jar in jars if jar.name.startswith(_FILE_SYSTEM_JAR)]
    if not found:
        return {}
    return {"spark.hadoop.fs.file.impl": _FILE_SYSTEM, _CLASS_PATH: os.pathsep.join(filter(None, [*found, class_path]))}


def _with_class_archive(java_options: str, jars: Sequence[Path]) -> str:
    """With the archive that lies beside the folders of ``jars``, where there is one."""
    options = ClassArchive.of_spark(jars[0].parent.parent).options if jars else ()
    return " ".join([java_options, *map(quoted, options)])


def quoted(option: str) -> str:
    """An option of Java as one word for Spark."""
    return f'"{option}"'


def _keeps_files_in(scratch: Path, java_options: str) -> dict[str, str]:
    """A JVM that is killed leaves its libraries unpacked, tens of MB each time."""
    return {
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f'{java_options} -Djava.io.tmpdir="{scratch}"',
        "spark.python.unix.domain.socket.dir": folder_of_sockets(scratch),
    }


_LONGEST_SOCKET_FOLDER = 60


def folder_of_sockets(scratch: Path) -> str:
    """The name of a socket may have 107 bytes: Spark refuses a folder of more than it leaves room for."""
    return str(scratch) if len(os.fsencode(scratch)) <= _LONGEST_SOCKET_FOLDER else tempfile.gettempdir()


def _set_interpreter(master: str, chosen: str | None) -> str:
    """Have Spark start its Python processes with the modules of this one; the interpreter.

    On this machine it is this one's. On others it is the one at the same path, unless ``chosen``.
    """
    if is_local(master):
        # Where a user interface would listen, which is off unless it is asked for.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    forks = is_local(master) and chosen is None and os.access(WORKER_PYTHON, os.X_OK)
    interpreter = str(WORKER_PYTHON) if forks else chosen or sys.executable
    os.environ.pop(FORK_SERVER, None)
    os.environ["DOVETAIL_WORKER_PYTHON"] = sys.executable
    # Of the driver, too, where it can fork: Spark asks Python which sources are installed as a session starts.
    os.environ["PYSPARK_DRIVER_PYTHON"] = interpreter if forks else sys.executable
    os.environ["PYSPARK_PYTHON"] = interpreter
    # No worker multiplies matrices; the threads for it would only be started and stopped.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]))
    if forks:
        os.environ[FORK_SERVER] = _fork_server().address
    return interpreter


_FORK_SERVERS: list[ForkServer] = []
"""The one of this process, once it has one."""


def fork_from_here() -> None:
    """Let the Python processes of local Spark be copies of this process as it is now, so that what it has imported is
    imported, and kept, once. For a process that has just begun and has no thread yet.
    """
    _FORK_SERVERS.append(ForkServer(PRELOADED, os.environ, from_here=True))


def _fork_server() -> ForkServer:
    """Where the Python processes of local Spark come from, which it asks for by way of ``worker-python``."""
    if not _FORK_SERVERS:
        _FORK_SERVERS.append(ForkServer(PRELOADED, os.environ))
    return _FORK_SERVERS[0]


def writes_through(session: SparkSession, checkpoint: Storage) -> None:
    """Have queries that start in ``session`` from now on write their files as the place of their checkpoint asks."""
    of_folders = session.sparkContext.getConf().get(_FILE_MANAGER)
    if checkpoint.folder is None:
        session.conf.set(_FILE_MANAGER, _PUTS_OBJECTS)
    elif of_folders is not None:
        session.conf.set(_FILE_MANAGER, of_folders)
    else:
        session.conf.unset(_FILE_MANAGER)
