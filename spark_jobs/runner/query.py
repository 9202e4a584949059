"""``RunningQuery``: a dataflow at work in Spark, from its checkpoint or from its first record."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile

import pyarrow as pa
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from broker import clients, topics
from broker.address import BrokerAddress
from broker.names import MARKS_TOPIC
from broker.query_origin import QueryOrigin
from broker.start_offsets import Beginning, least_offsets, resolved_first_offsets
from broker.topics import Offsets
from broker.transactional_writer import WriteTarget, behind_its_output, fence, refuse_dropped
from changelog.dead_letter import topic_of
from changelog.errors import DovetailError, ServiceUnavailable
from joins.dataflow.graph import Dataflow
from joins.host.activity import Activity
from runtime.logs.query_logs import BatchTotals, QueryLog
from runtime.storage.storage import Storage
from spark_jobs.exchange import counts, notes, parcel
from spark_jobs.runner.complaints import Complaints
from spark_jobs.runner.failure import typed
from spark_jobs.runner.job_settings import JobSettings
from spark_jobs.runner.skew import SkewWatch
from spark_jobs.runner.spark_session import bucket_keys, runs_elsewhere, writes_through
from spark_jobs.runner.timed_inputs import timed_inputs
from spark_jobs.source import kafka_source as source
from spark_jobs.source.batch_log import batches_after, ensure_log, place
from spark_jobs.source.ends_watch import ends_watch
from spark_jobs.source.idle import JsonOffsets
from spark_jobs.stages import late
from spark_jobs.stages.job import Job
from spark_jobs.stages.level import LevelProcessor
from spark_jobs.stages.output import SinkStage
from spark_jobs.state.checkpoint import Checkpoint, parsed_offsets
from spark_jobs.state.relocation import move_in
from spark_jobs.state.seed import Seed
from spark_jobs.state.uncommitted import forget_uncommitted

_LOG = logging.getLogger("dovetail.runner")
MARKS_PARTITIONS = 64
"""At the first start of all; a query of more buckets widens it."""
_LOOK_S = 0.05
_LAST_CALL_S = 2.0
_IDLE = "Waiting for data"
"""So begins Spark's word of a query that waits for records."""
_starting = threading.Lock()
"""A query takes the number of its partitions, and the way its files are written, from the session's settings at its
start.
"""


@dataclass
class Progress:
    """offsets   topic → partition → end of what committed batches have read
    batch     number of the last committed batch, -1 before the first
    batch_ms  how long it took
    counts    sums over the batches since this start (``counts.NAMES``)
    late      those of late rows, by the name of their input
    state     rows and bytes by level and bucket, of those that batches since this start have touched
    watermarks  by the name of an input whose event time is a time
    activity    of the nodes, over the batches since this start
    """

    offsets: Offsets = field(default_factory=dict)
    batch: int = -1
    batch_ms: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    state: dict[str, tuple[int, int]] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    activity: Activity = field(default_factory=Activity)


