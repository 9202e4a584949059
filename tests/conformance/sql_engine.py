"""An engine: the SQL front over a host of topics and dataflows."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import encode
from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import TIME, StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.sql.catalog import Catalog, What
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.query_settings import Value
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Select,
    System,
)
from tests.conformance.case import Row, Wait
from tests.conformance.engine import Change, NotRunnable
from tests.conformance.external import External
from tests.conformance.heartbeats import greatest, heartbeats, reach
from tests.conformance.host import Host, Launch
from tests.conformance.planned_once import parsed_once, planned_once
from tests.conformance.records import Record, decoded, deleted, inserted, updated
from tests.conformance.topics import as_batch

QUERY = "conformance_query"


def _catalog() -> Catalog:
    return Catalog.open("sqlite://")


@dataclass
class SqlEngine:
    """One case's world. ``seen`` counts the output records that earlier drains have handed out.

    lookup_tables  names of tables that live in an external database
    made           the statements that made the catalog
    """

    host: Host
    lookup_tables: Collection[str] = ()
    catalog: Catalog = field(default_factory=_catalog)
    plan: Plan | None = None
    answer: list[Change] = field(default_factory=list)
    seen: int = 0
    made: tuple[str, ...] = ()
    launched: list[Dataflow] = field(default_factory=list)
    """What Spark runs of all queries, upstream first."""
    _streams: dict[str, Stream] = field(default_factory=dict)
    """As they were declared: each row that is sent asks for that of its table."""

    @cached_property
    def external(self) -> External:
        return External(self.host.databases, self.host.prefix)

    # -- tables --

    def create(self, statement: str) -> None:
        definition = parsed_once(statement)
        if isinstance(definition, CreateStream) and definition.name in self.lookup_tables:
            definition = parse_one(self.external.table(definition))
        elif isinstance(definition, CreateDictionary):
            definition = parse_one(self.external.dictionary(definition))
        if not isinstance(definition, CreateStream | CreateView | CreateIndex | CreateDictionary | CreateFunction):
            raise NotRunnable("only CREATE statements make a table", where=statement)
        if isinstance(definition, CreateStream):
            self.host.create_topic(Stream.declared(definition).topic)
        plan = None
        if isinstance(definition, CreateView) and definition.materialized:
            plan = self._planned(definition.name, definition)
        written = None if plan is None or plan.bounded else plan.stream()
        self.catalog.create(definition, now_ms=_now_ms(), written=written)
        self.made = (*self.made, definition.text)
        self._streams.clear()
        if plan is not None:
            self._launch(plan, statement)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self._send(table, inserted(self._schema(table), rows))

    def update(self, table: str, pairs: Sequence[tuple[Row, Row]]) -> None:
        self._send(table, updated(self._schema(table), pairs))

    def delete(self, table: str, rows: Sequence[Row]) -> None:
        self._send(table, deleted(self._schema(table), rows))

    def source(self, table: str, rows: Sequence[Row], deleted: Sequence[Row]) -> None:
        self.external.change(table, rows, deleted)

    def run(self, statement: str) -> None:
        command = parse_one(statement)
        if not isinstance(command, System):
            raise NotRunnable("only SYSTEM statements are run while the query runs", where=statement)
        self.host.run(command)

    def _send(self, table: str, records: Iterable[Record]) -> None:
        self.host.send(self._stream(table).topic, records)

    def _schema(self, table: str) -> StreamSchema:
        return self._stream(table).schema

    def _stream(self, name: str) -> Stream:
        if name not in self._streams:
            self._streams[name] = self._declared(name)
        return self._streams[name]

    def _declared(self, name: str) -> Stream:
        definition = self.catalog.get(name).definition
        if isinstance(definition, CreateStream):
            return Stream.declared(definition)
        if isinstance(definition, CreateView):
            return self._planned(name, definition).stream()
        raise NotRunnable(f"{name} has no topic")

    # -- the query --

    def start(self, query: str, settings: Mapping[str, Value]) -> None:
        self.plan = self._planned(QUERY, _select(query), settings)
        if self.plan.snapshot is not None:
            self.answer = [Change(row, 1) for row in self._answered(self.plan.snapshot)]
        else:
            self._launch(self.plan, with_settings(query, settings))

    def _planned(self, name: str, query: Select | CreateView, settings: Mapping[str, Value] | None = None) -> Plan:
        key = (self.made, name, query.text, repr(settings or {}))
        return planned_once(key, lambda: plan_query(name, query, self.catalog, settings))

    def _launch(self, plan: Plan, text: str) -> None:
        """Start the fragments, upstream first; the topics between them have no records yet."""
        if plan.output is None:
            raise InternalError("a bounded query is not launched")
        for fragment in plan.fragments:
            self.host.create_topic(fragment.output.topic)
        for fragment in plan.fragments:
            spark = fragment.engine is Engine.SPARK
            names = fragment.dataflow.snapshots if spark else fragment.lookup_flow.snapshots
            snapshots = {name: self._content(name) for name in names}
            self.host.launch(Launch(fragment, plan.name, text, snapshots, self.catalog))
            self.launched += [fragment.dataflow] if spark else []

    def drain(self) -> list[Change]:
        self.host.settle()
        changes, self.answer = self.answer, []
        if self.plan is None or self.plan.output is None:
            return changes
        records = self.host.records(self.plan.output.topic)
        fresh, self.seen = records[self.seen :], len(records)
        return changes + [Change(*decoded(record.value)) for record in fresh if record.value is not None]

    def restart(self) -> None:
        if self.plan is None:
            raise NotRunnable("there is no query to restart")
        for fragment in self.plan.fragments:
            self.host.restart(fragment.name)

    def wait(self, kind: Wait) -> None:
        if kind is Wait.WATERMARK:
            self._push_watermarks()
        if kind is Wait.TTL:
            self.host.pass_time(1000 * max(self._ttls_s(), default=0) + 1000)

    def _push_watermarks(self) -> None:
        """Heartbeats for one dataflow after the other: what leaves one must not come late into the next."""
        self.host.settle()
        times, distance = greatest(self.launched, self.host.records), reach(self.launched)
        until = {whole: time + distance[whole] + 1 for whole, time in times.items()}
        for dataflow in self.launched:
            for topic, timestamp_ms in heartbeats(dataflow, until).items():
                self.host.send(topic, [Record(None, None, timestamp_ms)])
            self.host.settle()

    def _ttls_s(self) -> Iterator[int]:
        for relation in self.catalog.relations(What.DICTIONARY):
            definition = relation.definition
            assert isinstance(definition, CreateDictionary)
            yield int(definition.layout.parameters.get("ttl", 0))

    # -- bounded queries --

    def snapshot(self, query: str) -> list[Row]:
        plan = plan_query(QUERY, _select(query), self.catalog)
        if plan.snapshot is None:
            raise NotRunnable("this query has no end", where=query, fix="read table(x)")
        return self._answered(plan.snapshot)

    def _answered(self, snapshot: Snapshot) -> list[Row]:
        rows = snapshot.run({name: self._content(name) for name in snapshot.relations})
        encoded = encode(Changes.of(rows).table, tuple(snapshot.columns), (), updating=False)
        return [decoded(value)[0] for value in encoded.values if value is not None]

    def _content(self, name: str) -> pa.Table:
        """What ``table(name)`` holds now."""
        stream = self._stream(name)
        declared = tuple(column.name for column in stream.schema.columns)
        decoder = Decoder(stream.schema, declared if TIME in declared else (*declared, TIME))
        return content(stream.schema, decoder.decode(as_batch(self.host.records(stream.topic))).rows)

    def close(self) -> None:
        if "external" in vars(self):
            self.external.close()
        self.host.close()
        self.catalog.close()


def _select(query: str) -> Select:
    statement = parsed_once(query)
    if not isinstance(statement, Select):
        raise NotRunnable("the query of a case is one SELECT", where=query)
    return statement


def with_settings(query: str, settings: Mapping[str, Value]) -> str:
    """The text of a query that has the settings of its case, as a process needs it that reads nothing but the text."""
    if not settings:
        return query
    listed = ", ".join(f"{name} = {_literal(value)}" for name, value in settings.items())
    return f"{query}, {listed}" if "SETTINGS" in query.upper() else f"{query} SETTINGS {listed}"


def _literal(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
