"""Whether a cluster has executors for the tasks of this session: where it has none, Spark waits without a word.

A standalone master that was started anew knows nothing of the applications of the one before, and ends their executors;
an application does not ask it again. So a session that has lost its executors with its master gets no others.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dovetail.changelog.errors import EnvironmentFault
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.spark_jobs.runner.spark_session import has_remote_executors

_LOOK_S = 1.0
_ANSWER_S = 2.0
_SILENT_S: Final = 10.0
"""An executor may take so long to start."""
_FORGOTTEN_S: Final = 20.0
_STANDALONE = "spark://"
_DEFAULT_MEMORY = "1g"
_AGAIN = "it goes on by itself then"


class ExecutorWatch:
    """A thread that counts, from ``start`` to ``stop``.

    count      how many executors there are now
    reachable  whether the master answers; None where it cannot be asked
    """

    def __init__(
        self,
        master: str,
        memory: str,
        count: Callable[[], int],
        reachable: Callable[[], bool | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._master = master
        self._memory = memory
        self._count = count
        self._reachable = reachable
        self._clock = clock
        self._seen_s = clock()
        self._master_there: bool | None = True
        self._back_s: float | None = None
        self.present = False
        self._thread = PeriodicThread("executor-watch", _LOOK_S, self._keep)

    @staticmethod
    def of(session: SparkSession) -> ExecutorWatch | None:
        """None where tasks need no executors, or Spark asks for them by itself when there is something to do."""
        conf = session.sparkContext.getConf()
        if not has_remote_executors(session) or conf.get("spark.dynamicAllocation.enabled", "false") == "true":
            return None
        status = session.sparkContext._jsc.sc()  # noqa: SLF001 - nothing public counts them
        master = session.sparkContext.master or ""
        return ExecutorWatch(
            master,
            conf.get("spark.executor.memory") or _DEFAULT_MEMORY,
            # The driver is one of them.
            lambda: int(status.getExecutorMemoryStatus().size()) - 1,
            lambda: master_answers(master),
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.close(0)

    def _keep(self) -> None:
        with suppress(Py4JError, OSError):  # the JVM has gone, which others notice
            self.look()

    def look(self) -> None:
        now_s = self._clock()
        there = self._reachable()
        if there and self._master_there is False:
            self._back_s = now_s
        self._master_there = there
        self.present = self._count() > 0
        if self.present:
            self._seen_s = now_s

    @property
    def trouble(self) -> str:
        """Why no task can run now, and the way out; '' while one can, and for as long as executors take to start."""
        silent_s = self._clock() - self._seen_s
        if silent_s < _SILENT_S:
            return ""
        if self._master_there is False:
            return str(master_away(self._master))
        return str(
            EnvironmentFault(
                "the cluster of Spark has no executor for this session",
                where=f"DOVETAIL_SPARK_MASTER {self._master}",
                fix=f"start a worker that has a core and {self._memory} of memory left (spark.executor.memory in"
                f" DOVETAIL_SPARK_CONF); {_AGAIN}",
            )
        )

    @property
    def is_forgotten(self) -> bool:
        """Whether the master was away and is there again, and executors have not come with it."""
        now_s = self._clock()
        return self._back_s is not None and now_s - max(self._back_s, self._seen_s) > _FORGOTTEN_S


def master_away(master: str) -> EnvironmentFault:
    return EnvironmentFault(
        "no master of Spark answers",
        where=f"DOVETAIL_SPARK_MASTER {master}",
        fix=f"start it, or name another one; {_AGAIN}",
    )


def master_answers(master: str) -> bool | None:
    """Whether one of the masters of a standalone cluster takes connections; None for any other cluster."""
    if not master.startswith(_STANDALONE):
        return None
    return any(_takes_connections(place) for place in master.removeprefix(_STANDALONE).split(","))


def _takes_connections(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        with closing(socket.create_connection((host, int(port)), _ANSWER_S)):
            return True
    except (OSError, ValueError):
        return False
