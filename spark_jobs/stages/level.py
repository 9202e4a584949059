"""One level of a dataflow inside Spark: blocks in, the operators' state attached, blocks or written records out."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from dovetail.joins.dataflow import failed_calls
from dovetail.joins.host.activity import Activity
from dovetail.joins.host.bucket import BucketTask
from dovetail.joins.host.exchange import KEYLESS
from dovetail.joins.host.level import HERE, Arrival, LevelOutput
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.arrangement_stats import ArrangementStats
from dovetail.spark_jobs.exchange import report, shuffle_block
from dovetail.spark_jobs.exchange.arrow_ipc import pack, unpack
from dovetail.spark_jobs.exchange.report import FAILED_CALLS, BatchReport
from dovetail.spark_jobs.exchange.sequence_check import Sender, complete
from dovetail.spark_jobs.exchange.shuffle_block import LATE, PARTITION_TIMES, REJECTED, REPORT, ShuffleBlock
from dovetail.spark_jobs.stages.job import Job, opened, own_folder, snapshots
from dovetail.spark_jobs.stages.late import late_rows
from dovetail.spark_jobs.stages.output import SinkBatch, write_batch
from dovetail.spark_jobs.stages.refused import refused_records
from dovetail.spark_jobs.stages.task import batch_id, refuse_second_attempt
from dovetail.spark_jobs.state.bucket_portion_store import BucketPortionStore
from dovetail.spark_jobs.state.durable_state import DurableState
from dovetail.spark_jobs.state.seed import Seed


class LevelProcessor(StatefulProcessor):
    """Runs ``level`` for the buckets that Spark hands over; a bucket comes at most once in a batch."""

    def __init__(self, shipped: bytes, level: int) -> None:
        self._shipped = shipped
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        # Runs on the driver too, to learn the schema of the state: nothing else may happen here.
        self._state = DurableState(handle)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        refuse_second_attempt()
        job = opened(self._shipped)
        blocks = [
            row for frame in rows for row in shuffle_block.from_batch(_record_batch(frame, key[0]), job.bucket_keys)
        ]
        host = BucketOfLevel(job, self._level, job.bucket_keys.index(key[0]))
        mine = complete(row for row in blocks if row.level == self._level)
        passing = [row for row in blocks if row.level != self._level]
        writes = job.fused_sink and self._level == job.dataflow.levels
        # Before anything is kept or written of an incomplete batch.
        passed = complete(passing) if writes else passing
        departed, said = host.run(mine, self._state)
        if writes:
            yield report.to_batch(host.write(departed, said, passed)).to_pandas()
        else:
            sender = Sender(f"bucket {host.bucket} of level {self._level}")
            sent = [*sender.numbered(host.blocks(departed, said)), *sender.block_counts()]
            yield shuffle_block.to_batch([*passed, *sent], job.bucket_keys).to_pandas()

    def close(self) -> None:
        """Nothing is held between batches."""


@dataclass(frozen=True)
class BucketOfLevel:
    """One bucket's part of a batch at one level."""

    job: Job
    level: int
    bucket: int

    def run(self, blocks: list[ShuffleBlock], state: DurableState) -> tuple[LevelOutput, BatchReport]:
        """Let the operators have the blocks addressed to them."""
        if not blocks:
            return LevelOutput(), BatchReport()
        failed_calls.taken()  # those of an attempt that did not come to its end
        folder, seed = own_folder(self.job) / f"{self.level}-{self.bucket}", Seed(self.job.checkpoint)
        portion_store = BucketPortionStore(
            state, folder, self.job.local_copy_max_bytes, lambda: seed.store(self.level, self.bucket)
        )
        output = self._on_batch(shuffle_block.in_order(blocks), portion_store)
        portion_store.commit()
        return output, self._report(output, failed_calls.taken())

    def _report(self, output: LevelOutput, failed: int) -> BatchReport:
        state = {
            bucket: (sum(one.rows for one in held), sum(one.bytes for one in held))
            for bucket, held in self._held(output.activity).items()
        }
        speaks = self.bucket == KEYLESS
        return BatchReport(
            Counter({**output.counters, FAILED_CALLS: failed}),
            {self.level: state},
            output.watermarks if speaks else {},
            output.held_by if speaks else {},
            output.output_watermark if speaks and self.job.separate_heartbeat_writer else None,
            output.activity,
        )

    def _held(self, activity: Activity) -> dict[int, list[ArrangementStats]]:
        """What each portion that was attached holds, by the bucket that it would be if there were more."""
        held: dict[int, list[ArrangementStats]] = defaultdict(list)
        for by_portion in activity.held.values():
            for bucket, holding in by_portion.items():
                held[bucket].append(holding)
        return held or {self.bucket: []}

    def _on_batch(self, mine: list[ShuffleBlock], portion_store: BucketPortionStore) -> LevelOutput:
        task = BucketTask(
            self.job.dataflow,
            self.level,
            self.bucket,
            self.job.buckets,
            portion_store,
            snapshots(self.job),
            time.perf_counter_ns,
        )
        arrivals = [Arrival(row.edge, unpack(row.rows)) for row in mine if row.edge != PARTITION_TIMES]
        partition_times = [
            PartitionTime(**members)
            for row in mine
            if row.edge == PARTITION_TIMES
            for members in unpack(row.rows).to_pylist()
        ]
        return task.on_batch(arrivals, partition_times)

    def blocks(self, output: LevelOutput, said: BatchReport) -> Iterator[ShuffleBlock]:
        """What leaves for a later stage."""
        for departure in output.departures:
            bucket = self.bucket if departure.bucket == HERE else departure.bucket
            level = self.job.dataflow.edge(departure.edge).level
            yield ShuffleBlock(bucket, level, departure.edge, self.bucket, pack(departure.rows))
        for late in self._late(output):
            yield ShuffleBlock(self.bucket, self.job.sink_level, LATE, self.bucket, pack(late))
        for records in self._refused(output):
            yield ShuffleBlock(self.bucket, self.job.sink_level, REJECTED, self.bucket, pack(records))
        if not said.is_empty:
            yield ShuffleBlock(self.bucket, self.job.sink_level, REPORT, self.bucket, said.packed)

    def write(self, output: LevelOutput, said: BatchReport, passing: list[ShuffleBlock]) -> list[str]:
        """Write what leaves here, with what earlier stages sent along; the reports that this partition has."""
        changes = [departure.rows for departure in output.departures]
        watermark = None if self.job.separate_heartbeat_writer else output.output_watermark
        written = SinkBatch(changes, self._refused(output), self._late(output), said, output_watermark=watermark)
        written.take(passing)
        return write_batch(self.job, self.bucket, batch_id(), written)

    def _refused(self, output: LevelOutput) -> list[pa.Table]:
        return [refused_records(self.job.dataflow, refused) for refused in output.refused]

    def _late(self, output: LevelOutput) -> list[pa.Table]:
        """The late rows, where there is a topic for them."""
        return [late_rows(self.job.dataflow, late) for late in output.late] if self.job.late_topic else []


def _record_batch(frame: pd.DataFrame, key: int) -> pa.RecordBatch:
    """Rows of blocks as Spark hands them over by ``key``, with their bucket again."""
    columns = {
        "bucket": [key] * len(frame),
        **{name: frame[name].tolist() for name in frame.columns if name != "bucket"},
    }
    return pa.RecordBatch.from_pydict(
        {name: columns[name] for name in shuffle_block.SCHEMA.names}, schema=shuffle_block.SCHEMA
    )
