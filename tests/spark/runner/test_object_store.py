"""Checkpoints in an object store: a runner that is killed, a store that is lost, a place that two catalogs name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.sql.catalog import Actual
from tests.servers.object_store import BUCKET, object_store, place, spark_conf
from tests.servers.proxy import Proxy
from tests.spark.changelog import summed, write
from tests.spark.running import Running, read_in, read_to

pytestmark = pytest.mark.services

RECORDS = 8_000
PER_BATCH = 1_000
WITHIN_S = 300.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with object_store(tmp_path_factory.mktemp("moto")) as way:
        yield way


@pytest.fixture
def start(store: Proxy, broker: str, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts a runner over the catalog of a folder, whose checkpoints are in the store."""
    started: list[Running] = []

    def one(catalog: str = "", bucket: str = BUCKET) -> Running:
        (tmp_path / catalog).mkdir(exist_ok=True)
        place = {"CHECKPOINT_DIR": f"s3a://{bucket}/{tmp_path.name}", "SPARK_CONF": spark_conf(store)}
        log = f"runner{len(started)}.log"
        started.append(
            Running(tmp_path / catalog, broker, log, **place, DRIVER_MEMORY_GIB=1, MAX_OFFSETS_PER_TRIGGER=PER_BATCH)
        )
        return started[-1]

    yield one
    store.close()
    store.open()
    for running in started:
        if running.process.poll() is None:
            running.stop()
        running.catalog.close()


def test_a_join_is_exact_though_its_runner_is_killed_and_its_store_is_lost(
    start: Callable[..., Running], store: Proxy, broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """Orders come before most of their clicks, and some have none: so rows are padded, and many are taken back."""
    chance = np.random.default_rng(7)
    each = RECORDS // 2
    orders = pa.table({"k": chance.integers(0, each, each), "a": np.arange(each)})
    clicks = pa.table({"k": chance.integers(0, each, each), "b": np.arange(each)})
    left, right = topics("orders"), topics("clicks")
    write(broker, left, orders)
    write(broker, right, clicks)
    runner = start()
    runner.create(f"CREATE STREAM orders (k int64, a int64) SETTINGS topic = '{left}'")
    runner.create(f"CREATE STREAM clicks (k int64, b int64) SETTINGS topic = '{right}'")
    runner.create(
        "CREATE MATERIALIZED VIEW stored_pairs AS"
        " SELECT o.k AS k, o.a AS a, c.b AS b FROM orders AS o LEFT JOIN clicks AS c ON o.k = c.k"
        " SETTINGS seek_to = 'earliest'"
    )
    runner.wait("stored_pairs", read_in(2 * PER_BATCH), WITHIN_S)
    runner.process.kill()
    runner.process.wait()
    again = start()
    before = again.wait("stored_pairs", read_in(4 * PER_BATCH), WITHIN_S)
    assert before.progress["counts"]["rows_in"] < RECORDS
    store.close()
    lost = again.wait("stored_pairs", lambda query: query.actual is Actual.RECOVERING and "object store" in query.error)
    assert "does not answer" in lost.error or "was lost" in lost.error
    store.open()
    again.wait("stored_pairs", read_to({left: each, right: each}), WITHIN_S)
    again.wait("stored_pairs", lambda query: query.actual is Actual.RUNNING, WITHIN_S)

    rows = pa.Table.join(orders, clicks, "k", join_type="left outer").select(["k", "a", "b"]).to_pylist()
    assert summed(broker, "stored_pairs") == {tuple(row.values()): rows.count(row) for row in rows}
    query = again.catalog.query("stored_pairs")
    assert query.checkpoint == f"s3a://{BUCKET}/{tmp_path.name}/{query.id}-stored_pairs"
    assert {"query.json", "spark"} <= set(place(store, f"{tmp_path.name}/{query.id}-stored_pairs").names())
    assert not list(Path.cwd().glob("s3a:*"))

    other = start("other")
    assert other.process.wait(WITHIN_S) == 1
    assert "the checkpoints belong to another catalog" in other.log.read_text()


def test_a_store_without_the_bucket_is_told_of_at_the_start(start: Callable[..., Running]) -> None:
    runner = start(bucket="not-there")
    assert runner.process.wait(WITHIN_S) == 1
    said = runner.log.read_text()
    assert "there is no bucket not-there" in said
    assert "fix:   create the bucket" in said
