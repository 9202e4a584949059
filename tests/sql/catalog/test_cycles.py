"""A view that would be made of its own rows is refused, with the way that they would go."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import Unsupported
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

CYCLES = {
    "CREATE OR REPLACE MATERIALIZED VIEW first AS SELECT k FROM second": "first → second → first",
    "CREATE OR REPLACE MATERIALIZED VIEW first AS SELECT a.k FROM second AS a JOIN beside AS b ON a.k = b.k": "first → "
    "second → first",
    "CREATE MATERIALIZED VIEW back INTO s AS SELECT k FROM beside": "s → first → beside → back → s",
    "CREATE MATERIALIZED VIEW back INTO S AS SELECT k FROM Beside": "s → first → beside → back → s",
    "CREATE OR REPLACE MATERIALIZED VIEW second AS SELECT k FROM second": "second → second",
    "CREATE OR REPLACE VIEW plain AS SELECT k FROM plain WHERE k > 1": "plain → plain",
    "CREATE MATERIALIZED VIEW back INTO s AS SELECT k FROM t": "s → onward → t → back → s",
    "CREATE MATERIALIZED VIEW back INTO s AS SELECT k FROM second": "s → first → second → back → s",
    "CREATE MATERIALIZED VIEW back INTO s AS SELECT u.k FROM u JOIN second ON u.k = second.k": "s → first → second → "
    "back → s",
}


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog.open("sqlite://")
    for text in (
        "CREATE STREAM s (k int)",
        "CREATE STREAM t (k int)",
        "CREATE STREAM u (k int)",
        "CREATE MATERIALIZED VIEW first AS SELECT k FROM s",
        "CREATE MATERIALIZED VIEW second AS SELECT k FROM first",
        "CREATE MATERIALIZED VIEW beside AS SELECT k FROM first",
        "CREATE VIEW plain AS SELECT k FROM s",
        "CREATE MATERIALIZED VIEW onward INTO t AS SELECT k FROM s",
    ):
        create(catalog, text)
    return catalog


def create(catalog: Catalog, text: str) -> None:
    statement = parse_one(text)
    if isinstance(statement, CreateView):
        catalog.create(statement, now_ms=0, uses=uses(catalog, statement))
    else:
        assert isinstance(statement, CreateStream)
        catalog.create(statement, now_ms=0)


def uses(catalog: Catalog, view: CreateView) -> tuple[str, ...]:
    reads = plan_query(view.name, view, catalog).uses
    return reads if view.into is None else (*reads, view.into)


@pytest.mark.parametrize(("text", "cycle"), CYCLES.items())
def test_a_cycle_is_refused_and_named(catalog: Catalog, text: str, cycle: str) -> None:
    before = catalog.relations()
    with pytest.raises(Unsupported) as refused:
        create(catalog, text)
    assert refused.value.what == f"rows would go round forever: {cycle}"
    assert refused.value.fix
    assert catalog.relations() == before
    view = parse_one(text)
    assert isinstance(view, CreateView)
    with pytest.raises(Unsupported, match=cycle):
        catalog.expect_acyclic(view, uses(catalog, view))


def test_two_ways_from_one_stream_to_another_are_no_cycle(catalog: Catalog) -> None:
    create(catalog, "CREATE MATERIALIZED VIEW also INTO t AS SELECT k FROM second")
    create(catalog, "CREATE MATERIALIZED VIEW both AS SELECT t.k AS k FROM t JOIN second ON t.k = second.k")
    assert catalog.used("both") == ["second", "t"]
