"""Write the checkpoints of this release: ``make checkpoints``, once for each release that is published.

They go to ``tests/data/checkpoints/<version>/<view>/``: the checkpoint as it lies on disk, without Spark's check sums,
and what the view had written until then (``output.json``). The inputs are ``tests.spark.releases.views.rows``.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.runtime.settings import read_settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.services.jars import jar_paths
from dovetail.services.stack.temporary import temporary_stack
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.state.relocation import rewrite_schema_paths
from tests.paths import ROOT
from tests.spark.kafka import send, values
from tests.spark.releases.views import KEYS, TABLES, VIEWS, fragment, rows, topic

CHECKPOINTS = ROOT / "tests" / "data" / "checkpoints"
WAIT_S = 120.0


def make_topics(brokers: str) -> None:
    topics.ensure(clients.admin(BrokerAddress(brokers)), {topic(table): 1 for table in TABLES})


def send_half(brokers: str, half: int) -> None:
    """The rows of one half, into the topics of all tables."""
    for table in TABLES:
        found = rows(table, half)
        key = KEYS.get(table)
        send(brokers, topic(table), found, [{key: row[key]} for row in found] if key else [])


def run_to_the_end(session: SparkSession, view: str, brokers: str, folder: Path) -> None:
    """Start the view, or go on from the checkpoint in ``folder/<view>``, and read what the inputs hold now."""
    made = fragment(view)
    query = RunningQuery.start(
        session,
        made.dataflow,
        view,
        output_topic=view,
        brokers=BrokerAddress(brokers),
        storage=LocalFolder(folder / view),
        fingerprint=made.fingerprint,
        plan=made.explain(),
        snapshots=dict,
        settings=JobSettings(buckets=1, local_copy_dir=folder / "copy"),
    )
    try:
        query.await_read(topics.end_offsets(clients.admin(BrokerAddress(brokers)), made.dataflow.topics), WAIT_S)
    finally:
        query.stop()


def keep(checkpoint: Path, place: Path, output: list[dict[str, object]]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(checkpoint, place / "checkpoint", ignore=shutil.ignore_patterns(".*.crc"))
    rewrite_schema_paths(LocalFolder(place / "checkpoint" / "spark"), stands_in=LocalFolder(Path("/elsewhere")))
    (place / "output.json").write_text("".join(json.dumps(row) + "\n" for row in output))


def main() -> None:
    session = start_session("release", jar_paths(read_settings(), "spark"), "local[2]", polling_delay_ms=20)
    with tempfile.TemporaryDirectory() as name, temporary_stack(Path(name) / "stack") as stack:
        brokers = stack.endpoint("kafka")
        make_topics(brokers)
        send_half(brokers, 0)
        for view in VIEWS:
            run_to_the_end(session, view, brokers, Path(name))
            keep(Path(name) / view, CHECKPOINTS / version("dovetail") / view, values(brokers, view))
    session.stop()


if __name__ == "__main__":
    main()
