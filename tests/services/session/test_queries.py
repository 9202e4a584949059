"""Views and streaming queries from SQL to their topics, with a real broker and a real Spark runner."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from typer.testing import CliRunner

from dovetail.broker import clients
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.runtime.leases import LEASE_S
from dovetail.runtime.query_plan import plan_of
from dovetail.services.cli.main import app
from dovetail.services.session import Done, Live, Rows, Session, Text
from dovetail.services.session.input_progress import await_caught_up, await_reading, input_ends
from dovetail.services.session.live.backfill import Backfill
from dovetail.services.session.live.view_backlogs import NO_BACKLOG
from dovetail.services.session.verification.batch import Undecidable
from dovetail.services.session.verification.verify import Verdict
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Desired, Query
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.spark.kafka import values

pytestmark = pytest.mark.services

ORDERS = """
CREATE TABLE users (id int PRIMARY KEY, name varchar);
CREATE TABLE orders (id int PRIMARY KEY, user_id int, amount int);
"""
PRICED = """
CREATE MATERIALIZED VIEW priced AS
SELECT o.id AS id, u.name AS name, o.amount AS amount FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id;
"""
QUERY = "SELECT o.id AS id, u.name AS name FROM orders AS o JOIN users AS u ON o.user_id = u.id"


@pytest.fixture
def session(session_of_runners: Session) -> Session:
    return session_of_runners


def settle(session: Session, view: str) -> None:
    """Wait until the view has answered all its input."""
    definition = session.context.catalog.get(view).definition
    assert isinstance(definition, CreateView)
    plan = plan_query(view, definition, session.context.catalog)
    await_reading(session.context, view, input_ends(session.context, plan))
    session.context.topics.quiescent_ends(plan.stream().topic)


def rows_of(session: Session, query: str) -> list[tuple[object, ...]]:
    result = session.execute(parse_one(query))
    assert isinstance(result, Rows)
    return [tuple(row.values()) for row in result.table.to_pylist()]


def changelog_of(session: Session, query: str) -> list[tuple[object, ...]]:
    result = session.execute(parse_one(query))
    assert isinstance(result, Live)
    with result.changelog as changelog:
        rows = pa.concat_tables([changelog.schema.empty_table(), *changelog.batches(until_idle=True)])
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_a_view_follows_its_inputs_and_can_be_verified(session: Session) -> None:
    session.run(ORDERS + PRICED)
    session.run("INSERT INTO users VALUES (1, 'ann'); INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7)")
    settle(session, "priced")
    assert rows_of(session, "SELECT * FROM table(priced) ORDER BY id") == [(10, "ann", 5), (11, None, 7)]
    session.run("INSERT INTO users VALUES (2, 'bob'); UPDATE orders SET amount = 6 WHERE id = 10")
    settle(session, "priced")
    assert rows_of(session, "SELECT * FROM table(priced) ORDER BY id") == [(10, "ann", 6), (11, "bob", 7)]
    verified = session.verify("priced")
    assert verified.holds
    assert (verified.expected, verified.found) == (2, 2)


def test_who_waits_for_a_view_reads_what_they_have_written(session: Session) -> None:
    """Of a view of Spark, one of Spark over it, and one of the lookup workers over that."""
    session.run(ORDERS + "INSERT INTO users VALUES (1, 'ann');" + PRICED)
    session.run("CREATE MATERIALIZED VIEW named AS SELECT id, 1 AS user_id FROM priced WHERE name IS NOT NULL")
    session.run(
        "CREATE MATERIALIZED VIEW looked AS SELECT n.id AS id, u.name AS name FROM named AS n "
        "JOIN users AS u ON n.user_id = u.id SETTINGS join_algorithm = 'direct'"
    )
    topics = session.context.topics
    for number in range(8):
        before = topics.ends("orders")
        session.run(f"INSERT INTO orders VALUES ({number}, 1, {number})")
        # Behind the record stands the mark of its transaction.
        [place] = [f"orders[{one}]@{end - 2}" for one, end in topics.ends("orders").items() if end > before[one]]
        for view in ("named", "looked") if number % 2 else ("looked", "named"):
            [done] = session.run(f"WAIT FOR {view} TO INCLUDE {place}")
            assert done == Done(f"{view} includes {place}")
            assert (number,) in rows_of(session, f"SELECT id FROM table({view})")
    for number in range(8, 12):
        session.run(f"INSERT INTO orders VALUES ({number}, 1, {number}); WAIT FOR looked")
        assert (number, "ann") in rows_of(session, "SELECT id, name FROM table(looked)")
    session.run("PAUSE named; INSERT INTO orders VALUES (12, 1, 12); WAIT FOR priced")
    with pytest.raises(SqlError, match='"named", which looked reads, is paused') as refused:
        session.run("WAIT FOR looked")
    assert refused.value.fix == "RESUME named; then wait again"
    session.run("RESUME named; WAIT FOR looked TIMEOUT 120")
    assert (12, "ann") in rows_of(session, "SELECT id, name FROM table(looked)")
    with pytest.raises(SqlError, match=r"there is no record orders\[0\]@1000000: orders\[0\] ends at "):
        session.run("WAIT FOR looked TO INCLUDE orders[0]@1000000")


def test_the_order_of_joins_is_that_of_the_inputs_when_a_view_is_created(session: Session) -> None:
    """And stays: what comes later, another look at the plan, the same statement again change nothing."""
    session.run(
        "CREATE TABLE lines (id int PRIMARY KEY, order_id int); CREATE TABLE kinds (id int PRIMARY KEY, name varchar);"
        + ORDERS
    )
    statement = (
        "CREATE MATERIALIZED VIEW priced AS SELECT l.id AS id, o.amount AS amount, k.name AS name FROM lines AS l "
        "JOIN orders AS o ON l.order_id = o.id JOIN kinds AS k ON o.amount = k.id WHERE k.name = 'a'"
    )

    def explained(what: str) -> str:
        [text] = session.run(what)
        assert isinstance(text, Text)
        return text.text

    assert "Join order" not in explained(f"EXPLAIN {statement}")
    lines = ", ".join(f"({number}, {number % 10})" for number in range(3000))
    session.run(f"INSERT INTO lines VALUES {lines}")
    session.run("INSERT INTO orders VALUES " + ", ".join(f"({number}, 1, {number % 2})" for number in range(10)))
    session.run("INSERT INTO kinds VALUES (0, 'a'), (1, 'b')")
    assert explained(f"EXPLAIN {statement}").startswith("Join order (l (o k))  about ")
    assert "Join order" not in explained(f"EXPLAIN {statement} SETTINGS join_reorder = 0")
    session.run(statement)
    settle(session, "priced")
    definition = session.context.catalog.get("priced").definition
    assert isinstance(definition, CreateView)
    assert definition.settings == {"join_order": "(l (o k))"}
    [query] = session.context.catalog.fragments("priced")
    assert query.plan.startswith("Join order (l (o k))  about ")
    session.run("INSERT INTO kinds VALUES " + ", ".join(f"({number}, 'c')" for number in range(2, 4000)))
    assert plan_of(query, session.context.catalog).fingerprint == query.fingerprint
    assert explained("EXPLAIN priced").startswith("Join order (l (o k))  as SETTINGS join_order has it")
    [again] = session.run(statement.replace("CREATE", "CREATE OR REPLACE"))
    assert isinstance(again, Done)
    assert "has this query already" in again.text
    session.run("PAUSE priced; INSERT INTO lines VALUES (3000, 0); RESUME priced")
    settle(session, "priced")
    verified = session.verify("priced")
    assert verified.holds
    assert verified.found == 1501


def test_a_chain_that_would_keep_more_between_its_joins_is_a_delta_join(session: Session) -> None:
    """It is chosen when the view is created, stays, holds what verify computes, and shows each copy that it keeps."""
    session.run(
        "CREATE TABLE posts (author int, topic int) APPEND ONLY; CREATE TABLE follows (author int, reader int) "
        "APPEND ONLY; CREATE TABLE visits (reader int, page int) APPEND ONLY"
    )
    for table, rows in (("posts", 250), ("follows", 400), ("visits", 300)):
        values = ", ".join(f"({number % 100}, {number % 90})" for number in range(rows))
        session.run(f"INSERT INTO {table} VALUES {values}")
    session.run(
        "CREATE MATERIALIZED VIEW feed AS SELECT p.topic AS topic, v.page AS page FROM posts AS p "
        "JOIN follows AS f ON p.author = f.author JOIN visits AS v ON f.reader = v.reader"
    )
    settle(session, "feed")
    definition = session.context.catalog.get("feed").definition
    assert isinstance(definition, CreateView)
    assert definition.settings == {"delta_join": "(p v f)"}
    [query] = session.context.catalog.fragments("feed")
    assert query.plan.startswith("Delta join (p v f)  about 1,600 rows kept")
    session.run("PAUSE feed; INSERT INTO follows VALUES (1, 1); RESUME feed")
    settle(session, "feed")
    assert session.verify("feed").holds
    [live] = session.run("SHOW STATE OF feed")
    assert isinstance(live, Rows)
    held = {row["part"]: row["rows"] for row in live.table.to_pylist()}
    assert sum(held.values()) == 1602
    assert {part.partition(".")[0] for part in held} == {"step1", "step2"}
    [analyzed] = session.run("EXPLAIN ANALYZE feed")
    assert isinstance(analyzed, Text)
    assert "in 250 + 401 + 300" in analyzed.text


def test_a_row_that_nobody_derived_is_found_by_verify(
    session: Session, running: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    producer.produce("priced", b'{"id":10,"name":null,"amount":5,"_tp_delta":-1}', b'{"id":10}')
    producer.produce("priced", b'{"id":99,"name":"eve","amount":1,"_tp_delta":1}', b'{"id":99}')
    producer.flush()
    difference = session.verify("priced").difference.to_pylist()
    assert sorted((row["difference"], row["times"], row["id"]) for row in difference) == [
        ("missing", 1, 10),
        ("too many", 1, 99),
    ]
    for name, value in running.settings.as_environment().items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(app, ["verify", "priced", "-o", "json"])
    assert result.exit_code == 1
    assert "priced differs: 1 row expected, 1 found" in result.stderr
    assert len(result.stdout.splitlines()) == 2


def verified_by_command(running: Stack, monkeypatch: pytest.MonkeyPatch, view: str) -> tuple[int, str]:
    for name, value in running.settings.as_environment().items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(app, ["verify", view])
    return result.exit_code, result.stderr


def produce(session: Session, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(10) == 0


def test_dead_letters_are_no_difference_and_can_be_put_back(
    session: Session, running: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with a column that the view does not read is no matter to it, and none to verify."""
    session.run(
        "CREATE STREAM sold (id int64, price float64, note string); CREATE STREAM names (id int64, name string)"
    )
    query = "SELECT s.id AS id, n.name AS name FROM sold AS s JOIN names AS n ON s.id = n.id WHERE s.price > 1"
    session.run(f"CREATE MATERIALIZED VIEW dear AS {query}")
    session.run("INSERT INTO names VALUES (1, 'ann'), (2, 'bob'), (3, 'eve'); INSERT INTO sold VALUES (1, 5, '')")
    produce(session, "sold", b'{"id":2,"price":"x"}', b'{"id":3,"price":7,"note":[1]}', b"{no json")
    settle(session, "dear")
    assert rows_of(session, "SELECT id, name FROM table(dear) ORDER BY id") == [(1, "ann"), (3, "eve")]
    verified = session.verify("dear")
    assert (verified.verdict, verified.dead_letters, verified.late, verified.doubts) == (Verdict.HOLDS, 2, 0, ())

    dead_letters = "SELECT source_topic, reason, value FROM table(dear.dead_letter) ORDER BY reason"
    wrong = "column price: expected float64, found text 'x'"
    malformed = "malformed JSON at character 1: unexpected character, expected a string key"
    assert rows_of(session, dead_letters) == [
        ("sold", wrong, '{"id":2,"price":"x"}'),
        ("sold", malformed, "{no json"),
    ]
    assert rows_of(session, "REPLAY dear.dead_letter LIKE 'column price%'") == [
        ("sold", "put back", 1),
        ("sold", "left: another reason", 1),
    ]
    settle(session, "dear")
    counted = [row[:4] for row in rows_of(session, "SHOW DEAD LETTERS FROM dear")]
    assert counted == [("dear.dead_letter", wrong, 2, 1), ("dear.dead_letter", malformed, 1, 0)]
    code, said = verified_by_command(running, monkeypatch, "dear")
    assert (code, said.splitlines()[-2:]) == (
        0,
        [
            "0 rows late, 3 dead-lettered: not counted",
            "dear holds: 2 rows, as a batch over its inputs gives them",
        ],
    )


