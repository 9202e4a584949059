"""Examples are planned; each file of examples/ runs on a whole stack, which gives the metrics that the page names."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from dovetail.services.cli.main import app
from dovetail.services.session import Session
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView, Select
from tests.docs.pages import Page, code_of
from tests.monitoring.dashboards import alert_expressions, expressions, metrics_of
from tests.paths import ROOT
from tests.servers.process import Server
from tests.servers.prometheus import instant_query, prometheus

EXAMPLES = sorted((ROOT / "examples").glob("*.sql"))
USE_CASES = sorted((ROOT / "examples").glob("*/example.sql"))
SHOP = "shop.db"
Row = dict[str, object]

PRINTED: dict[str, list[Row]] = {
    "bidirectional": [{"k": "a", "count()": 1, "sum(i)": 2, "max(ii)": 11}],
    "bounded": [
        {"order_id": 1, "customer": "ann", "amount": 12.5},
        {"order_id": 2, "customer": "bob", "amount": None},
        {"order_id": 3, "customer": "cem", "amount": None},
        {"id": 1, "symbol": "A", "bid": 10.0},
        {"id": 2, "symbol": "A", "bid": 12.0},
        {"minute": "2026-01-31 12:00:00.000", "orders": 2},
        {"minute": "2026-01-31 12:01:00.000", "orders": 1},
    ],
    "clickthrough": [
        {"campaign": "travel", "impressions": 1, "clicks": 1, "cost": 0.05},
        {"campaign": "winter", "impressions": 2, "clicks": 1, "cost": 0.22},
    ],
    "lookup": [
        {"id": "o2", "name": "unknown"},
        {"id": "o1", "quantity": 2, "name": "pen"},
        {"id": "o2", "quantity": 1, "name": None},
        {"id": "o3", "quantity": 5, "name": "ink"},
        {"id": "o4", "quantity": 1, "name": "pen"},
    ],
}
"""Rows that each prints, among others: those of tables and of streams to which rows are only added."""


@pytest.mark.parametrize("file", [*EXAMPLES, *USE_CASES], ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_query_is_planned(file: Path) -> None:
    catalog = Catalog.open("sqlite://")
    planned = 0
    for statement in parse(file.read_text()):
        if isinstance(statement, CreateView | Select):
            name = statement.name if isinstance(statement, CreateView) else "q"
            assert plan_query(name, statement, catalog).explain()
            planned += 1
        if isinstance(statement, CreateView | CreateStream | CreateDictionary):
            catalog.create(statement, now_ms=0)
    assert planned


def test_every_example_says_what_it_prints() -> None:
    assert set(PRINTED) == {file.stem for file in EXAMPLES}


@pytest.mark.services
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_runs(file: Path, whole_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(whole_stack.settings.data_dir))
    result = CliRunner().invoke(app, ["run", str(prepared(file, tmp_path)), "--until-idle", "--output", "json"])
    assert result.exit_code == 0, result.stderr
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row for row in PRINTED[file.stem] if row not in printed] == [], result.output


@pytest.mark.services
def test_the_page_has_all_metrics_and_no_other(whole_stack: Stack) -> None:
    with Session.open(whole_stack.connected_settings()) as session:
        session.run("CREATE STREAM orders (id string); CREATE MUTABLE STREAM goods (id string) PRIMARY KEY id")
        session.run(
            "CREATE MATERIALIZED VIEW found AS SELECT orders.id AS id FROM orders JOIN goods ON orders.id = goods.id "
            "SETTINGS join_algorithm = 'direct'"
        )
    given = {
        name
        for component in ("worker", "spark")
        for name in metric_names(httpx.get(f"{whole_stack.endpoint(component)}/metrics").text)
    }
    rows = Page.of("docs/runner-and-worker.md").rows("metric", "meaning")
    described = {name for row in rows for name in full_names(code_of(row[0])) if "<" not in name}
    assert given == described


WATCHED = f"""
CREATE STREAM orders (id string, at datetime64(3), product string, WATERMARK FOR at AS at - INTERVAL '1' SECOND);
CREATE MATERIALIZED VIEW by_minute AS
    SELECT window_start, count() AS n FROM tumble(orders, at, 1m) GROUP BY window_start EMIT AFTER WATERMARK
    SETTINGS seek_to = 'earliest';
CREATE DICTIONARY products (id string, name string) PRIMARY KEY id SOURCE(SQLITE(PATH '{SHOP}' TABLE 'products'))
    LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'watched' MAX_HOT_KEY_COUNT 1000));
CREATE MATERIALIZED VIEW named AS
    SELECT orders.id AS id, name FROM orders LEFT JOIN products ON orders.product = products.id
    SETTINGS join_algorithm = 'direct', seek_to = 'earliest';
INSERT INTO orders VALUES ('o1', '2026-01-01 00:02:30', 'p1');
"""
LATE = "INSERT INTO orders VALUES ('o2', '2026-01-01 00:00:10', 'p2')"


@pytest.mark.services
def test_what_dashboards_and_alerts_ask_is_given(whole_stack: Stack, tmp_path: Path) -> None:
    """Of a Prometheus that watches a view with a late row and a lookup; where all metrics that an expression reads have
    samples, it has an answer.
    """
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.executescript("CREATE TABLE products (id text, name text); INSERT INTO products VALUES ('p1', 'pen')")
    pages = [f"{whole_stack.endpoint(component)}/metrics" for component in ("spark", "worker")]
    hosts = [page.split("/")[2] for page in pages]
    with (
        Session.open(whole_stack.connected_settings()) as session,
        prometheus(
            tmp_path / "prometheus", dict(zip(("dovetail-runner", "dovetail-worker"), hosts, strict=True))
        ) as server,
    ):
        session.run(WATCHED.replace(SHOP, str(tmp_path / SHOP)))
        await_samples(server, 'dovetail_query_watermark_timestamp_seconds{query="by_minute"}')
        session.run(LATE)
        await_samples(server, 'dovetail_query_late_total{query="by_minute"} > 0')
        await_samples(server, 'dovetail_worker_rows_in_total{query="named"} > 1')
        text = "".join(httpx.get(page).text for page in pages)
        named, with_samples = metric_names(text), set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE))
        for expression in (*(asks for _, asks in expressions()), *alert_expressions()):
            read = metrics_of(expression)
            assert read <= named, expression
            if read <= with_samples and expression not in set(alert_expressions()):
                await_samples(server, expression)


def await_samples(server: Server, expression: str) -> None:
    deadline = time.monotonic() + 120
    while not instant_query(server, expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.2)


def metric_names(metrics: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE))


def full_names(codes: list[str]) -> list[str]:
    """``dovetail_worker_rows_in_total`, `_rows_out_total``: the second goes without what it shares with the first."""
    prefix = "_".join(codes[0].split("_")[:2])
    return [code if code.startswith("dovetail") else prefix + code for code in codes]


def prepared(file: Path, folder: Path) -> Path:
    """The example, over a database of this test, made by the statements that its first comment gives."""
    text = file.read_text()
    if SHOP in text:
        comment = re.sub(r"^--", "", text[: text.index("\n\n")], flags=re.MULTILINE)
        [statements] = re.findall(rf'sqlite3 \.dovetail/files/{SHOP} "(.*?)"', comment, re.DOTALL)
        with closing(sqlite3.connect(folder / "shop.db")) as database:
            database.executescript(statements)
        text = text.replace(f"'{SHOP}'", f"'{folder / SHOP}'")
    script = folder / file.name
    script.write_text(text)
    return script
