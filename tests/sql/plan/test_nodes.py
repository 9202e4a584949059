"""A node answers for itself: one that no pass has heard of goes through all of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.sql.compile.dataflow import dataflow
from dovetail.sql.compile.transforms import transform_of
from dovetail.sql.expressions.evaluate import RowMap, quoted
from dovetail.sql.plan import nodes
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.explain import explain
from dovetail.sql.plan.fingerprint import fingerprint
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes import Chained, Join, Leaf, Node, Partitioned, RowByRow, Scan, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.planner import bound_query
from dovetail.sql.query_settings import checked
from dovetail.sql.rules import RULES
from tests.paths import ROOT
from tests.sql.planner import Planner
from tests.sql.world import select

MOST_KINDS = 12
"""A pass that tells more kinds of nodes apart asks what they should answer."""


@dataclass(frozen=True)
class Stranger(Chained):
    """The rows of its input, as they are."""

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys

    def pruned(self, needed: Set[str]) -> Node:
        return replace(self, input=self.input.pruned(needed))

    @property
    def line(self) -> str:
        return "Stranger  state: none"

    @property
    def canonical(self) -> Form:
        return members(node="stranger", input=self.input.canonical)


@transform_of.register
def _as_they_are(node: Stranger) -> RowMap:
    return RowMap(tuple((name, quoted(name)) for name in node.schema.names), node.schema)


DDL = (
    "CREATE STREAM trades (symbol string, price float64, at datetime64(3))",
    "CREATE STREAM quotes (symbol string, bid float64, at datetime64(3))",
    "CREATE MUTABLE STREAM orders (id int, customer int, symbol string) PRIMARY KEY id",
)
QUERIES = (
    "SELECT symbol, price * 2 AS twice FROM trades WHERE price > 1",
    "SELECT t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol AND q.bid > 1",
    (
        "SELECT t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol "
        "AND date_diff_within(10s, t.at, q.at)"
    ),
    "SELECT t.price, q.bid FROM trades AS t ASOF JOIN quotes AS q ON t.symbol = q.symbol AND t.at >= q.at",
    "SELECT window_start, count() AS n FROM tumble(trades, at, 1m) GROUP BY window_start",
    "SELECT symbol, count() AS n FROM orders GROUP BY symbol",
    (
        "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY id DESC) AS n FROM orders) AS o "
        "WHERE n = 1"
    ),
    "SELECT symbol FROM trades UNION ALL SELECT symbol FROM orders",
    "SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM quotes AS q WHERE q.symbol = o.symbol)",
    (
        "SELECT a.customer, b.id FROM orders AS a JOIN orders AS b ON a.customer = b.customer JOIN orders AS c "
        "ON b.customer = c.customer"
    ),
)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of(*DDL)


def over_scans(node: Node) -> Node:
    return Stranger(node) if isinstance(node, Scan) else rebuilt(node, over_scans)


def finished(planner: Planner, query: str, change: Callable[[Node], Node]) -> QueryPlan:
    statement = select(query)
    plan = bound_query("q", statement, planner.catalog, checked(statement.settings))
    plan = plan.with_rows(change(plan.rows))
    for rule in RULES:
        plan = rule(plan)
    return plan


@pytest.mark.parametrize("query", QUERIES)
def test_a_node_that_no_pass_knows_goes_through_all(planner: Planner, query: str) -> None:
    own, strange = finished(planner, query, lambda node: node), finished(planner, query, over_scans)
    assert own.output is not None
    assert strange.output is not None
    assert explain(strange.output).count("Stranger  state: none") >= 1
    assert fingerprint(strange.output) != fingerprint(own.output)
    made, plain = dataflow(strange.output), dataflow(own.output)
    assert made.sink.columns == plain.sink.columns
    assert {scan.topic for scan in made.scans} == {scan.topic for scan in plain.scans}


def test_its_rows_are_those_below_it(planner: Planner) -> None:
    scan = next(node for node in walked(finished(planner, QUERIES[1], lambda node: node)) if isinstance(node, Scan))
    stranger = Stranger(scan)
    names = ("updates", "retracts", "grows", "unique_keys", "nullable", "not_null", "output_watermark", "bucket_key")
    assert [getattr(stranger, name) for name in names] == [getattr(scan, name) for name in names]
    assert stranger.partition_key == scan.partition_key
    assert stranger.event_time(scan.column(f"{scan.alias}.symbol")) is not None


def walked(plan: QueryPlan) -> Iterator[Node]:
    assert plan.output is not None
    waiting = [plan.output.input]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.inputs)


@pytest.mark.parametrize("family", [Leaf, RowByRow, Chained, Partitioned])
def test_what_does_not_answer_cannot_be_made(family: type[Node]) -> None:
    assert inspect.isabstract(family)
    open_questions = family.__abstractmethods__
    for answered in open_questions:
        left = open_questions - {answered}
        lacking = type("Lacking", (family,), dict.fromkeys(left))
        with pytest.raises(TypeError, match=rf"abstract \w+ '?{answered}'?$"):
            lacking()


KINDS = sorted(
    (kind for kind in vars(nodes).values() if isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, Node)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not inspect.isabstract(kind)])
def test_a_node_has_a_file_of_its_own(kind: type[Node]) -> None:
    assert kind.__module__.rpartition(".")[2] == re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def kinds_matched(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """Of each function the kinds of nodes that it names."""
    names = {kind.__name__ for kind in KINDS}
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef):
            read = {node.id for statement in found.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
            yield found.name, names & read


@pytest.mark.parametrize("path", sorted((ROOT / "sql").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_pass_names_the_nodes_that_it_is_about(path: Path) -> None:
    found = dict(kinds_matched(ast.parse(path.read_text())))
    assert {name: kinds for name, kinds in found.items() if len(kinds) > MOST_KINDS} == {}


def test_a_pass_that_names_them_all_is_seen() -> None:
    text = "def f(node):\n    return " + ", ".join(kind.__name__ for kind in KINDS)
    ((name, kinds),) = kinds_matched(ast.parse(text))
    assert name == "f"
    assert len(kinds) > MOST_KINDS
    assert Join.__name__ in kinds
