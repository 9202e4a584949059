"""The memory engine: topics are lists, and views the operators of every host, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import cast

import pyarrow as pa

from dovetail.broker.address import BrokerAddress
from dovetail.broker.reader import TopicContent, all_columns
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.broker.topic_writer import TopicWriter
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Encoded
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.runtime.settings import read_settings
from dovetail.services.session import Session, topics
from dovetail.services.session.contents import relation_rows
from dovetail.services.session.context import Context, agreed
from dovetail.services.session.views import constant_view
from dovetail.sql.catalog import Catalog
from dovetail.sql.clock_table import CLOCK
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateView, Drop, Statement
from tests.conformance.host import Launch
from tests.conformance.lookups import Lookups
from tests.conformance.memory import MemoryHost
from tests.conformance.records import Record
from tests.conformance.topics import as_batch
from tests.sqllogictest.session import SuiteSession, ViewFailed


@dataclass(frozen=True)
class MemoryContext(Context):
    """What statements work with where the broker is ``host``."""

    host: MemoryHost = field(default_factory=MemoryHost)

    @cached_property
    def topics(self) -> TopicAdmin:
        return cast(TopicAdmin, MemoryTopics(self.host))

    @cached_property
    def writer(self) -> TopicWriter:
        return cast(TopicWriter, MemoryWriter(self))

    @cached_property
    def read(self) -> partial[TopicContent]:
        return partial(_content, self.host)


def _content(
    host: MemoryHost,
    schema: StreamSchema,
    topic: str,
    ends: PartitionOffsets,
    *,
    columns: tuple[str, ...] | None = None,
) -> TopicContent:
    """All of a topic: nothing asks for a part of it in a suite."""
    decoded = Decoder(schema, columns or all_columns(schema)).decode(as_batch(host.records(topic)))
    return TopicContent(content(schema, decoded.rows), ends[0], decoded.rejected.num_rows)


@dataclass(frozen=True)
class MemoryTopics:
    """What a session asks of ``TopicAdmin``; the id of a topic is its list."""

    host: MemoryHost

    def partitions(self) -> dict[str, int]:
        return dict.fromkeys(self.host.topics, 1)

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {topic: f"{id(self.host.topics[topic])}" for topic in topics if topic in self.host.topics}

    def create(self, topic: str, _shape: TopicShape) -> bool:
        made = topic not in self.host.topics
        self.host.create_topic(topic)
        return made

    def delete(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.host.topics.pop(topic, None)

    def ends(self, topic: str) -> PartitionOffsets:
        return {0: len(self.host.records(topic))}

    def begins(self, _topic: str) -> PartitionOffsets:
        return {0: 0}

    def ever_written(self, topic: str) -> bool:
        return topic in self.host.topics and self.ends(topic)[0] > 0

    def await_committed(self, _topic: str, _ends: Mapping[int, int]) -> None:
        """What is written is there."""


@dataclass(frozen=True)
class MemoryWriter:
    """What a session asks of ``TopicWriter``."""

    context: MemoryContext

    def write_whole(self, topic: str, records: Encoded) -> PartitionOffsets:
        now_ms = self.context.now_ms
        pairs = zip(records.keys, records.values, strict=True)
        self.context.host.send(topic, [Record(key, value, now_ms) for key, value in pairs])
        return self.context.topics.ends(topic)


class MemorySession(SuiteSession):
    """``batch_records``: so many of each topic at once in the batches of views."""

    def __init__(self, rules: Rules, batch_records: int | None = None) -> None:
        brokers, catalog = BrokerAddress(""), Catalog.open("sqlite://")
        self._host = MemoryHost(batch_records, history_records=batch_records)
        self._context = MemoryContext(read_settings(), catalog, brokers, confirm=agreed, host=self._host)
        self._catalog = catalog
        self._replaced: list[Lookups] = []
        session = Session(self._context.settings, catalog, brokers)
        session.context = self._context
        super().__init__(session, rules)

    def settle(self) -> None:
        for running in list(self._host.running.values()):
            self._advance(running.launch)

    def _advance(self, launch: Launch) -> None:
        """Its fragment takes in what there is; a view that ends with an error ends whole."""
        running = self._host.running.get(launch.name)
        try:
            while running is not None and running.advance(self._host.batch_records):
                pass
        except Exception as fault:
            self._stop(launch.view)
            raise ViewFailed(f"view {launch.view}: {type(fault).__name__}: {fault}") from fault

    def restart(self, view: str) -> None:
        """The view begins again from what it has made durable."""
        for name, running in self._host.running.items():
            if running.launch.view == view:
                self._host.restart(name)

    def close(self) -> None:
        for lookups in self._replaced:
            lookups.close()
        self._host.close()
        super().close()

    def _run(self, statement: Statement) -> pa.Table | None:
        if isinstance(statement, CreateView) and statement.materialized:
            self._create_view(statement)
            return None
        there = {relation.name for relation in self.relations}
        returned = super()._run(statement)
        if isinstance(statement, Drop):
            for name in there - {relation.name for relation in self.relations}:
                self._stop(name)
            self._renew_lookups()
        self.settle()
        return returned

    def _create_view(self, statement: CreateView) -> None:
        if self._catalog.find(statement.name) is not None and statement.if_not_exists:
            return
        self._catalog.expect_free(statement)
        plan = plan_query(statement.name, statement, self._catalog)
        if CLOCK in plan.reads and self._catalog.find(CLOCK) is None:
            # Nobody generates rows here: the clock has the time at which it was made.
            super()._run(parse_one(f"CREATE TABLE {CLOCK} (id int, now timestamptz, PRIMARY KEY (id))"))
            super()._run(parse_one(f"INSERT INTO {CLOCK} VALUES (0, now())"))
        self._catalog.expect_acyclic(statement, plan.uses)
        if plan.constant:
            constant_view(self._context, statement, plan)
            return
        if plan.output is None:
            raise Unsupported(f'the query of "{statement.name}" reads table(x) only, so it would end at once')
        self._catalog.create(statement, now_ms=self._context.now_ms, uses=plan.uses)
        try:
            self._launch(plan, statement.text)
        except ViewFailed as failure:
            self._take_back(plan)
            raise failure.__cause__ or failure from None
        except Exception:
            self._take_back(plan)
            raise

    def _launch(self, plan: Plan, text: str) -> None:
        for fragment in plan.fragments:
            topics.make(self._context, fragment.output.topic, TopicShape())
        for fragment in plan.fragments:
            in_spark = fragment.engine is Engine.SPARK
            names = fragment.dataflow.snapshots if in_spark else fragment.lookup_flow.snapshots
            snapshots = {name: relation_rows(self._context, name) for name in names}
            launch = Launch(fragment, plan.name, text, snapshots, self._catalog)
            self._host.launch(launch)
            self._advance(launch)
        self.settle()

    def _take_back(self, plan: Plan) -> None:
        self._stop(plan.name)
        self._catalog.drop(Drop("view", plan.name, cascade=True), now_ms=self._context.now_ms)
        topics.delete(self._context, [plan.name])

    def _stop(self, view: str) -> None:
        for name, running in list(self._host.running.items()):
            if running.launch.view == view:
                del self._host.running[name]
                if running.launch.topic != view:
                    topics.delete(self._context, [running.launch.topic])

    def _renew_lookups(self) -> None:
        """A table of a name that was dropped is another one; queries that run keep what they have."""
        if self._host.lookups is not None:
            self._replaced.append(self._host.lookups)
            folder = Path(mkdtemp(prefix="suite-", dir=self._host.folder))
            self._host.lookups = Lookups(self._host.topics, self._catalog, folder)
