"""EXPLAIN of what other views keep already, by the catalog alone; nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.joins.host.activity import Activity
from dovetail.joins.state.holdings import Holding
from dovetail.runtime.settings import Settings
from dovetail.services.session import Session, Text
from dovetail.services.session.across_views.elsewhere import created_elsewhere
from dovetail.sql.catalog import Catalog, Desired
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

DDL = (
    "CREATE TABLE orders (id INT, customer INT, amount INT, PRIMARY KEY (id))",
    "CREATE TABLE users (id INT, name VARCHAR, city VARCHAR, PRIMARY KEY (id))",
)
JOIN = "FROM orders AS o JOIN users AS u ON o.customer = u.id"
BY = "SELECT u.{0} AS {0}, sum(o.amount) AS total " + JOIN + " GROUP BY u.{0}"
WHOLE = f"SELECT o.id AS id, o.amount AS amount, u.name AS name, u.city AS city {JOIN}"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(
        Settings(), Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}"), BrokerAddress("127.0.0.1:1")
    ) as opened:
        for text in DDL:
            statement = parse_one(text)
            assert isinstance(statement, CreateStream)
            opened.context.catalog.create(statement, now_ms=0)
        yield opened


def create(session: Session, name: str, query: str) -> Plan:
    """As CREATE leaves it in the catalog; noted as an older release would have: not at all."""
    statement, catalog = parse_one(f"CREATE MATERIALIZED VIEW {name} AS {query}"), session.context.catalog
    assert isinstance(statement, CreateView)
    plan = plan_query(name, statement, catalog)
    *upstream, query_of_view = queries_of(plan, statement.text)
    catalog.create(statement, now_ms=0, uses=plan.uses, query=query_of_view, upstream=upstream)
    return plan


def holding(rows: int) -> Holding:
    return Holding(rows=rows, bytes=rows, keys=(rows, rows), fan_out=1, top=())


def said(session: Session, statement: str) -> list[str]:
    (result,) = session.run(statement)
    assert isinstance(result, Text)
    return [part for part in result.text.split("\n\n") if part.startswith("kept elsewhere: ")]


def test_explain_of_a_query_and_of_a_view(session: Session) -> None:
    create(session, "by_city", BY.format("city"))
    query = session.context.catalog.query("by_city")
    activity = Activity(held={"1.left": {0: holding(30)}, "1.right": {0: holding(12)}})
    session.context.catalog.report(query.id, now_ms=0, progress={"activity": activity.document()})
    (one,) = said(session, f"EXPLAIN {BY.format('name')}")
    told, proposed = one.splitlines()
    assert told == (
        "kept elsewhere: the join of orders and users is kept by the view by_city too (42 rows held): as a view of its "
        "own, which all of them read, it would be kept once"
    )
    assert proposed.startswith("CREATE MATERIALIZED VIEW orders_users AS SELECT o.amount AS amount, u.name AS name, u.")
    assert said(session, "EXPLAIN by_city") == []
    create(session, "enriched", WHOLE)
    assert "is the view enriched:" in said(session, f"EXPLAIN {BY.format('name')}")[0]
    assert "created anew, FROM this view" in said(session, "EXPLAIN enriched")[0]
    assert said(session, "EXPLAIN SELECT count(*) AS n FROM enriched") == []


def test_the_answer_to_create_notes_what_the_view_keeps(session: Session) -> None:
    catalog = session.context.catalog
    assert created_elsewhere(session.context, create(session, "by_city", BY.format("city"))) == ()
    assert catalog.views_not_noted() == []
    told = created_elsewhere(session.context, create(session, "by_name", BY.format("name")))
    assert told == (
        "the join of orders and users is kept by the view by_city too: EXPLAIN by_name says how to keep it once",
    )


def test_views_of_before_are_noted_when_somebody_asks(session: Session) -> None:
    create(session, "by_city", BY.format("city"))
    create(session, "flat", "SELECT id, amount FROM orders WHERE amount > 1")
    assert session.context.catalog.views_not_noted() == ["by_city", "flat"]
    assert len(said(session, f"EXPLAIN {BY.format('name')}")) == 1
    assert session.context.catalog.views_not_noted() == []


def test_a_view_that_is_dropped_is_not_told_of(session: Session) -> None:
    create(session, "by_city", BY.format("city"))
    assert len(said(session, f"EXPLAIN {BY.format('name')}")) == 1
    query = session.context.catalog.query("by_city")
    session.context.catalog.want("by_city", Desired.DROPPED, now_ms=0)
    assert said(session, f"EXPLAIN {BY.format('name')}") == []
    session.context.catalog.forget_query(query.id)
    assert said(session, f"EXPLAIN {BY.format('name')}") == []


def test_a_view_that_cannot_be_planned_any_more_is_passed_over(session: Session) -> None:
    create(session, "by_city", BY.format("city"))
    create(session, "by_id", f"SELECT u.id AS id, max(o.amount) AS most {JOIN} GROUP BY u.id")
    assert "by_city and by_id" in said(session, f"EXPLAIN {BY.format('name')}")[0]
    narrow = parse_one("CREATE TABLE users (id INT, name VARCHAR, PRIMARY KEY (id))")
    assert isinstance(narrow, CreateStream)
    catalog = session.context.catalog
    catalog.redefine(catalog.get("users"), narrow.text)
    (one,) = said(session, f"EXPLAIN {BY.format('name')}")
    assert "by the view by_id too" in one


def test_of_many_views_a_few_are_compared(session: Session) -> None:
    for number in range(15):
        create(session, f"v{number}", f"SELECT u.city AS city, sum(o.amount + {number}) AS n {JOIN} GROUP BY u.city")
    told = said(session, f"EXPLAIN {BY.format('name')}")
    assert "v0, v1, " in told[0]
    assert told[1] == "kept elsewhere: 3 more views may keep some of it, and were not compared"
