"""INSERT, UPDATE, DELETE and the contents that follow from them, through a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from confluent_kafka import Producer

from dovetail.broker.reader import TopicReader
from dovetail.changelog.errors import DovetailError, SqlError, Unsupported
from dovetail.services.session import Done, Session
from tests.services.conftest import Ask

pytestmark = pytest.mark.services


def records(session: Session, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of the records of a topic, partition by partition."""
    reader = TopicReader(session.context.brokers, topic)
    found = [row for batch in reader.until(session.context.topics.ends(topic)) for row in batch.to_pylist()]
    return [(row["key"], row["value"]) for row in sorted(found, key=lambda row: (row["partition"], row["offset"]))]


def failure(session: Session, statement: str) -> DovetailError:
    with pytest.raises(DovetailError) as raised:
        session.run(statement)
    return raised.value


def test_append_records_have_no_key(session: Session) -> None:
    session.run("CREATE STREAM s (id int64, note string); INSERT INTO s VALUES (1, 'it''s'), (2, NULL)")
    found = records(session, "s")
    assert sorted(value or b"" for _, value in found) == [b'{"id":1,"note":"it\'s"}', b'{"id":2,"note":null}']
    assert {key for key, _ in found} == {None}


def test_keyed_records_carry_their_primary_key(session: Session) -> None:
    session.run("CREATE MUTABLE STREAM m (v int, a string, b string) PRIMARY KEY (a, b) SETTINGS shards = 1")
    session.run("INSERT INTO m VALUES (1, 'x', 'y'), (2, 'x', 'y'), (1, 'x', 'y')")
    assert records(session, "m") == [
        (b'{"a":"x","b":"y"}', b'{"v":1,"a":"x","b":"y"}'),
        (b'{"a":"x","b":"y"}', b'{"v":2,"a":"x","b":"y"}'),
        (b'{"a":"x","b":"y"}', b'{"v":1,"a":"x","b":"y"}'),
    ]


def test_a_row_that_is_too_large_is_refused_and_not_lost_without_a_word(session: Session) -> None:
    session.run("CREATE STREAM wide (text string)")
    assert "refuses a record" in str(failure(session, f"INSERT INTO wide VALUES ('a'), ('{'x' * 1_045_000}')"))


def test_every_type_of_literal_comes_back(session: Session, ask: Ask) -> None:
    session.run(
        "CREATE STREAM s (i int64, d decimal(10, 2), f float64, b bool, t datetime64(3), "
        "l array(int32), m map(string, int32), u tuple(x int32, y string))"
    )
    session.run("INSERT INTO s VALUES (-7, 1.10, 2.5, true, '2026-01-31 12:00:00.5', [1, 2], {'a': 1}, (3, 'z'))")
    assert ask("SELECT i, d, f, b, t, l, m, u FROM table(s)") == [
        (
            -7,
            Decimal("1.10"),
            2.5,
            True,
            datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC),
            [1, 2],
            [("a", 1)],
            {"x": 3, "y": "z"},
        )
    ]


def test_missing_columns_take_their_default(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64, n int32 DEFAULT 5, note string); INSERT INTO s(id) VALUES (1)")
    assert ask("SELECT id, n, note FROM table(s)") == [(1, 5, None)]


def test_all_columns_but_some_are_named_by_those(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64, n int32 DEFAULT 5, note string)")
    session.run(
        "INSERT INTO s (* EXCEPT n) VALUES (1, 'a'); INSERT INTO s (* EXCEPT (n, note)) SELECT id FROM table(s)"
    )
    session.run("INSERT INTO s (* EXCEPT _tp_time) VALUES (2, 6, 'b')")
    assert sorted(ask("SELECT id, n, note FROM table(s)"), key=str) == [(1, 5, "a"), (1, 5, None), (2, 6, "b")]
    assert 'has no column "m"' in str(failure(session, "INSERT INTO s (* EXCEPT m) VALUES (1)"))


