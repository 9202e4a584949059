"""The runner in a process of its own, as the stack starts it, driven through its catalog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from dovetail.runtime.settings import read_settings
from dovetail.services.jars import JarSet, jar_folder
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView
from tests.paths import ROOT

WAIT_S = 120.0


class Running:
    """A runner in a process of its own, over a catalog of its own."""

    def __init__(self, folder: Path, brokers: str, log: str = "runner.log", **settings: object) -> None:
        self.url = f"sqlite:///{folder / 'catalog.db'}"
        self.catalog = Catalog.open(self.url)
        self.log = folder / log
        sets: tuple[JarSet, ...] = ("spark", "s3a") if "CHECKPOINT_DIR" in settings else ("spark",)
        jars = os.pathsep.join(str(jar_folder(read_settings(), jar_set)) for jar_set in sets)
        environment = {
            "DATA_DIR": folder,
            "CATALOG_URL": self.url,
            "BROKERS": brokers,
            "SPARK_JARS": jars,
            "SPARK_MASTER": "local[2]",
            "READY_FILE": folder / "ready",
            "BUCKETS": 1,
            **settings,
        }
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dovetail.spark_jobs.runner"],
                cwd=ROOT,
                env={**os.environ, **{f"DOVETAIL_{name}": str(value) for name, value in environment.items()}},
                stdout=output,
                stderr=output,
            )

    def create(self, sql: str) -> None:
        """A stream, or a view with its query."""
        statement = parse_one(sql)
        if isinstance(statement, CreateView):
            plan = plan_query(statement.name, statement, self.catalog)
            query = Query(statement.name, sql, plan.explain(), plan.fingerprint, topic=statement.name)
            self.catalog.create(statement, now_ms=0, uses=plan.reads, query=query)
        else:
            assert isinstance(statement, CreateStream)
            self.catalog.create(statement, now_ms=0)

    def wait(self, name: str, reached: Callable[[Query], bool], within_s: float = WAIT_S) -> Query:
        deadline = time.monotonic() + within_s
        while not reached(query := self.catalog.query(name)):
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, f"{query}\n{self.log.read_text()[-3000:]}"
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
        return query

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def killed(runner: Running) -> None:
    """Kill -9 of a runner and all its processes."""
    process = psutil.Process(runner.process.pid)
    tree = [*process.children(recursive=True), process]
    for one in reversed(tree):
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(tree, timeout=30)
    runner.process.wait(30)


@contextmanager
def runners_over(folder: Path, broker: str, **common: object) -> Iterator[Callable[..., Running]]:
    """Starts a runner over the catalog of a folder as often as it is asked to, each with settings of its own besides
    the ``common`` ones; none outlives the block.
    """
    started: list[Running] = []

    def start(**settings: object) -> Running:
        started.append(Running(folder, broker, log=f"runner-{len(started)}.log", **{**common, **settings}))
        return started[-1]

    try:
        yield start
    finally:
        for running in started:
            if running.process.poll() is None:
                running.stop()
            running.catalog.close()


def read_in(rows: int) -> Callable[[Query], bool]:
    """Counted in batches that Spark has told of: one that ended with its runner may be missing."""
    return lambda query: query.progress.get("counts", {}).get("rows_in", 0) >= rows


def read_to(ends: Mapping[str, int]) -> Callable[[Query], bool]:
    """Topic → the sum of its partitions' ends."""

    def reached(query: Query) -> bool:
        offsets = query.progress.get("offsets", {})
        return all(sum(offsets.get(topic, {}).values()) >= end for topic, end in ends.items())

    return reached