def test_letters_of_an_earlier_query_of_the_name_are_not_subtracted(session: Session) -> None:
    """The mended query takes what the earlier one could not."""
    session.run("CREATE STREAM priced_at (id int64, price int64)")
    produce(session, "priced_at", b'{"id":1,"price":1.5}')
    view = "CREATE MATERIALIZED VIEW at AS SELECT id, price FROM priced_at SETTINGS seek_to = 'earliest'"
    session.run(view)
    settle(session, "at")
    assert session.verify("at").dead_letters == 1
    session.run("DROP VIEW at; DROP TOPIC at WITH DATA; DROP STREAM priced_at")
    session.run(f"CREATE STREAM priced_at (id int64, price float64); {view}")
    settle(session, "at")
    verified = session.verify("at")
    assert (verified.verdict, verified.dead_letters, verified.found) == (Verdict.HOLDS, 0, 1)


def test_rows_that_the_output_does_not_take_are_no_difference(session: Session) -> None:
    session.run("CREATE STREAM texts (id int64, text string); CREATE STREAM ids (id int64)")
    query = "SELECT t.id AS id, t.text AS text FROM texts AS t JOIN ids ON t.id = ids.id"
    session.run(f"CREATE MATERIALIZED VIEW small AS {query}")
    session.run("PAUSE small")
    entry = ConfigEntry("max.message.bytes", "20000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "small", incremental_configs=[entry])
    admin = clients.admin(session.context.brokers)
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(30)
    session.run("RESUME small; INSERT INTO ids VALUES (1), (2)")
    session.run(f"INSERT INTO texts VALUES (1, 'a'), (2, '{'x' * 30_000}')")
    settle(session, "small")
    assert rows_of(session, "SELECT id FROM table(small)") == [(1,)]
    assert session.verify("small").verdict is Verdict.HOLDS
    produce(session, "small", b'{"id":9,"text":"x"}')
    assert session.verify("small").verdict is Verdict.DIFFERS


NEAR = (
    "SELECT l.k AS k FROM l JOIN r ON l.k = r.k AND"
    " l.at BETWEEN r.at - INTERVAL '1 MINUTE' AND r.at + INTERVAL '1 MINUTE'"
)
GROUPED = "SELECT window_start AS since, sum(k) AS n FROM {} GROUP BY window_start"
TUMBLED = GROUPED.format("tumble(l, at, INTERVAL '10 SECOND')")
HOPPED = GROUPED.format("hop(l, at, INTERVAL '5 SECOND', INTERVAL '10 SECOND')")
CLOSED = f"{TUMBLED} EMIT ON WINDOW CLOSE"
KEPT = "SETTINGS late_topic = 'missed'"


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        pytest.param(f"{NEAR} {KEPT}", 0, "1 row late, 0 dead-lettered: not counted", id="range-kept"),
        pytest.param(NEAR, 3, "1 row of l was late: which ones, only SETTINGS late_topic would tell", id="range"),
        pytest.param(f"{TUMBLED} {KEPT}", 0, "1 row late, 0 dead-lettered: not counted", id="tumble-kept"),
        pytest.param(f"{HOPPED} {KEPT}", 3, "2 rows of l were late: missed does not tell which", id="hop-kept"),
        pytest.param(f"{CLOSED} {KEPT}", 3, "rows that wait for a watermark are not in near yet", id="closed"),
    ],
)
def test_late_rows_are_subtracted_where_they_are_known_and_a_doubt_where_they_are_not(
    session: Session, running: Stack, monkeypatch: pytest.MonkeyPatch, query: str, code: int, said: str
) -> None:
    for name in ("l", "r"):
        session.run(f"CREATE TABLE {name} (k INT, at TIMESTAMP, WATERMARK FOR at AS at) APPEND ONLY")
    session.run(f"CREATE MATERIALIZED VIEW near AS {query}")
    session.run("INSERT INTO l VALUES (1, '2024-01-01 00:00:30'); INSERT INTO r VALUES (1, '2024-01-01 00:00:30')")
    settle(session, "near")
    session.run("INSERT INTO l VALUES (1, '2024-01-01 00:00:12')")
    settle(session, "near")

    found = verified_by_command(running, monkeypatch, "near")
    assert (found[0], said in found[1]) == (code, True), found[1]
    if code == 0:
        produce(session, "near", b'{"k":77,"since":null,"n":77,"_tp_delta":1}')
        assert verified_by_command(running, monkeypatch, "near")[0] == 1
    session.run("DROP VIEW near WITH DATA")
    session.context.topics.delete(["missed"])


