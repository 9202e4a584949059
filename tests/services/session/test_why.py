"""WHY and WHY NOT of views that run in Spark and in a worker, over real topics."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.services.cli.main import app
from dovetail.services.session import Rows, Session
from dovetail.services.stack import Stack
from tests.services.conftest import leave_nothing
from tests.services.session.conftest import settle

pytestmark = pytest.mark.services
AT = "2024-01-01 00:"
STREAMS = """
CREATE TABLE why_clicks (id int, ad varchar, at timestamp, WATERMARK FOR at AS at) APPEND ONLY;
CREATE TABLE why_views (ad varchar, price int, at timestamp, WATERMARK FOR at AS at) APPEND ONLY;
CREATE STREAM why_events (k string, v int);
"""
NEAR = """
CREATE MATERIALIZED VIEW why_near AS
SELECT c.id AS id, c.ad AS ad, v.price AS price FROM why_clicks AS c JOIN why_views AS v
ON c.ad = v.ad AND c.at BETWEEN v.at AND v.at + INTERVAL '1 MINUTE' WHERE v.price > 1 SETTINGS late_topic = 'why_late'
"""


@pytest.fixture(scope="module")
def session(running: Stack) -> Iterator[Session]:
    with Session.open(running.settings) as opened:
        opened.run(STREAMS)
        yield opened
        leave_nothing(opened)


def said(session: Session, statement: str) -> list[tuple[str, str]]:
    """Stream and reason, or op where nothing is amiss, of each line."""
    [result] = session.run(statement)
    assert isinstance(result, Rows)
    return [(row["stream"], row.get("reason") or row["op"]) for row in result.table.to_pylist()]


def expects(session: Session, statement: str, *parts: tuple[str, str]) -> None:
    """Line by line the stream, and what the reason begins with."""
    found = said(session, statement)
    assert len(found) == len(parts), found
    for (stream, reason), (wanted, begin) in zip(found, parts, strict=True):
        assert (stream, reason[: len(begin)]) == (wanted, begin)


def test_each_reason_of_a_join(session: Session, running: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    session.run(NEAR)
    session.run(f"INSERT INTO why_views VALUES ('a', 5, '{AT}00:10'), ('b', 1, '{AT}00:10'), ('C', 5, '{AT}00:10')")
    at = f"'{AT}00:20'"
    session.run(
        f"INSERT INTO why_clicks VALUES (1, 'a', {at}), (2, 'a', '{AT}05:20'), (3, 'b', {at}), (4, 'c', {at}), "
        f"(5, NULL, {at})"
    )
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    producer.produce("why_clicks", b'{"id":6,"ad":"a","at":"yesterday"}')
    assert producer.flush(10) == 0
    settle(session, "why_near")
    session.run(f"INSERT INTO why_clicks VALUES (7, 'a', '{AT}00:05')")
    settle(session, "why_near")
    shown(running, monkeypatch)

    expects(session, "WHY why_near WHERE id = 1", ("why_clicks", "+1"), ("why_views", "+1"))
    expects(
        session,
        "WHY NOT why_near WHERE id = 2",
        ("why_clicks", "condition c.at <= (v.at + "),
        ("why_views", "condition c.at <= (v.at + "),
    )
    assert "310 s apart" in said(session, "WHY NOT why_near WHERE id = 2")[0][1]
    expects(
        session,
        "WHY NOT why_near WHERE id = 3",
        ("why_clicks", "no partner: no row of why_views has v.ad = 'b'"),
        ("why_views", "condition v.price > 1 is false: v.price = 1"),
    )
    expects(
        session,
        "WHY NOT why_near WHERE id = 4",
        ("why_views", "no record with v.ad = 'c', of 3 that can be read"),
        ("why_clicks", "no partner: no row of why_views has v.ad = 'c'"),
        ("why_views", "v.ad is 'C', and 'c' is looked for"),
    )
    expects(
        session,
        "WHY NOT why_near WHERE id = 5",
        ("why_views", "not looked into"),
        ("why_clicks", "NULL key: c.ad is NULL"),
    )
    expects(
        session,
        "WHY NOT why_near WHERE id = 6",
        ("why_clicks", "no record with c.id = 6, of 6 that can be read"),
        ("why_views", "not looked into"),
        ("why_clicks", "a dead letter: column at: "),
    )
    expects(session, "WHY NOT why_near WHERE id = 7", ("why_views", "not looked into"), ("why_clicks", "late: "))
    expects(
        session,
        "WHY NOT why_near WHERE ad = 'A' AND id = 1",
        ("why_clicks", "no record with c.ad = 'A' and c.id = 1, of 6 that can be read"),
        ("why_views", "no record with v.ad = 'A', of 3 that can be read"),
        ("why_clicks", "c.ad is 'a', and 'A' is looked for"),
        ("why_views", "v.ad is 'a', and 'A' is looked for"),
    )
    bounded_in_time(session)
    with pytest.raises(Unsupported, match="does not tell which records") as refused:
        session.run("WHY why_near WHERE price + id = 5")
    assert "columns that tell: id, ad, price" in refused.value.fix
    with pytest.raises(SqlError, match="is not a materialized view"):
        session.run("WHY why_clicks WHERE id = 1")


def bounded_in_time(session: Session) -> None:
    """Of append streams what was written before is not read, and that is said."""
    expects(session, "WHY why_near SINCE '-1h' WHERE id = 1", ("why_clicks", "+1"), ("why_views", "+1"))
    topics = session.context.topics
    assert topics.since("why_clicks", 0) == dict.fromkeys(topics.ends("why_clicks"), 0)
    now_ms = session.context.now_ms + 1
    assert topics.since("why_clicks", now_ms) == topics.ends("why_clicks")
    expects(
        session,
        f"WHY NOT why_near SINCE '{dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC).isoformat()}' WHERE id = 1",
        ("why_clicks", "no record with c.id = 1, of 0 that can be read"),
        ("why_views", "not looked into"),
    )
    with pytest.raises(SqlError, match="'soon' is no moment"):
        session.run("WHY why_near SINCE 'soon' WHERE id = 1")


def shown(running: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says the same on the screen."""
    for name, value in running.settings.as_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "160")
    ran = CliRunner().invoke(app, ["why", "why_near", "id = 1"])
    assert (ran.exit_code, "of 1 row of why_near" in ran.output) == (0, True), ran.output
    ran = CliRunner().invoke(app, ["why", "--not", "why_near", "id = 2"])
    assert (ran.exit_code, "310 s apart" in ran.output) == (0, True), ran.output


