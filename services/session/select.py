"""SELECT: answered at once over ``table(x)``; else a query that lives as long as somebody looks at its rows."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from broker.reader import RECORDS, TopicReader
from broker.topics import PartitionOffsets
from changelog.changes import DELTA
from changelog.decode import Decoder
from changelog.errors import ServiceUnavailable, UnknownName
from changelog.row_reader import WIRE_DELTA
from changelog.schema import ARRIVAL, Kind
from runtime.leases import RENEWED_EVERY_S, lease_from_now
from services.session.contents import answer
from services.session.context import Context
from services.session.drop import await_gone, topics_of_select
from services.session.input_progress import CatchUp, await_upstream, expect_alive
from services.session.queries import await_running, engines_of, expect_runner
from services.session.result import Changelog, Live, Rows
from services.session.views import from_now_on, output_shape
from sql.catalog import Desired
from sql.catalog.entries import queries_of
from sql.planner import Plan, plan_query
from sql.relations import Stream
from sql.syntax.statements import Select

_POLL_S = 0.1


def select(context: Context, statement: Select) -> Rows | Live:
    name = f"select_{secrets.token_hex(4)}"
    plan = plan_query(name, statement, context.catalog)
    if plan.snapshot is not None:
        return Rows(answer(context, plan.snapshot))
    expect_runner(context, engines_of(plan))
    return Live(_running(context, plan, statement.text), tuple(filter(None, [from_now_on(plan)])))


@contextmanager
def _running(context: Context, plan: Plan, text: str) -> Iterator[Changelog]:
    """The query with topics of its own, all gone at the end. One partition, so that rows are shown in their order."""
    lease_ms = lease_from_now()
    *upstream, last = (replace(query, desired=Desired.PAUSED, lease_ms=lease_ms) for query in queries_of(plan, text))
    # In the catalog before there is a topic: whoever finds the lease run out knows what to delete.
    context.catalog.add_query(last, now_ms=context.now_ms, upstream=upstream)
    try:
        with _renewed(context, last.name):
            for query in upstream:
                context.topics.create(query.topic, output_shape(plan, query.topic, context.settings.output_partitions))
            context.topics.create(last.topic, output_shape(plan, last.topic, partitions=1))
            context.catalog.want(last.name, Desired.RUNNING, now_ms=context.now_ms)
            await_running(context, last.name)
            yield QueryChangelog(context, plan)
    finally:
        with suppress(UnknownName):
            context.catalog.want(last.name, Desired.DROPPED, now_ms=context.now_ms)
        await_gone(context, [last.name])
        context.topics.delete(topics_of_select([*upstream, last]))


@contextmanager
def _renewed(context: Context, name: str) -> Iterator[None]:
    """Answer for a query, again and again, as long as this process lives."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEWED_EVERY_S):
            # A catalog that does not answer now may do so before the lease runs out.
            with suppress(ServiceUnavailable):
                context.catalog.renew(name, lease_from_now())

    renewing = threading.Thread(target=renew, name=f"lease of {name}", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()


class TopicRows:
    """The rows of a topic as a person looks at them: ``_tp_delta`` comes last where rows can be taken back."""

    def __init__(self, stream: Stream) -> None:
        columns = tuple(column.name for column in stream.schema.columns)
        self._decoder = Decoder(stream.schema, columns)
        self._counted = stream.schema.kind is not Kind.APPEND

    @property
    def schema(self) -> pa.Schema:
        return self.decoded(RECORDS.empty_table()).schema

    def decoded(self, records: pa.Table) -> pa.Table:
        rows = self._decoder.decode(records).rows.drop_columns([ARRIVAL])
        if not self._counted:
            return rows.drop_columns([DELTA])
        return rows.rename_columns([*rows.column_names[:-1], WIRE_DELTA])


@dataclass(frozen=True)
class QueryChangelog:
    """What a running query writes, from its first row on."""

    context: Context
    plan: Plan

    @property
    def schema(self) -> pa.Schema:
        return TopicRows(self.plan.stream()).schema

    def batches(self, *, until_idle: bool) -> Iterator[pa.Table]:
        if until_idle:
            return self._until_idle()
        return self._followed()

    def _followed(self) -> Iterator[pa.Table]:
        stream = self.plan.stream()
        rows, reader = TopicRows(stream), TopicReader(self.context.brokers, stream.topic)
        for records in reader.follow(self.context.topics.ends(stream.topic)):
            if records.num_rows == 0:
                # A query that has failed writes no more: its error ends the changelog.
                expect_alive(self.context, self.plan)
            yield rows.decoded(records)

    def _until_idle(self) -> Iterator[pa.Table]:
        """Until the input there is now has been read: then all answers stand before the end of the topic."""
        stream = self.plan.stream()
        await_upstream(self.context, self.plan)
        rows, catch_up = TopicRows(stream), CatchUp(self.context, self.plan)
        position: PartitionOffsets = {}
        while True:
            complete = catch_up.is_complete()
            ends = (self.context.topics.settled_ends if complete else self.context.topics.ends)(stream.topic)
            for records in TopicReader(self.context.brokers, stream.topic, position).until(ends):
                yield rows.decoded(records)
            if complete:
                return
            position = ends
            time.sleep(_POLL_S)
