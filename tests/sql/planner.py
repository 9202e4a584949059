"""A catalog made of statements, and the plans of queries over it; nothing runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.sql.catalog import Catalog
from dovetail.sql.fragments import Fragment
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.query_settings import Value
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Select,
)


@dataclass
class Planner:
    catalog: Catalog = field(default_factory=lambda: Catalog.open("sqlite://"))

    @staticmethod
    def of(*statements: str) -> Planner:
        planner = Planner()
        for statement in statements:
            planner.create(statement)
        return planner

    def create(self, text: str) -> None:
        statement = parse_one(text)
        assert isinstance(statement, CreateStream | CreateView | CreateIndex | CreateDictionary | CreateFunction)
        self.catalog.create(statement, now_ms=0)

    def plan(self, query: str, **settings: Value) -> Plan:
        statement = parse_one(query)
        assert isinstance(statement, Select | CreateView)
        return plan_query("q", statement, self.catalog, settings)

    def only(self, query: str, **settings: Value) -> Fragment:
        """The fragment of a query that one engine runs."""
        (fragment,) = self.plan(query, **settings).fragments
        return fragment
