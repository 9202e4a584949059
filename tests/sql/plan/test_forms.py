"""The form of a column's texts goes where its values go: through subqueries, joins, groups, views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.written_streams import as_text, of_text
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView, Select

TABLE = "CREATE TABLE t (k int PRIMARY KEY, j jsonb, i interval, u uuid, s varchar, at timestamp)"
FORMS = {"j": "jsonb", "i": "interval", "u": "uuid"}


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    opened = Catalog.open("sqlite://")
    table, view = parse_one(TABLE), parse_one("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    assert isinstance(table, CreateStream)
    assert isinstance(view, CreateView)
    opened.create(table, now_ms=0)
    opened.create(view, now_ms=0, written=plan_query("v", view, opened).stream())
    yield opened
    opened.close()


def planned(query: str, catalog: Catalog) -> Plan:
    statement = parse_one(query)
    assert isinstance(statement, Select)
    return plan_query("q", statement, catalog)


@pytest.mark.parametrize(
    ("query", "forms"),
    [
        ("SELECT j, i, u, s FROM t", FORMS),
        ("SELECT * FROM v", FORMS),
        ("SELECT a AS j, b AS i FROM (SELECT j AS a, i AS b FROM v) AS x", {"j": "jsonb", "i": "interval"}),
        ("WITH x AS (SELECT * FROM t) SELECT j, u FROM x", {"j": "jsonb", "u": "uuid"}),
        ("SELECT a.j, b.i FROM t AS a LEFT JOIN v AS b ON a.k = b.k", {"j": "jsonb", "i": "interval"}),
        ("SELECT j FROM t JOIN v USING (j)", {"j": "jsonb"}),
        ("SELECT j, i, count(*) AS n FROM t GROUP BY j, i", {"j": "jsonb", "i": "interval"}),
        ("SELECT DISTINCT i, j FROM v", {"j": "jsonb", "i": "interval"}),
        ("SELECT j FROM t UNION ALL SELECT j FROM v", {"j": "jsonb"}),
        ("SELECT j, i FROM t ORDER BY k LIMIT 3", {"j": "jsonb", "i": "interval"}),
        (
            "SELECT j -> 'a' AS j, j ->> 'a' AS s, at - at AS i, s::jsonb AS d FROM t",
            {"j": "jsonb", "i": "interval", "d": "jsonb"},
        ),
        ("SELECT max(i) AS m, sum(i) AS i, jsonb_agg(s) AS j FROM t", {"m": "interval", "i": "interval", "j": "jsonb"}),
        ("SELECT k, lag(i) OVER (PARTITION BY s ORDER BY k) AS b FROM t", {"b": "interval"}),
        ("SELECT k, (SELECT max(i) FROM v) AS m FROM t", {"m": "interval"}),
        ("SELECT coalesce(i, '1 day') AS i, i::varchar AS s, j::varchar AS j FROM t", {"i": "interval"}),
        ("SELECT t.k, x.i AS i FROM t JOIN table(v) AS x ON t.k = x.k", {"i": "interval"}),
    ],
)
def test_a_column_has_the_form_of_its_values(query: str, forms: dict[str, str], catalog: Catalog) -> None:
    stream = planned(query, catalog).stream()
    assert {column.name: column.form for column in stream.schema.columns if column.form} == forms
    assert of_text("q", as_text(stream)).schema.columns == stream.schema.columns


def test_what_a_view_has_written_is_not_looked_at_again(catalog: Catalog) -> None:
    of_table, of_view = (
        planned(f"SELECT j, i FROM {name}", catalog).dataflow.scans[0].stream.columns for name in ("t", "v")
    )
    assert {column.form for column in of_table} == {*FORMS.values(), ""}
    assert {column.form for column in of_view} == {""}
