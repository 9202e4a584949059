"""What a materialized view writes stands in the catalog: planning what reads it plans none of what it is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dovetail.sql import planner
from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.written_streams import as_text, of_text
from dovetail.sql.planner import Plan, plan_query, stream_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

STREAM = """CREATE STREAM s (k int64, v decimal(38, 9), a array(int32), m map(string, float64), t datetime64(6, 'UTC'),
b bool, d date, x string)"""
TABLE = "CREATE TABLE r (k int PRIMARY KEY, v int, w timestamptz, WATERMARK FOR w AS w - INTERVAL '5' SECOND)"
LAYERS = 7


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    opened = Catalog.open("sqlite://")
    created(opened, STREAM)
    created(
        opened, "CREATE TABLE r (k int PRIMARY KEY, v int, w timestamptz, WATERMARK FOR w AS w - INTERVAL '5' SECOND)"
    )
    yield opened
    opened.close()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is planned from here on."""
    names: list[str] = []
    plan = planner._planned  # noqa: SLF001 - each plan, those of views that a query reads too

    def noted(name: str, *arguments: object) -> Plan:
        names.append(name)
        return plan(name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(planner, "_planned", noted)
    return names


def created(catalog: Catalog, text: str, *, written: bool = True) -> None:
    statement = parse_one(text)
    assert isinstance(statement, CreateStream | CreateView)
    known = None
    if written and isinstance(statement, CreateView):
        known = plan_query(statement.name, statement, catalog).stream()
    catalog.create(statement, now_ms=0, written=known)


def joined(view: str, below: str) -> str:
    return (
        f"CREATE MATERIALIZED VIEW {view} AS SELECT a.k AS k, b.v AS v FROM {below} AS a JOIN {below} AS b ON a.k = b.k"
    )


@pytest.mark.parametrize(
    "view",
    [
        "SELECT * FROM s",
        "SELECT k, count() AS n, sum(v) AS v, group_array(x) AS xs FROM s GROUP BY k",
        "SELECT k, v FROM r SETTINGS output_format = 'upsert'",
        "SELECT _tp_time, k, d, (k, x) AS pair FROM s",
        "SELECT window_start, count() AS n FROM tumble(s, t, 1m) GROUP BY window_start EMIT AFTER WINDOW CLOSE",
        "SELECT k, w, w::text AS text, ARRAY[v] AS vs, '{}'::jsonb AS j FROM r",
        "SELECT k, max(x) AS x FROM s GROUP BY k SETTINGS output_format = 'debezium'",
    ],
)
def test_the_text_has_all_that_others_read(catalog: Catalog, view: str) -> None:
    statement = parse_one(f"CREATE MATERIALIZED VIEW v AS {view}")
    assert isinstance(statement, CreateView)
    stream = plan_query("v", statement, catalog).stream()
    assert of_text("v", as_text(stream)) == stream
    catalog.create(statement, now_ms=0, written=stream)
    assert catalog.get("v").written == stream == stream_of(catalog, "v")


def test_the_names_of_its_members_stay(catalog: Catalog) -> None:
    text = "CREATE MATERIALIZED VIEW v AS SELECT window_start, count() AS n FROM tumble(s, t, 1m) GROUP BY window_start"
    statement = parse_one(f"{text} EMIT AFTER WINDOW CLOSE")
    assert isinstance(statement, CreateView)
    members = json.loads(as_text(plan_query("v", statement, catalog).stream()))
    assert " ".join(members) == "columns kind primary_key event_time value key topic rules told"
    [watermark] = members["told"]
    assert " ".join(watermark) == "column delay_ms idle_ms shared max_future_ms drops_late told"
    assert watermark["told"] is True


@pytest.mark.parametrize("written", [True, False], ids=["kept", "not kept"])
def test_each_layer_of_views_is_planned_once(catalog: Catalog, planned: list[str], written: bool) -> None:
    below = "s"
    for layer in range(LAYERS):
        created(catalog, joined(f"v{layer}", below), written=written)
        below = f"v{layer}"
    assert planned == ([f"v{layer}" for layer in range(LAYERS)] if written else [])
    del planned[:]
    statement = parse_one(f"SELECT a.k FROM {below} AS a JOIN {below} AS b ON a.k = b.k")
    assert not isinstance(statement, CreateStream)
    plan_query("q", statement, catalog)  # type: ignore[arg-type]
    assert sorted(planned) == sorted(["q", *(() if written else (f"v{layer}" for layer in range(LAYERS)))])


def test_a_view_over_many_layers_counts_what_it_reads_itself(catalog: Catalog) -> None:
    below = "s"
    for layer in range(60):
        created(catalog, joined(f"v{layer}", below))
        below = f"v{layer}"
    assert stream_of(catalog, below).schema.types["v"] == stream_of(catalog, "s").schema.types["v"]


def test_a_catalog_from_before_goes_on(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('catalog') / 'catalog.db'}"
    older = Catalog.open(url)
    created(older, STREAM)
    created(older, joined("v", "s"), written=False)
    with older._write() as connection:  # noqa: SLF001 - as it was before
        connection.exec_driver_sql("ALTER TABLE relations DROP COLUMN written")
    older.close()
    again = Catalog.open(url)
    assert again.get("v").written is None
    assert stream_of(again, "v") == stream_of(again, "v")
    again.close()
