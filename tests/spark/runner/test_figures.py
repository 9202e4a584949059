"""The figures of the runner: read with each batch, kept in the catalog, given in the form of Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dovetail.broker.address import BrokerAddress
from dovetail.spark_jobs.runner import figures
from dovetail.spark_jobs.runner.runner import counted
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.servers.prometheus import promtool
from tests.spark.conftest import Queries
from tests.spark.flows import orders_near_clicks
from tests.spark.kafka import send

NOWHERE = BrokerAddress("127.0.0.1:1")
NOON_MS = 1_704_110_400_000


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    yield opened
    opened.close()


def reported(catalog: Catalog, progress: Mapping[str, Any], restarts: int = 0) -> None:
    """One view, and what its runner has said of it."""
    sql = "CREATE MATERIALIZED VIEW v AS SELECT 1 AS one FROM s"
    view = parse_one(sql)
    assert isinstance(view, CreateView)
    _, query = catalog.create(view, now_ms=0, query=Query("v", sql, "plan", "print", topic="v"))
    assert query is not None
    catalog.report(query.id, now_ms=0, progress=progress, restarts=restarts)


def page(catalog: Catalog) -> str:
    registry = CollectorRegistry()
    registry.register(figures.QueriesFigures(catalog, NOWHERE))
    return generate_latest(registry).decode()


def test_the_figures_of_a_view_have_units_and_kinds(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "now_ms", lambda: NOON_MS + 2_500)
    progress = {
        "counts": {"rows_in": 7, "rejected": 1},
        "late": {"l": 3},
        "batch_ms": 120,
        "state": {"1.0": [2, 80], "1.1": [3, 120]},
        "watermarks": {"l": NOON_MS},
    }
    reported(catalog, progress, restarts=4)

    given = page(catalog)

    for line in (
        "# TYPE dovetail_query_rows_in_total counter",
        'dovetail_query_rows_in_total{query="v"} 7.0',
        'dovetail_query_rejected_total{query="v"} 1.0',
        'dovetail_query_late_total{input="l",query="v"} 3.0',
        'dovetail_query_restarts_total{query="v"} 4.0',
        'dovetail_query_batch_seconds{query="v"} 0.12',
        "# TYPE dovetail_query_state_rows gauge",
        'dovetail_query_state_rows{query="v"} 5.0',
        'dovetail_query_state_bytes{query="v"} 200.0',
        'dovetail_query_watermark_timestamp_seconds{input="l",query="v"} 1.7041104e+09',
        'dovetail_query_watermark_lag_seconds{input="l",query="v"} 2.5',
    ):
        assert line in given.splitlines()
    assert set(re.findall(r"^# HELP (\S+) \S", given, re.MULTILINE)) == set(
        re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", given, re.MULTILINE)
    )


@pytest.mark.services
def test_prometheus_finds_nothing_wrong_with_their_names(catalog: Catalog, tmp_path: Path) -> None:
    reported(catalog, {"counts": {"rows_in": 7}, "late": {"l": 3}, "state": {"1.0": [2, 80]}, "watermarks": {"l": 0}})
    promtool("check", "metrics", folder=tmp_path, given=page(catalog))


def test_what_is_not_known_yet_has_no_sample(catalog: Catalog) -> None:
    reported(catalog, {})

    samples = {line.partition("{")[0] for line in page(catalog).splitlines() if not line.startswith("#")}

    assert "dovetail_query_rows_in_total" in samples
    assert {name for name in samples if "state" in name or "watermark" in name} == set()


@pytest.mark.services
def test_state_and_watermarks_come_with_the_batches(broker: str, topics: Callable[..., str], queries: Queries) -> None:
    left, right = topics("left"), topics("right")
    dataflow, name = orders_near_clicks(left, right, None), queries.new_name()
    query = queries.start(dataflow, name)
    send(broker, left, [{"k": k, "at": "2024-01-01 12:00:00"} for k in range(5)])
    send(broker, right, [{"k": 9, "at": "2024-01-01 12:00:00"}])
    queries.drain(query, dataflow)
    first = query.progress()
    # Left rows that have met none yet are held once more: they wait to leave without a match.
    assert sum(rows for rows, _ in first.state.values()) == 5 + 5 + 1
    assert sum(size for _, size in first.state.values()) > 0
    delay_ms = NOON_MS - first.watermarks["l"]
    assert (set(first.watermarks), delay_ms >= 0) == ({"l", "r"}, True)

    # A minute later nothing of that is of use any more, and the state has the two new rows alone.
    send(broker, left, [{"k": 6, "at": "2024-01-01 12:01:00"}])
    send(broker, right, [{"k": 7, "at": "2024-01-01 12:01:00"}])
    queries.drain(query, dataflow)
    assert sum(rows for rows, _ in query.progress().state.values()) == 1 + 1 + 1
    assert query.progress().watermarks["l"] == NOON_MS - delay_ms + 60_000

    # A runner that begins again has it from the catalog, until a batch says it anew.
    reached = query.progress()
    query.stop()
    assert queries.start(dataflow, name).progress().state == {}
    before = counted(json.loads(json.dumps({"state": reached.state, "watermarks": reached.watermarks})))
    assert (before.state, before.watermarks) == (reached.state, reached.watermarks)