def test_a_miss_that_a_worker_has_cached(session: Session, running: Stack, tmp_path: Path) -> None:
    file = tmp_path / "cached.db"
    with sqlite3.connect(file) as source:
        source.execute("CREATE TABLE names (k TEXT PRIMARY KEY, name TEXT)")
    session.run(
        "CREATE DICTIONARY why_cached (k string, name string) PRIMARY KEY k "
        f"SOURCE(SQLITE(PATH '{file}' TABLE 'names')) LAYOUT(HYBRID_HASH_CACHE(TTL 900 PATH 'cached')) "
        "SETTINGS(negative_ttl = 600)"
    )
    session.run(
        "CREATE MATERIALIZED VIEW why_missed AS SELECT e.k AS k, e.v AS v, n.name AS name FROM why_events AS e "
        "JOIN why_cached AS n ON e.k = n.k SETTINGS join_algorithm = 'direct'"
    )
    session.run("INSERT INTO why_events VALUES ('m', 1)")
    settle(session, "why_missed")
    with sqlite3.connect(file) as source:
        source.execute("INSERT INTO names VALUES ('m', 'Mo')")
    notes: list[str] = []
    with Session.open(running.settings, say=notes.append) as listening:
        listening.run("WHY NOT why_missed WHERE k = 'm'")
        [line] = [note for note in notes if "has cached that why_cached has no row of m: asked" in note]
        assert "min more; dovetail dictionary refresh why_cached forgets it" in line
        listening.run("SYSTEM RELOAD DICTIONARY why_cached")
        notes.clear()
        listening.run("WHY NOT why_missed WHERE k = 'm'")
        assert not [note for note in notes if "has cached that" in note]


def test_a_lookup_and_what_was_before_the_view(session: Session, running: Stack, tmp_path: Path) -> None:
    file = tmp_path / "names.db"
    with sqlite3.connect(file) as source:
        source.execute("CREATE TABLE names (k TEXT PRIMARY KEY, name TEXT)")
        source.execute("INSERT INTO names VALUES ('a', 'Ada')")
    session.run(
        "CREATE DICTIONARY why_names (k string, name string) PRIMARY KEY k "
        f"SOURCE(SQLITE(PATH '{file}' TABLE 'names')) LAYOUT(DIRECT())"
    )
    session.run("INSERT INTO why_events VALUES ('a', 1)")
    session.run(
        "CREATE MATERIALIZED VIEW why_named AS SELECT e.k AS k, e.v AS v, n.name AS name FROM why_events AS e "
        "JOIN why_names AS n ON e.k = n.k SETTINGS join_algorithm = 'direct'"
    )
    session.run("INSERT INTO why_events VALUES ('a', 2), ('b', 3)")
    settle(session, "why_named")
    expects(session, "WHY why_named WHERE k = 'a'", ("why_events", "+1"))
    expects(session, "WHY NOT why_named WHERE k = 'a' AND v = 1", ("why_events", "before the start: "))
    missing = 'no partner: no row of dictionary "why_names" has'
    expects(session, "WHY NOT why_named WHERE k = 'b'", ("why_events", missing))
    with sqlite3.connect(file) as source:
        source.execute("INSERT INTO names VALUES ('b', 'Bob')")
    notes: list[str] = []
    with Session.open(running.settings, say=notes.append) as listening:
        expects(listening, "WHY why_named WHERE k = 'b'", ("why_events", "+1"))
    assert "why_named holds 0 rows of these, and the records of now make 1" in notes[-1]
    assert notes[-1].endswith("dovetail dictionary refresh why_names")
    expects(session, "WHY NOT why_named WHERE k = 'c'", ("why_events", "no record with e.k = 'c', of "))
    expects(session, "WHY NOT why_named WHERE name = 'Ada' AND v = 3", ("why_events", "asked condition name = 'Ada'"))


def test_of_many_records_the_first_of_each_input_are_shown(session: Session) -> None:
    session.run(
        "CREATE STREAM why_many (k string, v int64); CREATE MUTABLE STREAM why_one (k string) PRIMARY KEY (k); "
        "CREATE MATERIALIZED VIEW why_sum AS SELECT o.k AS k, sum(m.v) AS total FROM why_many AS m "
        "JOIN why_one AS o ON m.k = o.k GROUP BY o.k"
    )
    session.run("INSERT INTO why_one VALUES ('a')")
    session.run("INSERT INTO why_many VALUES " + ", ".join(f"('a', {n})" for n in range(103)))
    settle(session, "why_sum")
    [result] = session.run("WHY why_sum WHERE k = 'a'")
    assert isinstance(result, Rows)
    assert Counter(result.table.column("stream").to_pylist()) == {"why_many": 100, "why_one": 1}
    assert "of 1 row of why_sum; the first 100 of each input, 3 more: " in result.note
