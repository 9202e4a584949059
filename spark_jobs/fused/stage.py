"""The one task of a batch of a fused query: it reads, computes, writes in one transaction, and keeps the state.

many buckets   read, decode ─▶ exchange ─▶ level 1 ─▶ exchange ─▶ .. ─▶ write       tasks and stores of Spark
fused          read, decode, level 1, .., write                                     one task, no store of Spark
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from dovetail.broker.offset_ranges import read
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.exchange import report
from dovetail.spark_jobs.fused.batch import FusedJob, FusedTasks, Pieces
from dovetail.spark_jobs.fused.state import BUCKET, AttachedState, Batches, FusedState, Replay
from dovetail.spark_jobs.source.batch_ranges import ranges_between
from dovetail.spark_jobs.source.idle import silences
from dovetail.spark_jobs.stages.decode import readers_of
from dovetail.spark_jobs.stages.job import QUERIES_KEPT, Job, opened
from dovetail.spark_jobs.stages.output import write_together
from dovetail.spark_jobs.stages.task import batch_id
from dovetail.spark_jobs.state.checkpoint import JsonOffsets, place

_RESIDENT_BYTES = 64 << 20
"""Of the states that a worker keeps from batch to batch, all together; others are mapped from their files again."""


@dataclass
class _Resident:
    """A state as a worker has left it, and who worked on it.

    epoch  of the query: members of a pack may be others in the next one
    at     the place up to which it has read
    """

    epoch: str
    at: str
    state: AttachedState
    tasks: FusedTasks

    @property
    def bytes(self) -> int:
        return self.state.store.buffered_bytes


_resident: OrderedDict[str, _Resident] = OrderedDict()
"""By the identity of the query; that of the last batch is the last."""


def run_batch(shipped: bytes, start: JsonOffsets, end: JsonOffsets) -> Iterator[pa.RecordBatch]:
    """Run the batch that reads from ``start`` to ``end``; the reports of it, which is written by then.

    An attempt that fails leaves nothing in the worker: the next one begins with what the batch before has left.
    """
    job = opened(shipped)
    at_work = _taken(shipped, job, start)
    outputs = at_work.tasks.on_batch(_records(job, start, end), silences(start, end))
    jobs = job.members or (job,)
    reports = write_together(job.target, BUCKET, batch_id(), [(jobs[one], output) for one, output in outputs.items()])
    FusedState(job).put(at_work.state, end)
    at_work.at = place(end)
    _keep(job, at_work)
    yield report.to_batch(reports)


def settle(job: Job, end: JsonOffsets, *, replay: bool) -> bool:
    """Have the state of a query at rest, which has read up to ``end``, in its checkpoint; False where that takes to
    ``replay`` batches, and is not wanted.
    """
    shipped = job.ship()
    return FusedState(job).settle(end, _replay(shipped) if replay else None)


def _taken(shipped: bytes, job: Job, start: JsonOffsets) -> _Resident:
    """The state as of ``start``, and what works on it."""
    found = _resident.pop(job.target.identity, None)
    if found is not None and (found.epoch, found.at) == (job.target.epoch, place(start)):
        return found
    state = FusedState(job).attach(start, _replay(shipped))
    tasks = FusedTasks(jobs_of(shipped), state.store)
    tasks.forget_others()
    return _Resident(job.target.epoch, place(start), state, tasks)


def _keep(job: Job, resident: _Resident) -> None:
    _resident[job.target.identity] = resident
    while len(_resident) > QUERIES_KEPT or sum(one.bytes for one in _resident.values()) > _RESIDENT_BYTES:
        _resident.popitem(last=False)


def _replay(shipped: bytes) -> Replay:
    """Runs batches again whose output is written."""

    def run(store: RunStore, batches: Batches) -> None:
        job, tasks = opened(shipped), FusedTasks(jobs_of(shipped), store)
        tasks.forget_others()
        for start, end in batches:
            tasks.on_batch(_records(job, start, end), silences(start, end))
            store.flush()

    return run


def _records(job: Job, start: JsonOffsets, end: JsonOffsets) -> Pieces:
    ranges = ranges_between(start, end, job.dataflow.topics)
    return read(job.target.brokers, ranges, job.dataflow.headed) if ranges else ()


@lru_cache(maxsize=QUERIES_KEPT)
def jobs_of(shipped: bytes) -> tuple[FusedJob, ...]:
    """The query alone, or the members of the pack."""
    job = opened(shipped)
    if not job.members:
        return (FusedJob(job, readers_of(shipped)),)
    return tuple(FusedJob(one, readers_of(shipped, number)) for number, one in enumerate(job.members))
