"""What the workers of a query get, without a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.stages.job import Job


def job_of(dataflow: Dataflow, **changed: object) -> Job:
    """What the workers of a query ``q`` of two buckets would get; its broker is nowhere."""
    job = Job(
        name="q",
        dataflow=dataflow,
        output_topic="q",
        dead_letter_topic="q.dead_letter",
        target=WriteTarget(BrokerAddress("nowhere"), "q", "marks", 1.0, 1.0),
        bucket_keys=(40, 41),
        scan_starts=({}, {}),
        checkpoint=LocalFolder(Path()),
        local_copy=None,
        local_copy_max_bytes=0,
        local_copies_max_bytes=0,
    )
    return replace(job, **changed)  # type: ignore[arg-type]
