"""A small world for tests of planning: a catalog made of statements, queries in memory, what they should hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.sql.bind.bounded.bounded_query import snapshot_of
from dovetail.sql.bind.reading import reading
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.planner import Plan, plan_query, recompute
from dovetail.sql.query_settings import Value
from dovetail.sql.relations import TrackedCatalog
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import CreateStream, CreateView, Select
from tests.conformance.memory import MemoryHost
from tests.conformance.planned_once import parsed_once, planned_once
from tests.conformance.sql_engine import SqlEngine

Row = dict[str, object]


@dataclass
class World:
    """``create`` and ``plan`` ask the catalog only; ``run`` starts a query in memory."""

    engine: SqlEngine = field(default_factory=lambda: SqlEngine(MemoryHost()))
    net: Counter[tuple[object, ...]] = field(default_factory=Counter)

    @staticmethod
    def of(*statements: str) -> World:
        world = World()
        for statement in statements:
            world.engine.create(statement)
        return world

    def plan(self, query: str, **settings: Value) -> Plan:
        return plan_query("q", select(query), self.engine.catalog, settings)

    def explain(self, query: str, **settings: Value) -> str:
        return self.plan(query, **settings).explain()

    def start(self, query: str, **settings: Value) -> None:
        self.engine.start(query, settings)

    def insert(self, table: str, *rows: Row) -> None:
        self.engine.insert(table, list(rows))

    def delete(self, table: str, *rows: Row) -> None:
        self.engine.delete(table, list(rows))

    def drain(self) -> list[tuple[Mapping[str, object], int]]:
        """The changes since the last drain; ``net`` adds them up."""
        changes = [(change.row, change.delta) for change in self.engine.drain()]
        for row, delta in changes:
            self.net[values(row)] += delta
        return changes

    def table(self) -> Counter[tuple[object, ...]]:
        """What all changes add up to."""
        return Counter({row: count for row, count in self.net.items() if count})

    def recomputed(self, query: str) -> Counter[tuple[object, ...]]:
        """What DuckDB makes of the plan of the same query over the content of its inputs."""
        key = ("recomputed", self.engine.made, query)
        return self._answered(planned_once(key, lambda: recompute("q", select(query), self.engine.catalog)))

    def over_content(self, query: str) -> Counter[tuple[object, ...]]:
        """The same query bound as one over ``table(x)``: every stream is its content."""
        return self._answered(planned_once(("content", self.engine.made, query), lambda: self._over_content(query)))

    def _over_content(self, query: str) -> Snapshot:
        catalog = TrackedCatalog.of(self.engine.catalog)
        written, dialect = reading(select(query), catalog)
        return snapshot_of(written, catalog, lambda view: plan_query(view.name, view, catalog).stream(), dialect)

    def _answered(self, snapshot: Snapshot) -> Counter[tuple[object, ...]]:
        return Counter(values(row) for row in self.engine._answered(snapshot))  # noqa: SLF001


def values(row: Mapping[str, object]) -> tuple[object, ...]:
    """The values of a row, so that it can be counted: a list as a tuple."""
    return tuple(tuple(value) if isinstance(value, list) else value for value in row.values())


def select(query: str) -> Select:
    statement = parsed_once(query)
    assert isinstance(statement, Select)
    return statement


def statements(text: str) -> Sequence[CreateStream | CreateView]:
    return [one for one in parse(text) if isinstance(one, CreateStream | CreateView)]
