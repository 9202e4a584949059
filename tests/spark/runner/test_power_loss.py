"""A machine that loses its power keeps what was synced; of the rest files may be empty, full of zeros, or missing."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.conftest import Queries
from tests.spark.flows import orders_users
from tests.spark.kafka import Value, send, values

pytestmark = pytest.mark.services

KEYS = 10
USERS: list[Value] = [{"id": n, "k": n, "name": f"user {n}"} for n in range(KEYS)]
BATCHES = 5


def lose_power(spark: Path, synced: set[Path], chance: random.Random) -> None:
    """Files that were written since some point in time hold nothing, zeros, or are not there."""
    written = [path for path in spark.rglob("*") if path.is_file() and path not in synced]
    written.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in written[chance.randrange(len(written) + 1) :]:
        match chance.randrange(4):
            case 0:
                path.write_bytes(b"")
            case 1:
                path.write_bytes(bytes(path.stat().st_size))
            case 2:
                path.unlink()


@pytest.mark.parametrize("buckets", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_written_twice(
    broker: str, topics: Callable[..., str], queries: Queries, tmp_path: Path, buckets: int, seed: int
) -> None:
    dataflow, name, chance = orders_users(topics("orders"), topics("users")), queries.new_name(), random.Random(seed)
    orders, users = (scan.topic for scan in dataflow.scans)
    settings = queries.settings(buckets=buckets)
    sent = 0

    def run_a_batch() -> None:
        nonlocal sent
        send(broker, orders, [{"k": n, "a": f"order {sent}.{n}"} for n in range(KEYS)])
        sent += 1
        query = queries.start(dataflow, name, settings=settings)
        queries.drain(query, dataflow)
        query.stop()

    send(broker, users, USERS, [{"id": n} for n in range(KEYS)])
    run_a_batch()
    spark = queries.checkpoint(name) / "spark"
    # Of a first batch the state is all there is.
    synced = {path for path in spark.rglob("*") if path.is_file()}
    for _ in range(chance.randrange(2, BATCHES)):
        run_a_batch()
    lose_power(spark, synced, chance)
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    run_a_batch()

    joined = Counter(f"{row['l.a']}" for row in values(broker, name))
    assert joined == Counter(f"order {batch}.{n}" for batch in range(sent) for n in range(KEYS))
