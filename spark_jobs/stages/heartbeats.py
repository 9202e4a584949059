"""The watermark of the output, told to its readers: a heartbeat in each partition of the topic, behind the rows.

    bucket 0  rows of batch 7, committed ─┐
    bucket 1  rows of batch 7, committed ─┴─▶ heartbeats of batch 7, committed

Each bucket writes its rows in a transaction of its own, and a partition of the topic gets rows of all of them. So no
bucket can say that all rows before a time are there; only who writes when all have committed can. Where there is one
bucket, or a pack, its transaction has the heartbeats too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from dovetail.broker.producer_queue import Outgoing
from dovetail.broker.transactional_writer import write_once
from dovetail.changelog.formats.heartbeat import heartbeat
from dovetail.spark_jobs.exchange.report import BatchReport
from dovetail.spark_jobs.stages.job import Job, opened
from dovetail.spark_jobs.stages.task import batch_id


@dataclass(frozen=True)
class HeartbeatStage:
    """For ``mapInArrow``, in one task behind an exchange: the reports of all that the batch has written pass through,
    and the heartbeats are written, unless an earlier attempt did.
    """

    shipped: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, watermarks = opened(self.shipped), []
        for batch in batches:
            reports = map(BatchReport.read, batch.column("report").to_pylist())
            watermarks += [report.output_watermark for report in reports if report.output_watermark is not None]
            yield batch
        if watermarks:
            write_once(job.target, job.buckets, batch_id(), lambda: outgoing(job, max(watermarks)))


def outgoing(job: Job, watermark_ms: int) -> Iterator[Outgoing]:
    """The heartbeats that tell a watermark."""
    for partition in range(job.partitions[job.output_topic]):
        yield Outgoing(job.output_topic, [heartbeat(watermark_ms)], with_headers=True, partition=partition)
