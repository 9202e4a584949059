"""``RunningQuery``: a dataflow at work in Spark, from its checkpoint or from its first record."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import takewhile

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import Admin
from dovetail.broker.names import MARKS_PARTITIONS, MARKS_TOPIC
from dovetail.broker.query_origin import QueryOrigin
from dovetail.broker.start_offsets import Beginning, least_offsets, resolved_first_offsets
from dovetail.broker.topics import Offsets
from dovetail.broker.transactional_writer import WriteTarget, behind_its_output, fence, refuse_dropped
from dovetail.changelog.dead_letter import topic_of
from dovetail.changelog.errors import DovetailError, ServiceUnavailable
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.logs.query_logs import QueryLog
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.account.progress import Account, CommittedBatch, Progress
from dovetail.spark_jobs.exchange import report, shuffle_block
from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys
from dovetail.spark_jobs.exchange.report import BatchReport
from dovetail.spark_jobs.fused import source as fused_source
from dovetail.spark_jobs.fused.stage import settle
from dovetail.spark_jobs.fused.state import is_fused
from dovetail.spark_jobs.packing.composition import reached, read_together
from dovetail.spark_jobs.runner.failure import said_of, typed
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.spark_session import has_remote_executors, writes_through
from dovetail.spark_jobs.source import kafka_source
from dovetail.spark_jobs.source.batch_log import batches_after, ensure_log
from dovetail.spark_jobs.source.batch_ranges import begins_at
from dovetail.spark_jobs.source.ends_watch import ends_watch
from dovetail.spark_jobs.stages.at_fault import at_fault
from dovetail.spark_jobs.stages.heartbeats import HeartbeatStage
from dovetail.spark_jobs.stages.job import Job
from dovetail.spark_jobs.stages.level import LevelProcessor
from dovetail.spark_jobs.stages.output import SinkStage
from dovetail.spark_jobs.state.checkpoint import Checkpoint, JsonOffsets, parsed_offsets, place
from dovetail.spark_jobs.state.damaged_tail import cut_damaged_tail
from dovetail.spark_jobs.state.durable_runs import DurableRuns
from dovetail.spark_jobs.state.relocation import rewrite_schema_paths
from dovetail.spark_jobs.state.seed import Seed
from dovetail.spark_jobs.state.uncommitted import forget_uncommitted

_LOG = logging.getLogger("dovetail.runner")
_LOOK_S = 0.05
_LAST_CALL_S = 2.0
_LITTLE = 300_000
"""Records."""
_IDLE = "Waiting for data"
"""So begins Spark's word of a query that waits for records."""
_starting = threading.Lock()
"""A query takes the number of its partitions, and the way its files are written, from the session's settings at its
start.
"""


