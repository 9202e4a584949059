"""A standalone cluster of Spark, out of the classes that ship inside PySpark: a master, and workers as machines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import psutil
import pyspark

from tests.servers.process import ServerFailed, die_with_parent

HOME = Path(pyspark.__file__).parent
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_EXECUTOR = "CoarseGrainedExecutorBackend"
_START_S = 60.0
_POLL_S = 0.05


@dataclass
class SparkDaemon:
    """The master or a worker: a JVM with a folder of its own, which it begins in."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def log(self) -> str:
        return (self.folder / "daemon.log").read_text(errors="replace")

    def await_line(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        deadline = time.monotonic() + _START_S
        while (found := re.search(pattern, self.log)) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not start\n{self.log[-2000:]}")
            time.sleep(_POLL_S)
        return found

    def executors(self) -> list[psutil.Process]:
        """The JVMs that a worker has started for applications."""
        return [child for child in _children(psutil.Process(self.process.pid)) if _EXECUTOR in _command(child)]

    def kill(self) -> None:
        """As the loss of its machine: with all that it has started."""
        tree: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            tree = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGKILL)
        kill_all(tree)
        self.process.wait()


@dataclass
class SparkCluster:
    """Machines of one core each, which share nothing but what all reach by its path."""

    folder: Path
    master: str = ""
    secret: str = field(default_factory=lambda: token_hex(16), repr=False)
    daemons: list[SparkDaemon] = field(default_factory=list)

    @property
    def workers(self) -> list[SparkDaemon]:
        return [daemon for daemon in self.daemons if daemon.name.startswith("worker")]

    @property
    def conf(self) -> Path:
        """The file of properties that tells the daemons, and a runner, the secret."""
        path = self.folder / "spark.conf"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.write_text(f"spark.authenticate true\nspark.authenticate.secret {self.secret}\n")
        return path

    def start_master(self, port: int = 0) -> SparkDaemon:
        daemon = self._started("master", "--port", str(port), "--webui-port", "0")
        self.master = daemon.await_line(_ADDRESS)[1]
        return daemon

    def start_worker(self, memory: str = "1g") -> SparkDaemon:
        """It looks for the master by itself: whether it has found it is in its log."""
        limits = ["--port", "0", "--cores", "1", "--memory", memory, "--webui-port", "0"]
        return self._started(
            "worker", *limits, "--work-dir", str(self.folder / f"worker{len(self.daemons)}" / "work"), self.master
        )

    def _started(self, kind: str, *arguments: str) -> SparkDaemon:
        name = f"{kind}{len(self.daemons)}"
        given = ("--properties-file", str(self.conf), *arguments)
        self.daemons.append(_started(name, self.folder / name, (f"{kind}.{kind.capitalize()}", *given)))
        return self.daemons[-1]

    def close(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.kill()


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children()
    return []


def _command(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=30)


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """A running master, and so many workers that it knows."""
    cluster = SparkCluster(folder)
    try:
        cluster.start_master()
        for worker in [cluster.start_worker() for _ in range(workers)]:
            worker.await_line(_REGISTERED)
        yield cluster
    finally:
        cluster.close()


def _started(name: str, folder: Path, arguments: tuple[str, ...]) -> SparkDaemon:
    folder.mkdir(parents=True)
    kind, *rest = arguments
    # What this process has of Python's path is not there on another machine.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DOVETAIL_"))}
    with (folder / "daemon.log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind}",
                "--host",
                "127.0.0.1",
                *rest,
            ],
            cwd=folder,
            env={
                **environment,
                "SPARK_HOME": str(HOME),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_LOCAL_DIRS": str(folder),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it calls the kernel and nothing else
            start_new_session=True,
        )
    return SparkDaemon(name, folder, process)
