"""Kill -9 of the whole process tree, ten times in one run: a reader sees the changes of an unbroken run, once each."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from changelog.changes import DELTA
from changelog.decode import Decoder
from joins.dataflow.graph import Dataflow
from joins.dataflow.ports import JoinKind
from joins.host.in_memory import LocalQuery
from runtime.storage.local_folder import LocalFolder
from spark_jobs.state.checkpoint import Checkpoint
from tests.spark.flows import orders_clicks, orders_users_twice
from tests.spark.hosted import HostedQuery
from tests.spark.kafka import messages, multiset, records, send, values

pytestmark = pytest.mark.services

KILLS = 10
RECORDS = 6000
PER_BATCH = 100


def test_ten_kills_lose_nothing_and_repeat_nothing(broker: str, topics: Callable[..., str], tmp_path: Path) -> None:
    left, right = topics("left"), topics("right")
    chance = random.Random(7)
    send(broker, left, [{"k": chance.randrange(400), "a": f"a{n}"} for n in range(RECORDS // 2)])
    send(broker, right, [{"k": chance.randrange(400), "b": f"b{n}"} for n in range(RECORDS // 2)])
    chosen = {"brokers": broker, "name": "killed", "left": left, "right": right, "records_per_batch": PER_BATCH}

    for kill in range(KILLS):
        HostedQuery(tmp_path, chosen).kill_after(chance.uniform(0, 1.2))
        if kill % 2:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    HostedQuery(tmp_path, {**chosen, "records_per_batch": 10 * RECORDS}).finish()

    dataflow = orders_clicks(left, right, JoinKind.LEFT)
    assert multiset(values(broker, "killed")) == unbroken(broker, dataflow, tmp_path / "killed")


def test_kills_leave_state_that_several_read_whole(broker: str, topics: Callable[..., str], tmp_path: Path) -> None:
    """Users are kept once for two joins; what leaves is what leaves where each of these has its own."""
    orders, users = topics("orders"), topics("users")
    chance = random.Random(7)
    ids = [chance.randrange(60) for _ in range(1200)]
    moved = [{"id": user, "k": chance.randrange(40), "name": f"{n}"} for n, user in enumerate(ids)]
    send(broker, users, moved, [{"id": user} for user in ids])
    send(broker, orders, [{"k": chance.randrange(40), "a": f"a{n}"} for n in range(600)])
    chosen = {"brokers": broker, "name": "shared", "flow": "shared", "left": orders, "right": users}

    for kill in range(4):
        HostedQuery(tmp_path, {**chosen, "records_per_batch": PER_BATCH}).kill_after(chance.uniform(0, 1.2))
        if kill % 2:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    HostedQuery(tmp_path, {**chosen, "records_per_batch": 10 * RECORDS}).finish()

    written = multiset(values(broker, "shared"))
    for shared in (True, False):
        assert written == unbroken(broker, orders_users_twice(orders, users, shared), tmp_path / "shared")


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
