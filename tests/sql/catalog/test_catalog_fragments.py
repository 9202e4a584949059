"""The catalog: a query in several fragments, and the workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.sql.catalog import Catalog, Desired, Query, Worker
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Drop
from tests.sql.lookup_world import DDL
from tests.sql.planner import Planner

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT price FROM orders JOIN payments USING (oid) JOIN goods USING (pid)"


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    planner = Planner.of(*DDL)
    yield planner.catalog
    planner.catalog.close()


def create(catalog: Catalog) -> Query:
    statement = parse_one(VIEW)
    assert isinstance(statement, CreateView)
    plan = plan_query("v", statement, catalog)
    *upstream, last = queries_of(plan, VIEW)
    _, made = catalog.create(statement, now_ms=1, uses=plan.reads, query=last, upstream=upstream)
    assert made is not None
    return made


def test_a_view_in_fragments(catalog: Catalog) -> None:
    made = create(catalog)
    assert (made.name, made.engine, made.view) == ("v", "faust", "v")
    assert [(one.name, one.engine, one.view) for one in catalog.fragments("v")] == [
        ("v.f1", "spark", "v"),
        ("v", "faust", "v"),
    ]
    assert {user.name for user in catalog.users("goods")} == {"v"}


def test_a_wish_is_for_all_fragments(catalog: Catalog) -> None:
    create(catalog)
    wanted = catalog.want("v", Desired.PAUSED, now_ms=2)
    assert (wanted.name, wanted.desired) == ("v", Desired.PAUSED)
    assert {query.desired for query in catalog.queries()} == {Desired.PAUSED}
    catalog.want("v", Desired.DROPPED, now_ms=3)
    assert catalog.queries() == []
    assert len(catalog.queries(dropped=True)) == 2


def test_all_fragments_go_with_the_view(catalog: Catalog) -> None:
    create(catalog)
    drop = parse_one("DROP VIEW v")
    assert isinstance(drop, Drop)
    catalog.drop(drop, now_ms=2)
    assert {query.desired for query in catalog.queries(dropped=True)} == {Desired.DROPPED}
    assert create(catalog).view == "v"
    assert len(catalog.fragments("v")) == 2


def test_a_select_in_fragments(catalog: Catalog) -> None:
    below, last = Query("a.f1", "", "", "", "a.f1", view="a"), Query("a", "", "", "", "a", engine="faust", view="a")
    assert catalog.add_query(last, now_ms=1, upstream=[below]).name == "a"
    assert [query.name for query in catalog.fragments("a")] == ["a.f1", "a"]
    catalog.add_query(Query("b", "", "", "", "b"), now_ms=1)
    assert [query.view for query in catalog.fragments("b")] == ["b"]


def test_workers(catalog: Catalog) -> None:
    catalog.worker_seen(Worker("w2", "host", 7, "127.0.0.1:9000", ("v",), 5), now_ms=10)
    catalog.worker_seen(Worker("w1", "host", 8), now_ms=20)
    assert [worker.id for worker in catalog.workers(since_ms=0)] == ["w1", "w2"]
    assert [worker.id for worker in catalog.workers(since_ms=15)] == ["w1"]
    catalog.worker_seen(Worker("w2", "host", 7, "127.0.0.1:9000", ("v", "w"), 5), now_ms=30)
    (worker,) = catalog.workers(since_ms=25)
    assert worker == Worker("w2", "host", 7, "127.0.0.1:9000", ("v", "w"), 5, 30)
    catalog.worker_gone("w2")
    catalog.worker_gone("w2")
    assert [worker.id for worker in catalog.workers(since_ms=0)] == ["w1"]


def test_a_catalog_of_before_there_were_fragments(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    catalog = Catalog.open(url)
    catalog.add_query(Query("a", "", "", "", "a"), now_ms=1)
    catalog.close()
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("ALTER TABLE queries DROP COLUMN engine")
        connection.execute("ALTER TABLE queries DROP COLUMN view")
        connection.execute("ALTER TABLE queries DROP COLUMN lease_ms")
    catalog = Catalog.open(url)
    (query,) = catalog.fragments("a")
    assert (query.engine, query.view) == ("spark", "a")
    catalog.close()
    Catalog.open(url).close()
