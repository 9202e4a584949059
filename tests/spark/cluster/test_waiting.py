"""A cluster that is not there yet, or has gone: what the catalog and the log say meanwhile, and how it goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.services.stack.free_ports import choose_ports
from dovetail.sql.catalog import Actual, Query
from tests.servers.spark_cluster import SparkCluster
from tests.spark.kafka import multiset, send, values
from tests.spark.running import Running, read_in

pytestmark = pytest.mark.services

_CLOSED = re.compile(r"Traceback .*\n(  File .*/pyspark/daemon\.py.*\n)+BrokenPipeError.*\n")
"""What Spark's own processes say where the session at the other end of their socket has gone."""
NO_MASTER, NO_EXECUTOR = "no master of Spark answers", "the cluster of Spark has no executor for this session"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """Without any process yet."""
    made = SparkCluster(tmp_path / "cluster")
    yield made
    made.close()


def waits_for(why: str) -> Callable[[Query], bool]:
    return lambda query: query.actual is Actual.RECOVERING and why in query.error and "\n  fix: " in query.error


def test_a_runner_waits_for_a_master_and_for_a_worker_and_says_so(
    cluster: SparkCluster, broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """Where the master was started anew, which knows it no more, it ends, so that whoever started it starts another."""
    numbers = topics("numbers")
    [port] = choose_ports(0)

    def start(log: str) -> Running:
        master = f"spark://127.0.0.1:{port}"
        conf = f"{cluster.conf} spark.executor.memory=512m"
        return Running(tmp_path, broker, log, SPARK_MASTER=master, SPARK_CONF=conf, DRIVER_MEMORY_GIB=1)

    runner = start("runner.log")
    runner.create(f"CREATE TABLE numbers (k BIGINT) APPEND ONLY WITH (topic = '{numbers}')")
    runner.create("CREATE MATERIALIZED VIEW far_doubled AS SELECT k * 2 AS k FROM numbers")
    send(broker, numbers, [{"k": 1}])
    try:
        runner.wait("far_doubled", waits_for(NO_MASTER))
        master = cluster.start_master(port)
        small = cluster.start_worker(memory="128m")
        runner.wait("far_doubled", waits_for(NO_EXECUTOR))
        small.kill()
        cluster.start_worker()
        runner.wait("far_doubled", read_in(1))
        runner.wait("far_doubled", lambda query: query.actual is Actual.RUNNING)

        master.kill()
        cluster.start_master(port)
        assert runner.process.wait(120) == 1
        said = runner.log.read_text()
        for once in (NO_MASTER, "the master of Spark was restarted"):
            assert said.count(once) == 1, said
        # Of the master that is killed, and of the executor that goes with it.
        assert said.count(NO_EXECUTOR) <= 2, said
        assert "Traceback" not in _CLOSED.sub("", said)
        runner = start("next.log")
        send(broker, numbers, [{"k": 2}])
        runner.wait("far_doubled", read_in(2))
        assert runner.stop() == 0
    finally:
        if runner.process.poll() is None:
            runner.stop()
        runner.catalog.close()
    assert multiset(values(broker, "far_doubled")) == {(2,): 1, (4,): 1}
