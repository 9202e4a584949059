"""The history of what is asked, read in many batches: rows that ask are answered from all of it, also after a kill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.broker.topics import Offsets
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from tests.spark.hosted import HostedQueries
from tests.spark.kafka import multiset, send, values

pytestmark = pytest.mark.services

USERS = 1500
ORDERS = 300
PER_BATCH = 200
PARTITIONS = 2


def test_rows_are_answered_from_the_whole_history_though_it_was_read_in_parts_and_the_process_killed(
    broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """The last record of a user gives its name: an answer out of part of the history has another one, or none."""
    orders, users = topics("orders", partitions=PARTITIONS), topics("users", partitions=PARTITIONS)
    for word in ("old", "new"):
        rows = [{"id": n, "k": n, "name": f"{word} {n}"} for n in range(USERS)]
        send(broker, users, rows, keys=[{"id": n} for n in range(USERS)])
    order_rows = [{"k": n * USERS // ORDERS, "a": f"order {n}"} for n in range(ORDERS)]
    send(broker, orders, order_rows, keys=[{"k": n} for n in range(ORDERS)])
    chosen = {"brokers": broker, "name": "enriched_late", "flow": "enriched", "left": orders, "right": users}
    checkpoint = Checkpoint(LocalFolder(tmp_path / "enriched_late"))

    first = HostedQueries(tmp_path, {**chosen, "records_per_batch": PER_BATCH})
    first.kill_after(0.3, batches=3)
    assert 0 < _read(checkpoint.planned()[-1], users) < 2 * USERS
    send(broker, orders, [{"k": USERS - 1, "a": "after the kill"}])
    HostedQueries(tmp_path, {**chosen, "records_per_batch": PER_BATCH}).finish()

    expected = Counter({(row["k"], row["a"], f"new {row['k']}"): 1 for row in order_rows})
    expected[USERS - 1, "after the kill", f"new {USERS - 1}"] = 1
    assert multiset(values(broker, "enriched_late")) == expected

    batches = checkpoint.planned()
    users_read = [_read(ends, users) for ends in batches]
    orders_read = [_read(ends, orders) for ends in batches]
    sizes = [after - before for before, after in zip([0, *users_read], users_read, strict=False)]
    assert all(size <= PER_BATCH + PARTITIONS for size in sizes)
    history = [read for read, of_users in zip(orders_read, users_read, strict=True) if of_users < 2 * USERS]
    assert len(history) >= 2 * USERS // (PER_BATCH + PARTITIONS) - 1
    assert not any(history)


def _read(ends: Offsets, topic: str) -> int:
    return sum(ends[topic].values())