class RunningQuery:
    """One dataflow, running. Made by ``start``."""

    def __init__(self, session: SparkSession, job: Job, checkpoint: Checkpoint, settings: JobSettings) -> None:
        self._session = session
        self._job = job
        self._checkpoint = checkpoint
        self._settings = settings
        self._jobs = job.members or (job,)
        self._accounts = [Account(one) for one in self._jobs]
        self._batch = -1
        self._noting = threading.Lock()
        """The members of a pack are looked at by several threads."""
        self._noted_in_silence: int | None = None
        self._moved_s = time.monotonic()
        """When it was last seen to be at rest, or a batch to end."""
        self.at_fault: frozenset[str] = frozenset()
        """Once a pack has failed: the keys of the members that it has failed for; empty where nobody knows."""
        self._seed = Seed(checkpoint.storage)
        end = parsed_offsets(job.resumed_at) if job.resumed_at else None
        if (committed := checkpoint.committed()) is not None:
            self._batch, end = committed
        for one, account in zip(self._jobs, self._accounts, strict=True):
            account.progress.batch = self._batch
            if end is not None:
                account.progress.offsets = self._read_by(one, end)
        self._query = self._launch()

    @staticmethod
    def start(
        session: SparkSession,
        dataflow: Dataflow,
        name: str,
        output_topic: str,
        brokers: BrokerAddress,
        storage: Storage,
        fingerprint: str,
        plan: str,
        snapshots: Callable[[], Mapping[str, pa.Table]],
        settings: JobSettings,
        begin_at: Offsets | None = None,
    ) -> RunningQuery:
        """Start ``name``, or resume it from its checkpoint in ``storage``.

        ``begin_at``: where a first start begins to read these topics, whatever the plan says.

        Raises CheckpointMismatch, UnknownName (a topic), ServiceUnavailable (the broker or an object store does not
        answer), StorageRefused.
        """
        client = clients.admin(brokers)
        checkpoint = Checkpoint(storage)
        resumed = checkpoint.origin() is not None
        if resumed:
            _cut_damaged_tail(checkpoint, name)
        topic_ids = topic_ids_now(client, dataflow, resumed=resumed)
        beginning = cache(lambda: _beginning(client, dataflow, begin_at or {}))
        few = settings.few_buckets and not resumed and _has_little_to_read(client, dataflow, beginning())
        buckets = 1 if few else settings.buckets
        origin = checkpoint.open(
            name,
            fingerprint,
            plan,
            buckets,
            beginning,
            snapshots,
            topic_ids,
            fused=is_fused(dataflow, buckets),
        )
        job = job_of(session, dataflow, name, output_topic, brokers, storage, origin, settings)
        return RunningQuery(session, _taken_over(job, origin) if resumed else job, checkpoint, settings)

    @staticmethod
    def start_pack(session: SparkSession, job: Job, settings: JobSettings) -> RunningQuery:
        """Start a pack, or resume it. ``job``: as ``job_of_pack`` gives it. Raises as ``start``."""
        checkpoint = Checkpoint(job.checkpoint)
        _cut_damaged_tail(checkpoint, job.name)
        return RunningQuery(session, _taken_over(job, checkpoint.expect_origin()), checkpoint, settings)

    # -- running

    def _launch(self) -> StreamingQuery:
        rewrite_schema_paths(self._checkpoint.spark)
        forget_uncommitted(self._checkpoint.spark)
        self._drop_seed()
        with _starting:
            self._session.conf.set("spark.sql.shuffle.partitions", str(self._job.buckets))
            writes_through(self._session, self._checkpoint.spark)
            most, most_bytes = self._settings.max_offsets_per_trigger, self._settings.max_bytes_per_trigger
            format_ = fused_source.FORMAT if self._job.fused else kafka_source.FORMAT
            rows = kafka_source.loaded(self._session, self._job, format_, most, most_bytes)
            return (
                stages(rows, self._job)
                .writeStream.format("noop")
                .queryName(self._job.name)
                .outputMode("append")
                .option("checkpointLocation", self._checkpoint.spark.location)
                .start()
            )

    def _drop_seed(self) -> None:
        """Once its rows are in the state: of Spark with a batch, of a fused query with its first durable version."""
        if not self._seed.spent and (not self._job.fused or DurableRuns(self._job.checkpoint).saved_s):
            self._seed.drop_once_committed()

    def _silence(self) -> int | None:
        """While the source waits for its topics to grow: no batch is under way, and Spark has told of all before."""
        return ends_watch(self._job.target.brokers).silence(self._job.source)

    def _advance(self) -> None:
        """Take note of what Spark has finished. To ask it costs processor time, so of a silent query once."""
        with self._noting:
            silence, before = self._silence(), self._batch
            if silence is None or silence != self._noted_in_silence:
                for progress in self._news():
                    self._note(progress)
            self._noted_in_silence = silence
            if silence is not None or self._batch != before:
                self._moved_s = time.monotonic()

    def _news(self) -> list[StreamingQueryProgress]:
        """What Spark tells of its batches since the last one that is noted."""
        # Nothing public says the number of the last batch without the rest, which takes far longer to tell.
        last = self._query._jsq.lastProgress()  # noqa: SLF001
        behind = 0 if last is None else last.batchId() - self._batch
        if behind < 1:
            return []
        if behind == 1 and (progress := self._query.lastProgress) is not None and _read_something(progress):
            return [progress]
        recent = self._query._jsq.recentProgress()  # noqa: SLF001
        unreported = list(takewhile(lambda progress: progress.batchId() > self._batch, reversed(recent)))
        return [StreamingQueryProgress.fromJson(json.loads(progress.json())) for progress in reversed(unreported)]

    def _note(self, progress: StreamingQueryProgress) -> None:
        if progress.batchId <= self._batch or not _read_something(progress):
            return
        self._batch = progress.batchId
        self._drop_seed()
        observed, now_s = progress.observedMetrics.get(report.OBSERVATION), time.monotonic()
        reports = [BatchReport.read(text) for text in (observed[report.REPORTS] if observed is not None else ())]
        for job, account in zip(self._jobs, self._accounts, strict=True):
            own = BatchReport.together(one for one in reports if one.member == job.key)
            offsets = self._read_by(job, parsed_offsets(progress.sources[0].endOffset))
            account.note(CommittedBatch(progress.batchId, progress.batchDuration, offsets, own), now_s)

    def _read_by(self, job: Job, end: Offsets) -> Offsets:
        """What a job has read, of all that has been read up to ``end``."""
        return reached(job.resumed_at, end, job.dataflow.topics) if self._job.members else end

    # -- asked from outside

    @property
    def first_offsets(self) -> Offsets:
        """Topic → partition → offset of the first record read."""
        return self.first_offsets_of(0)

    def first_offsets_of(self, member: int) -> Offsets:
        job = self._jobs[member]
        return least_offsets(job.dataflow.scans, job.scan_starts)

    def progress(self) -> Progress:
        self._advance()
        return self.noted(0)

    def noted(self, member: int) -> Progress:
        """Of a pack, that of a member, as it was when somebody asked for last."""
        return self._accounts[member].progress

    def has_read(self, ends: Offsets) -> bool:
        """Whether committed batches have read every input up to ``ends``; of a pack, for each member that wants it."""
        self._advance()
        return all(self._has_read(member, ends) for member in range(len(self._jobs)))

    def _has_read(self, member: int, ends: Offsets) -> bool:
        reached, first_offsets = self._accounts[member].progress.offsets, self.first_offsets_of(member)
        return all(
            reached.get(topic, first_offsets[topic]).get(partition, 0) >= end
            for topic in self._jobs[member].dataflow.topics
            for partition, end in ends.get(topic, {}).items()
        )

    def await_read(self, ends: Offsets, timeout_s: float) -> None:
        """Wait until ``has_read(ends)``; raises what ended the query instead, or ServiceUnavailable after the time."""
        deadline = time.monotonic() + timeout_s
        while not self.has_read(ends):
            if failure := self.error():
                raise failure
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f'query "{self._job.name}" did not read its inputs to their end within {timeout_s:g} s',
                    where=f"it has read {self.progress().offsets} of {ends}",
                )
            time.sleep(_LOOK_S)

    def await_drained(self) -> None:
        """With ``drain_only``: wait until each batch that has begun is committed. Raises what ended it instead."""
        while max(self._checkpoint.last_planned, self._job.target.replayed_until) > self._committed_batch:
            if failure := self.error():
                raise failure
            time.sleep(_LOOK_S)
        settle_at_rest(self._job, replay=True)

    @property
    def _committed_batch(self) -> int:
        committed = self._checkpoint.committed()
        return -1 if committed is None else committed[0]

    @property
    def buckets(self) -> int:
        return self._job.buckets

    def error(self) -> DovetailError | None:
        """What ended the query, if it failed."""
        self._advance()
        # A source that waits is that of a living query.
        if self._noted_in_silence is not None:
            return None
        failure = self._query.exception()
        if failure is None:
            return None
        self.at_fault = at_fault(said_of(failure))
        return typed(failure, next((one.name for one in self._jobs if one.key in self.at_fault), self._job.name))

    @property
    def at_work(self) -> bool:
        """Whether it has rows at work, or has asked where its inputs end and found nothing new: not while it waits for
        an answer.
        """
        if self._silence() is not None:
            return True
        status = self._query.status
        return bool(status["isDataAvailable"]) or str(status["message"]).startswith(_IDLE)

    @property
    def waits(self) -> str:
        """What it waits for that only somebody else can bring back; '' for nothing."""
        gone = ends_watch(self._job.target.brokers).gone_topic(self._job.dataflow.topics)
        return f'the topic "{gone}" is gone\n  fix:   {topics.GONE_FIX}' if gone else ""

    @property
    def under_way_s(self) -> float:
        """For how long a batch has been, at least; 0 where none is."""
        return 0.0 if self.at_rest else time.monotonic() - self._moved_s

    @property
    def running(self) -> bool:
        self._advance()
        return self._query.isActive

    @property
    def at_rest(self) -> bool:
        """Whether it is known that no batch is under way."""
        return self._silence() is not None

    def quiesce(self, within_s: float) -> None:
        """Begin no batch any more, and wait for the end of the one that is under way: ``stop`` then leaves none that
        would have to be replayed. Who is at work for longer is not waited for.
        """
        ends_watch(self._job.target.brokers).hold(self._job.source)
        deadline_s = time.monotonic() + within_s
        while not self.at_rest and self._query.isActive and time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)

    def go_on(self) -> None:
        """After ``quiesce``, where it is not to stop after all."""
        ends_watch(self._job.target.brokers).release(self._job.source)

    def stop(self) -> None:
        """End the query; a batch that is under way is replayed at the next start.

        Its open transaction is aborted, else readers of the topic would wait for its end; and what Spark has cancelled
        and not yet ended writes no more, else it might write to a topic of the same name that is made next.
        """
        self._query.stop()
        with suppress(ServiceUnavailable):
            fence(replace(self._job.target, epoch=_new_epoch(), broker_wait_s=_LAST_CALL_S), self._job.writers)
        # Where that fails, the batches since the last version are run again.
        with suppress(DovetailError, OSError):
            settle_at_rest(self._job, replay=False)


