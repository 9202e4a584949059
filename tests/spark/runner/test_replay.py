"""A batch that Spark runs again: what was committed is skipped, what was not is written, the state is as it was."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import MARKS_TOPIC
from dovetail.changelog.dead_letter import topic_of
from dovetail.changelog.errors import CheckpointMismatch, RecordsGone
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.source.batch_log import BATCHES_TOPIC
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.removal import discard
from tests.spark.conftest import Queries
from tests.spark.flows import enriched_orders, orders_users
from tests.spark.kafka import made_again, messages, multiset, send, trim, values

pytestmark = pytest.mark.services


USERS = 100
enriched = partial(enriched_orders, latest=False)
_numbers = itertools.count(100)


@pytest.fixture
def dataflow(topics: Callable[..., str]) -> Dataflow:
    return orders_users(topics("orders"), topics("users"))


@pytest.fixture
def name(queries: Queries) -> str:
    return queries.new_name()


def send_users(broker: str, dataflow: Dataflow) -> None:
    """Each joins ten orders."""
    users = [{"id": n, "k": n % 10, "name": f"user {n}"} for n in range(USERS)]
    send(broker, dataflow.scans[1].topic, users, [{"id": n} for n in range(USERS)])


def drained(queries: Queries, dataflow: Dataflow, name: str) -> RunningQuery:
    """The query started or resumed, its inputs read to their end, stopped."""
    query = queries.start(dataflow, name)
    queries.drain(query, dataflow)
    query.stop()
    return query


@pytest.fixture
def first_batch(broker: str, dataflow: Dataflow, queries: Queries, name: str) -> int:
    """The number of a batch of orders, which has no output: nobody has joined them yet."""
    send(broker, dataflow.scans[0].topic, [{"k": n % 10, "a": f"order {n}"} for n in range(100)])
    return drained(queries, dataflow, name).progress().batch


def test_a_batch_that_kafka_has_and_spark_has_not_is_not_written_again(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    send_users(broker, dataflow)
    last = drained(queries, dataflow, name).progress().batch
    once = multiset(values(broker, name))
    assert (last, len(once)) == (first_batch + 1, 10 * USERS)

    _forget_commit(queries.checkpoint(name), last)
    shutil.rmtree(tmp_path / "copy")
    again = drained(queries, dataflow, name)

    assert again.progress().batch == last
    assert again.progress().counts["rows_out"] == 0
    assert multiset(values(broker, name)) == once


@pytest.mark.parametrize("flow", [orders_users, enriched], ids=["corrected", "answered once"])
def test_the_first_batch_of_all_is_recognised_too(
    broker: str, topics: Callable[..., str], queries: Queries, flow: Callable[..., Dataflow], tmp_path: Path
) -> None:
    """Offsets logged, output committed, and no commit of Spark yet: killed in its first batch, or in the one in which
    the first rows are answered.
    """
    dataflow, name = flow(topics("orders"), topics("users")), queries.new_name()
    send(broker, dataflow.scans[0].topic, [{"k": n % 10, "a": f"order {n}"} for n in range(100)])
    send_users(broker, dataflow)
    last = drained(queries, dataflow, name).progress().batch
    once = multiset(values(broker, name))
    assert (last, len(once)) == (1 if flow is enriched else 0, 10 * USERS)

    _forget_commit(queries.checkpoint(name), last)
    shutil.rmtree(tmp_path / "copy")
    again = drained(queries, dataflow, name)

    assert (again.progress().batch, again.progress().counts["rows_out"]) == (last, 0)
    assert multiset(values(broker, name)) == once


def test_half_of_the_first_batch_is_written_where_the_other_half_is(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, tmp_path: Path
) -> None:
    send(broker, dataflow.scans[0].topic, [{"k": n % 10, "a": f"order {n}"} for n in range(100)])
    send_users(broker, dataflow)
    assert drained(queries, dataflow, name).progress().batch == 0
    _forget_commit(queries.checkpoint(name), 0)
    _set_mark(broker, queries.checkpoint(name), partition=1, batch=-1)
    shutil.rmtree(tmp_path / "copy")
    again = drained(queries, dataflow, name).progress().counts["rows_out"]

    assert 0 < again < 10 * USERS
    assert Counter(multiset(values(broker, name)).values()) == {1: 10 * USERS - again, 2: again}


def test_a_first_batch_whose_records_are_gone_is_not_run_over_the_rest_of_them(
    broker: str, dataflow: Dataflow, queries: Queries, name: str
) -> None:
    """Its rows are written; the state that belongs to them would lack those of the deleted records."""
    orders = dataflow.scans[0].topic
    send(broker, orders, [{"k": n % 10, "a": f"order {n}"} for n in range(100)])
    send_users(broker, dataflow)
    assert drained(queries, dataflow, name).progress().batch == 0
    _forget_commit(queries.checkpoint(name), 0)
    trim(broker, orders, 50)

    with pytest.raises(RecordsGone):
        drained(queries, dataflow, name)


def test_a_query_that_begins_with_a_trimmed_topic_reads_what_is_there(
    broker: str, dataflow: Dataflow, queries: Queries, name: str
) -> None:
    orders = dataflow.scans[0].topic
    send(broker, orders, [{"k": n % 10, "a": f"order {n}"} for n in range(100)])
    trim(broker, orders, 50)
    send_users(broker, dataflow)
    drained(queries, dataflow, name)

    assert len(multiset(values(broker, name))) == 5 * USERS


def test_of_a_half_committed_batch_the_other_half_is_written(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    """Partition 1 is taken not to have committed the last batch: its half of the rows is written, that of 0 is not."""
    send_users(broker, dataflow)
    last = drained(queries, dataflow, name).progress().batch
    _forget_commit(queries.checkpoint(name), last)
    _set_mark(broker, queries.checkpoint(name), partition=1, batch=first_batch)
    shutil.rmtree(tmp_path / "copy")
    again = drained(queries, dataflow, name).progress().counts["rows_out"]

    assert 0 < again < 10 * USERS
    times = Counter(multiset(values(broker, name)).values())
    assert times == {1: 10 * USERS - again, 2: again}


def put_back(queries: Queries, name: str, backup: Path) -> None:
    """The checkpoint as it was, on a machine that has no local copy of the state."""
    shutil.rmtree(queries.checkpoint(name))
    shutil.copytree(backup, queries.checkpoint(name))
    shutil.rmtree(backup.parent / "copy")


def test_a_checkpoint_behind_its_output_runs_the_batches_since_again(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    """As a backup is: the batches since are those that they were, one without output among them, and nothing is written
    twice."""
    backup = tmp_path / "backup"
    shutil.copytree(queries.checkpoint(name), backup)
    for _ in range(3):
        send_orders(broker, dataflow.scans[0].topic)
        drained(queries, dataflow, name)
    send_users(broker, dataflow)
    drained(queries, dataflow, name)
    send_orders(broker, dataflow.scans[0].topic)
    last = drained(queries, dataflow, name).progress().batch
    once = multiset(values(broker, name))
    assert (last, set(once.values())) == (first_batch + 5, {1})
    put_back(queries, name, backup)
    send_orders(broker, dataflow.scans[0].topic)

    again = drained(queries, dataflow, name).progress()

    assert again.batch == last + 1
    assert again.counts["rows_out"] == 20 * USERS // 10
    assert multiset(values(broker, name)) >= once
    assert multiset(values(broker, name)).total() == (100 + 5 * 20) * USERS // 10


def test_a_checkpoint_whose_next_batches_are_not_known_is_refused(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    """As a backup is, that is older than the log of the batches."""
    backup = tmp_path / "backup"
    shutil.copytree(queries.checkpoint(name), backup)
    send_users(broker, dataflow)
    drained(queries, dataflow, name)
    once = multiset(values(broker, name))
    put_back(queries, name, backup)
    made_again(broker, BATCHES_TOPIC, partitions=16)

    refusal = f"at batch {first_batch}, and batch {first_batch + 1} is written already"
    with pytest.raises(CheckpointMismatch, match=refusal) as refused:
        queries.start(dataflow, name)
    assert "newest backup" in refused.value.fix
    assert multiset(values(broker, name)) == once


def test_a_copy_of_the_checkpoint_of_a_dropped_query_is_refused(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    """Its first batch had no output, so there is no mark that would be missed."""
    backup = tmp_path / "backup"
    shutil.copytree(queries.checkpoint(name), backup)
    send_users(broker, dataflow)
    drained(queries, dataflow, name)
    discard(LocalFolder(queries.checkpoint(name)), BrokerAddress(broker), tmp_path / "copy", outlived=True)
    shutil.copytree(backup, queries.checkpoint(name))

    with pytest.raises(CheckpointMismatch, match="was dropped"):
        queries.start(dataflow, name)
    assert first_batch == 0


def test_a_row_that_the_topic_does_not_take_is_a_dead_letter_and_stops_no_other(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int
) -> None:
    _limit(broker, name, 20_000)
    users = [{"id": n, "k": n, "name": "x" * (30_000 if n == 3 else 10)} for n in range(8)]
    send(broker, dataflow.scans[1].topic, users, [{"id": n} for n in range(8)])
    query = drained(queries, dataflow, name)

    assert {row["u.name"] for row in values(broker, name)} == {"x" * 10}
    dead_letters = messages(broker, topic_of(name))
    assert len(dead_letters) == query.progress().counts["rejected"] == 10
    headers = dict(dead_letters[0].headers() or [])
    assert b"max.message.bytes" in (headers["dovetail.reason"] or b"")


def test_the_state_of_an_attempt_that_did_not_commit_is_not_gone_on_with(
    broker: str, dataflow: Dataflow, queries: Queries, name: str, first_batch: int, tmp_path: Path
) -> None:
    """Without the local copy the batch is run again over other runs, so the entries that it writes are others."""
    orders, sent = dataflow.scans[0].topic, 100
    for _ in range(2):
        sent += send_orders(broker, orders)
        last = drained(queries, dataflow, name).progress().batch
    _forget_commit(queries.checkpoint(name), last)
    shutil.rmtree(tmp_path / "copy")
    query = queries.start(dataflow, name)
    # Enough batches for runs to merge: entries that only one of the two attempts has written are removed then.
    for _ in range(6):
        queries.drain(query, dataflow)
        sent += send_orders(broker, orders)
    queries.drain(query, dataflow)
    query.stop()
    shutil.rmtree(tmp_path / "copy")
    send_users(broker, dataflow)
    drained(queries, dataflow, name)

    rows = multiset(values(broker, name))
    assert (len(rows), sum(rows.values())) == (sent * USERS // 10, sent * USERS // 10)


def send_orders(broker: str, topic: str) -> int:
    """Twenty orders; the counter makes each of them another one."""
    send(broker, topic, [{"k": n % 10, "a": f"order {next(_numbers)}"} for n in range(20)])
    return 20


def _limit(broker: str, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = clients.admin(BrokerAddress(broker))
    for altered in client.incremental_alter_configs([resource]).values():
        altered.result(30)


def _forget_commit(checkpoint: Path, batch: int) -> None:
    (checkpoint / "spark" / "commits" / str(batch)).unlink()
    (checkpoint / "spark" / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def _set_mark(broker: str, checkpoint: Path, partition: int, batch: int) -> None:
    origin = Checkpoint(LocalFolder(checkpoint)).origin()
    assert origin is not None
    mark = TopicPartition(MARKS_TOPIC, partition, batch + 1)
    request = ConsumerGroupTopicPartitions(origin.identity, [mark])
    client = clients.admin(BrokerAddress(broker))
    for altered in client.alter_consumer_group_offsets([request]).values():
        altered.result(30)
