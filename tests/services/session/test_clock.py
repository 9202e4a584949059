"""Conditions on the clock through Kafka and Spark: rows come and go by themselves, as time passes."""

from __future__ import annotations

import pytest

from dovetail.services.session import Session
from dovetail.sql.clock_table import CLOCK
from tests.services.session.conftest import asked, until

pytestmark = pytest.mark.services


def test_rows_leave_and_come_as_time_passes(session_of_runners: Session) -> None:
    session = session_of_runners
    session.run("""
        CREATE TABLE visits (id int, at timestamptz) APPEND ONLY;
        CREATE MATERIALIZED VIEW recent AS SELECT id FROM visits WHERE at > now() - INTERVAL '10 seconds';
        CREATE MATERIALIZED VIEW settled AS SELECT id FROM visits WHERE at <= now() - INTERVAL '3 seconds';
        CREATE MATERIALIZED VIEW busy AS SELECT count(*) AS n FROM visits WHERE at > now() - INTERVAL '10 seconds';
    """)
    assert ("dovetail_clock", "datagen", "running") in {row[:3] for row in asked(session, "SHOW QUERIES")}
    session.run("""
        INSERT INTO visits SELECT 1, now();
        INSERT INTO visits SELECT 2, now() - INTERVAL '1 hour';
        INSERT INTO visits SELECT 3, now() + INTERVAL '1 hour'
    """)
    until(lambda: sorted(asked(session, "SELECT id FROM table(recent)")) == [(1,), (3,)])
    until(lambda: asked(session, "SELECT n FROM table(busy)") == [(2,)])
    until(lambda: sorted(asked(session, "SELECT id FROM table(settled)")) == [(1,), (2,)])
    until(lambda: asked(session, "SELECT id FROM table(recent)") == [(3,)])
    until(lambda: asked(session, "SELECT n FROM table(busy)") == [(1,)])

    session.run("PAUSE dovetail_clock")
    session.run("WAIT FOR recent; WAIT FOR busy; WAIT FOR settled")
    for view in ("recent", "settled", "busy"):
        assert session.verify(view).holds
    session.run("DROP VIEW recent; DROP VIEW settled; DROP VIEW busy")
    assert session.context.catalog.find(CLOCK) is not None
