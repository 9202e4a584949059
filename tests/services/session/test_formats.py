"""Streams whose records are no JSON, from INSERT and producers to views of both engines, verify and dead letters."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from dovetail.broker.reader import TopicReader
from dovetail.changelog.errors import Unsupported
from dovetail.services.session import Session
from tests.services.conftest import Ask
from tests.services.session.conftest import settle

pytestmark = pytest.mark.services


@pytest.fixture
def session(session_of_runners: Session) -> Session:
    return session_of_runners


def produce(session: Session, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": str(session.context.brokers)})
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def produce_headed(
    session: Session, topic: str, *records: tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]
) -> None:
    producer = Producer({"bootstrap.servers": str(session.context.brokers)})
    for key, value, headers in records:
        producer.produce(topic, value, key, headers=headers)
    assert producer.flush(30) == 0


def values(session: Session, topic: str) -> list[bytes | None]:
    reader = TopicReader(session.context.brokers, topic)
    batches = reader.until(session.context.topics.ends(topic))
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_csv_through_spark_into_csv(session: Session, ask: Ask) -> None:
    session.run(
        """CREATE TABLE users (id int PRIMARY KEY, name varchar) WITH (shards = 1)
             FORMAT UPSERT ENCODE CSV (delimiter = ';', without_header = 'true');
           CREATE TABLE orders (id int, user_id int, tags int[]) APPEND ONLY
             FORMAT PLAIN ENCODE CSV (without_header = 'false');
           CREATE STREAM told (name string, id int) SETTINGS mode = 'changelog', data_format = 'CSV', shards = 1;
           CREATE MATERIALIZED VIEW joined INTO told AS
             SELECT o.id AS id, u.name AS name FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id;
           INSERT INTO users VALUES (1, 'a;"b"'), (2, 'bob'); INSERT INTO orders VALUES (10, 1, [1, 2]), (11, 3, [])"""
    )
    produce(
        session,
        "orders",
        (None, b"id,user_id,tags"),
        (None, b'12,2,"[7]"'),
        (None, b"13,x,[]"),
        (None, b"\xff\x00"),
        (None, b"14,2"),
    )
    produce(session, "users", (b'{"id":2}', None))
    settle(session, "joined")
    assert [value for value in values(session, "users") if value] == [b'1;"a;""b"""', b"2;bob"]
    assert ask("SELECT id, name FROM table(joined) ORDER BY id") == [(10, 'a;"b"'), (11, None), (12, None)]
    assert ask("SELECT id, name FROM table(told) ORDER BY id") == [(10, 'a;"b"'), (11, None), (12, None)]
    assert all(value and value.endswith((b",1", b",-1")) for value in values(session, "told"))
    assert session.verify("joined").holds
    dead_letters = ask("SELECT source_topic, reason FROM table(joined.dead_letter) ORDER BY reason")
    assert dead_letters == [
        ("orders", "2 fields for 3 columns"),
        ("orders", "column user_id: expected int32, found text 'x'"),
        ("orders", "the value is not UTF-8"),
    ]
    [why] = session.run("WHY joined WHERE id = 10")
    assert "orders" in str(why)


def test_raw_and_csv_through_a_lookup(session: Session, ask: Ask) -> None:
    session.run(
        """CREATE STREAM lines (line string) SETTINGS data_format = 'RawBLOB';
           CREATE MUTABLE STREAM names (k string, name string) PRIMARY KEY k
             SETTINGS data_format = 'CSV', key_format = 'raw', format_csv_without_header = false,
             format_csv_delimiter = 'tab';
           CREATE STREAM found (line string, name string) SETTINGS data_format = 'CSV', format_csv_delimiter = '|';
           INSERT INTO names VALUES ('x', 'Xenia'), ('{z}', 'Zoe')"""
    )
    produce(session, "names", (b"k", b"k\tname"), (b"{y}", b"{y}\tYann"), (b"{z}", None))
    session.run(
        """CREATE MATERIALIZED VIEW named INTO found AS SELECT line, name FROM lines LEFT JOIN names ON line = k
             SETTINGS join_algorithm = 'direct', seek_to = 'earliest';
           INSERT INTO lines VALUES ('x'), ('{y}'), ('{z}')"""
    )
    assert [row[1] for row in ask("SHOW QUERIES")] == ["faust"]
    produce(session, "lines", (None, b"a|b\nc"), (None, b"\xfe"))
    settle(session, "named")
    assert sorted(value or b"" for value in values(session, "found")) == [
        b'"a|b\nc"|\\N',
        b"x|Xenia",
        b"{y}|Yann",
        b"{z}|\\N",
    ]
    assert ask("SELECT line, name FROM table(found) ORDER BY line") == [
        ("a|b\nc", None),
        ("x", "Xenia"),
        ("{y}", "Yann"),
        ("{z}", None),
    ]
    assert ask("SELECT reason FROM table(named.dead_letter)") == [("the value is not UTF-8",)]


