"""The stage of a pack: its members one after the other over one store, then one transaction for all of them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from dovetail.joins.dataflow import failed_calls
from dovetail.joins.host.level import Arrival
from dovetail.joins.host.one_bucket import LevelInput, OneBucket
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.portion import WHOLE
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.exchange import report, shuffle_block
from dovetail.spark_jobs.exchange.arrow_ipc import unpack
from dovetail.spark_jobs.exchange.report import FAILED_CALLS, BatchReport
from dovetail.spark_jobs.exchange.sequence_check import complete
from dovetail.spark_jobs.exchange.shuffle_block import MARKS, ShuffleBlock
from dovetail.spark_jobs.packing.decode import STAGE
from dovetail.spark_jobs.stages.at_fault import working_for
from dovetail.spark_jobs.stages.job import Job, opened, own_folder, snapshots
from dovetail.spark_jobs.stages.late import late_rows
from dovetail.spark_jobs.stages.level import record_batch
from dovetail.spark_jobs.stages.output import SinkBatch, write_together
from dovetail.spark_jobs.stages.refused import refused_records
from dovetail.spark_jobs.stages.task import batch_id, partition, refuse_second_attempt
from dovetail.spark_jobs.state.bucket_shelf import BucketShelf
from dovetail.spark_jobs.state.durable_state import DurableState
from dovetail.spark_jobs.state.seed import Seed

BUCKET = 0
"""Of a pack, which has one."""


def part_of_member(key: str) -> str:
    """The prefix of what a member keeps in the store of all."""
    return f"{key}."


class PackProcessor(StatefulProcessor):
    """Runs a batch of a pack."""

    def __init__(self, shipped: bytes) -> None:
        self._shipped = shipped

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
        blocks = complete(
            row for frame in rows for row in shuffle_block.from_batch(record_batch(frame, key[0]), job.bucket_keys)
        )
        folder = own_folder(job) / f"{STAGE}-{BUCKET}"
        shelf = BucketShelf(
            self._state, folder, job.local_copy_max_bytes, lambda: Seed(job.checkpoint).store(STAGE, BUCKET)
        )
        store = shelf.attach(WHOLE)
        forget_others(store, job.members)
        outputs = on_batch(job.members, store, blocks, cold=bool(store.unsorted))
        shelf.put(WHOLE, store)
        shelf.commit()
        reports = write_together(
            job.target, partition(), batch_id(), [(job.members[number], output) for number, output in outputs.items()]
        )
        yield report.to_batch(reports).to_pandas()

    def close(self) -> None:
        """Nothing is held between batches."""


def forget_others(store: RunStore, members: Sequence[Job]) -> None:
    """Drop the parts of those that have left."""
    kept = {part_of_member(member.key) for member in members}
    names = [*store.runs, *store.unsorted, *store.scalars]
    for part in {f"{name.partition('.')[0]}." for name in names} - kept:
        store.drop(part)


def on_batch(
    members: Sequence[Job], store: RunStore, blocks: Iterable[ShuffleBlock], *, cold: bool = False
) -> dict[int, SinkBatch]:
    """What the members have to write, by number: of those that get something.

    blocks   each has those of a member
    cold      the store was read back: each member opens its part, since only a store that is open all over is copied
    """
    came: dict[int, list[ShuffleBlock]] = defaultdict(list)
    for row in shuffle_block.in_order(blocks):
        batch = unpack(row.rows).combine_chunks().to_batches()
        came[row.origin] += [
            one for part in batch for one in shuffle_block.from_batch(part, members[row.origin].bucket_keys)
        ]
    outputs = {}
    for number, member in enumerate(members):
        if number not in came and not cold:
            continue
        with working_for(member.key):
            bucket = OneBucket(
                member.dataflow, store.part(part_of_member(member.key)), snapshots(member), time.perf_counter_ns
            )
            if number in came:
                outputs[number] = _run(member, bucket, came[number])
    return outputs


def _run(member: Job, bucket: OneBucket, blocks: list[ShuffleBlock]) -> SinkBatch:
    failed_calls.taken()  # those of an attempt that did not come to its end
    arrivals: dict[int, list[Arrival]] = defaultdict(list)
    marks: dict[int, list[PartitionTime]] = defaultdict(list)
    passing = []
    for row in shuffle_block.in_order(blocks):
        if row.edge == MARKS:
            marks[row.level] += [PartitionTime(**mark) for mark in unpack(row.rows).to_pylist()]
        elif row.level < member.sink_level:
            arrivals[row.level].append(Arrival(row.edge, unpack(row.rows)))
        else:
            passing.append(row)
    inputs = {level: LevelInput(arrivals[level], marks[level]) for level in {*arrivals, *marks}}
    output = bucket.on_batch(inputs)
    said_of_all, written = [], SinkBatch(output.changes)
    for level, said in output.levels.items():
        own = bucket.stores[level]
        written.output_watermark = (
            said.output_watermark if said.output_watermark is not None else written.output_watermark
        )
        state = {level: {BUCKET: (own.rows, own.buffered_bytes)}}
        said_of_all.append(BatchReport(Counter(said.counters), state, said.watermarks, activity=said.activity))
        written.rejected += [refused_records(member.dataflow, refused) for refused in said.refused]
        if member.late_topic:
            written.late += [late_rows(member.dataflow, late) for late in said.late]
    written.report = BatchReport.together(said_of_all, member.key)
    written.report.counts[FAILED_CALLS] += failed_calls.taken()
    written.take(passing)
    return written