def test_the_parts_of_a_time_need_no_zeros(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (at datetime64(3), day date)")
    session.run("INSERT INTO s (at, day, _tp_time) VALUES ('2026-1-2 3:04:05.250', '2026-11-3', '2026-1-22 13:04:05')")
    assert ask("SELECT to_string(at), to_string(day), to_string(_tp_time) FROM table(s)") == [
        ("2026-01-02 03:04:05.250", "2026-11-03", "2026-01-22 13:04:05.000")
    ]


def test_values_are_expressions_computed_at_one_moment(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64, f float64, note string, at datetime64(6), also datetime64(6))")
    session.run(
        "INSERT INTO s VALUES (1 + 1, 7, upper('a'), now64(6), now64(6)), (2, 1 / 0, 'b', '2026-01-31 12:00:00', NULL)"
    )
    session.run("INSERT INTO s(id) VALUES ((SELECT max(id) FROM table(s)) + 1)")
    assert ask("SELECT id, f, note FROM table(s) ORDER BY id, note") == [(2, 7.0, "A"), (2, None, "b"), (3, None, None)]
    assert ask("SELECT at = also FROM table(s) WHERE note = 'A'") == [(True,)]


def test_values_of_a_table_are_expressions_of_its_dialect(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, at timestamptz, half int)")
    session.run("INSERT INTO t VALUES (1, '2026-01-31'::timestamptz + interval '1 day', 7 / 2)")
    assert ask("SELECT id, at, half FROM table(t)") == [(1, datetime(2026, 2, 1, tzinfo=UTC), 3)]


def test_values_have_no_columns(session: Session) -> None:
    session.run("CREATE STREAM s (id int64, note string)")
    for text in ("abc", '"abc"', "`abc`"):
        assert failure(session, f"INSERT INTO s VALUES (1, {text})").fix == "write 'abc' if it is a text"
    assert "INSERT INTO .. SELECT" in failure(session, "INSERT INTO s VALUES (id + 1, 'a')").fix
    assert records(session, "s") == []


def test_a_query_without_from_has_one_row(ask: Ask) -> None:
    assert ask("SELECT 1 + 1 AS two, upper('x')") == [(2, "X")]
    assert ask("SELECT 1 WHERE 2 > 3") == []
    assert ask("WITH q AS (SELECT 3 AS x) SELECT x * 2 AS y FROM q UNION ALL SELECT 1 ORDER BY y") == [(1,), (6,)]


def test_the_event_time_can_be_given(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64); INSERT INTO s(id, _tp_time) VALUES (1, '2026-01-31 12:00:00')")
    assert ask("SELECT _tp_time FROM table(s)") == [(datetime(2026, 1, 31, 12, tzinfo=UTC),)]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("INSERT INTO s VALUES ('x', 'y')", "row 1 does not fit: column id"),
        ("INSERT INTO s VALUES (1, 'y'), (99999999999, 'y')", "row 2 does not fit: column id"),
        ("INSERT INTO s(id, nme) VALUES (1, 'y')", '"s" has no column "nme"'),
        ("INSERT INTO s(id, id) VALUES (1, 2)", 'the column "id" is named twice'),
        ("INSERT INTO s VALUES (1)", "row 1 has 1 value for 2 columns"),
        ("INSERT INTO s(name) VALUES ('y')", "row 1 does not fit: primary key column id is missing"),
        ("UPDATE s SET nme = 'x'", '"s" has no column "nme"'),
        ("UPDATE s SET id = 'x' WHERE true", "a value does not fit column id"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    session: Session, statement: str, what: str
) -> None:
    session.run("CREATE MUTABLE STREAM s (id int32, name string) PRIMARY KEY id; INSERT INTO s VALUES (0, 'kept')")
    error = failure(session, statement)
    assert isinstance(error, SqlError)
    assert what in error.what
    assert len(records(session, "s")) == 1


def test_not_null_is_kept(session: Session) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, name varchar NOT NULL)")
    assert failure(session, "INSERT INTO t VALUES (1, NULL)").what == 'column "name" of "t" cannot be NULL'


def test_update_and_delete_of_a_mutable_stream(session: Session, ask: Ask) -> None:
    session.run("CREATE MUTABLE STREAM m (k string, v int) PRIMARY KEY k")
    session.run("INSERT INTO m VALUES ('a', 1), ('b', 2), ('c', 3)")
    assert session.run("UPDATE m SET v = v * 10 WHERE v >= 2") == [Done("updated 2 rows")]
    assert session.run("DELETE FROM m WHERE k = 'a'") == [Done("deleted 1 row")]
    assert ask("SELECT k, v FROM table(m) ORDER BY k") == [("b", 20), ("c", 30)]
    assert (b'{"k":"a"}', None) in records(session, "m")