class RunningQuery:
    """One dataflow, running. Made by ``start``."""

    def __init__(self, session: SparkSession, job: Job, checkpoint: Checkpoint, settings: JobSettings) -> None:
        self._session = session
        self._job = job
        self._checkpoint = checkpoint
        self._settings = settings
        self._progress = Progress()
        log = QueryLog(_LOG, job.name, lambda: self._progress.batch)
        self._complaints = Complaints(log)
        self._batch_totals = BatchTotals(log)
        self._skew = SkewWatch(job.dataflow, settings.max_fan_out, log)
        self._late_counters = late.counters(job.dataflow)
        self._timed_inputs = timed_inputs(job.dataflow)
        self._noted_in_silence: int | None = None
        self._seed = Seed(checkpoint.storage)
        committed = checkpoint.committed()
        if committed is not None:
            self._progress.batch, self._progress.offsets = committed
        elif job.resumed_at:
            self._progress.offsets = parsed_offsets(job.resumed_at)
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
    ) -> RunningQuery:
        """Start ``name``, or resume it from its checkpoint in ``storage``.

        Raises CheckpointMismatch, UnknownName (a topic), ServiceUnavailable (the broker or an object store does not
        answer), StorageRefused.
        """
        client = clients.admin(brokers)
        checkpoint = Checkpoint(storage)
        resumed = checkpoint.origin() is not None
        origin = checkpoint.open(
            name,
            fingerprint,
            plan,
            settings.buckets,
            lambda: _beginning(client, dataflow),
            snapshots,
            _topic_ids(client, dataflow, resumed=resumed),
        )
        topics.ensure(
            client,
            {
                output_topic: settings.output_partitions,
                topic_of(name): 1,
                MARKS_TOPIC: MARKS_PARTITIONS,
                **({settings.late_topic: 1} if settings.late_topic else {}),
            },
        )
        topics.widen(client, MARKS_TOPIC, origin.buckets)
        target = WriteTarget(
            brokers,
            origin.identity,
            MARKS_TOPIC,
            settings.transaction_timeout_s,
            settings.broker_wait_s,
            topics.message_bytes(client, output_topic),
            topics.message_bytes(client, topic_of(name)),
            life=_new_life(),
        )
        ensure_log(brokers)
        replays: list[tuple[JsonOffsets, JsonOffsets]] = []
        if resumed:
            mark = fence(target, origin.buckets)
            refuse_dropped(target, mark)
            if mark > checkpoint.last_planned:
                replays = _written_since(checkpoint, origin, dataflow, target, mark)
                target = replace(target, replayed_until=checkpoint.last_planned + len(replays))
        job = Job(
            name=name,
            dataflow=dataflow,
            output_topic=output_topic,
            dead_letter_topic=topic_of(name),
            target=target,
            bucket_keys=bucket_keys(session, origin.buckets),
            scan_starts=origin.first_offsets,
            checkpoint=storage,
            local_copy=settings.local_copy_dir and settings.local_copy_dir.absolute(),
            local_copy_max_bytes=settings.local_copy_max_bytes,
            local_copies_max_bytes=settings.local_copies_max_bytes,
            elsewhere=runs_elsewhere(session),
            late_topic=settings.late_topic,
            topic_ids=origin.topic_ids,
            history=origin.history,
            replays={place(start): end for start, end in replays},
            resumed_at=origin.resumed_at,
            settles=settings.settles,
        )
        return RunningQuery(session, job, checkpoint, settings)

    # -- running

    def _launch(self) -> StreamingQuery:
        move_in(self._checkpoint.spark)
        forget_uncommitted(self._checkpoint.spark)
        self._seed.drop_once_committed()
        with _starting:
            self._session.conf.set("spark.sql.shuffle.partitions", str(self._job.buckets))
            writes_through(self._session, self._checkpoint.spark)
            rows = source.parcels(self._session, self._job, self._settings.max_offsets_per_trigger)
            return (
                stages(rows, self._job)
                .writeStream.format("noop")
                .queryName(self._job.name)
                .outputMode("append")
                .option("checkpointLocation", self._checkpoint.spark.location)
                .start()
            )

    def _silence(self) -> int | None:
        """While the source waits for its topics to grow: no batch is under way, and Spark has told of all before."""
        return ends_watch(self._job.target.brokers).silence(self._job.source)

    def _advance(self) -> None:
        """Take note of what Spark has finished. To ask it costs processor time, so of a silent query once."""
        silence = self._silence()
        if silence is None or silence != self._noted_in_silence:
            for progress in self._news():
                self._note(progress)
        self._noted_in_silence = silence

    def _news(self) -> list[StreamingQueryProgress]:
        """What Spark tells of its batches since the last one that is noted."""
        # Nothing public says the number of the last batch without the rest, which takes far longer to tell.
        last = self._query._jsq.lastProgress()  # noqa: SLF001
        behind = 0 if last is None else last.batchId() - self._progress.batch
        if behind < 1:
            return []
        if behind == 1 and (progress := self._query.lastProgress) is not None and _read_something(progress):
            return [progress]
        recent = self._query._jsq.recentProgress()  # noqa: SLF001
        untold = list(takewhile(lambda told: told.batchId() > self._progress.batch, reversed(recent)))
        return [StreamingQueryProgress.fromJson(json.loads(told.json())) for told in reversed(untold)]

    def _note(self, progress: StreamingQueryProgress) -> None:
        if progress.batchId <= self._progress.batch or not _read_something(progress):
            return
        self._progress.batch = progress.batchId
        self._progress.batch_ms = progress.batchDuration
        self._progress.offsets = parsed_offsets(progress.sources[0].endOffset)
        self._seed.drop_once_committed()
        observed = progress.observedMetrics.get(counts.OBSERVATION)
        reported = observed.asDict() if observed is not None else {}
        self._read(counts.readings(reported.pop(counts.READINGS, ())))
        activity = notes.activity_of(reported.pop(notes.NOTES, ()))
        self._progress.activity.add(activity)
        self._skew.note(activity)
        counted = Counter(reported)
        self._progress.counts.update({name: counted[name] for name in counts.NAMES})
        late_rows: Counter[str] = Counter()
        for counter, name in self._late_counters.items():
            late_rows[name] += counted[counter]
        self._progress.late.update(late_rows)
        untold = {} if self._job.late_topic else late_rows
        now_s = time.monotonic()
        self._complaints.note(counted[counts.UNFOUNDED], untold, now_s)
        self._batch_totals.note(counted[counts.ROWS_IN], counted[counts.ROWS_OUT], progress.batchDuration, now_s)

    def _read(self, readings: Mapping[str, Mapping[str, int]]) -> None:
        """Take note of how much state there is, and how far time has come."""
        sizes = readings[counts.STATE_BYTES]
        self._progress.state |= {place: (rows, sizes[place]) for place, rows in readings[counts.STATE_ROWS].items()}
        reached: dict[str, int] = {}
        for edge, watermark in readings[counts.WATERMARK].items():
            if name := self._timed_inputs.get(int(edge)):
                reached[name] = min(watermark, reached.get(name, watermark))
        self._progress.watermarks |= reached

    # -- asked from outside

    @property
    def first_offsets(self) -> Offsets:
        """Topic → partition → offset of the first record read."""
        return least_offsets(self._job.dataflow.scans, self._job.scan_starts)

    def progress(self) -> Progress:
        self._advance()
        return self._progress

    def has_read(self, ends: Offsets) -> bool:
        """Whether committed batches have read every input up to ``ends``."""
        reached, first_offsets = self.progress().offsets, self.first_offsets
        return all(
            reached.get(topic, first_offsets[topic]).get(partition, 0) >= end
            for topic, wanted in ends.items()
            for partition, end in wanted.items()
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
                    where=f"it has read {self._progress.offsets} of {ends}",
                )
            time.sleep(_LOOK_S)

    def await_settled(self) -> None:
        """Of a query that settles: wait until each batch that has begun is committed. Raises what ended it instead."""
        while max(self._checkpoint.last_planned, self._job.target.replayed_until) > self._committed_batch:
            if failure := self.error():
                raise failure
            time.sleep(_LOOK_S)

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
        return None if failure is None else typed(failure, self._job.name)

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
    def running(self) -> bool:
        self._advance()
        return self._query.isActive

    def stop(self) -> None:
        """End the query; a batch that is under way is replayed at the next start.

        Its open transaction is aborted, else readers of the topic would wait for its end; and what Spark has cancelled
        and not yet ended writes no more, else it might write to a topic of the same name that is made next.
        """
        self._query.stop()
        with suppress(ServiceUnavailable):
            fence(replace(self._job.target, life=_new_life(), broker_wait_s=_LAST_CALL_S), self._job.buckets)


