"""The checkpoint of a pack, made of those of its members, and those of members that leave it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys
from dovetail.spark_jobs.packing.checkpoints import Alone, PackMember, pack_up, taken_out
from dovetail.spark_jobs.rescaling.generations import pack_of
from dovetail.spark_jobs.runner.query import RunningQuery, job_of, job_of_pack
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.seed import Seed
from tests.spark.conftest import DRAIN_S, Queries
from tests.spark.flows import orders_clicks, orders_users
from tests.spark.kafka import multiset, send, values
from tests.spark.rescaling.test_checkpoints import current_rows, joined, send_orders, send_users

pytestmark = pytest.mark.services


class Packing:
    """Two queries over the same orders, which are packed and taken apart again."""

    def __init__(self, spark: SparkSession, broker: str, queries: Queries, flows: Mapping[str, Dataflow]) -> None:
        self._spark, self._brokers, self._queries = spark, BrokerAddress(broker), queries
        self.flows = flows

    def keys(self, buckets: int) -> tuple[int, ...]:
        return bucket_keys(buckets)

    def alone(self, name: str, place: Path) -> None:
        """Run one to the end of its inputs."""
        query = self._queries.start(self.flows[name], name, checkpoint=place)
        self._queries.drain(query, self.flows[name])
        query.stop()

    def packed(self, places: Mapping[str, Path], pack: Path) -> dict[str, Storage]:
        every = [Alone(name, name, self.flows[name], LocalFolder(place)) for name, place in places.items()]
        made = pack_up(self._spark, every, LocalFolder(pack), self.keys, lambda _: None)
        return dict(zip(places, made.places, strict=True))

    def together(self, members: Mapping[str, Storage]) -> None:
        """Run a pack to the end of its inputs."""
        settings = self._queries.settings()
        jobs = []
        for name, place in members.items():
            origin = replace(Checkpoint(place).expect_origin(), buckets=1)
            job = job_of(self._spark, self.flows[name], name, name, self._brokers, place, origin, settings)
            jobs.append(replace(job, key=name))
        [pack] = {found for place in members.values() if (found := pack_of(place)) is not None}
        job = job_of_pack(self._spark, self._brokers, pack, jobs, settings)
        query = RunningQuery.start_pack(self._spark, job, settings)
        names = sorted({topic for job in jobs for topic in job.dataflow.topics})
        try:
            query.await_read(topic_admin.end_offsets(clients.admin(self._brokers), names), DRAIN_S)
        finally:
            query.stop()

    def apart(self, name: str, member: Storage, *, known: bool = True) -> Path:
        flow = self.flows[name] if known else None
        [made] = taken_out(self._spark, [PackMember(name, name, flow, member)], self.keys)
        assert made.folder is not None
        return made.folder


def test_views_go_on_in_a_pack_and_out_of_it(
    spark: SparkSession, broker: str, topics: Callable[..., str], queries: Queries, tmp_path: Path
) -> None:
    orders, users, clicks = topics("orders"), topics("users"), topics("clicks")
    moved, paired = queries.new_name(), queries.new_name()
    flows = {moved: orders_users(orders, users), paired: orders_clicks(orders, clicks)}
    packing = Packing(spark, broker, queries, flows)
    send_users(broker, flows[moved], "a")
    send_orders(broker, flows[moved], 0)
    packing.alone(moved, tmp_path / moved)
    # The other one has read further when the two meet.
    send_orders(broker, flows[moved], 50)
    send(broker, clicks, [{"k": n, "b": f"click {n}"} for n in range(10)])
    packing.alone(paired, tmp_path / paired)
    places = {name: tmp_path / name for name in flows}

    packing.packed(places, tmp_path / "pack-1-1")
    # Killed before the catalog names it: the former ones are in force, and another pack is made of them.
    send_orders(broker, flows[moved], 100)
    packing.alone(paired, tmp_path / paired)
    members = packing.packed(places, tmp_path / "pack-1-2")
    packing.together(members)
    assert current_rows(broker, moved) == joined("a", 150)
    assert not Seed(LocalFolder(tmp_path / "pack-1-2")).there

    send_users(broker, flows[moved], "bb")
    send_orders(broker, flows[moved], 150)
    packing.together(members)
    # One leaves, and the other goes on without it.
    again = packing.apart(moved, members[moved])
    packing.together({paired: members[paired]})
    send_users(broker, flows[moved], "ccc")
    send_orders(broker, flows[moved], 200)
    send(broker, clicks, [{"k": 3, "b": "last"}])
    packing.alone(moved, again)
    packing.together({paired: members[paired]})
    last = packing.apart(paired, members[paired], known=False)

    assert again.name == f"{moved}.2"
    assert current_rows(broker, moved) == joined("ccc", 250)
    pairs = Counter((n % 10, f"order {n}", f"click {n % 10}") for n in range(250))
    pairs.update((3, f"order {n}", "last") for n in range(250) if n % 10 == 3)
    assert multiset(values(broker, paired)) == pairs
    origins = [Checkpoint(LocalFolder(place)).expect_origin() for place in (tmp_path / moved, again, last)]
    assert [origin.buckets for origin in origins] == [2, 2, 1]
    assert len({origin.identity for origin in origins}) == 3
