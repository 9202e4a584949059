"""Views whose queries read nothing: created, read, joined and dropped on a real stack."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import DovetailError
from dovetail.services.session import Session
from tests.services.session.conftest import asked, settle

pytestmark = pytest.mark.services


def test_its_rows_are_written_once_and_joined(session_of_runners: Session) -> None:
    session = session_of_runners
    session.run("""
        CREATE MATERIALIZED VIEW rates AS SELECT * FROM (VALUES ('CHF', 1.0), ('EUR', 0.95)) AS v(currency, rate);
        CREATE TABLE orders (id int, currency varchar) APPEND ONLY;
        CREATE MATERIALIZED VIEW priced AS
            SELECT o.id, r.rate FROM orders AS o JOIN rates AS r ON o.currency = r.currency;
        INSERT INTO orders VALUES (1, 'EUR'), (2, 'USD'), (3, 'CHF')
    """)
    settle(session, "priced")
    assert [row[0] for row in sorted(asked(session, "SELECT id, rate FROM table(priced)"), key=str)] == [1, 3]
    assert session.verify("priced").holds
    states = {row[0]: row[2] for row in asked(session, "SHOW VIEWS")}
    assert states["rates"] == "no query runs"
    assert [row[0] for row in asked(session, "SHOW QUERIES")] == ["priced"]

    with pytest.raises(DovetailError, match="reads nothing"):
        session.run("CREATE OR REPLACE MATERIALIZED VIEW rates AS SELECT 'CHF' AS currency, 2.0 AS rate")
    with pytest.raises(DovetailError, match="reads nothing, so it would end at once"):
        session.run("CREATE MATERIALIZED VIEW at AS SELECT now() AS n")
    session.run("DROP VIEW priced; DROP VIEW rates WITH DATA")
    assert "rates" not in session.context.topics.partitions()
    session.run("CREATE MATERIALIZED VIEW rates AS SELECT 'CHF' AS currency, 2.0 AS rate")
    assert asked(session, "SELECT currency FROM table(rates)") == [("CHF",)]