def _cut_damaged_tail(checkpoint: Checkpoint, name: str) -> None:
    if said := cut_damaged_tail(checkpoint.spark):
        QueryLog(_LOG, name).warning(said)


def settle_at_rest(job: Job, *, replay: bool) -> None:
    """Of a fused query: have the state of its last committed batch in the checkpoint, whatever has begun since.

    replay  where that takes to run batches again
    """
    if job.fused and not job.remote_executors and (end := Checkpoint(job.checkpoint).committed_end):
        settle(job, end, replay=replay)


def fenced(brokers: BrokerAddress, origin: QueryOrigin, settings: JobSettings) -> int:
    """Bar every life of a query that has stopped from writing on; the number of the last batch that is written."""
    return fence(_target(brokers, origin, settings), origin.buckets)


def _target(brokers: BrokerAddress, origin: QueryOrigin, settings: JobSettings) -> WriteTarget:
    """Of a new life of a query."""
    return WriteTarget(
        brokers,
        origin.identity,
        MARKS_TOPIC,
        settings.transaction_timeout_s,
        settings.broker_wait_s,
        epoch=_new_epoch(),
    )


def _new_epoch() -> str:
    return uuid.uuid4().hex[:12]


def _read_something(progress: StreamingQueryProgress) -> bool:
    # A batch may read the marks of transactions only: no row, and yet its offsets are behind it.
    return bool(progress.sources[0].startOffset != progress.sources[0].endOffset)


