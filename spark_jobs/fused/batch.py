"""A batch of a fused query, in one process: records are decoded, run through all levels, and become what is written.

    records ─▶ decode ─▶ level 1 ─▶ level 2 ─▶ what is to be written     per job: the query, or each member of a pack

Rows stay Arrow tables all the way: nothing is packed, since nothing travels.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.topics import Offsets
from dovetail.joins.dataflow import failed_calls
from dovetail.joins.host.level import Arrival
from dovetail.joins.host.one_bucket import LevelInput, OneBucket
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.exchange.report import FAILED_CALLS, BatchReport
from dovetail.spark_jobs.exchange.shuffle_block import REJECTED
from dovetail.spark_jobs.fused.state import BUCKET
from dovetail.spark_jobs.stages.at_fault import working_for
from dovetail.spark_jobs.stages.decode import Decoding, Outbox, Silence, StreamReader
from dovetail.spark_jobs.stages.job import Job, snapshots
from dovetail.spark_jobs.stages.late import late_rows
from dovetail.spark_jobs.stages.output import SinkBatch
from dovetail.spark_jobs.stages.refused import refused_records
from dovetail.spark_jobs.state.checkpoint import parsed_offsets

Pieces = Iterable[tuple[str, int, pa.Table]]
"""Topic, partition, and records of it in order."""


@dataclass(frozen=True)
class FusedJob:
    """The query, or a member of a pack.

    readers   of its topics
    """

    job: Job
    readers: Mapping[str, Sequence[StreamReader]]

    @cached_property
    def _starts(self) -> Offsets:
        """What it had read when it joined; other members may have been behind, and the pack begins there."""
        return parsed_offsets(self.job.resumed_at) if self.job.resumed_at else {}

    @property
    def part(self) -> str:
        """The prefix of what it keeps in the store of all."""
        return part_of_member(self.job.key) if self.job.key else ""

    def wanted(self, topic: str, partition: int, piece: pa.Table) -> pa.Table:
        """The records that it has not read yet."""
        if topic not in self.readers:
            return piece.slice(0, 0)
        start = self._starts.get(topic, {}).get(partition, 0)
        if not start or not piece.num_rows or piece.column("offset")[0].as_py() >= start:
            return piece
        return piece.filter(pc.field("offset") >= start)


def part_of_member(key: str) -> str:
    """The prefix of what a member of a pack keeps in the store of all."""
    return f"{key}."


class FusedTasks:
    """``jobs`` over ``store``, which stays theirs from batch to batch."""

    def __init__(self, jobs: Sequence[FusedJob], store: RunStore) -> None:
        self._jobs, self._store = jobs, store
        self._open: dict[int, OneBucket] = {}

    def on_batch(self, pieces: Pieces, silences: Sequence[Silence] = ()) -> dict[int, SinkBatch]:
        """What there is to write, by the number of the job: of those that were asked.

        A job to which nothing comes is not asked, unless the store begins with rows of another one: all of them are
        opened, and so sorted, before any of it can be saved.
        """
        failed_calls.taken()  # those of an attempt that did not come to its end
        outboxes = self._decoded(pieces, silences)
        every = bool(self._store.unsorted)
        outputs = {}
        for number, (one, outbox) in enumerate(zip(self._jobs, outboxes, strict=True)):
            inputs = inputs_of(outbox, one.job, every_level=every)
            if not inputs.is_empty:
                with working_for(one.job.key):
                    outputs[number] = self._run(number, inputs, outbox.report)
        return outputs

    def _decoded(self, pieces: Pieces, silences: Sequence[Silence]) -> list[Outbox]:
        decodings = [Decoding(one.job, one.readers) for one in self._jobs]
        for decoding in decodings:
            for silence in silences:
                decoding.fall_silent(silence)
        for topic, partition, piece in pieces:
            for one, decoding in zip(self._jobs, decodings, strict=True):
                wanted = one.wanted(topic, partition, piece)
                if wanted.num_rows:
                    with working_for(one.job.key):
                        decoding.read(topic, partition, wanted)
                    decoding.outbox.report.counts[FAILED_CALLS] += failed_calls.taken()
        return [decoding.outbox for decoding in decodings]

    def _run(self, number: int, inputs: JobInputs, decoded: BatchReport) -> SinkBatch:
        job, bucket = self._jobs[number].job, self._bucket(number)
        output = bucket.on_batch(inputs.levels)
        written = SinkBatch([*output.changes, *inputs.changes], list(inputs.rejected))
        reports = [decoded]
        for level, said in output.levels.items():
            own = bucket.stores[level]
            if said.output_watermark is not None:
                written.output_watermark = said.output_watermark
            state = {level: {BUCKET: (own.rows, own.buffered_bytes)}}
            counts = Counter(said.counters)
            reports.append(BatchReport(counts, state, said.watermarks, said.held_by, activity=said.activity))
            written.rejected += [refused_records(job.dataflow, refused) for refused in said.refused]
            if job.late_topic:
                written.late += [late_rows(job.dataflow, late) for late in said.late]
        written.report = BatchReport.together(reports, job.key)
        written.report.counts[FAILED_CALLS] += failed_calls.taken()
        return written

    def _bucket(self, number: int) -> OneBucket:
        if number not in self._open:
            one = self._jobs[number]
            store = self._store.part(one.part) if one.part else self._store
            self._open[number] = OneBucket(one.job.dataflow, store, snapshots(one.job), time.perf_counter_ns)
        return self._open[number]

    def forget_others(self) -> None:
        """Drop the parts of members that have left."""
        kept = {one.part for one in self._jobs}
        if "" in kept:
            return
        names = [*self._store.runs, *self._store.unsorted, *self._store.scalars]
        for part in {part_of_member(name.partition(".")[0]) for name in names} - kept:
            self._store.drop(part)


@dataclass(frozen=True)
class JobInputs:
    """What decoding has made for one job.

    levels    by level
    changes   what reaches the sink as it is
    """

    levels: Mapping[int, LevelInput]
    changes: Sequence[pa.Table]
    rejected: Sequence[pa.Table]
    reports: bool

    @property
    def is_empty(self) -> bool:
        return not (self.levels or self.changes or self.rejected or self.reports)


def inputs_of(outbox: Outbox, job: Job, *, every_level: bool = False) -> JobInputs:
    """Rows in the order of their edges, and of the partitions that they came from: the same in every replay.

    every_level  each is asked, rows or not
    """
    arrivals: dict[int, list[Arrival]] = defaultdict(list)
    changes, rejected = [], []
    for _, edge, _, rows in outbox.drain():
        if edge == REJECTED:
            rejected.append(rows)
        elif (level := job.dataflow.edge(edge).level) < job.sink_level:
            arrivals[level].append(Arrival(edge, rows))
        else:
            changes.append(rows)
    partition_times = {
        level: [PartitionTime(edge, partition, event_ms) for edge, partition, event_ms in found]
        for level, found in outbox.times_by_level().items()
    }
    opening = range(1, job.sink_level) if every_level else job.dataflow.opening_levels
    numbers = sorted({*arrivals, *partition_times, *opening})
    levels = {level: LevelInput(arrivals[level], partition_times.get(level, ())) for level in numbers}
    return JobInputs(levels, changes, rejected, not outbox.report.is_empty)