def test_a_streaming_select_shows_its_changelog_and_leaves_nothing(session: Session) -> None:
    session.run(ORDERS + "INSERT INTO users VALUES (1, 'ann'); INSERT INTO orders VALUES (10, 1, 5)")
    before = set(session.context.topics.partitions())
    result = session.execute(parse_one(QUERY))
    assert isinstance(result, Live)
    with result.changelog as changelog:
        seen = [row for rows in changelog.batches(until_idle=True) for row in rows.to_pylist()]
        session.run("INSERT INTO users VALUES (1, 'anna')")
        seen = [row for rows in changelog.batches(until_idle=True) for row in rows.to_pylist()]
    assert [tuple(row.values()) for row in seen] == [(10, "ann", 1), (10, "ann", -1), (10, "anna", 1)]
    assert session.context.catalog.queries() == []
    left = set(session.context.topics.partitions()) - before
    assert not any(name.startswith("select_") for name in left)


def test_a_streaming_select_ends_with_its_limit_and_leaves_nothing(session: Session) -> None:
    """Nobody says that the input is at an end: the query itself is, after so many changes."""
    session.run(ORDERS + "INSERT INTO users VALUES (1, 'ann'); INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6)")
    before = set(session.context.topics.partitions())
    result = session.execute(parse_one(f"{QUERY} LIMIT 3"))
    assert isinstance(result, Live)
    seen: list[tuple[object, ...]] = []
    with result.changelog as changelog:
        for rows in changelog.batches(until_idle=False):
            if rows.num_rows and not seen:
                session.run("INSERT INTO users VALUES (1, 'anna')")
            seen += [tuple(row.values()) for row in rows.to_pylist()]
    assert len(seen) == 3
    assert {(10, "ann", 1), (11, "ann", 1)} < set(seen)
    assert session.context.catalog.queries() == []
    left = set(session.context.topics.partitions()) - before
    assert not any(name.startswith("select_") for name in left)