def _has_little_to_read(client: Admin, dataflow: Dataflow, begun: Beginning) -> bool:
    """Whether one core reads in seconds what the topics hold from where the query begins."""
    ends = topics.end_offsets(client, dataflow.topics)
    starts = least_offsets(dataflow.scans, begun.first_offsets)
    left = sum(
        max(end - starts.get(topic, {}).get(partition, 0), 0)
        for topic, found in ends.items()
        for partition, end in found.items()
    )
    return left <= _LITTLE


def _beginning(client: Admin, dataflow: Dataflow, begin_at: Offsets) -> Beginning:
    # The history first: so nothing of an input that is read from now on belongs to it.
    history = topics.end_offsets(client, dataflow.topics) if dataflow.answers_once else {}
    resolved = resolved_first_offsets(client, dataflow.scans)
    starts = [{**found, **begin_at.get(scan.topic, {})} for scan, found in zip(dataflow.scans, resolved, strict=True)]
    return Beginning(starts, history)


def topic_ids_now(client: Admin, dataflow: Dataflow, *, resumed: bool) -> Mapping[str, str]:
    names = [scan.topic for scan in dataflow.scans]
    return topics.ids_again(client, names) if resumed else topics.ids(client, names)


def job_of(
    session: SparkSession,
    dataflow: Dataflow,
    name: str,
    output_topic: str,
    brokers: BrokerAddress,
    storage: Storage,
    origin: QueryOrigin,
    settings: JobSettings,
) -> Job:
    """What the workers of a query get, in another life of it. What it writes to is made where it is not there; a pack
    writes to the topics of its members (``output_topic`` '').
    """
    client = clients.admin(brokers)
    dead_letter_topic = topic_of(name)
    has_written = bool(origin.resumed_at) or Checkpoint(storage).committed() is not None
    if output_topic and has_written and not settings.drain_only:
        topics.expect_output(client, output_topic)
    of_query = {dead_letter_topic: 1} if output_topic else {}
    if output_topic and not has_written:
        of_query[output_topic] = settings.output_partitions
    late_topic = {settings.late_topic: 1} if settings.late_topic else {}
    topics.ensure(client, {**of_query, MARKS_TOPIC: MARKS_PARTITIONS, **late_topic})
    topics.widen(client, MARKS_TOPIC, origin.buckets + 1)
    target = _target(brokers, origin, settings)
    # One that comes to rest without its output has nothing to write; with it, its last batch writes as it would have.
    if output_topic and (not settings.drain_only or topics.is_there(client, output_topic)):
        target = replace(target, message_bytes=topics.message_bytes(client, output_topic))
    if output_topic:
        target = replace(target, dead_letter_bytes=topics.message_bytes(client, dead_letter_topic))
    if settings.late_topic:
        target = replace(target, late_bytes=topics.message_bytes(client, settings.late_topic))
    target = replace(target, batch_bytes=min(target.message_bytes, target.dead_letter_bytes, target.late_bytes))
    ensure_log(brokers)
    clocked = {scan.topic for scan in dataflow.scans if scan.watermark is not None and scan.watermark.from_heartbeats}
    clocked |= {output_topic} if output_topic and dataflow.sink.clock else set()
    return Job(
        name=name,
        dataflow=dataflow,
        output_topic=output_topic,
        dead_letter_topic=dead_letter_topic,
        target=target,
        bucket_keys=bucket_keys(origin.buckets),
        scan_starts=origin.first_offsets,
        checkpoint=storage,
        local_copy=settings.local_copy_dir and settings.local_copy_dir.absolute(),
        local_copy_max_bytes=settings.local_copy_max_bytes,
        local_copies_max_bytes=settings.local_copies_max_bytes,
        remote_executors=has_remote_executors(session),
        late_topic=settings.late_topic,
        max_fan_out=settings.max_fan_out,
        topic_ids=origin.topic_ids,
        history=origin.history,
        resumed_at=origin.resumed_at,
        fused=origin.fused,
        durable_every_s=_durable_every_s(session, client, dataflow, origin, settings),
        drain_only=settings.drain_only,
        partitions={topic: len(topics.partitions(client, topic)) for topic in sorted(clocked)},
    )