def _new_life() -> str:
    return uuid.uuid4().hex[:12]


def _read_something(progress: StreamingQueryProgress) -> bool:
    # A batch may read the marks of transactions only: no row, and yet its offsets are behind it.
    return bool(progress.sources[0].startOffset != progress.sources[0].endOffset)


def _beginning(client: AdminClient, dataflow: Dataflow) -> Beginning:
    # The history first: so nothing of an input that is read from now on belongs to it.
    history = topics.end_offsets(client, dataflow.topics) if dataflow.answers_once else {}
    return Beginning(resolved_first_offsets(client, dataflow.scans), history)


def _topic_ids(client: AdminClient, dataflow: Dataflow, *, resumed: bool) -> Mapping[str, str]:
    names = [scan.topic for scan in dataflow.scans]
    return topics.ids_again(client, names) if resumed else topics.ids(client, names)


def _written_since(
    checkpoint: Checkpoint, origin: QueryOrigin, dataflow: Dataflow, target: WriteTarget, mark: int
) -> list[tuple[JsonOffsets, JsonOffsets]]:
    """The batches that a checkpoint from a backup has not seen. Raises CheckpointMismatch if they are not all known."""
    end = checkpoint.planned_end
    start = json.loads(end) if end else source.begins_at(dataflow, origin.first_offsets, origin.resumed_at)
    found = batches_after(target.brokers, target.identity, start)
    if checkpoint.last_planned + len(found) < mark:
        raise behind_its_output(target, checkpoint.last_planned, mark)
    return found


def stages(rows: DataFrame, job: Job) -> DataFrame:
    """Decoded rows → level 1 → ... → level n, which writes; or one exchange more, after which the sink writes."""
    shipped = job.ship()
    for level in range(1, job.dataflow.levels + 1):
        writes = job.fused_sink and level == job.dataflow.levels
        rows = rows.groupBy("bucket").transformWithStateInPandas(
            LevelProcessor(shipped, level), counts.SPARK_SCHEMA if writes else parcel.SPARK_SCHEMA, "Append", "None"
        )
    if not job.fused_sink:
        rows = rows.repartition(job.buckets, "bucket").mapInArrow(SinkStage(shipped), counts.SPARK_SCHEMA)
    return rows.observe(counts.OBSERVATION, *counts.observed(late.counters(job.dataflow)), notes.observed_notes())
