"""A process that runs queries until their inputs are read: ``python -m tests.spark.host FILE``, to be killed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.runtime.settings import read_settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.services.jars import jar_paths
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.spark_session import fork_from_here, start_session
from tests.spark.flows import enriched_orders, in_portions, orders_clicks, orders_users_twice

FLOWS = {
    "clicks": lambda left, right: orders_clicks(left, right, JoinKind.LEFT),
    "portions": lambda left, right: in_portions(orders_clicks(left, right, JoinKind.LEFT), StateMemory(20_000)),
    "shared": lambda left, right: orders_users_twice(left, right, shared=True),
    "enriched": lambda left, right: enriched_orders(left, right, latest=False),
}


def main() -> None:
    fork_from_here()
    given = json.loads(Path(sys.argv[1]).read_text())
    session = start_session("host", jar_paths(read_settings(), "spark"), "local[2]", polling_delay_ms=20)
    queries = [started(session, Path(given["folder"]), chosen) for chosen in given["queries"]]
    for query, dataflow, brokers in queries:
        query.await_read(topics.end_offsets(clients.admin(brokers), dataflow.topics), timeout_s=300)
        query.stop()
    session.stop()


def started(
    session: SparkSession, folder: Path, chosen: Mapping[str, Any]
) -> tuple[RunningQuery, Dataflow, BrokerAddress]:
    dataflow = FLOWS[chosen.get("flow", "clicks")](chosen["left"], chosen["right"])
    brokers = BrokerAddress(chosen["brokers"])
    query = RunningQuery.start(
        session,
        dataflow,
        chosen["name"],
        output_topic=chosen["name"],
        brokers=brokers,
        storage=LocalFolder(folder / chosen["name"]),
        fingerprint="1",
        plan="",
        snapshots=dict,
        settings=JobSettings(
            buckets=chosen.get("buckets", 2),
            max_offsets_per_trigger=chosen["records_per_batch"],
            output_partitions=2,
            local_copy_dir=folder / "copy",
        ),
    )
    return query, dataflow, brokers


if __name__ == "__main__":
    main()