def job_of_pack(
    session: SparkSession, brokers: BrokerAddress, pack: Storage, members: Sequence[Job], settings: JobSettings
) -> Job:
    """What the workers of a pack get: its members read together, and each writes to its own topics."""
    dataflow = read_together([member.dataflow for member in members])
    name, origin = pack.location.rpartition("/")[2], Checkpoint(pack).expect_origin()
    job = job_of(session, dataflow, name, "", brokers, pack, origin, settings)
    target = replace(
        job.target,
        message_bytes=max(member.target.message_bytes for member in members),
        dead_letter_bytes=max(member.target.dead_letter_bytes for member in members),
        late_bytes=max(member.target.late_bytes for member in members),
        batch_bytes=min(member.target.batch_bytes for member in members),
    )
    starts = tuple(start for member in members for start in member.scan_starts)
    # Not those of the origin: some may be of members that have left.
    topic_ids = {topic: known for member in members for topic, known in member.topic_ids.items()}
    return replace(job, members=tuple(members), target=target, scan_starts=starts, topic_ids=topic_ids)


def _durable_every_s(
    session: SparkSession, client: Admin, dataflow: Dataflow, origin: QueryOrigin, settings: JobSettings
) -> float:
    """0, with each batch, where tasks change their machine, and with it their copies; and where a topic is compacted: a
    batch that is run again later would not find all of the records that it had.
    """
    if not origin.fused or has_remote_executors(session) or topics.any_is_compacted(client, dataflow.topics):
        return 0.0
    return settings.durable_every_s