def test_debezium_in_and_out_of_both_engines(session: Session, ask: Ask) -> None:
    session.run(
        """CREATE TABLE users (id int PRIMARY KEY, name varchar) WITH (shards = 1) FORMAT DEBEZIUM ENCODE JSON;
           CREATE STREAM orders (id int, user_id int, at datetime64(6))
             SETTINGS mode = 'changelog', data_format = 'debezium_json';
           CREATE MUTABLE STREAM copied (id int, name string) PRIMARY KEY id SETTINGS data_format = 'debezium_json';
           CREATE MATERIALIZED VIEW joined AS SELECT o.id AS id, u.id AS u, u.name AS name FROM orders AS o
             LEFT JOIN users AS u ON o.user_id = u.id SETTINGS output_format = 'debezium';
           CREATE MATERIALIZED VIEW copy INTO copied AS SELECT id, name FROM users;
           CREATE MUTABLE STREAM names (k int, word string) PRIMARY KEY k;
           INSERT INTO names VALUES (1, 'one'), (2, 'two');
           CREATE MATERIALIZED VIEW looked AS SELECT users.id AS id, name, word FROM users
             LEFT JOIN names ON users.id = k SETTINGS join_algorithm = 'direct', output_format = 'debezium'"""
    )
    ann, eve = b'{"id":1,"name":"ann"}', b'{"id":1,"name":"eve"}'
    produce(
        session,
        "users",
        (b'{"schema":{},"payload":{"id":1}}', b'{"schema":{},"payload":{"before":null,"after":%s,"op":"r"}}' % ann),
        (b'{"id":1}', b'{"before":%s,"after":%s,"op":"u","ts_ms":1}' % (ann, eve)),
        (b'{"id":2}', b'{"before":null,"after":{"id":2,"name":"bob"},"op":"c"}'),
        (b'{"id":2}', b'{"before":{"id":2,"name":"bob"},"after":null,"op":"d"}'),
        (b'{"id":2}', None),
        (b'{"id":0}', b'{"op":"t"}'),
    )
    session.run("INSERT INTO orders VALUES (10, 1, '2026-01-01 00:00:00.5'), (11, 2, NULL)")
    for view in ("joined", "copy", "looked"):
        settle(session, view)
    assert ask("SELECT id, u, name FROM table(joined) ORDER BY id") == [(10, 1, "eve"), (11, None, None)]
    assert ask("SELECT id, name, word FROM table(looked) ORDER BY id") == [(1, "eve", "one")]
    session.run("UPDATE users SET name = 'eva' WHERE id = 1; DELETE FROM orders WHERE id = 11")
    for view in ("joined", "copy", "looked"):
        settle(session, view)
    assert ask("SELECT id, u, name FROM table(joined)") == [(10, 1, "eva")]
    assert ask("SELECT id, name FROM table(copied)") == [(1, "eva")]
    assert ask("SELECT id, name, word FROM table(looked)") == [(1, "eva", "one")]
    old, new = b'{"id":1,"name":"eve"}', b'{"id":1,"name":"eva"}'
    change = b'{"before":%s,"after":%s,"op":"u"}'
    assert values(session, "users")[-1] == change % (old, new)
    assert values(session, "copied")[-1] == change % (old, new)
    assert values(session, "looked")[-1] == change % (old[:-1] + b',"word":"one"}', new[:-1] + b',"word":"one"}')
    assert session.verify("joined").holds
    assert session.verify("copy").holds
    assert ask("SELECT reason FROM table(copy.dead_letter)") == [('op "t" is a truncation: it names no row',)]
    session.run("WHY joined WHERE id = 10")


