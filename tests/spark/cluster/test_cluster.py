"""Spark on several machines: a standalone cluster of processes that share the folder of the checkpoints alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.servers.spark_cluster import SparkCluster, SparkDaemon, kill_all, spark_cluster
from tests.spark.changelog import summed, write
from tests.spark.kafka import send
from tests.spark.running import Running, read_in, read_to, runners_over

pytestmark = pytest.mark.services

RECORDS = 1_000_000
PER_BATCH = 100_000
WITHIN_S = 300.0
STATE = "1-*"
"""The copies of the buckets of level 1."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture
def start(cluster: SparkCluster, broker: str, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts a runner whose tasks run in the cluster."""
    with runners_over(tmp_path, broker, SPARK_MASTER=cluster.master, DRIVER_MEMORY_GIB=1) as started:

        def one(conf: str = "", **settings: object) -> Running:
            return started(SPARK_CONF=f"{cluster.conf} spark.executor.memory=512m {conf}", **settings)

        yield one


def test_a_join_is_exact_though_an_executor_and_a_worker_are_killed(
    cluster: SparkCluster, start: Callable[..., Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """Orders come before most of their clicks, and some have none: so rows are padded, and many are taken back.

    A view in one bucket has no store of Spark: where its task changes machines, its state is what the checkpoint has.
    """
    chance = np.random.default_rng(7)
    each = RECORDS // 2
    orders = pa.table({"k": chance.integers(0, each, each), "a": np.arange(each)})
    clicks = pa.table({"k": chance.integers(0, each, each), "b": np.arange(each)})
    left, right, names = topics("orders"), topics("clicks"), topics("names")
    write(broker, left, orders)
    write(broker, right, clicks)
    send(broker, names, [{"k": k, "word": f"word{k}"} for k in range(100)])
    runner = start(BUCKETS=2, MAX_OFFSETS_PER_TRIGGER=PER_BATCH)
    runner.create(f"CREATE STREAM orders (k int64, a int64) SETTINGS topic = '{left}'")
    runner.create(f"CREATE STREAM clicks (k int64, b int64) SETTINGS topic = '{right}'")
    runner.create(f"CREATE STREAM names (k int64, word string) SETTINGS topic = '{names}'")
    runner.create(
        "CREATE MATERIALIZED VIEW far_named AS"
        " SELECT o.a AS a, n.word AS word FROM orders AS o INNER JOIN table(names) AS n ON o.k = n.k"
        " SETTINGS seek_to = 'earliest'"
    )
    runner.wait("far_named", read_in(each), WITHIN_S)
    runner.create(
        "CREATE MATERIALIZED VIEW far_counts AS SELECT c.k AS k, count(*) AS n FROM clicks AS c GROUP BY c.k"
        " SETTINGS seek_to = 'earliest', buckets = 1"
    )
    runner.create(
        "CREATE MATERIALIZED VIEW far_pairs AS"
        " SELECT o.k AS k, o.a AS a, c.b AS b FROM orders AS o LEFT JOIN clicks AS c ON o.k = c.k"
        " SETTINGS seek_to = 'earliest'"
    )
    runner.wait("far_pairs", read_in(2 * PER_BATCH), WITHIN_S)
    kept = [worker.name for worker in cluster.workers if copies(worker, "snapshots/names.arrow")]
    assert kept, "no executor has a copy of the static table"
    assert not (tmp_path / "state-copy").exists(), "states are copied to the runner's folder"
    executors = at_work(cluster).executors()
    assert executors
    kill_all(executors)
    before = runner.wait("far_pairs", read_in(RECORDS // 2), WITHIN_S)
    at_work(cluster).kill()
    after = runner.wait("far_pairs", read_to({left: each, right: each}), WITHIN_S)
    runner.wait("far_counts", read_to({right: each}), WITHIN_S)

    assert before.progress["counts"]["rows_in"] < RECORDS
    assert after.progress["batch"] > before.progress["batch"]
    rows = pa.Table.join(orders, clicks, "k", join_type="left outer").select(["k", "a", "b"]).to_pylist()
    assert summed(broker, "far_pairs") == Counter(tuple(row.values()) for row in rows)
    counted = Counter(clicks.column("k").to_pylist())
    assert summed(broker, "far_counts") == Counter(dict.fromkeys(counted.items(), 1))
    named = [(row["a"], f"word{row['k']}") for row in orders.to_pylist() if row["k"] < 100]
    assert summed(broker, "far_named") == Counter(named)


def test_an_executor_without_the_libraries_is_told_of(start: Callable[..., Running], tmp_path: Path) -> None:
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)

    runner = start(f"spark.pyspark.python={bare}")

    assert runner.process.wait(120) == 1
    said = runner.log.read_text()
    assert 'the Python of an executor has no module "' in said
    assert "where: the session of Spark" in said
    assert "fix:   install what requirements.lock names" in said


def at_work(cluster: SparkCluster) -> SparkDaemon:
    """The worker that has kept a state last: Spark may leave another one idle."""
    kept = [
        (copy.stat().st_mtime_ns, number) for number, one in enumerate(cluster.workers) for copy in copies(one, STATE)
    ]
    return cluster.workers[max(kept)[1]]


def copies(worker: SparkDaemon, kind: str) -> list[Path]:
    """What the executors of a worker keep on its disk."""
    return list(worker.folder.glob(f"**/dovetail/*/{kind}"))
