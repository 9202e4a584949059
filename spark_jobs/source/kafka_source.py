"""The source of a query: a Python data source that reads Kafka in the worker that decodes.

Spark asks it where the topics end, logs that as the batch's offsets, and hands each task a share of the batch. A task
reads its records with librdkafka and gives Spark blocks, a few large rows. Spark's own Kafka source would read in the
JVM and send every record through a pipe to Python: twice the work, and a client with settings of its own.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
)
from pyspark.sql.types import StructType

from dovetail.broker.offset_ranges import OffsetRange, read, shares
from dovetail.broker.record_sizes import RecordSizes
from dovetail.changelog.errors import RecordsGone
from dovetail.spark_jobs.exchange.shuffle_block import SPARK_SCHEMA
from dovetail.spark_jobs.source.batch_bytes import BatchBytes
from dovetail.spark_jobs.source.batch_log import note_batch
from dovetail.spark_jobs.source.batch_ranges import begins_at, ranges_between
from dovetail.spark_jobs.source.ends_watch import EndsAnswer, WatchedEnds, ends_watch
from dovetail.spark_jobs.source.history import HistoryPhase, next_end, phases
from dovetail.spark_jobs.source.idle import Idleness, as_json, idle_times, of_topics, silences
from dovetail.spark_jobs.source.period import Period
from dovetail.spark_jobs.source.topic_ends import PAUSE_S, awaited_ends
from dovetail.spark_jobs.stages.decode import Silence, blocks_of
from dovetail.spark_jobs.stages.job import Job, opened
from dovetail.spark_jobs.state.checkpoint import IDLE, JsonOffsets, place

FORMAT = "dovetail"
_LONGEST_WAIT_S = 15.0
"""After which Spark hears that there is nothing new."""
_UNWATCHED_S = 1.0
"""How long it waits by itself, where there is no watch, before Spark hears so."""
_WORTH_A_TASK = 5_000
"""Records. To decode so many takes no longer than Spark does over one more task."""
_BACKWARDS_S = 30.0
"""How long a topic may end before what was read of it: a broker that comes back finds its own end step by step."""


class KafkaSource(DataSource):
    """Its rows are blocks.

    Options: ``job`` (base64 of ``Job.ship()``), ``limit`` (records of one batch; empty: all there are), ``bytes`` (of
    the records of one batch; empty: any), ``watch`` (where an ``EndsWatch`` answers).
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        limit, most_bytes = (int(text) if (text := options.get(name)) else None for name in ("limit", "bytes"))
        self._of_reader = base64.b64decode(options["job"]), limit, options.get("watch", ""), most_bytes

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SPARK_SCHEMA

    def streamReader(self, schema: StructType) -> KafkaReader:  # noqa: N802
        return KafkaReader(*self._of_reader)


@dataclass
class Share(InputPartition):
    """What one task reads; and which partitions have fallen silent, for whoever has to tell the operators.

    number   of the task in its batch
    to_every_bucket   whether each bucket hears of the batch, rows or not
    """

    ranges: tuple[OffsetRange, ...]
    silences: tuple[Silence, ...] = ()
    number: int = 0
    to_every_bucket: bool = False


