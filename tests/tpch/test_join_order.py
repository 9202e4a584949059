"""TPC-H in the order of joins that its sizes give: chains of four, six and eight inputs, and two in one query."""

from __future__ import annotations

import pytest

from dovetail.sql.plan.join_order import orders_text
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.alterations import with_setting
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine
from tests.tpch.contents import SCHEMA, Contents, Oracle, query, rows_of
from tests.tpch.test_queries import FIRST, content, send

RECORDS = {
    "lineitem": 6_000_000,
    "orders": 1_500_000,
    "partsupp": 800_000,
    "part": 200_000,
    "customer": 150_000,
    "supplier": 10_000,
    "nation": 25,
    "region": 5,
}
"""Of scale factor 1."""


@pytest.mark.parametrize(
    ("name", "orders"),
    [
        (
            "q02",
            "(partsupp#2 (supplier#2 (nation#2 region#2))), (((part partsupp#2) partsupp) (supplier (nation region)))",
        ),
        ("q08", "(((part (lineitem (orders (customer (n1 region))))) supplier) n2)"),
        ("q09", "((((part lineitem) (supplier nation)) orders) partsupp)"),
        ("q21", "((supplier nation) (l1 orders))"),
    ],
)
def test_a_view_in_the_order_of_its_sizes_holds_what_duckdb_answers(name: str, orders: str) -> None:
    contents = Contents.of(FIRST + int(name[1:]))
    engine = SqlEngine(MemoryHost(rescaled=(3, 2)))
    for statement in SCHEMA:
        engine.create(statement)
    view = parse_one(f"CREATE MATERIALIZED VIEW {name} AS {query(name)}")
    assert isinstance(view, CreateView)
    plan = plan_query(name, view, engine.catalog, sizes=RECORDS.get)
    assert orders_text(tuple(one.tree for one in plan.orders)) == orders
    engine.create(with_setting(view, "join_order", orders).text)
    answers = []
    for batch in range(3):
        changes = contents.changes(60) if batch else [*contents.fixed(), *contents.changes(1400, deletes=0.05)]
        send(engine, list(changes))
        answers.append(rows_of(Oracle(contents).answer(query(name))))
        assert rows_of(content(engine, name)) == answers[-1]
    assert any(value is not None for answer in answers for row in answer for value in row), "no rows to compare"
