"""The answers that are JSON, as OpenAPI shows them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from dovetail.services.role import Role


class JsonAnswer(BaseModel, extra="forbid"):
    """Has these members and no other."""


class ListedColumn(JsonAnswer):
    name: str
    type: str


class ListingAnswer(JsonAnswer):
    columns: list[ListedColumn]
    rows: list[dict[str, Any]]


class RelationAnswer(JsonAnswer):
    """``columns`` are the rows of DESCRIBE."""

    name: str
    kind: str
    definition: str
    columns: list[dict[str, Any]]
    reads: list[str]
    read_by: list[str]


class PlanAnswer(JsonAnswer):
    """``queries``: those of the view, each as EXPLAIN ANALYZE FORMAT JSON has it."""

    name: str
    queries: list[dict[str, Any]]


class PlanNode(JsonAnswer):
    node: str
    inputs: list[PlanNode]


class PlanFragment(JsonAnswer):
    name: str
    engine: str
    plan: PlanNode


class ExplainAnswer(JsonAnswer):
    text: str
    fragments: list[PlanFragment]
    warnings: list[str]


class GraphNode(BaseModel):
    """A node that a query makes has the state of that, and where it stands."""

    name: str
    kind: str


class GraphEdge(JsonAnswer):
    used: str = Field(alias="from")
    user: str = Field(alias="to")


class GraphAnswer(JsonAnswer):
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class HistoryAnswer(JsonAnswer):
    """``topics``: records a second. ``trouble``: what keeps the server from looking, or nothing."""

    now_ms: int
    every_s: float
    trouble: str
    queries: list[dict[str, Any]]
    topics: dict[str, float | None]


class SeriesAnswer(JsonAnswer):
    """``series``: figure, and its values at ``at_ms``; null where one is not known."""

    name: str
    now_ms: int
    series: dict[str, list[float | bool | None]]


class UserAnswer(JsonAnswer):
    """``open``: whether no user was ever added."""

    name: str
    role: Role
    open: bool


class RefreshAnswer(JsonAnswer):
    name: str
    keys: list[str] | None
    workers: int


class WaitAnswer(JsonAnswer):
    """``ends``: partition, and where it ended."""

    name: str
    topic: str
    ends: dict[int, int]


class HealthAnswer(JsonAnswer):
    healthy: bool


class ReadyAnswer(JsonAnswer):
    ready: bool