def test_a_select_over_a_view_waits_for_the_view(session: Session) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6)")
    assert sorted(changelog_of(session, "SELECT id, amount FROM priced WHERE amount > 5")) == [(11, 6, 1)]


def test_a_view_into_a_keyed_stream_upserts_it(session: Session) -> None:
    session.run(ORDERS + "CREATE MUTABLE STREAM best (id int, name string) PRIMARY KEY id")
    session.run(f"CREATE MATERIALIZED VIEW into_best INTO best AS {QUERY}")
    session.run("INSERT INTO users VALUES (1, 'ann'), (2, 'bob'); INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6)")
    settle(session, "into_best")
    session.run("UPDATE orders SET user_id = 2 WHERE id = 10; DELETE FROM orders WHERE id = 11")
    settle(session, "into_best")
    assert rows_of(session, "SELECT id, name FROM table(best)") == [(10, "bob")]
    with pytest.raises(Unsupported, match="is used by into_best"):
        session.run("DROP STREAM best")


def test_pause_and_resume(session: Session) -> None:
    session.run(ORDERS + PRICED)
    assert session.run("PAUSE priced") == [Done("paused priced")]
    session.run("INSERT INTO orders VALUES (10, 1, 5)")
    assert [row[2] for row in rows_of(session, "SHOW QUERIES")] == ["paused"]
    assert session.run("RESUME priced") == [Done("resumed priced")]
    settle(session, "priced")
    assert rows_of(session, "SELECT id FROM table(priced)") == [(10,)]