def _taken_over(job: Job, origin: QueryOrigin) -> Job:
    """The job of a query that has run before: nobody of an earlier life writes any more; and what was written since its
    checkpoint, where that is from a backup, is read again.
    """
    commit_mark = fence(job.target, job.writers)
    refuse_dropped(job.target, commit_mark)
    checkpoint = Checkpoint(job.checkpoint)
    if commit_mark <= checkpoint.last_planned:
        return job
    replays = _written_since(checkpoint, job, commit_mark)
    target = replace(job.target, replayed_until=checkpoint.last_planned + len(replays))
    return replace(job, target=target, replays={place(start): end for start, end in replays})


def _written_since(checkpoint: Checkpoint, job: Job, commit_mark: int) -> list[tuple[JsonOffsets, JsonOffsets]]:
    """The batches that a checkpoint from a backup has not seen. Raises CheckpointMismatch if they are not all known."""
    target, end = job.target, checkpoint.planned_end
    start = json.loads(end) if end else begins_at(job.dataflow, job.scan_starts, job.resumed_at)
    found = batches_after(target.brokers, target.identity, start)
    if checkpoint.last_planned + len(found) < commit_mark:
        raise behind_its_output(target, checkpoint.last_planned, commit_mark)
    return found


def stages(rows: DataFrame, job: Job) -> DataFrame:
    """Decoded rows → level 1 → ... → level n, which writes; or one exchange more, after which the sink writes. Where a
    watermark is told, another one follows: behind it all is written.
    """
    if job.fused:
        return rows.observe(report.OBSERVATION, report.observed())
    shipped = job.ship()
    for level in range(1, job.dataflow.levels + 1):
        writes = job.fused_sink and level == job.dataflow.levels
        rows = rows.groupBy("bucket").transformWithStateInPandas(
            LevelProcessor(shipped, level),
            report.SPARK_SCHEMA if writes else shuffle_block.SPARK_SCHEMA,
            "Append",
            "None",
        )
    if not job.fused_sink:
        rows = rows.repartition(job.buckets, "bucket").mapInArrow(SinkStage(shipped), report.SPARK_SCHEMA)
    if job.separate_heartbeat_writer:
        rows = rows.repartition(1).mapInArrow(HeartbeatStage(shipped), report.SPARK_SCHEMA)
    return rows.observe(report.OBSERVATION, report.observed())