def test_an_update_of_the_primary_key_moves_the_row(session: Session, ask: Ask) -> None:
    session.run("CREATE MUTABLE STREAM m (k string, v int) PRIMARY KEY k; INSERT INTO m VALUES ('a', 1), ('b', 2)")
    session.run("UPDATE m SET k = 'z' WHERE k = 'a'")
    assert ask("SELECT k, v FROM table(m) ORDER BY k") == [("b", 2), ("z", 1)]
    assert "only 1 primary key" in failure(session, "UPDATE m SET k = 'y'").what


def test_update_and_delete_of_a_table_without_a_key_count_rows(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE t (a int, b varchar); INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, 'y')")
    session.run("UPDATE t SET b = upper(b) WHERE a = 1; DELETE FROM t WHERE a = 2")
    assert ask("SELECT * FROM table(t)") == [(1, "X"), (1, "X")]


def test_update_of_a_changelog_kv_stream_retracts_the_old_row(session: Session) -> None:
    session.run("CREATE STREAM c (k int, v string) PRIMARY KEY k SETTINGS mode = 'changelog_kv', shards = 1")
    session.run("INSERT INTO c VALUES (1, 'a'); UPDATE c SET v = 'b' WHERE k = 1")
    assert [value for _, value in records(session, "c")] == [
        b'{"k":1,"v":"a","_tp_delta":1}',
        b'{"k":1,"v":"a","_tp_delta":-1}',
        b'{"k":1,"v":"b","_tp_delta":1}',
    ]


def test_insert_select(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64, name string); INSERT INTO s VALUES (1, 'a'), (2, 'b')")
    session.run("CREATE MUTABLE STREAM m (name string, n int32, d int32 DEFAULT 4) PRIMARY KEY name")
    session.run("INSERT INTO m (name, n) SELECT upper(name), id + 1 FROM table(s)")
    assert ask("SELECT * except(_tp_time) FROM table(m) ORDER BY name") == [("A", 2, 4), ("B", 3, 4)]
    assert isinstance(failure(session, "INSERT INTO m SELECT name, id, id FROM s"), Unsupported)
    assert (
        "2 columns, but INSERT fills 3 columns" in failure(session, "INSERT INTO m SELECT name, id FROM table(s)").what
    )