def test_a_view_says_how_far_it_is_behind(session: Session) -> None:
    session.run(ORDERS + "INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 1, 7);" + PRICED)
    definition = session.context.catalog.get("priced").materialized_view
    assert definition is not None
    backfill = Backfill.begun(session.context, plan_query("priced", definition, session.context.catalog))
    assert backfill.look().total >= 3
    settle(session, "priced")
    assert backfill.look().left == 0
    session.run("PAUSE priced; INSERT INTO orders VALUES (13, 1, 5)")
    assert not backfill.goes_on

    def behind() -> dict[str, object]:
        [listed] = session.run("SHOW VIEWS LIKE 'priced'")
        assert isinstance(listed, Rows)
        return {name: listed.table.column(name)[0].as_py() for name in NO_BACKLOG}

    found = behind()
    assert isinstance(found["backlog"], int)
    assert found["backlog"] >= 1
    assert str(found["read"]).endswith(" %")
    assert found["time left"] == ""
    session.run("RESUME priced")
    settle(session, "priced")
    assert behind() == NO_BACKLOG


def test_a_query_that_fails_says_why(session: Session) -> None:
    session.run("CREATE STREAM a (id int64, note string); CREATE STREAM b (id int64)")
    query = "SELECT a.id AS id FROM a JOIN b ON a.id = b.id SETTINGS join_max_buffered_bytes = 1"
    session.run(f"CREATE MATERIALIZED VIEW small AS {query}")
    session.run("INSERT INTO a VALUES (1, 'x')")
    with pytest.raises(SqlError, match="join_max_buffered_bytes"):
        settle(session, "small")
    assert [row[2] for row in rows_of(session, "SHOW QUERIES")] == ["failed"]


def test_late_rows_are_counted_by_input(session: Session) -> None:
    for name in ("l", "r"):
        session.run(f"CREATE TABLE {name} (k INT, at TIMESTAMP, WATERMARK FOR at AS at) APPEND ONLY")
    query = (
        "SELECT l.k AS k FROM l JOIN r ON l.k = r.k AND l.at BETWEEN r.at AND r.at + INTERVAL '1 MINUTE'"
        " SETTINGS late_topic = 'behind'"
    )
    session.run(f"CREATE MATERIALIZED VIEW near AS {query}")
    session.run("INSERT INTO l VALUES (1, '2024-01-01 00:00:30')")
    settle(session, "near")
    session.run("INSERT INTO l VALUES (1, '2024-01-01 00:00:29'); INSERT INTO r VALUES (1, '2024-01-01 00:00:00')")
    settle(session, "near")

    shown = session.execute(parse_one("SHOW QUERIES"))
    assert isinstance(shown, Rows)
    [query] = shown.table.to_pylist()
    assert (query["rows out"], query["late"]) == (1, "l 1")
    stands = r"l 2024-01-01 00:00:30 \(partition \d\), r 2024-01-01 00:00:00 \(partition \d\)"
    assert re.fullmatch(stands, query["watermark"]), query["watermark"]
    analyzed = session.run("EXPLAIN ANALYZE near")[-1]
    assert "watermark 2024-01-01 00:00:30 (partition" in str(analyzed)
    assert "behind" in session.context.topics.partitions()


def test_a_view_whose_query_cannot_start_is_not_created(session: Session) -> None:
    session.run("CREATE STREAM a (id int64)")
    session.context.topics.delete(["a"])
    with pytest.raises(SqlError, match='topic "a" does not exist'):
        session.run("CREATE MATERIALIZED VIEW orphan AS SELECT id FROM a")
    assert session.context.catalog.find("orphan") is None
    assert "orphan" not in session.context.topics.partitions()


