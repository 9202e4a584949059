"""From what the catalog says of a query to the query at work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.query_origin import refuse_other_topics
from dovetail.broker.reader import read_topic
from dovetail.changelog.errors import CheckpointMismatch, DovetailError
from dovetail.runtime.query_plan import begin_at, plan_of
from dovetail.runtime.storage.places import folder_name, storage_at
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery, job_of, job_of_pack, settle_at_rest, topic_ids_now
from dovetail.spark_jobs.runner.runner_settings import RunnerSettings
from dovetail.spark_jobs.stages.at_fault import at_fault, blame, text_with_notes
from dovetail.spark_jobs.stages.job import Job
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.fragments import Fragment
from dovetail.sql.planner import Plan, stream_of
from dovetail.sql.relations import Stream


@dataclass(frozen=True)
class Launcher:
    """Starts queries, alone or in packs, in one session."""

    settings: RunnerSettings
    session: SparkSession
    catalog: Catalog

    @property
    def brokers(self) -> BrokerAddress:
        return self.settings.brokers

    @property
    def session_lives(self) -> bool:
        try:
            return not self.session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - nothing public asks the JVM
        except (Py4JError, OSError):
            return False

    def as_it_is(self, query: Query) -> Query:
        """As the catalog has it now: since the look that found ``query`` a task may have given it another checkpoint,
        which would be taken for a leftover.
        """
        return next((one for one in self.catalog.queries(dropped=True) if one.id == query.id), query)

    def plan(self, query: Query) -> Plan:
        return plan_of(query, self.catalog)

    def checkpoint(self, query: Query) -> Storage:
        if query.checkpoint:
            return storage_at(query.checkpoint, self.settings.spark_conf)
        return self.settings.checkpoints.inside(f"{query.id}-{folder_name(query.name)}")

    def job_settings(self, plan: Plan) -> JobSettings:
        """The runner's settings, with what the query sets for itself."""
        job = replace(
            self.settings.job,
            late_topic=plan.settings.text("late_topic"),
            max_fan_out=plan.settings.number("max_fan_out"),
        )
        buckets = plan.settings.number("buckets")
        return replace(job, buckets=buckets, few_buckets=False) if buckets else job

    def started(self, query: Query, fragment: Fragment, checkpoint: Storage, settings: JobSettings) -> RunningQuery:
        """Alone."""
        return RunningQuery.start(
            self.session,
            fragment.dataflow,
            query.name,
            output_topic=query.topic,
            brokers=self.brokers,
            storage=checkpoint,
            fingerprint=fragment.fingerprint,
            plan=fragment.explain(),
            snapshots=lambda: self._static_tables(fragment),
            settings=settings,
            begin_at=begin_at(query),
        )

    def started_pack(self, pack: Storage, members: Mapping[str, Query], settings: JobSettings) -> RunningQuery:
        """``members``: by the key of their state. What is raised says for which of them it is (``at_fault``)."""
        return RunningQuery.start_pack(self.session, self._job_of_pack(pack, members, settings), settings)

    def settle_pack(self, pack: Storage, members: Mapping[str, Query]) -> None:
        """Have the state of one at rest in its checkpoint, though its next batch comes to no end. Raises as
        ``started_pack``.
        """
        settle_at_rest(self._job_of_pack(pack, members, replace(self.settings.job, drain_only=True)), replay=True)

    def _job_of_pack(self, pack: Storage, members: Mapping[str, Query], settings: JobSettings) -> Job:
        jobs, failures = [], []
        for key, query in members.items():
            try:
                jobs.append(self._member(key, query, drain_only=settings.drain_only))
            except DovetailError as failure:
                blame(failure, key)
                failures.append(failure)
        if failures:
            raise _for_all(failures)
        return job_of_pack(self.session, self.brokers, pack, jobs, settings)

    def _member(self, key: str, query: Query, *, drain_only: bool) -> Job:
        """Raises CheckpointMismatch, RecordsGone where it is another view, or reads another topic, than it was."""
        plan, place = self.plan(query), self.checkpoint(query)
        fragment, origin = plan.fragment(query.name), Checkpoint(place).expect_origin()
        if origin.packed_levels is None:
            raise CheckpointMismatch("it is the checkpoint of no member of a pack", where=place.location)
        origin.expect_plan(query.name, fragment.fingerprint, fragment.explain(), where=place.location)
        there = topic_ids_now(clients.admin(self.brokers), fragment.dataflow, resumed=True)
        refuse_other_topics(origin.topic_ids, there, query.name)
        settings = replace(self.job_settings(plan), drain_only=drain_only)
        job = job_of(
            self.session,
            fragment.dataflow,
            query.name,
            query.topic,
            self.brokers,
            place,
            replace(origin, buckets=1),
            settings,
        )
        return replace(job, key=key)

    def _static_tables(self, fragment: Fragment) -> dict[str, pa.Table]:
        names = fragment.dataflow.snapshots
        return {name: table_of(stream_of(self.catalog, name), self.brokers) for name in names}


def _for_all(failures: Sequence[DovetailError]) -> DovetailError:
    """Of those that will not pass the first, else of all; with the names of all members that have one like it."""
    alike = [failure for failure in failures if not failure.retry] or failures
    for other in alike[1:]:
        for key in at_fault(text_with_notes(other)):
            blame(alike[0], key)
    return alike[0]


def table_of(stream: Stream, brokers: BrokerAddress) -> pa.Table:
    """The content of ``stream`` now: its declared columns and ``_tp_time``."""
    ends = topics.end_offsets(clients.admin(brokers), [stream.topic])[stream.topic]
    return read_topic(brokers, stream.schema, stream.topic, ends).rows


@contextmanager
def stopping(query: RunningQuery) -> Iterator[RunningQuery]:
    try:
        yield query
    finally:
        query.stop()


def megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MB"