def test_a_value_of_another_type_is_told_with_the_types_of_the_columns(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (name string, n int)")
    refused = failure(session, "INSERT INTO s (name, n) VALUES ('a', 'xx')")
    assert refused.fix == "give a value of the type of its column: DESCRIBE s"
    assert ("n", "int32") in [row[:2] for row in ask("DESCRIBE s")]


def test_a_table_is_filled_by_a_query(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, v numeric(10, 2)); INSERT INTO t VALUES (1, 1.5), (2, NULL)")
    [made] = session.run("CREATE TABLE u (k) AS SELECT id, v * 2 AS w FROM t")
    assert isinstance(made, Done)
    assert made.text.startswith("created table u; inserted 2 rows, those that the query gives now")
    assert ask("SELECT k, w::int FROM table(u) ORDER BY k") == [(1, 3), (2, None)]
    session.run("CREATE TABLE IF NOT EXISTS u AS SELECT 1; DROP STREAM u")
    [again] = session.run("CREATE TABLE u AS SELECT 9 AS k, 9.0 AS w")
    assert isinstance(again, Done)
    assert "over the topic u that was there" in again.text
    assert 'there is a table "u" already' in failure(session, "CREATE TABLE u AS SELECT 1 AS a").what
    assert 'two columns are called "a"' in failure(session, "CREATE TABLE w (a) AS SELECT 1, 2 AS a").what
    assert "would never end" in failure(session, "CREATE STREAM s (id int); CREATE TABLE w AS SELECT id FROM s").what


def test_integers_are_assigned_to_short_decimals(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, v numeric(4, 2)); INSERT INTO t VALUES (1, 1.5)")
    session.run("UPDATE t SET v = 2; INSERT INTO t SELECT 2, 3")
    assert ask("SELECT v::int FROM table(t) ORDER BY id") == [(2,), (3,)]
    assert "does not fit" in failure(session, "UPDATE t SET v = 100").what


def test_every_column_can_be_null(session: Session, ask: Ask) -> None:
    kinds = ("int", "varchar", "numeric(4, 2)", "timestamp", "date", "boolean", "bytea", "int[]", "jsonb", "time")
    columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
    session.run(f"CREATE TABLE t (id int PRIMARY KEY, {columns}); INSERT INTO t (id) VALUES (1)")
    session.run("UPDATE t SET " + ", ".join(f"c{place} = NULL" for place in range(len(kinds))))
    session.run(f"INSERT INTO t SELECT 2{', NULL' * len(kinds)}")
    assert ask("SELECT * EXCEPT (_tp_time) FROM table(t) ORDER BY id") == [
        (number, *[None] * len(kinds)) for number in (1, 2)
    ]


def test_insert_select_of_tables_reads_what_they_hold(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 7), (2, 8)")
    session.run("INSERT INTO t SELECT id + 10, v / 2 FROM t; INSERT INTO t SELECT 20, 7 / 2")
    assert ask("SELECT id, v FROM table(t) ORDER BY id") == [(1, 7), (2, 8), (11, 3), (12, 4), (20, 3)]
    session.run("CREATE STREAM s (id int, v int)")
    for query in ("SELECT id, v FROM s", "SELECT t.id, s.v FROM t JOIN s ON t.id = s.id"):
        assert "would never end" in failure(session, f"INSERT INTO t {query}").what


def test_what_cannot_be_written(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); CREATE SOURCE src (id int64)")
    assert "append-only" in failure(session, "UPDATE s SET id = 1").what
    assert "append-only" in failure(session, "DELETE FROM s").what
    assert "is a source" in failure(session, "INSERT INTO src VALUES (1)").what


def test_joins_aggregates_and_duplicates_over_contents(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM orders (id int64, customer string, price int32)")
    session.run("CREATE MUTABLE STREAM customers (name string, town string) PRIMARY KEY name")
    session.run("INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'ann', 30), (3, 'ann', 30)")
    session.run(
        "INSERT INTO customers VALUES ('ann', 'Rome'), ('bob', 'Oslo'); INSERT INTO customers VALUES ('ann', 'Bonn')"
    )
    answer = ask(
        "SELECT c.town, count() AS orders, sum(o.price) AS total FROM table(orders) AS o "
        "JOIN table(customers) AS c ON o.customer = c.name GROUP BY c.town ORDER BY total DESC"
    )
    assert answer == [("Bonn", 3, 70), ("Oslo", 1, 20)]


def test_records_of_other_producers_count_and_bad_ones_are_left_out(session: Session, ask: Ask) -> None:
    said: list[str] = []
    session.run("CREATE STREAM s (id int64)")
    producer = Producer({"bootstrap.servers": session.context.brokers.servers})
    for value in (b'{"id": 1, "more": true}', b"not json", b'{"id": 2}'):
        producer.produce("s", value)
    producer.flush()
    object.__setattr__(session.context, "say", said.append)
    assert sorted(ask("SELECT id FROM table(s)")) == [(1,), (2,)]
    assert said == ["1 of 3 records of s could not be used: left out"]


def test_uncommitted_records_are_not_read(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64) SETTINGS shards = 1")
    producer = Producer({"bootstrap.servers": session.context.brokers.servers, "transactional.id": "open-one"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("s", b'{"id": 1}')
    producer.flush()
    assert ask("SELECT id FROM table(s)") == []
    producer.commit_transaction()
    session.context.topics.quiescent_ends("s")
    assert ask("SELECT id FROM table(s)") == [(1,)]
    producer.begin_transaction()
    producer.produce("s", b'{"id": 2}')
    producer.abort_transaction()
    session.run("INSERT INTO s VALUES (3)")
    session.context.topics.quiescent_ends("s")
    assert ask("SELECT id FROM table(s) ORDER BY id") == [(1,), (3,)]