def test_dropping_a_view_removes_its_checkpoint_and_its_topic_only_with_data(session: Session, running: Stack) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    checkpoints = Path(running.settings.checkpoints)
    assert len(list(checkpoints.glob("[0-9]*"))) == 1
    stays = "the records stay in the topic priced, DROP TOPIC priced WITH DATA deletes them"
    assert session.run("DROP VIEW priced") == [Done(f"dropped view priced; {stays}")]
    assert [path.name for path in checkpoints.iterdir()] == ["catalogs"]
    # No record was rejected, so there is nothing in the topic of dead letters to be kept.
    assert {"priced", "priced.dead_letter"} & session.context.topics.partitions().keys() == {"priced"}
    with pytest.raises(SqlError, match="it holds records"):
        session.run(PRICED)
    session.run(PRICED.rstrip().rstrip(";") + " WITH DATA")
    settle(session, "priced")
    assert rows_of(session, "SELECT id FROM table(priced)") == [(10,)]
    deleted = "deleted with all records: priced"
    assert session.run("DROP VIEW priced WITH DATA") == [Done(f"dropped view priced; {deleted}")]
    assert not [topic for topic in session.context.topics.partitions() if topic.startswith("priced")]


def test_dead_letters_are_kept_like_rows(session: Session) -> None:
    session.run(ORDERS + PRICED)
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    producer.produce("orders", b'{"id":10,"user_id":"many"}', b'{"id":10}')
    producer.flush()
    settle(session, "priced")
    [done] = session.run("DROP VIEW priced")
    assert isinstance(done, Done)
    assert "the records stay in the topics priced, priced.dead_letter" in done.text
    session.run("DROP TOPIC priced.dead_letter WITH DATA; DROP TOPIC priced WITH DATA")
    assert not [topic for topic in session.context.topics.partitions() if topic.startswith("priced")]


def test_a_view_is_replaced_in_its_topic_or_by_an_empty_one(session: Session) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    again = PRICED.replace("CREATE", "CREATE OR REPLACE").rstrip().rstrip(";")
    [same] = session.run(again)
    assert isinstance(same, Done)
    assert same.text.startswith("view priced has this query already, running; it goes on")
    session.run("CREATE MATERIALIZED VIEW amounts AS SELECT amount FROM priced")
    [done] = session.run(again.replace("o.amount AS", "o.amount + 1 AS"))
    assert done == Done("altered view priced, running: 1 row added, 1 taken back")
    settle(session, "amounts")
    assert rows_of(session, "SELECT amount FROM table(amounts)") == [(6,)]
    with pytest.raises(Unsupported, match="used by amounts"):
        session.run(again + " WITH DATA")
    session.run("DROP VIEW amounts")
    with pytest.raises(Unsupported, match="would have another form") as refused:
        session.run(
            "CREATE OR REPLACE MATERIALIZED VIEW priced AS SELECT user_id, count(*) AS n FROM orders GROUP BY 1"
        )
    assert "WITH DATA" in refused.value.fix
    [query] = session.context.catalog.queries()
    assert query.desired is Desired.RUNNING
    [done] = session.run(again.replace("o.amount AS", "o.amount + 2 AS") + " WITH DATA")
    assert done == Done("replaced materialized view priced, running, topic priced")
    settle(session, "priced")
    assert rows_of(session, "SELECT id, amount FROM table(priced)") == [(10, 7)]


def test_a_view_whose_successor_does_not_start_goes_on(session: Session) -> None:
    session.run("CREATE STREAM clicks (id int64)")
    session.run("CREATE MATERIALIZED VIEW even AS SELECT id FROM clicks WHERE id % 2 = 0 SETTINGS seek_to = 'earliest'")
    session.run("INSERT INTO clicks VALUES (1), (2)")
    settle(session, "even")
    before = session.context.catalog.get("even")
    # What the topic has for partitions is asked only where the query starts.
    later = "CREATE OR REPLACE MATERIALIZED VIEW even AS SELECT id FROM clicks WHERE id > 9 SETTINGS seek_to = '1,2,3'"
    with pytest.raises(
        SqlError, match='"even" does not start, and the view goes on as it was: seek_to gives 3 offsets'
    ):
        session.run(f"{later} WITH DATA")
    assert session.context.catalog.get("even") == before
    [query] = session.context.catalog.queries(dropped=True)
    assert (query.name, query.desired) == ("even", Desired.RUNNING)
    assert not [topic for topic in session.context.topics.partitions() if "trial" in topic]
    session.run("INSERT INTO clicks VALUES (3), (4)")
    settle(session, "even")
    assert rows_of(session, "SELECT id FROM table(even) ORDER BY id") == [(2,), (4,)]
    assert session.verify("even").holds


