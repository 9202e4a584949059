"""Kill -9 of the whole process tree, several times in a run: a reader sees what an unbroken run writes, once each."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import Decoder
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from tests.spark.flows import orders_clicks, orders_users_twice
from tests.spark.hosted import HostedQueries
from tests.spark.kafka import messages, multiset, records, send, values
from tests.tries import tries

pytestmark = pytest.mark.services

KILLS = tries(5)
RECORDS = 8000
AT_ONCE = 10 * RECORDS


def test_kills_lose_nothing_and_repeat_nothing(broker: str, topics: Callable[..., str], tmp_path: Path) -> None:
    """Of two queries in one process, a join in two buckets, and two joins that keep users once, in one bucket: what
    leaves the latter is what leaves where each join has its own.
    """
    left, right, orders, users = (topics(name) for name in ("left", "right", "orders", "users"))
    chance = random.Random(7)
    send(broker, left, [{"k": chance.randrange(400), "a": f"a{n}"} for n in range(RECORDS // 2)])
    send(broker, right, [{"k": chance.randrange(400), "b": f"b{n}"} for n in range(RECORDS // 2)])
    ids = [chance.randrange(60) for _ in range(1200)]
    moved = [{"id": user, "k": chance.randrange(40), "name": f"{n}"} for n, user in enumerate(ids)]
    send(broker, users, moved, [{"id": user} for user in ids])
    send(broker, orders, [{"k": chance.randrange(40), "a": f"a{n}"} for n in range(600)])

    def hosted(of_join: int, of_shared: int) -> HostedQueries:
        shared = {"name": "shared", "flow": "shared", "left": orders, "right": users, "records_per_batch": of_shared}
        shared["buckets"] = 1
        killed = {"name": "killed", "left": left, "right": right, "records_per_batch": of_join}
        return HostedQueries(tmp_path, *({"brokers": broker, **chosen} for chosen in (shared, killed)))

    for kill in range(KILLS):
        hosted(of_join=100, of_shared=25).kill_after(chance.uniform(0, 1.2))
        if kill % 2:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    hosted(of_join=AT_ONCE, of_shared=AT_ONCE).finish()

    dataflow = orders_clicks(left, right, JoinKind.LEFT)
    assert multiset(values(broker, "killed")) == unbroken(broker, dataflow, tmp_path / "killed")
    written = multiset(values(broker, "shared"))
    for once in (True, False):
        assert written == unbroken(broker, orders_users_twice(orders, users, once), tmp_path / "shared")


def unbroken(broker: str, dataflow: Dataflow, checkpoint: Path) -> Counter[tuple[object, ...]]:
    """What the dataflow gives in memory, over the batches that the checkpoint says were read."""
    query = LocalQuery(dataflow)
    changes: Counter[tuple[object, ...]] = Counter()
    for batch in batches(broker, dataflow, Checkpoint(LocalFolder(checkpoint))):
        rows = query.feed(batch)
        if rows is not None:
            changes.update(multiset(rows.select([*dataflow.sink.columns, DELTA]).to_pylist()))
    return changes


def batches(broker: str, dataflow: Dataflow, checkpoint: Checkpoint) -> Iterator[dict[int, pa.Table]]:
    """The decoded rows of each batch, by scan."""
    read = [records(messages(broker, scan.topic)) for scan in dataflow.scans]
    before = {scan.topic: 0 for scan in dataflow.scans}
    for ends in checkpoint.planned():
        after = {topic: ends[topic][0] for topic in before}
        yield {
            index: Decoder(scan.stream, scan.columns)
            .decode(read[index].slice(before[scan.topic], after[scan.topic] - before[scan.topic]))
            .rows
            for index, scan in enumerate(dataflow.scans)
        }
        before = after
