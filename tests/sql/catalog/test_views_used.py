"""A plain view stands in a query by its own: it stays as long as a view that is made of it."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import Unsupported
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView, Drop

DDL = """
CREATE STREAM visits (page string, n int);
CREATE TABLE pages (page VARCHAR, site INT, PRIMARY KEY (page));
CREATE VIEW busy AS SELECT page, n FROM visits WHERE n > 10;
CREATE VIEW busy_pages AS SELECT page FROM busy;
CREATE MATERIALIZED VIEW sited AS
SELECT p.page AS page, site FROM pages AS p WHERE p.page IN (SELECT page FROM busy_pages);
CREATE VIEW content AS SELECT count() AS c FROM table(visits) WHERE page IN (SELECT page FROM table(busy));
CREATE MATERIALIZED VIEW other AS WITH busy AS (SELECT page FROM visits) SELECT page FROM busy;
CREATE MATERIALIZED VIEW per_page AS SELECT page, count() AS c FROM TUMBLE(visits, 1m) GROUP BY page, window_start;
"""


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog.open("sqlite://")
    for statement in parse(DDL):
        if isinstance(statement, CreateView):
            catalog.create(statement, now_ms=0, uses=plan_query(statement.name, statement, catalog).uses)
        else:
            assert isinstance(statement, CreateStream)
            catalog.create(statement, now_ms=0)
    return catalog


def drop(catalog: Catalog, text: str) -> list[str]:
    statement = parse_one(text)
    assert isinstance(statement, Drop)
    return [relation.name for relation in catalog.drop(statement, now_ms=1)]


def test_a_view_names_all_that_it_is_made_of(catalog: Catalog) -> None:
    assert sorted(catalog.used("sited")) == ["busy", "busy_pages", "pages", "visits"]
    assert sorted(catalog.used("content")) == ["busy", "visits"]
    assert catalog.used("other") == ["visits"]


def test_a_view_that_others_are_made_of_stays(catalog: Catalog) -> None:
    with pytest.raises(Unsupported, match='the view "busy" is used by busy_pages, sited, content') as caught:
        drop(catalog, "DROP VIEW busy")
    assert caught.value.fix == "drop busy_pages, sited, content first, or DROP VIEW busy CASCADE"
    with pytest.raises(Unsupported, match='the view "busy_pages" is used by sited'):
        drop(catalog, "DROP VIEW busy_pages")
    for name in ("content", "sited", "busy_pages", "busy"):
        assert drop(catalog, f"DROP VIEW {name}") == [name]


def test_all_go_with_it_where_that_is_said(catalog: Catalog) -> None:
    assert drop(catalog, "DROP VIEW busy CASCADE") == ["sited", "busy_pages", "content", "busy"]