def test_a_view_that_is_replaced_under_load_is_that_of_its_new_query(session: Session, running: Stack) -> None:
    session.run(ORDERS + PRICED)
    session.run("INSERT INTO users VALUES (0, 'ann'), (1, 'bob'); INSERT INTO orders VALUES (0, 0, 0)")
    settle(session, "priced")
    replaced = Event()

    def load() -> int:
        """Orders, each of them moved to another user, for as long as the view is being replaced, and a while longer."""
        with Session.open(running.settings) as other:
            number = further = 0
            while further < 5:
                further += replaced.is_set()
                number += 1
                other.run(f"INSERT INTO orders VALUES ({number}, {number % 3}, {number})")
                other.run(f"UPDATE orders SET user_id = {(number + 1) % 3} WHERE id = {number}")
        return number

    with ThreadPoolExecutor(1) as beside:
        orders = beside.submit(load)
        try:
            again = PRICED.replace("CREATE", "CREATE OR REPLACE").rstrip().rstrip(";")
            session.run(again.replace("o.amount AS", "o.amount + 1 AS") + " WITH DATA")
        finally:
            replaced.set()
    settle(session, "priced")
    names = {0: "ann", 1: "bob"}
    assert rows_of(session, "SELECT id, name, amount FROM table(priced) ORDER BY id") == [
        (0, "ann", 1),
        *((number, names.get((number + 1) % 3), number + 1) for number in range(1, orders.result() + 1)),
    ]
    held: Counter[str] = Counter()
    for row in values(session.context.brokers.servers, "priced"):
        delta = row.pop("_tp_delta")
        assert isinstance(delta, int)
        held[repr(row)] += delta
        assert held[repr(row)] >= 0


def test_of_two_sessions_that_replace_a_view_at_once_one_has_all_of_it(session: Session, running: Stack) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    again = PRICED.replace("CREATE", "CREATE OR REPLACE").rstrip().rstrip(";")
    start = Barrier(2)

    def replace(more: int) -> str:
        with Session.open(running.settings) as other:
            start.wait()
            try:
                other.run(again.replace("o.amount AS", f"o.amount + {more} AS") + " WITH DATA")
            except SqlError as refused:
                return refused.what
        return "replaced"

    with ThreadPoolExecutor(2) as both:
        outcomes = list(both.map(replace, (100, 200)))
    assert outcomes.count("replaced") == 1
    [refused] = [outcome for outcome in outcomes if outcome != "replaced"]
    assert refused == 'another process has just changed "priced"'
    settle(session, "priced")
    amount = 5 + (100, 200)[outcomes.index("replaced")]
    assert rows_of(session, "SELECT id, amount FROM table(priced)") == [(10, amount)]
    assert [query.name for query in session.context.catalog.queries(dropped=True)] == ["priced"]


def test_a_view_of_new_rows_goes_on_in_its_topic(session: Session) -> None:
    session.run("CREATE STREAM clicks (id int64)")
    [done] = session.run("CREATE MATERIALIZED VIEW even AS SELECT id FROM clicks WHERE id % 2 = 0")
    assert isinstance(done, Done)
    assert "it reads clicks from now on; add SETTINGS seek_to = 'earliest' to read from the beginning" in done.text
    live = session.execute(parse_one("SELECT id FROM clicks"))
    assert isinstance(live, Live)
    assert "it reads clicks from now on" in live.notes[0]
    session.run("INSERT INTO clicks VALUES (1), (2)")
    settle(session, "even")
    session.run("CREATE OR REPLACE MATERIALIZED VIEW even AS SELECT id FROM clicks WHERE id % 4 = 0")
    session.run("INSERT INTO clicks VALUES (6), (8)")
    settle(session, "even")
    assert rows_of(session, "SELECT id FROM table(even) ORDER BY id") == [(2,), (8,)]


def test_a_view_of_new_rows_goes_on_in_the_stream_it_writes_into(session: Session) -> None:
    session.run("CREATE STREAM clicks (id int64); CREATE STREAM found (id int64)")
    session.run("CREATE MATERIALIZED VIEW even INTO found AS SELECT id FROM clicks WHERE id % 2 = 0")
    session.run("INSERT INTO clicks VALUES (1), (2)")
    settle(session, "even")
    session.run("CREATE OR REPLACE MATERIALIZED VIEW even INTO found AS SELECT id FROM clicks WHERE id % 4 = 0")
    session.run("INSERT INTO clicks VALUES (6), (8)")
    settle(session, "even")
    assert rows_of(session, "SELECT id FROM table(found) ORDER BY id") == [(2,), (8,)]


def test_a_running_view_does_not_notice_a_column_that_is_added(session: Session) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    session.run("ALTER TABLE orders ADD COLUMN note varchar DEFAULT '-'; PAUSE priced; RESUME priced")
    session.run("INSERT INTO orders VALUES (11, 1, 6, 'new')")
    settle(session, "priced")
    assert rows_of(session, "SELECT id, amount FROM table(priced) ORDER BY id") == [(10, 5), (11, 6)]
    assert rows_of(session, "SELECT id, note FROM table(orders) ORDER BY id") == [(10, "-"), (11, "new")]
    with pytest.raises(Unsupported, match="priced would read"):
        session.run("ALTER TABLE orders DROP COLUMN amount")
    session.run("ALTER TABLE orders DROP COLUMN note")


