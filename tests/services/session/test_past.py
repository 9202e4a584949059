"""``AS OF`` and ``changes()`` beside the rows that stood there by hand, and what they refuse."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
)

from dovetail.changelog.errors import DovetailError, SqlError, Unsupported
from dovetail.services.session import Rows, Session
from dovetail.sql.past import AtTime, moment_of_text
from tests.services.session.conftest import settle
from tests.spark.kafka import send

pytestmark = pytest.mark.services

Content = Counter[tuple[object, ...]]


@pytest.fixture
def session(session_of_runners: Session) -> Session:
    return session_of_runners


def answer(session: Session, query: str) -> Content:
    result = session.run(query)[-1]
    assert isinstance(result, Rows)
    return Counter(tuple(row.values()) for row in result.table.to_pylist())


def net(changes: Content) -> Content:
    """By row, what its ``_tp_delta`` add up to, which come one by one."""
    found: Content = Counter()
    for (*row, delta), count in changes.items():
        assert delta in (1, -1)
        found[tuple(row)] += int(str(delta)) * count
    return Counter({row: count for row, count in found.items() if count})


def difference(before: Content, after: Content) -> Content:
    found = Counter(after)
    found.subtract(before)
    return Counter({row: count for row, count in found.items() if count})


class Producing:
    """Writes records one by one, and keeps what stood there after each: (milliseconds, rows)."""

    def __init__(self, session: Session, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": session.context.brokers.servers})
        self._topic = topic
        self.history: list[tuple[int, Content]] = []

    def write(self, key: str | None, value: dict[str, object] | None, rows: Content) -> None:
        self._producer.produce(self._topic, None if value is None else json.dumps(value), key)
        self._producer.flush()
        time.sleep(0.003)
        self.history.append((time.time_ns() // 1_000_000, Counter(rows)))
        time.sleep(0.003)


def append(producing: Producing, chance: random.Random) -> None:
    rows: Content = Counter()
    for _ in range(30):
        row = (chance.randrange(3), chance.choice([None, "a", "b"]))
        rows[row] += 1
        producing.write(None, {"id": row[0], "name": row[1]}, rows)


def upsert(producing: Producing, chance: random.Random) -> None:
    rows: dict[int, tuple[int, str | None]] = {}
    for _ in range(30):
        key = chance.randrange(4)
        if chance.random() < 0.3:
            rows.pop(key, None)
            producing.write(str(key), None, Counter(rows.values()))
        else:
            rows[key] = (key, chance.choice([None, "a", "b"]))
            producing.write(str(key), {"id": key, "name": rows[key][1]}, Counter(rows.values()))


def changelog(producing: Producing, chance: random.Random) -> None:
    rows: Content = Counter()
    for _ in range(30):
        taken = bool(rows) and chance.random() < 0.4
        row = chance.choice(sorted(rows.elements(), key=str)) if taken else (chance.randrange(3), chance.choice("ab"))
        rows[row] += -1 if taken else 1
        rows = +rows
        producing.write(None, {"id": row[0], "name": row[1], "_tp_delta": -1 if taken else 1}, rows)


@pytest.mark.parametrize(
    ("declared", "produce"),
    [
        ("STREAM s (id int64, name string) SETTINGS shards = 1", append),
        ("MUTABLE STREAM s (id int64, name string) PRIMARY KEY id SETTINGS shards = 1, history = '1h'", upsert),
        ("STREAM s (id int64, name string) SETTINGS mode = 'changelog', shards = 1", changelog),
    ],
    ids=["append", "upsert", "changelog"],
)
def test_rows_of_any_moment_are_those_that_stood_there(
    session: Session, declared: str, produce: Callable[[Producing, random.Random], None]
) -> None:
    chance = random.Random(declared)
    session.run(f"CREATE {declared}")
    producing = Producing(session, "s")
    produce(producing, chance)
    for time_ms, rows in chance.sample(producing.history, 8):
        assert answer(session, f"SELECT id, name FROM table(s) AS OF '{AtTime(time_ms)}'") == rows
        assert answer(session, f"SELECT id, name FROM s FOR SYSTEM_TIME AS OF {time_ms}") == rows
    for _ in range(8):
        (first_ms, before), (last_ms, after) = sorted(chance.sample(producing.history, 2), key=lambda one: one[0])
        query = f"SELECT * FROM changes(s, {first_ms}, '{AtTime(last_ms)}')"
        assert net(answer(session, query)) == difference(before, after)
        assert net(answer(session, f"SELECT * FROM changes(s, {last_ms})")) == difference(
            after, producing.history[-1][1]
        )
    [(_, end)] = session.context.topics.ends("s").items()
    for place in chance.sample(range(end), 4):
        assert answer(session, f"SELECT id, name FROM table(s) AS OF '0@{place}'") == producing.history[place][1]


def test_a_batch_of_a_view_is_seen_whole_or_not_at_all(session: Session) -> None:
    """Each batch of producers writes all rows anew, in one transaction; and so does the view."""
    session.run("CREATE MUTABLE STREAM prices (item int64, price int64) PRIMARY KEY item")
    session.run("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS items, sum(price) AS price FROM prices")
    started = time.time_ns() // 1_000_000
    for price in range(12):
        values = ", ".join(f"({item}, {price})" for item in range(50))
        session.run(f"INSERT INTO prices (item, price) VALUES {values}")
        time.sleep(0.2)
    settle(session, "total")
    [first, *_] = session.run("SELECT * FROM changes(total, 0)")
    assert isinstance(first, Rows)
    assert first.table.num_rows == 1, "the row that stands; all others came and went"
    ended, seen = time.time_ns() // 1_000_000, 0
    for time_ms in random.Random(5).sample(range(started, ended), 40):
        with suppress(SqlError):  # before the first batch there is nothing
            rows = answer(session, f"SELECT items, price FROM table(total) AS OF {time_ms}")
            assert sum(rows.values()) == 1
            seen += 1
    assert seen > 20


def test_moments_are_written_in_many_ways(session: Session) -> None:
    session.run("CREATE STREAM s (id int64) SETTINGS shards = 1")
    two_hours_ago = time.time_ns() // 1_000_000 - 7_200_000
    send(session.context.brokers.servers, "s", [{"id": 1}], times_ms=[two_hours_ago])
    session.run("INSERT INTO s (id) VALUES (2)")
    for moment in ("now64()", "'0@2'"):
        assert answer(session, f"SELECT id FROM table(s) AS OF {moment} AS x WHERE x.id > 0") == Counter([(1,), (2,)])
    for moment in ("now64() - INTERVAL '3600' SECOND", "'0@0'", "now64() - INTERVAL '3600000' MILLISECOND"):
        assert answer(session, f"SELECT id FROM table(s) AS OF {moment}") == Counter([(1,)])
    both = "SELECT x.id, y.id FROM table(s) AS OF '0@0' AS x JOIN s FOR SYSTEM_TIME AS OF '0@2' AS y ON x.id < y.id"
    assert answer(session, both) == Counter([(1, 2)])
    assert answer(session, "WITH early AS (SELECT * FROM table(s) AS OF '0@0') SELECT count() FROM early") == Counter(
        [(1,)]
    )
    assert answer(session, "SELECT of.id FROM table(s) AS of") == Counter([(1,), (2,)])


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM table(s) AS OF '2001-01-01'", "nothing had been written to s at 2001-01-01"),
        ("SELECT * FROM table(s) AS OF '2999-01-01'", "the moment is yet to come"),
        ("SELECT * FROM table(s) AS OF 99999999999999999999", "the moment is yet to come"),
        ("SELECT * FROM table(s) AS OF 1e400", "the moment is yet to come"),
        ("SELECT * FROM table(s) AS OF 'yesterday'", "'yesterday' is no moment"),
        ("SELECT * FROM table(s) AS OF 1 + 1", "1 + 1 is no moment"),
        (f"SELECT * FROM table(s) AS OF '0@{'9' * 5000}'", "is no moment"),
        ("SELECT * FROM table(s) AS OF '0@9'", "partition 0 of s has no record 9 yet: it ends before 2"),
        ("SELECT * FROM table(s) AS OF '0@0, 1@0'", "s has the partitions 0, and of each"),
        ("SELECT * FROM table(s) AS OF '0@0, 0@0'", "names a partition twice"),
        ("SELECT * FROM changes(s, '0@0', 0)", "0@0 is later than 1970-01-01"),
        ("SELECT * FROM changes(s)", "changes() takes a stream or view"),
        ("SELECT * FROM changes(t, 0)", 'there is no stream or view "t"'),
        ("WITH c AS (SELECT 1) SELECT * FROM c FOR SYSTEM_TIME AS OF 5", "c has no topic"),
        ("SELECT * FROM plain FOR SYSTEM_TIME AS OF 5", "plain has no topic"),
        (
            "SELECT * FROM s JOIN changes(s, 0) AS c ON s.id = c.id",
            "changes() is for queries",
        ),
        (
            "SELECT * FROM s JOIN table(s) AS OF 5 AS c ON s.id = c.id",
            "AS OF 5 is for queries",
        ),
        ("SELECT * FROM s JOIN s FOR SYSTEM_TIME AS OF '0@0' AS c ON s.id = c.id", "s AS OF '0@0' is for queries"),
        ("SELECT * FROM s FOR SYSTEM_TIME AS OF 5 AS c JOIN s ON s.id = c.id", "s AS OF 5 is for queries"),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM changes(s, 0)", ""),
        ("SELECT * FROM keyed FOR SYSTEM_TIME AS OF '0@0'", "keyed is compacted"),
        ("SELECT * FROM table(s) AS OF (SELECT max(_tp_time) FROM table(s))", ""),
    ],
)
def test_what_nobody_knows_is_refused(session: Session, query: str, reason: str) -> None:
    session.run("CREATE STREAM s (id int64) SETTINGS shards = 1; INSERT INTO s (id) VALUES (1)")
    session.run("CREATE VIEW plain AS SELECT id FROM s")
    session.run("CREATE MUTABLE STREAM keyed (id int64, n int64) PRIMARY KEY id SETTINGS shards = 1")
    session.run("INSERT INTO keyed (id, n) VALUES (1, 1); INSERT INTO keyed (id, n) VALUES (1, 2)")
    with pytest.raises(DovetailError) as refused:
        session.run(query)
    assert reason in refused.value.what


def test_what_retention_has_taken_is_refused(session: Session) -> None:
    session.run("CREATE STREAM s (id int64) SETTINGS shards = 1; INSERT INTO s (id) VALUES (1), (2), (3)")
    session.run("CREATE STREAM c (id int64) SETTINGS mode = 'changelog', shards = 1")
    session.run("INSERT INTO c (id, _tp_delta) VALUES (1, 1), (2, 1), (3, 1)")
    admin = AdminClient({"bootstrap.servers": session.context.brokers.servers})
    cut = [TopicPartition("s", 0, 2), TopicPartition("c", 0, 2)]
    for deleted in admin.delete_records(cut).values():
        deleted.result()
    assert answer(session, "SELECT id FROM table(s) AS OF '0@2'") == Counter([(3,)])
    for query in ("table(s) AS OF '0@0'", "table(s) AS OF 5", "changes(s, 5)"):
        with pytest.raises(Unsupported, match="are gone: retention has taken them"):
            answer(session, f"SELECT id FROM {query}")
    with pytest.raises(Unsupported, match="the first records of c are gone"):
        answer(session, "SELECT id FROM table(c) AS OF '0@2'")


def test_what_was_replaced_before_the_topic_kept_it_is_refused(session: Session) -> None:
    declared = "MUTABLE STREAM s (id int64, n int64) PRIMARY KEY id SETTINGS shards = 1"
    session.run(f"CREATE {declared}; INSERT INTO s (id, n) VALUES (1, 1); INSERT INTO s (id, n) VALUES (1, 2)")
    session.run(f"CREATE OR REPLACE {declared}, history = '1h'")
    with pytest.raises(Unsupported, match="s is compacted"):
        answer(session, "SELECT n FROM table(s) AS OF '0@0'")
    session.run("INSERT INTO s (id, n) VALUES (1, 3); INSERT INTO s (id, n) VALUES (1, 4)")
    assert answer(session, "SELECT n FROM table(s) AS OF '0@4'") == Counter([(3,)])
    assert answer(session, "SELECT n FROM table(s)") == Counter([(4,)])


def test_moments_of_texts() -> None:
    assert moment_of_text("2026-01-01 00:00:00.5", "") == AtTime(1767225600500)
    assert moment_of_text("2026-01-01T01:00:00+01:00", "") == moment_of_text("2026-01-01", "")
    assert str(moment_of_text("2026-01-01 10:00:00.123456", "")) == "2026-01-01 10:00:00.123"
