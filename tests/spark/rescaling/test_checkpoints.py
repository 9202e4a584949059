"""The checkpoint that a rescaling makes of another one, and queries that go on from it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import CheckpointMismatch, EnvironmentFault
from dovetail.changelog.schema import WIRE_DELTA
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys
from dovetail.spark_jobs.rescaling.generations import leftovers, next_in, next_of, pack_of
from dovetail.spark_jobs.rescaling.rescale import rescale
from dovetail.spark_jobs.runner.failure import of_driver
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.removal import discard
from dovetail.spark_jobs.state.seed import Seed
from tests.bad_disks import filled, small_disk
from tests.spark.conftest import Queries
from tests.spark.flows import orders_near_clicks, orders_users
from tests.spark.kafka import multiset, send, values

USERS = 60


def rescaled(spark: SparkSession, dataflow: Dataflow, former: Path, before: int, after: int) -> Path:
    place = LocalFolder(former)
    made = rescale(spark, dataflow, former.name, place, bucket_keys(before), after, lambda _: None).checkpoint
    assert made.folder is not None
    return made.folder


def drained(queries: Queries, dataflow: Dataflow, name: str, checkpoint: Path, *, drain_only: bool = False) -> int:
    """The query run to the end of its inputs, or of what it has begun; the number of its last batch."""
    query = queries.start(dataflow, name, settings=queries.settings(drain_only=drain_only), checkpoint=checkpoint)
    if drain_only:
        query.await_drained()
    else:
        queries.drain(query, dataflow)
    query.stop()
    return query.progress().batch


@pytest.fixture
def dataflow(topics: Callable[..., str]) -> Dataflow:
    return orders_users(topics("orders"), topics("users"))


def send_users(broker: str, dataflow: Dataflow, word: str) -> None:
    """Each moves to the next key, with its orders."""
    users = [{"id": n, "k": (n + len(word)) % 10, "name": f"{word} {n}"} for n in range(USERS)]
    send(broker, dataflow.scans[1].topic, users, [{"id": n} for n in range(USERS)])


def send_orders(broker: str, dataflow: Dataflow, first: int) -> None:
    send(broker, dataflow.scans[0].topic, [{"k": n % 10, "a": f"order {n}"} for n in range(first, first + 50)])


def joined(word: str, orders: int) -> Counter[tuple[object, ...]]:
    return Counter(
        (f"order {order}", f"{word} {n}")
        for n in range(USERS)
        for order in range(orders)
        if order % 10 == (n + len(word)) % 10
    )


def current_rows(broker: str, name: str) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for value in values(broker, name):
        delta = int(str(value.pop(WIRE_DELTA)))
        rows[tuple(value.values())] += delta
    assert min(rows.values(), default=0) >= 0
    return +rows


@pytest.mark.services
def test_a_seed_that_no_batch_has_taken_in_is_cut_anew(
    spark: SparkSession, queries: Queries, broker: str, dataflow: Dataflow
) -> None:
    name = queries.new_name()
    send_users(broker, dataflow, "a")
    send_orders(broker, dataflow, 0)
    drained(queries, dataflow, name, queries.checkpoint(name))

    third = rescaled(spark, dataflow, queries.checkpoint(name), 2, 3)
    assert Seed(LocalFolder(third)).bytes > 0
    single = rescaled(spark, dataflow, third, 3, 1)
    assert (third.name, single.name) == (f"{name}.1", f"{name}.2")
    send_users(broker, dataflow, "bb")
    send_orders(broker, dataflow, 50)
    assert drained(queries, dataflow, name, single) >= 0

    assert current_rows(broker, name) == joined("bb", 100)
    assert not Seed(LocalFolder(single)).there
    origins = [Checkpoint(LocalFolder(one)).origin() for one in (queries.checkpoint(name), third, single)]
    assert [origin.buckets for origin in origins if origin] == [2, 3, 1]
    assert len({origin.identity for origin in origins if origin}) == 3
    assert len({str(origin.first_offsets) for origin in origins if origin}) == 1


@pytest.mark.services
def test_a_start_without_records_loses_no_seed(
    spark: SparkSession, queries: Queries, broker: str, dataflow: Dataflow
) -> None:
    """Started, settled and stopped before there is anything to read, then cut back."""
    name = queries.new_name()
    send_users(broker, dataflow, "a")
    drained(queries, dataflow, name, queries.checkpoint(name))
    third = rescaled(spark, dataflow, queries.checkpoint(name), 2, 3)
    for drain_only in (False, True):
        drained(queries, dataflow, name, third, drain_only=drain_only)
    single = rescaled(spark, dataflow, third, 3, 1)
    drained(queries, dataflow, name, single)
    send_orders(broker, dataflow, 0)
    drained(queries, dataflow, name, single)

    assert current_rows(broker, name) == joined("a", 50)


@pytest.mark.services
def test_a_batch_that_was_begun_is_settled_first_and_its_output_stands_once(
    spark: SparkSession, queries: Queries, broker: str, dataflow: Dataflow, tmp_path: Path
) -> None:
    """Kafka has the batch and Spark has not, and more has come since: the rest is read by the new checkpoint."""
    name = queries.new_name()
    former = queries.checkpoint(name)
    send_users(broker, dataflow, "a")
    drained(queries, dataflow, name, former)
    send_orders(broker, dataflow, 0)
    last = drained(queries, dataflow, name, former)
    for left in (former / "spark" / "commits").glob(f"*{last}*"):
        left.unlink()
    shutil.rmtree(tmp_path / "copy")
    send_orders(broker, dataflow, 50)

    assert drained(queries, dataflow, name, former, drain_only=True) == last
    assert current_rows(broker, name) == joined("a", 50)
    made = rescaled(spark, dataflow, former, 2, 3)
    drained(queries, dataflow, name, made)

    assert current_rows(broker, name) == joined("a", 100)
    assert Counter(multiset(values(broker, name)).values()) == {1: joined("a", 100).total()}


@pytest.mark.services
def test_rows_that_wait_leave_once_when_time_goes_on(
    spark: SparkSession, queries: Queries, broker: str, topics: Callable[..., str]
) -> None:
    dataflow, name = orders_near_clicks(topics("left"), topics("right")), queries.new_name()
    left, right = (scan.topic for scan in dataflow.scans)
    send(broker, left, [{"k": n, "at": f"2026-01-01 12:00:{n:02}"} for n in range(20)])
    send(broker, right, [{"k": n, "at": "2026-01-01 12:00:01"} for n in range(0, 20, 2)])
    drained(queries, dataflow, name, queries.checkpoint(name))

    made = rescaled(spark, dataflow, queries.checkpoint(name), 2, 3)
    send(broker, left, [{"k": 99, "at": "2026-01-01 12:05:00"}])
    send(broker, right, [{"k": 99, "at": "2026-01-01 12:05:00"}])
    drained(queries, dataflow, name, made)

    assert Counter(row["l.k"] for row in values(broker, name)) == Counter([*range(20), 99])


@pytest.mark.services
def test_a_full_disk_leaves_the_former_checkpoint_as_it_was(
    spark: SparkSession, broker: str, dataflow: Dataflow, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        queries = Queries(spark, broker, disk)
        name = queries.new_name()
        former = queries.checkpoint(name)
        send_users(broker, dataflow, "a")
        drained(queries, dataflow, name, former)

        with filled(disk), pytest.raises(Exception) as raised:  # noqa: PT011 - Spark's or Python's, as it comes
            rescaled(spark, dataflow, former, 2, 3)
        error = of_driver(raised.value, name)
        assert isinstance(error, EnvironmentFault), error
        assert "No space left on device" in error.what
        assert leftovers(LocalFolder(former)) == []

        made = rescaled(spark, dataflow, former, 2, 3)
        send_orders(broker, dataflow, 0)
        drained(queries, dataflow, name, made)
        assert current_rows(broker, name) == joined("a", 50)


@pytest.mark.services
def test_the_former_checkpoint_is_refused_once_another_one_counts(
    spark: SparkSession, queries: Queries, broker: str, dataflow: Dataflow, tmp_path: Path
) -> None:
    """As a backup of it would be: what was written since, its batches would write again."""
    name = queries.new_name()
    former, backup = queries.checkpoint(name), tmp_path / "backup"
    send_users(broker, dataflow, "a")
    drained(queries, dataflow, name, former)
    shutil.copytree(former, backup)
    made = rescaled(spark, dataflow, former, 2, 3)
    discard(LocalFolder(former), BrokerAddress(broker), tmp_path / "copy", outlived=True)
    assert not former.exists()

    with pytest.raises(CheckpointMismatch, match="was dropped, or rescaled"):
        drained(queries, dataflow, name, backup)
    drained(queries, dataflow, name, made)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("7-v", "7-v.1", "7-v.2", "17-v.1", "7-vv", "restored-v-0a1b"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_generations(folder: Path) -> None:
    place = LocalFolder(folder)
    assert next_of(place.inside("7-v")) == place.inside("7-v.1")
    assert next_of(place.inside("7-v.9")) == place.inside("7-v.10")
    assert leftovers(place.inside("7-v.1")) == [place.inside("7-v"), place.inside("7-v.2")]
    assert leftovers(place.inside("restored-v-0a1b")) == []
    assert leftovers(place.inside("none/7-v")) == []


def test_generations_in_a_pack(folder: Path) -> None:
    place = LocalFolder(folder)
    pack = place.inside("pack-0a-1b")
    member = next_in(pack, place.inside("7-v.2"))
    assert member == pack.inside("members/7-v.3")
    assert pack_of(member) == pack
    assert pack_of(place.inside("7-v")) is None
    assert next_of(member) == place.inside("7-v.4")
    assert leftovers(member) == [place.inside("7-v"), place.inside("7-v.1"), place.inside("7-v.2")]
