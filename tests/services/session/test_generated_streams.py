"""Streams whose rows are generated, through the runner: created, read by views, paused, refused to writers, dropped."""

from __future__ import annotations

import time

import pytest

from dovetail.changelog.errors import DovetailError
from dovetail.services.session import Done, Session
from tests.services.session.conftest import asked, until

pytestmark = pytest.mark.services


def test_a_view_joins_what_is_generated(session_of_runners: Session) -> None:
    session = session_of_runners
    made = session.run("""
        CREATE TABLE users (id int, name varchar, PRIMARY KEY (id))
            WITH (connector = 'datagen', fields.id.kind = 'sequence', fields.id.end = 9, datagen.rows.per.second = 100);
        CREATE RANDOM STREAM clicks (user_id int DEFAULT rand() % 10,
            page string DEFAULT ['home', 'shop'][rand() % 2 + 1], at datetime64(3) DEFAULT now64(3)) SETTINGS eps = 200;
        CREATE MATERIALIZED VIEW seen AS
            SELECT u.id AS id, count(*) AS n FROM clicks AS c JOIN users AS u ON c.user_id = u.id GROUP BY u.id;
    """)
    assert [str(one) for one in made[:2]] == [str(Done("created table users")), str(Done("created stream clicks"))]
    until(lambda: len(asked(session, "SELECT id FROM table(seen) WHERE n > 3")) == 10)
    assert asked(session, "SELECT count(*), min(id), max(id) FROM table(users)") == [(10, 0, 9)]

    until(lambda: asked(session, "SHOW QUERIES LIKE 'users'")[0][2] != "running")
    assert {row[:3] for row in asked(session, "SHOW QUERIES")} >= {
        ("users", "datagen", "finished"),
        ("clicks", "datagen", "running"),
        ("seen", "spark", "running"),
    }
    topics = {row[0]: str(row[2]) for row in asked(session, "SHOW TOPICS")}
    assert topics["clicks"].split(", ")[0] == "stream clicks"
    assert "view clicks" not in topics["clicks"]

    session.run("PAUSE clicks")
    [(before,)] = asked(session, "SELECT count(*) FROM table(clicks)")
    time.sleep(1)
    assert asked(session, "SELECT count(*) FROM table(clicks)") == [(before,)]
    assert session.verify("seen").holds
    session.run("RESUME clicks")
    until(lambda: asked(session, "SELECT count(*) FROM table(clicks)") > [(before,)])

    session.run("ALTER STREAM clicks ADD COLUMN price float64 DEFAULT rand_uniform(1, 2)")
    until(lambda: asked(session, "SELECT count(*) FROM table(clicks) WHERE price BETWEEN 1 AND 2") > [(0,)])

    session.run("DROP VIEW seen; DROP STREAM clicks WITH DATA; DROP STREAM users")
    assert asked(session, "SHOW QUERIES") == []
    assert "clicks" not in session.context.topics.partitions()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO s VALUES (1)", 'the rows of "s" are generated'),
        ("CREATE TABLE t (a int) WITH (connector = 'datagen', fields.b.max = 3)", '"t" has no column "b"'),
        ("CREATE RANDOM STREAM t (a int DEFAULT rand()) SETTINGS eps = 0", "eps cannot be 0"),
    ],
)
def test_what_cannot_be_generated_or_written_is_refused(
    session_of_runners: Session, statement: str, message: str
) -> None:
    session_of_runners.run("CREATE TABLE s (a int) WITH (connector = 'datagen', 'number-of-rows' = 1)")
    with pytest.raises(DovetailError) as raised:
        session_of_runners.run(statement)
    assert message in str(raised.value)
