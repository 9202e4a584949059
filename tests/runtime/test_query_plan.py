"""The plan that a runner makes of an entry of the catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.runtime.query_plan import FORMER, on_trial, plan_of
from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.query_settings import Value
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView
from tests.sql.planner import Planner

VIEW = (
    "CREATE OR REPLACE MATERIALIZED VIEW v INTO target AS SELECT k, count() AS n FROM s GROUP BY k"
    " SETTINGS late_topic = 'late', seek_to = 'earliest'"
)


def test_a_view_on_trial_writes_nothing_that_others_read(tmp_path: Path) -> None:
    """The session and the runner make the same plan of it."""
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    for text in ("CREATE STREAM s (k int64)", "CREATE STREAM target (k int64, n uint64) SETTINGS mode = 'changelog'"):
        stream = parse_one(text)
        assert isinstance(stream, CreateStream)
        catalog.create(stream, now_ms=1)
    view = parse_one(VIEW)
    assert isinstance(view, CreateView)
    proper = plan_query("v", view, catalog)
    assert (proper.stream().topic, proper.settings.text("late_topic")) == ("target", "late")

    trial = plan_query("v_trial", on_trial(view, "v_trial"), catalog)
    [entry] = queries_of(trial, view.text)
    again = plan_of(entry, catalog)

    assert entry.topic == again.stream().topic == "v_trial"
    assert again.settings.text("late_topic") == ""
    assert again.settings.text("seek_to") == "earliest"
    assert again.fragment("v_trial").fingerprint == entry.fingerprint
    assert plan_of(queries_of(proper, view.text)[0], catalog).stream().topic == "target"
    catalog.close()


WIDE = (
    "CREATE MATERIALIZED VIEW v AS SELECT s.k, s.at FROM s JOIN s AS t ON s.k = t.k JOIN s AS u ON t.k = u.k"
    " JOIN m AS a ON s.k = a.n JOIN m AS b ON a.o = b.n"
)
IN_TWO_FRAGMENTS = f"{WIDE} JOIN d ON s.k = d.k"
"""The second one has the same plan before and now."""
SOURCES = (
    "CREATE STREAM s (k int64, at datetime64(3))",
    "CREATE MUTABLE STREAM m (id int, n int64, o int64) PRIMARY KEY id",
    """CREATE DICTIONARY d (k int64, n string) PRIMARY KEY k
       SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' DB 'shop' TABLE 'd')) LAYOUT(HASHED()) LIFETIME(300)""",
)


@pytest.mark.parametrize("text", [WIDE, IN_TWO_FRAGMENTS])
def test_a_query_goes_on_under_the_plan_that_it_was_made_with(text: str) -> None:
    """That of releases before, or that of now, as its fingerprint says; fragment by fragment."""
    catalog = Planner.of(*SOURCES).catalog
    view = parse_one(text)
    assert isinstance(view, CreateView)
    settings: list[dict[str, Value]] = [{}, *map(dict, FORMER)]
    plans = [plan_query("v", view, catalog, given) for given in settings]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    for plan in plans:
        for query in queries_of(plan, text):
            again = plan_of(query, catalog).fragment(query.name)
            assert again.fingerprint == query.fingerprint == plan.fragment(query.name).fingerprint


RIDES = (
    "CREATE SOURCE rides (at timestamp, WATERMARK FOR at AS at - INTERVAL '1 SECOND')",
    (
        "CREATE MATERIALIZED VIEW tens AS SELECT window_start AS opened, count(*) AS n"
        " FROM TUMBLE(rides, at, INTERVAL '10 SECONDS') GROUP BY window_start EMIT ON WINDOW CLOSE"
    ),
)
MINUTES = (
    "CREATE MATERIALIZED VIEW v AS SELECT window_start, sum(n) AS n FROM TUMBLE(tens, opened, INTERVAL '1 MINUTE')"
    " GROUP BY window_start EMIT ON WINDOW CLOSE"
)


def test_a_view_over_a_view_goes_on_without_the_watermark_that_nobody_told() -> None:
    catalog = Planner.of(*RIDES).catalog
    view = parse_one(MINUTES)
    assert isinstance(view, CreateView)
    now, former = (plan_query("v", view, catalog, settings) for settings in ({}, {"view_watermarks": False}))
    assert now.fingerprint != former.fingerprint
    for plan in (now, former):
        [query] = queries_of(plan, MINUTES)
        assert plan_of(query, catalog).fingerprint == plan.fingerprint


def test_a_query_of_no_plan_that_is_known_is_planned_as_now() -> None:
    """Its checkpoint is refused then, with what differs from now."""
    catalog = Planner.of(*SOURCES).catalog
    view = parse_one(WIDE)
    assert isinstance(view, CreateView)
    plan = plan_query("v", view, catalog)
    [query] = queries_of(plan, WIDE)
    assert plan_of(replace(query, fingerprint="1:other"), catalog).fingerprint == plan.fingerprint
