"""``Job``: all that the workers of a query need, shipped once and opened once a process."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa

from dovetail.broker.topics import Offsets
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.arrow_files import map_arrow
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.own_folder import SNAPSHOTS, of_executor, own_copy, tidy_now_and_then
from dovetail.spark_jobs.state.own_folder import opened as opened_folder
from dovetail.sql.expressions.engine_calls.bounds import Bounds, bound


@dataclass(frozen=True)
class Job:
    """bucket_keys   value by bucket number: Spark's hash sends bucket_keys[n] to partition n
    scan_starts   by scan: topic partition → offset of the first record it wants; absent: all that is read
    checkpoint    the query's; its static tables lie there, ``<name>.arrow``
    local_copy    on every machine, the directory of the local copies of the state; None: the executor's own
    local_copy_max_bytes, local_copies_max_bytes   of a bucket, and of all queries on one machine
    remote_executors  whether tasks run on other machines than the driver
    late_topic    where late rows go; empty: nowhere
    max_fan_out   a key of more rows on one side of a join is warned of; None: none is
    topic_ids     of the inputs, as they were at the query's first start
    history       topic → partition → where it ended then; empty where no rows are answered once
    resumed_at    where the first batch begins, as Spark logs it; '': at ``scan_starts``
    drain_only    plans no batch of its own: those that have begun come to their end
    fused         whether one task runs a batch from its records to its output; its state is in ``fused.state``
    durable_every_s  of a fused query: so often its state goes to the checkpoint
    members       of a pack: the jobs that are run together, each in one bucket. ``dataflow`` has all that they read
    key           of a member: what its part of the pack's state is called. It reads from its own ``resumed_at`` on
    partitions    how many there are of the output topic, and of the inputs whose watermarks are told
    replays       of batches whose output is written already: start, as ``batch_log.place`` gives it → end
    """

    name: str
    dataflow: Dataflow
    output_topic: str
    dead_letter_topic: str
    target: WriteTarget
    bucket_keys: tuple[int, ...]
    scan_starts: tuple[Mapping[int, int], ...]
    checkpoint: Storage
    local_copy: Path | None
    local_copy_max_bytes: int
    local_copies_max_bytes: int
    remote_executors: bool = False
    late_topic: str = ""
    max_fan_out: int | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    history: Offsets = field(default_factory=dict)
    replays: Mapping[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    resumed_at: str = ""
    drain_only: bool = False
    fused: bool = False
    durable_every_s: float = 30.0
    members: tuple[Job, ...] = ()
    key: str = ""
    partitions: Mapping[str, int] = field(default_factory=dict)

    @property
    def buckets(self) -> int:
        return len(self.bucket_keys)

    @property
    def source(self) -> str:
        """The name of this query's source in this epoch of it."""
        return f"{self.target.identity}/{self.target.epoch}"

    @property
    def sink_level(self) -> int:
        return self.dataflow.levels + 1

    @property
    def fused_sink(self) -> bool:
        """Whether the last level writes what it makes, without a further exchange: in one bucket all rows meet."""
        return self.dataflow.levels > 0 and (self.buckets == 1 or not self.dataflow.sink.exchanged)

    @property
    def separate_heartbeat_writer(self) -> bool:
        """Whether the watermark of the output is told when all buckets have written, by a writer of its own."""
        return bool(self.dataflow.sink.clock) and self.buckets > 1

    @property
    def writers(self) -> int:
        """How many there are that write in transactions."""
        return self.buckets + self.separate_heartbeat_writer

    def ship(self) -> bytes:
        return pickle.dumps(self)


QUERIES_KEPT = 256
"""Of how many queries a process keeps what it has made of their jobs. Queries take turns, so of one more than are kept
each would be made anew for every batch.
"""


@lru_cache(maxsize=QUERIES_KEPT)
def opened(shipped: bytes) -> Job:
    """The job of ``ship``; the same object for the life of the worker, so that what it caches stays warm."""
    job = pickle.loads(shipped)
    assert isinstance(job, Job)
    _spill_among_files_of_spark()
    return job


@cache
def _spill_among_files_of_spark() -> None:
    """In a worker: they go with the application, and are for Spark's user alone."""
    if folder := os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]:
        bound(Bounds(spill_folder=lambda: Path(mkdtemp(prefix="spill-", dir=folder))))


@lru_cache(maxsize=QUERIES_KEPT)
def static_tables(snapshots: Storage, names: tuple[str, ...], own: Path | None = None) -> dict[str, pa.Table]:
    """The static tables of a query, memory-mapped: where they lie, or from copies of this machine's own in ``own``."""
    return {name: _mapped(snapshots, f"{name}.arrow", own) for name in names}


def _mapped(snapshots: Storage, name: str, own: Path | None) -> pa.Table:
    if own is not None:
        path = own_copy(snapshots, name, own)
    else:
        assert snapshots.folder is not None, "an object is not mapped"
        path = snapshots.folder / name
    return map_arrow(path)


def snapshots(job: Job) -> Mapping[str, pa.Table]:
    """Where the checkpoint is on another machine's disk, a mapping of it would read every page over the network."""
    names = job.dataflow.snapshots
    copied = job.remote_executors or job.checkpoint.folder is None
    own = own_folder(job) / SNAPSHOTS if copied and names else None
    return static_tables(Checkpoint(job.checkpoint).snapshots, names, own)


def own_folder(job: Job) -> Path:
    """What this machine keeps of the query; copies that are too many, or of queries that are gone, are removed."""
    root = job.local_copy or of_executor()
    tidy_now_and_then(root, job.local_copies_max_bytes, job.checkpoint)
    return opened_folder(root, job.target.identity, job.checkpoint)
