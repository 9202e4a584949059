"""An engine: the SQL front over a host of topics and dataflows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from changelog.changes import Changes
from changelog.decode import Decoder
from changelog.encode import encode
from changelog.errors import InternalError
from changelog.schema import TIME, StreamSchema
from changelog.topic_content import content
from sql.catalog import Catalog
from sql.parse import parse_one
from sql.query import Plan, plan_query
from sql.relations import Stream
from sql.settings import Value
from sql.snapshot import Snapshot
from sql.statements import CreateDictionary, CreateIndex, CreateStream, CreateView, Select
from tests.conformance.case import Row, Wait
from tests.conformance.engine import Change, NotRunnable
from tests.conformance.host import Host, Launch
from tests.conformance.records import Record, decoded, deleted, inserted, updated
from tests.conformance.topics import as_batch

QUERY = "conformance_query"


def _catalog() -> Catalog:
    return Catalog.open("sqlite://")


@dataclass
class SqlEngine:
    """One case's world. ``seen`` counts the output records that earlier drains have handed out."""

    host: Host
    catalog: Catalog = field(default_factory=_catalog)
    plan: Plan | None = None
    answer: list[Change] = field(default_factory=list)
    seen: int = 0

    # -- tables --

    def create(self, statement: str) -> None:
        definition = parse_one(statement)
        if not isinstance(definition, CreateStream | CreateView | CreateIndex | CreateDictionary):
            raise NotRunnable("only CREATE statements make a table", where=statement)
        if isinstance(definition, CreateStream):
            self.host.create_topic(Stream.declared(definition).topic)
        self.catalog.create(definition, now_ms=_now_ms())
        if isinstance(definition, CreateView) and definition.materialized:
            self._launch(plan_query(definition.name, definition, self.catalog))

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self._send(table, inserted(self._schema(table), rows))

    def update(self, table: str, pairs: Sequence[tuple[Row, Row]]) -> None:
        self._send(table, updated(self._schema(table), pairs))

    def delete(self, table: str, rows: Sequence[Row]) -> None:
        self._send(table, deleted(self._schema(table), rows))

    def source(self, table: str, rows: Sequence[Row], deleted: Sequence[Row]) -> None:
        raise NotRunnable(f"no external database holds the table {table}")

    def run(self, statement: str) -> None:
        raise NotRunnable("no statement can be run while the query runs", where=statement)

    def _send(self, table: str, records: Iterable[Record]) -> None:
        self.host.send(self._stream(table).topic, records)

    def _schema(self, table: str) -> StreamSchema:
        return self._stream(table).schema

    def _stream(self, name: str) -> Stream:
        definition = self.catalog.get(name).definition
        if isinstance(definition, CreateStream):
            return Stream.declared(definition)
        if isinstance(definition, CreateView):
            return plan_query(name, definition, self.catalog).stream()
        raise NotRunnable(f"{name} has no topic")

    # -- the query --

    def start(self, query: str, settings: Mapping[str, Value]) -> None:
        self.plan = plan_query(QUERY, _select(query), self.catalog, settings)
        if self.plan.snapshot is not None:
            self.answer = [Change(row, 1) for row in self._answered(self.plan.snapshot)]
        else:
            self._launch(self.plan)

    def _launch(self, plan: Plan) -> None:
        if plan.output is None:
            raise InternalError("a bounded query is not launched")
        self.host.create_topic(plan.output.topic)
        snapshots = {name: self._content(name) for name in plan.dataflow.snapshots}
        launch = Launch(plan.name, plan.dataflow, plan.output.topic, plan.explain(), plan.fingerprint, snapshots)
        self.host.launch(launch)

    def drain(self) -> list[Change]:
        self.host.settle()
        changes, self.answer = self.answer, []
        if self.plan is None or self.plan.output is None:
            return changes
        records = self.host.records(self.plan.output.topic)
        fresh, self.seen = records[self.seen :], len(records)
        return changes + [Change(*decoded(record.value)) for record in fresh if record.value is not None]

    def restart(self) -> None:
        self.host.restart(QUERY)

    def wait(self, kind: Wait) -> None:
        if kind is Wait.WATERMARK:
            raise NotRunnable("the watermark cannot be pushed from outside")

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
        self.host.close()
        self.catalog.close()


def _select(query: str) -> Select:
    statement = parse_one(query)
    if not isinstance(statement, Select):
        raise NotRunnable("the query of a case is one SELECT", where=query)
    return statement


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
