"""SELECT: answered at once over ``table(x)``; else a query that lives as long as somebody looks at its rows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from dovetail.broker.address import BrokerAddress
from dovetail.broker.reader import RECORDS, TopicReader
from dovetail.broker.registry.client import schemas_of
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import ARRIVAL, WIRE_DELTA, Kind, StreamSchema
from dovetail.services.session.contents import answer
from dovetail.services.session.context import Context
from dovetail.services.session.generated import ensure_clock
from dovetail.services.session.input_progress import CatchUp, await_upstream, expect_alive
from dovetail.services.session.queries import engines_of, expect_runner, leased, warned
from dovetail.services.session.result import Changelog, Live, Rows
from dovetail.services.session.views import from_now_on
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Select

_POLL_S = 0.1


def select(context: Context, statement: Select) -> Rows | Live:
    name = f"select_{secrets.token_hex(4)}"
    plan = plan_query(name, statement, context.catalog)
    if plan.snapshot is not None:
        for line in warned(plan):
            context.say(line)
        return Rows(answer(context, plan.snapshot))
    if statement.bound:
        raise Unsupported(
            "a SELECT over streams has no parameters: while it runs, the catalog keeps its text",
            where="arguments",
            fix="write the values out; or ask for the rows as of now: FROM table(x)",
        )
    expect_runner(context, engines_of(plan))
    ensure_clock(context, plan)
    return Live(_running(context, plan, statement.text), tuple(filter(None, [from_now_on(plan), *warned(plan)])))


@contextmanager
def _running(context: Context, plan: Plan, text: str) -> Iterator[Changelog]:
    with leased(context, plan, queries_of(plan, text)):
        yield QueryChangelog(context, plan)


class TopicRows:
    """The rows of a topic as a person looks at them: ``_tp_delta`` comes last where rows can be taken back."""

    def __init__(self, stream: Stream, brokers: BrokerAddress) -> None:
        columns = tuple(column.name for column in stream.schema.columns)
        self._decoder = Decoder(stream.schema, columns, schemas_of(brokers))
        self._counted = stream.schema.kind is not Kind.APPEND
        self._rules = stream.rules

    @property
    def stream(self) -> StreamSchema | None:
        return self._decoder.schema

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def schema(self) -> pa.Schema:
        return self.decoded(RECORDS.empty_table()).schema

    def decoded(self, records: pa.Table) -> pa.Table:
        rows = self._decoder.decode(records).rows.drop_columns([ARRIVAL])
        if not self._counted:
            return rows.drop_columns([DELTA])
        return rows.rename_columns([*rows.column_names[:-1], WIRE_DELTA])


def first_rows(batches: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The rows until ``limit`` of them have come; all where it is None."""
    if limit is None:
        yield from batches
        return
    left = limit
    while left and (rows := next(batches, None)) is not None:
        yield rows.slice(0, left)
        left -= min(left, rows.num_rows)


@dataclass(frozen=True)
class QueryChangelog:
    """What a running query writes, from its first row on; to the end of its LIMIT."""

    context: Context
    plan: Plan

    @property
    def schema(self) -> pa.Schema:
        return TopicRows(self.plan.stream(), self.context.brokers).schema

    @property
    def stream(self) -> StreamSchema:
        return self.plan.stream().schema

    def batches(self, *, until_idle: bool) -> Iterator[pa.Table]:
        return first_rows(self._until_idle() if until_idle else self._followed(), self.plan.limit)

    def _followed(self) -> Iterator[pa.Table]:
        stream = self.plan.stream()
        rows, reader = TopicRows(stream, self.context.brokers), TopicReader(self.context.brokers, stream.topic)
        for records in reader.follow(self.context.topics.ends(stream.topic)):
            if records.num_rows == 0:
                # A query that has failed writes no more: its error ends the changelog.
                expect_alive(self.context, self.plan)
            yield rows.decoded(records)

    def _until_idle(self) -> Iterator[pa.Table]:
        """Until the input there is now has been read: then all answers stand before the end of the topic."""
        stream = self.plan.stream()
        await_upstream(self.context, self.plan)
        rows, catch_up = TopicRows(stream, self.context.brokers), CatchUp(self.context, self.plan)
        position: PartitionOffsets = {}
        while True:
            complete = catch_up.is_complete()
            ends = (self.context.topics.quiescent_ends if complete else self.context.topics.ends)(stream.topic)
            for records in TopicReader(self.context.brokers, stream.topic, position).until(ends):
                yield rows.decoded(records)
            if complete:
                return
            position = ends
            # Whoever wants no more can say so meanwhile.
            yield rows.decoded(RECORDS.empty_table())
            time.sleep(_POLL_S)
