"""The plan that a runner makes of an entry of the catalog."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.query_plan import on_trial, plan_of
from dovetail.sql.catalog import Catalog
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

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
