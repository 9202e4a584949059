"""WHY over topics in memory: a world of statements and rows, and what a trace says of one of its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import TIME
from dovetail.sql.catalog import What
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.nodes import LookupTable, Scan
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.planner import meeting_plan, stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Select, Why
from dovetail.sql.trace.answer import Traced, condition_terms, traced
from dovetail.sql.trace.demand import Values
from dovetail.sql.trace.inputs import Batch
from tests.conformance.memory import MemoryHost
from tests.conformance.topics import as_batch
from tests.sql.world import World


@dataclass
class MemoryInputs:
    """unused     topic -> offset -> why its record was not counted
    late        stream -> its late rows
    dictionary  name -> its rows
    """

    world: World
    columns: Mapping[str, tuple[str, ...]]
    unused: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    late_rows: Mapping[str, pa.Table] = field(default_factory=dict)
    dictionary: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def batches(self, scan: Scan) -> Iterator[Batch]:
        host = self.world.engine.host
        assert isinstance(host, MemoryHost)
        self.read.append(scan.topic)
        decoder = Decoder(scan.records or scan.stream, self.columns[scan.topic])
        reasons = self.unused.get(scan.topic, {})
        yield Batch.of(
            decoder,
            as_batch(host.topics[scan.topic].records),
            lambda _, offsets: pa.array([reasons.get(offset) for offset in offsets.tolist()], pa.string()),
        )

    def late(self, scan: Scan) -> pa.Table | None:
        return self.late_rows.get(scan.stream.name)

    def relation(self, name: str) -> pa.Table:
        return self.world.engine._content(name)  # noqa: SLF001

    def stream(self, name: str) -> Stream:
        return stream_of(self.world.engine.catalog, name)

    def looked_up(self, table: LookupTable, by: Sequence[str], keys: Sequence[Values]) -> pa.Table:
        rows = [row for row in self.dictionary[table.name] if tuple(row[name] for name in by) in keys]
        return pa.Table.from_pylist(rows, pa.schema([pa.field(one.name, one.type) for one in table.declared]))


@dataclass(frozen=True)
class Question:
    """A query over a world, planned once, to be asked about many contents of its topics."""

    world: World
    query: QueryPlan
    dialect: Dialect
    columns: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(world: World, text: str) -> Question:
        catalog = world.engine.catalog
        statement = parse_one(text)
        assert isinstance(statement, Select)
        columns: dict[str, tuple[str, ...]] = {}
        for relation in catalog.relations(What.STREAM):
            stream = stream_of(catalog, relation.name)
            columns[stream.topic] = tuple(dict.fromkeys((*(one.name for one in stream.schema.readable), TIME)))
        plan, dialect = meeting_plan("q", statement, catalog)
        return Question(world, plan, dialect, columns)

    def answered(self, where: str, **given: Any) -> Traced:
        condition = parse_one(f"WHY q WHERE {where}", self.dialect.rules)
        assert isinstance(condition, Why)
        inputs = MemoryInputs(self.world, self.columns, **given)
        return traced(self.query, condition_terms(condition.where, self.query, self.dialect), inputs)


def why(world: World, query: str, where: str, **given: Any) -> Traced:
    """What a trace of ``query`` says of its rows for which ``where`` holds."""
    return Question.of(world, query).answered(where, **given)


def places(lines: pa.Table) -> list[tuple[str, int, str]]:
    """Stream, offset and op of each record."""
    return [(row["stream"], row["offset"], row["op"]) for row in lines.to_pylist() if row["offset"] is not None]


def reasons(lines: pa.Table) -> list[tuple[str, int | None, str]]:
    """Stream, offset and reason of each line."""
    return [(row["stream"], row["offset"], row["reason"]) for row in lines.to_pylist()]
