"""Dictionaries and external tables in a session: created, shown, refreshed, selected from, dropped."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SqlError, UnknownName, Unsupported
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.commands.command_codec import Stats
from dovetail.services.commands.command_topics import COMMANDS, RESULTS
from dovetail.services.session import Done, Rows, Session, Text
from dovetail.services.session.dictionaries.dictionary_statements import dictionary, keys_of, refresh
from dovetail.sql.catalog import Worker
from tests.services.conftest import Ask

pytestmark = pytest.mark.services


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE products (id text PRIMARY KEY, name text, price int)")
        database.execute("INSERT INTO products VALUES ('p1', 'pen', 3), ('p2', 'ink', 5)")
    return file


def ddl(shop: Path, layout: str = "DIRECT()", table: str = "products") -> str:
    source = f"SOURCE(SQLITE(PATH '{shop}' TABLE '{table}'))"
    return f"CREATE DICTIONARY products (id string, name string, price int64) PRIMARY KEY id {source} LAYOUT({layout})"


def test_a_dictionary_is_created_listed_described_and_dropped(session: Session, ask: Ask, shop: Path) -> None:
    assert session.run(ddl(shop)) == [Done("created dictionary products")]
    assert [row[0] for row in ask("SHOW DICTIONARIES")] == ["products"]
    assert [(row[0], row[4]) for row in ask("DESCRIBE products")] == [
        ("id", "primary key"),
        ("name", ""),
        ("price", ""),
    ]
    assert session.run("DROP DICTIONARY products") == [Done("dropped dictionary products")]
    assert ask("SHOW DICTIONARIES") == []


def test_the_source_is_checked_at_create(session: Session, ask: Ask, shop: Path) -> None:
    with pytest.raises(DovetailError, match="produts"):
        session.run(ddl(shop, table="produts"))
    assert ask("SHOW DICTIONARIES") == []


def test_a_source_that_does_not_answer_is_said_without_its_password(session: Session) -> None:
    with pytest.raises(DovetailError) as raised:
        session.run(
            "CREATE DICTIONARY d (k int64, v string) PRIMARY KEY k SOURCE(MYSQL(HOST '127.0.0.1' PORT 1 USER 'u' "
            "PASSWORD 'hunter2' DB 'shop' TABLE 't' CONNECT_TIMEOUT 1)) LAYOUT(DIRECT())"
        )
    assert "hunter2" not in str(raised.value)


def test_show_create_masks_the_password(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    [shown] = session.run("SHOW CREATE DICTIONARY products")
    assert isinstance(shown, Text)
    assert "SQLITE" in shown.text


def test_an_external_table_has_the_columns_of_the_table(session: Session, ask: Ask, shop: Path) -> None:
    created = session.run(
        f"CREATE EXTERNAL TABLE goods SETTINGS type = 'sqlite', address = '{shop}', table = 'products'"
    )
    assert created == [Done("created external table goods")]
    assert [row[:2] for row in ask("DESCRIBE goods")] == [("id", "string"), ("name", "string"), ("price", "int64")]


def test_select_reads_the_source(session: Session, ask: Ask, shop: Path) -> None:
    session.run(ddl(shop))
    assert ask("SELECT name, price * 2 AS twice FROM products ORDER BY id") == [("pen", 6), ("ink", 10)]
    assert ask("SELECT count() FROM products WHERE price > 3") == [(1,)]


def test_statistics_without_a_worker(session: Session, ask: Ask, shop: Path) -> None:
    session.run(ddl(shop))
    assert ask("SELECT name, status, type, workers FROM system.dictionaries") == [
        ("products", "NOT_LOADED", "direct", 0)
    ]


def test_a_reload_without_a_worker_is_done(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    assert session.run("SYSTEM RELOAD DICTIONARY products") == [Done("reloaded products; 0 workers answered")]
    assert session.run("SYSTEM RELOAD DICTIONARIES") == [Done("reloaded products; 0 workers answered")]
    with pytest.raises(UnknownName, match='there is no dictionary "product"') as refused:
        session.run("SYSTEM RELOAD DICTIONARY product")
    assert refused.value.fix == 'did you mean "products"?'


def test_only_dictionaries_are_reloaded(session: Session) -> None:
    session.run("CREATE STREAM s (i int)")
    with pytest.raises(SqlError, match='"s" is a stream, not a dictionary'):
        session.run("SYSTEM RELOAD DICTIONARY s")


@contextmanager
def answering(session: Session, worker: str, ok: bool = True) -> Iterator[list[dict[str, object]]]:
    """A worker that answers every command; the commands that it got."""
    context = session.context
    context.commander.give(Stats(), tuple)  # makes the topics
    context.catalog.worker_seen(Worker(worker, "host", 1), context.now_ms)
    consumer = Consumer({"bootstrap.servers": context.brokers.servers, "group.id": worker, "log_level": 0})
    consumer.assign([TopicPartition(COMMANDS, 0, context.topics.ends(COMMANDS)[0])])
    producer = Producer({"bootstrap.servers": context.brokers.servers, "linger.ms": 0, "log_level": 0})
    got: list[dict[str, object]] = []
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            message = consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            command = json.loads(message.value() or b"")
            got.append(command)
            figures = {"name": "products", "status": "LOADED", "query_count": 4, "hit_rate": 0.5}
            detail = {"dictionaries": [figures]} if ok else {"error": "the source does not answer"}
            answer = {"id": command["id"], "worker": worker, "ok": ok, "detail": detail}
            producer.produce(RESULTS, json.dumps({"id": "another", "worker": "stranger", "ok": True}))
            producer.produce(RESULTS, b"no json")
            producer.produce(RESULTS, json.dumps(answer))
            producer.flush()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield got
    finally:
        stopped.set()
        thread.join()
        consumer.close()
        context.catalog.worker_gone(worker)


def test_a_refresh_returns_when_the_workers_have_answered(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    with answering(session, "w1") as first, answering(session, "w2") as second:
        answers = refresh(session.context, "products", ["p1"])
    assert [answer.worker for answer in answers.given] == ["w1", "w2"]
    [command] = [command for command in first if command["command"] == "refresh"]
    assert (command["dictionary"], command["keys"], command["prefix"]) == ("products", ["p1"], None)
    assert command in second


def test_the_figures_of_the_workers_are_added_up(session: Session, ask: Ask, shop: Path) -> None:
    session.run(ddl(shop))
    with answering(session, "w1"), answering(session, "w2"):
        assert ask("SELECT status, query_count, hit_rate, workers FROM system.dictionaries") == [("LOADED", 8, 0.5, 2)]


def test_a_worker_that_cannot_is_told_of(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    with answering(session, "w1", ok=False), pytest.raises(ServiceUnavailable, match="was not refreshed") as raised:
        refresh(session.context, "products")
    assert "w1: the source does not answer" in raised.value.where


def test_a_worker_that_does_not_answer_is_named(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    context = session.context
    context.catalog.worker_seen(Worker("dead", "host", 1), context.now_ms)
    settings = context.settings.model_copy(update={"command_timeout_s": 0.5})
    with (
        Session(settings, context.catalog, context.brokers) as impatient,
        pytest.raises(ServiceUnavailable, match="was not refreshed by all workers") as raised,
    ):
        refresh(impatient.context, "products")
    assert "dead" in raised.value.where
    context.catalog.worker_gone("dead")


def test_keys_are_read_as_their_columns_are_typed(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    single = definition_of(dictionary(session.context, "products"))
    assert keys_of(single, ["p1", "7"]) == ["p1", "7"]
    session.run(ddl(shop).replace("products (", "pairs (").replace("PRIMARY KEY id", "PRIMARY KEY (id, price)"))
    pairs = definition_of(dictionary(session.context, "pairs"))
    assert keys_of(pairs, ['["p1", 3]']) == [("p1", 3)]
    with pytest.raises(SqlError, match="is no key of pairs"):
        keys_of(pairs, ["p1"])
    with pytest.raises(SqlError, match="is no value of price"):
        keys_of(pairs, ['["p1", "x"]'])


def test_a_lookup_view_needs_a_worker(session: Session, shop: Path) -> None:
    session.run(ddl(shop) + "; CREATE STREAM orders (id string, product string)")
    with pytest.raises(DovetailError, match="no query can run"):
        session.run(
            "CREATE MATERIALIZED VIEW v AS SELECT orders.id AS id, name FROM orders JOIN products "
            "ON orders.product = products.id SETTINGS join_algorithm = 'direct'"
        )


def test_rows_cannot_be_inserted(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    with pytest.raises(Unsupported):
        session.run("INSERT INTO products VALUES ('p3', 'cap', 1)")


def test_json_rows(session: Session, shop: Path) -> None:
    session.run(ddl(shop))
    [result] = session.run("SELECT id FROM products LIMIT 1")
    assert isinstance(result, Rows)
    assert result.table.to_pylist() == [{"id": "p1"}]