def test_of_two_sessions_that_create_a_view_at_once_one_has_it(session: Session, running: Stack) -> None:
    session.run(ORDERS + "INSERT INTO orders VALUES (10, 1, 5)")
    start = Barrier(2)

    def create(_number: int) -> str:
        with Session.open(running.settings) as other:
            start.wait()
            try:
                other.run(PRICED)
            except SqlError as refused:
                return refused.what
        return "created"

    with ThreadPoolExecutor(2) as both:
        outcomes = sorted(both.map(create, range(2)))
    assert outcomes[0] == "created"
    assert outcomes[1] in ('there is a view "priced" already', "another process has just created the same name")
    settle(session, "priced")
    assert rows_of(session, "SELECT id FROM table(priced)") == [(10,)]


def test_one_shot_joins_cannot_be_verified(session: Session) -> None:
    session.run("CREATE STREAM a (id int64); CREATE MUTABLE STREAM b (id int64) PRIMARY KEY id")
    session.run("CREATE MATERIALIZED VIEW once AS SELECT a.id AS id FROM a JOIN b ON a.id = b.id")
    with pytest.raises(Undecidable, match="was joined once"):
        session.verify("once")


def test_terminate_keeps_the_view_and_its_rows(session: Session) -> None:
    session.run(ORDERS + PRICED + "INSERT INTO orders VALUES (10, 1, 5)")
    settle(session, "priced")
    assert session.run("TERMINATE priced") == [
        Done("terminated priced; its topic stays, and its view as a name for it")
    ]
    assert session.context.catalog.queries() == []
    assert rows_of(session, "SELECT id FROM table(priced)") == [(10,)]


def killed_select(session: Session, running: Stack) -> Query:
    """The query of a streaming SELECT whose console was killed."""
    argv = [sys.executable, "-m", "dovetail.services.cli.main", "sql", "-c", QUERY]
    environment = os.environ | running.settings.as_environment()
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("Ctrl-C ends it" in line for line in process.stderr)
        process.kill()
    [query] = session.context.catalog.queries()
    return query


def test_a_select_whose_console_was_killed_can_be_terminated(session: Session, running: Stack) -> None:
    session.run(ORDERS)
    query = killed_select(session, running)
    assert session.run(f"TERMINATE {query.name}") == [Done(f"terminated {query.name}")]
    assert query.topic not in session.context.topics.partitions()


def test_a_select_whose_console_was_killed_ends_by_itself(session: Session, running: Stack) -> None:
    session.run(ORDERS)
    before = set(session.context.topics.partitions())
    query = killed_select(session, running)
    assert query.topic in session.context.topics.partitions()
    end = time.monotonic() + 2 * LEASE_S
    while session.context.catalog.queries(dropped=True) and time.monotonic() < end:
        time.sleep(0.5)
    assert session.context.catalog.queries(dropped=True) == []
    assert not [topic for topic in set(session.context.topics.partitions()) - before if topic.startswith("select_")]


def test_ctrl_c_ends_a_streaming_select_and_cleans_up(session: Session, running: Stack) -> None:
    session.run(ORDERS)
    argv = [sys.executable, "-m", "dovetail.services.cli.main", "sql", "-c", QUERY]
    environment = os.environ | running.settings.as_environment()
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("Ctrl-C ends it" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert "cancelled" in process.stderr.read()
    assert process.returncode == 0
    assert session.context.catalog.queries() == []


def test_a_query_of_fragments_is_one_view(session: Session, tmp_path: Path) -> None:
    """A join that Spark keeps and a lookup: two entries of the catalog, started, drained and dropped as one."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE cities (name text PRIMARY KEY, country text)")
        database.execute("INSERT INTO cities VALUES ('Rome', 'Italy')")
    session.run(ORDERS.replace("name varchar", "city varchar"))
    session.run(
        "CREATE DICTIONARY cities (name string, country string) PRIMARY KEY name "
        f"SOURCE(SQLITE(PATH '{file}' TABLE 'cities')) LAYOUT(DIRECT())"
    )
    session.run(
        "CREATE MATERIALIZED VIEW placed AS SELECT o.id AS id, u.city AS city, c.country AS country FROM orders AS o "
        "JOIN users AS u ON o.user_id = u.id LEFT JOIN cities AS c ON u.city = c.name"
    )
    session.run("INSERT INTO users VALUES (1, 'Rome'); INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6)")
    engines = {row[0]: row[1] for row in rows_of(session, "SHOW QUERIES")}
    definition = session.context.catalog.get("placed").definition
    assert isinstance(definition, CreateView)
    await_caught_up(session.context, plan_query("placed", definition, session.context.catalog))
    assert rows_of(session, "SELECT id, city, country FROM table(placed) ORDER BY id") == [
        (10, "Rome", "Italy"),
        (11, "Rome", "Italy"),
    ]
    assert engines == {"placed.f1": "spark", "placed": "faust"}
    session.run("PAUSE placed; RESUME placed; DROP VIEW placed")
    assert [topic for topic in session.context.topics.partitions() if topic.startswith("placed")] == ["placed"]
    session.run("DROP TOPIC placed WITH DATA")
    assert not [topic for topic in session.context.topics.partitions() if topic.startswith("placed")]