def test_a_row_that_is_too_large_by_a_byte_is_a_letter(session: Session, ask: Ask) -> None:
    """Also where it holds what is a sign in JSON at its end, and none in CSV."""
    session.run(
        """CREATE STREAM lines (line string) SETTINGS data_format = 'RawBLOB', shards = 1;
           CREATE STREAM short (line string) SETTINGS data_format = 'CSV', shards = 1"""
    )
    session.run("CREATE MATERIALIZED VIEW cut INTO short AS SELECT replace(line, '.', 'xxxxxxxxxx') AS line FROM lines")
    largest = session.context.topics.message_bytes("short")
    full, over = (b"." * ((size - 3) // 10) + b"x" * ((size - 3) % 10) + b"-ab" for size in (largest, largest + 1))
    produce(session, "lines", (None, full), (None, over))
    settle(session, "cut")
    assert [len(value or b"") for value in values(session, "short")] == [largest]
    assert len(ask("SELECT reason FROM table(cut.dead_letter)")) == 1


def test_keys_headers_and_places_of_records_through_both_engines(session: Session, ask: Ask) -> None:
    session.run(
        """CREATE TABLE users (id int PRIMARY KEY, name varchar) INCLUDE header 'trace' varchar AS trace
             INCLUDE offset AS o WITH (shards = 1) FORMAT UPSERT ENCODE JSON;
           CREATE TABLE orders (id int, user_id int) APPEND ONLY INCLUDE key AS k INCLUDE header 'who' varchar AS who
             INCLUDE header AS headers INCLUDE partition AS p WITH (shards = 1);
           CREATE MATERIALIZED VIEW joined AS SELECT orders.id AS id, name, k, who, headers, p, trace, o
             FROM orders LEFT JOIN users ON orders.user_id = users.id;
           CREATE MATERIALIZED VIEW plain AS SELECT orders.id AS id, name
             FROM orders LEFT JOIN users ON orders.user_id = users.id;
           CREATE STREAM clicks (n int, _tp_message_key string, _tp_message_headers map(string, string),
             _tp_shard int32, _tp_append_time datetime64(3)) SETTINGS shards = 1;
           CREATE MUTABLE STREAM names (n int, name string, _tp_message_headers map(string, string)) PRIMARY KEY n"""
    )
    produce_headed(session, "names", (b'{"n":1}', b'{"n":1,"name":"one"}', [("lang", b"en"), ("lang", b"de")]))
    session.run(
        """CREATE MATERIALIZED VIEW looked AS SELECT clicks.n AS n, name, _tp_message_key AS k, _tp_shard AS p,
             clicks._tp_message_headers['who'] AS who, names._tp_message_headers['lang'] AS lang,
             _tp_append_time = clicks._tp_time AS same
             FROM clicks LEFT JOIN names ON clicks.n = names.n
             SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"""
    )
    produce_headed(
        session,
        "users",
        (b'{"id":1}', b'{"id":1,"name":"ann"}', [("trace", b"t1")]),
        (b'{"id":1}', b'{"id":1,"name":"eve"}', [("trace", b"t2"), ("trace", b"t3")]),
        (b'{"id":2}', b'{"id":2,"name":"bob"}', []),
    )
    headers: list[tuple[str, str | bytes | None]] = [("who", b"a"), ("who", b"\xff\xfe"), ("none", None)]
    produce_headed(
        session, "orders", (b"\x00k", b'{"id":10,"user_id":1}', headers), (None, b'{"id":11,"user_id":2}', [])
    )
    produce_headed(session, "clicks", (b"\xffk", b'{"n":1}', headers), (None, b'{"n":2}', []))
    for view in ("joined", "plain", "looked"):
        settle(session, view)
    listed = [{"key": name, "value": value} for name, value in headers]
    expected = [
        (10, "eve", b"\x00k", "\ufffd\ufffd", listed, "0", "t3", "1"),
        (11, "bob", None, None, [], "0", None, "2"),
    ]
    assert ask("SELECT id, name, k, who, headers, p, trace, o FROM table(joined) ORDER BY id") == expected
    assert ask("SELECT id, name FROM table(plain) ORDER BY id") == [(10, "eve"), (11, "bob")]
    assert ask("SELECT n, name, k, p, who, lang, same FROM table(looked) ORDER BY n") == [
        (1, "one", "\ufffdk", 0, "\ufffd\ufffd", "de", True),
        (2, None, None, 0, "", "", True),
    ]
    assert ask("SELECT id, k, who FROM table(orders) ORDER BY id") == [(10, b"\x00k", "\ufffd\ufffd"), (11, None, None)]
    assert session.verify("joined").holds
    assert session.verify("plain").holds
    assert any('"trace": "t3"' in str(line) for line in ask("WHY joined WHERE id = 10"))
    described = {row[0]: row[3] for row in ask("DESCRIBE orders")}
    assert described["k"] == "the key of the record"
    assert described["who"] == "the header who of the record"
    session.run("UPDATE users SET name = 'eva' WHERE id = 1; INSERT INTO orders VALUES (12, 1)")
    settle(session, "joined")
    assert ask("SELECT id, name, who, trace FROM table(joined) ORDER BY id") == [
        (10, "eva", "\ufffd\ufffd", None),
        (11, "bob", None, None),
        (12, "eva", None, None),
    ]
    for statement in ("INSERT INTO orders (id, who) VALUES (1, 'x')", "UPDATE users SET trace = 'x' WHERE id = 1"):
        with pytest.raises(Unsupported, match="the header of the record, which is read and not written"):
            session.run(statement)