class KafkaReader(DataSourceStreamReader):
    """Lives in a process of its own beside the driver; a copy of it, in each worker, serves ``read`` only."""

    def __init__(self, shipped: bytes, limit: int | None, watch: str = "", most_bytes: int | None = None) -> None:
        self._shipped = shipped
        self._limit = limit
        self._most_bytes = most_bytes
        self._watch = watch
        self._slow_s = 0.0

    @property
    def _job(self) -> Job:
        return opened(self._shipped)

    @cached_property
    def _history(self) -> list[HistoryPhase]:
        return phases(self._job.dataflow, self._job.scan_starts, self._job.history)

    @cached_property
    def _idleness(self) -> Idleness:
        return Idleness(idle_times(self._job.dataflow))

    @cached_property
    def _period(self) -> Period:
        return Period(self._job.dataflow.period_ms / 1_000)

    @cached_property
    def _batch_bytes(self) -> BatchBytes | None:
        if self._most_bytes is None:
            return None
        return BatchBytes(self._most_bytes, RecordSizes(self._job.target.brokers))

    @cached_property
    def _between(self) -> WatchedEnds:
        """What waits for no topic, only for a time."""
        return WatchedEnds(self._watch, self._job.source, ())

    @cached_property
    def _watched(self) -> WatchedEnds:
        return WatchedEnds(self._watch, self._job.source, self._job.dataflow.topics)

    def initialOffset(self) -> JsonOffsets:  # noqa: N802
        # Asked again where the first batch is run again, so nothing may be looked up here: it must be the same.
        return begins_at(self._job.dataflow, self._job.scan_starts, self._job.resumed_at)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # noqa: N802
        """Where the next batch ends: at the end of the topics, or before, in proportion to what each has left; with the
        partitions that are idle by then. The same as ``start`` where nothing is new, also after a wait: then no batch
        runs. A batch whose output is written already ends where it did; a query that only drains begins no other.

        Where rows are answered once, the history of what they ask comes first (``spark_jobs.source.history``).
        """
        if (end := self._job.replays.get(place(start))) is not None:
            return end
        if self._job.drain_only or not self._waited_out():
            return start
        ends = self._looked()
        deadline_s = time.monotonic() + _BACKWARDS_S
        while behind(start, ends) and time.monotonic() < deadline_s:
            time.sleep(PAUSE_S)
            ends = self._looked()
        deadline_s = time.monotonic() + _LONGEST_WAIT_S
        while (reached := self._reached(start, ends, limit)) == start:
            now_s = time.monotonic()
            wait_s = min(deadline_s - now_s, self._idleness.next_s(now_s))
            grown = self._watched_ends(ends, wait_s) if wait_s > 0 else None
            if grown is None:
                break
            ends = grown
        if reached != start:
            self._period.began(time.monotonic(), caught_up=of_topics(reached) == ends)
        return reached

    def _waited_out(self) -> bool:
        """Whether a batch may begin (EMIT PERIODIC), after a wait as long as Spark may be kept waiting: at the watch,
        which so knows that the last one has ended.
        """
        wait_s = min(self._period.wait_s(time.monotonic()), _LONGEST_WAIT_S)
        if wait_s > 0 and (not self._watch or self._between.ask({}, wait_s) is None):
            time.sleep(min(wait_s, _UNWATCHED_S))
        return self._period.wait_s(time.monotonic()) == 0

    def _reached(self, start: JsonOffsets, ends: JsonOffsets, limit: ReadLimit) -> JsonOffsets:
        """Where a batch from ``start`` ends."""
        refuse_backwards(start, ends)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        reached = next_end(start, ends, self._history, self._job.history, most)
        if self._batch_bytes and (fewer := self._batch_bytes.limit(self._ranges(start, reached))) is not None:
            reached = next_end(start, ends, self._history, self._job.history, fewer)
        idle = self._idleness.idle(start, reached, time.monotonic())
        return {**reached, IDLE: idle} if idle else reached

    def _looked(self) -> JsonOffsets:
        """The ends of the topics now, of which ``_idleness`` has taken note."""
        if (ends := self._watched_ends()) is not None:
            return ends
        begun_s = time.monotonic()
        ends = as_json(awaited_ends(self._job))
        now_s = time.monotonic()
        waited_s = now_s - begun_s
        self._idleness.look(ends, now_s, waited_s if waited_s > PAUSE_S else 0.0)
        return ends

    def _watched_ends(self, known: JsonOffsets | None = None, wait_s: float = 0.0) -> JsonOffsets | None:
        """The ends now, or once they are others than ``known``, or after the time; None where nobody watches them."""
        answer = self._watched.ask(known, wait_s) if self._watch else None
        if answer is None or not self._of_its_topics(answer):
            return None
        slow_s, self._slow_s = answer.slow_s - self._slow_s, answer.slow_s
        self._idleness.look(answer.ends, time.monotonic(), slow_s)
        return answer.ends

    def stop(self) -> None:
        self._watched.close()
        self._between.close()
        if self._batch_bytes:
            self._batch_bytes.sizes.close()

    def _of_its_topics(self, answer: EndsAnswer) -> bool:
        """Where ids differ only the broker can tell: those of the watch may be older than the query, or newer."""
        return all(answer.ids.get(topic) == known for topic, known in self._job.topic_ids.items())

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        target = self._job.target
        note_batch(target.brokers, target.identity, start, end, target.broker_wait_s)
        return self.dealt(start, end)

    def dealt(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        """What each task of a batch reads."""
        ranges = self._ranges(start, end)
        tasks = min(self._job.buckets, -(-sum(one.length for one in ranges) // _WORTH_A_TASK) or 1)
        dealt = shares(ranges, tasks)
        fallen = silences(start, end)
        idle = [Share((), fallen, len(dealt))] if fallen else []
        every = [*(Share(share, number=number) for number, share in enumerate(dealt)), *idle]
        if not self._job.resumed_at or start != json.loads(self._job.resumed_at):
            return every
        # What a rescaled query begins with goes into its state with its first batch, which starts where no other does;
        # Spark may run one without records.
        first, *others = every or [Share(())]
        return [replace(first, to_every_bucket=True), *others]

    def _ranges(self, start: JsonOffsets, end: JsonOffsets) -> list[OffsetRange]:
        """What there is to read between two places."""
        return ranges_between(start, end, self._job.dataflow.topics)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        headed = self._job.dataflow.headed
        records = read(self._job.target.brokers, partition.ranges, headed) if partition.ranges else ()
        name = f"share {partition.number}"
        return blocks_of(self._shipped, records, partition.silences, name, to_every_bucket=partition.to_every_bucket)


def loaded(session: SparkSession, job: Job, source: str, limit: int | None, most_bytes: int | None = None) -> DataFrame:
    """What ``source``, which is registered with the session, gives of the inputs of ``job``.

    ``limit`` records at most in one batch, of ``most_bytes`` together.
    """
    watch = ends_watch(job.target.brokers)
    watch.share(session.sparkContext.defaultParallelism)
    reader = (
        session.readStream.format(source)
        .option("job", base64.b64encode(job.ship()).decode())
        .option("watch", watch.address)
    )
    if limit is not None:
        reader = reader.option("limit", str(limit))
    if most_bytes is not None:
        reader = reader.option("bytes", str(most_bytes))
    return reader.load()


def behind(start: JsonOffsets, ends: JsonOffsets) -> list[tuple[str, str, int, int]]:
    """Where a topic ends before the place up to which it was read: topic, partition, its end, that place."""
    return [
        (topic, partition, end, start[topic][partition])
        for topic, wanted in ends.items()
        for partition, end in wanted.items()
        if end < start.get(topic, {}).get(partition, 0)
    ]


def refuse_backwards(start: JsonOffsets, ends: JsonOffsets) -> None:
    """Raises RecordsGone where a topic ends before the place up to which it was read."""
    for topic, partition, end, reached in behind(start, ends):
        raise RecordsGone(
            f"{topic}[{partition}] ends at offset {end}, and the query has read up to {reached}",
            where=f'topic "{topic}", deleted and made again?',
            fix="drop the query and create it again",
        )
