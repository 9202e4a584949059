"""Values that name their schema, from Confluent's producers, through both engines, to Confluent's consumers."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dovetail.broker.registry.protobuf_text import compiled
from dovetail.broker.topic_shapes import TopicShape
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.protobuf.schema import Path as MessagePath
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.services.session import Live, Rows, Session
from dovetail.services.session.backup.backup_folder import read_backup
from dovetail.services.stack import Stack
from dovetail.sql.syntax.parse import parse_one
from tests.changelog.encodings.protobuf_records import message_class
from tests.services.conftest import Ask
from tests.services.session.conftest import settle
from tests.spark.kafka import messages

pytestmark = pytest.mark.services

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"]},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "state", "symbols": ["open", "paid"]}},
    ],
}
ORDER_IN_JSON: dict[str, Any] = {
    "title": "order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "user": {"type": ["null", "string"]},
        "amount": {"type": "number"},
        "state": {"enum": ["open", "paid"]},
    },
}
COLUMNS = "id int64, user string, amount decimal(9, 2), state string"


@dataclass(frozen=True)
class Confluent:
    """Confluent's serializer and deserializer of one format, from rows and to rows."""

    data_format: str
    serializer: Callable[[SchemaRegistryClient], Any]
    deserializer: Callable[[SchemaRegistryClient], Any]
    more: str = ""


def _json(registry: SchemaRegistryClient) -> Any:
    return JSONSerializer(
        json.dumps(ORDER_IN_JSON), registry, to_dict=lambda row, _: row | {"amount": float(row["amount"])}
    )


ORDER_IN_PROTOBUF = """
syntax = "proto3";
package shop;
enum State { open = 0; paid = 1; }
message Line { string item = 1; }
message Order { int64 id = 1; optional string user = 2; string amount = 3; State state = 4; }
"""


def _message(text: str, path: MessagePath) -> Any:
    definition = SchemaDefinition("PROTOBUF", text)
    return message_class(replace(definition, compiled=compiled(definition)), path)


def _protobuf(registry: SchemaRegistryClient) -> Any:
    order = _message(ORDER_IN_PROTOBUF, (1,))
    serialize = ProtobufSerializer(order, registry, {"use.deprecated.format": False})
    return lambda row, context: serialize(order(**row | {"amount": str(row["amount"])}), context)


def _of_protobuf(registry: SchemaRegistryClient) -> Any:
    def deserialize(value: bytes, context: SerializationContext) -> dict[str, Any]:
        text = str(registry.get_latest_version(f"{context.topic}-value").schema.schema_str)
        read = ProtobufDeserializer(_message(text, (0,)), {"use.deprecated.format": False})
        return {field.name: found for field, found in read(value, context).ListFields()}

    return deserialize


FORMATS = {
    "avro": Confluent("Avro", lambda registry: AvroSerializer(registry, json.dumps(ORDER)), AvroDeserializer),
    "json": Confluent("JSONSchema", _json, lambda registry: JSONDeserializer(None, schema_registry_client=registry)),
    "protobuf": Confluent("ProtobufSingle", _protobuf, _of_protobuf, ", protobuf_message = 'Order'"),
}


@pytest.fixture
def session(session_of_runners: Session) -> Session:
    return session_of_runners


@pytest.fixture
def registry(running: Stack) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": running.endpoint("registry")}) as client:
        yield client


def produce(running: Stack, topic: str, serializer: Any, *rows: dict[str, Any] | bytes) -> None:
    producer = Producer({"bootstrap.servers": running.endpoint("kafka")})
    for row in rows:
        value = row if isinstance(row, bytes) else serializer(row, SerializationContext(topic, MessageField.VALUE))
        producer.produce(topic, value=value)
    assert producer.flush(30) == 0


def consumed(
    running: Stack, deserializer: Any, topic: str, last: Callable[[dict[str, Any]], bool] = lambda _: True
) -> list[dict[str, Any]]:
    """The values of a topic, as Confluent's deserializer reads them, up to that which is the ``last``.

    How many there are before it depends on how a view's input was cut into batches.
    """
    servers = running.endpoint("kafka")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    until = time.monotonic() + 60
    found: list[dict[str, Any]] = []
    try:
        consumer.subscribe([topic])
        while not (found and last(found[-1])) and time.monotonic() < until:
            message = consumer.poll(1)
            if message is not None and message.error() is None and message.value() is not None:
                found.append(deserializer(message.value(), SerializationContext(topic, MessageField.VALUE)))
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("kind", FORMATS)
def test_both_engines_read_and_write_it(
    running: Stack, session: Session, registry: SchemaRegistryClient, ask: Ask, kind: str
) -> None:
    confluent, orders, named, asked = FORMATS[kind], f"orders_{kind}", f"named_{kind}", f"asked_{kind}"
    session.context.topics.create(orders, TopicShape(1))
    good: list[dict[str, Any]] = [
        {"id": 1, "user": "ann", "amount": Decimal("1.25"), "state": "open"},
        {"id": 2, "user": None, "amount": Decimal("-2.50"), "state": "paid"},
    ]
    produce(running, orders, confluent.serializer(registry), *good, b"\0\0\0\x27\x0f\0", b"{}")
    select = (
        f"SELECT id, name, amount FROM {orders} AS o JOIN users ON o.user = users.user SETTINGS seek_to = 'earliest'"
    )
    settings = f"SETTINGS data_format = '{confluent.data_format}'"
    session.run(
        f"CREATE EXTERNAL STREAM {orders} ({COLUMNS}) {settings}{confluent.more}, type = 'kafka', topic = '{orders}';"
        f"CREATE MUTABLE STREAM users (user string, name string) PRIMARY KEY user {settings}, topic = 'users_{kind}';"
        "INSERT INTO users VALUES ('ann', 'Ann');"
        f"CREATE STREAM {named} (id int64, name string, amount decimal(9, 2)) {settings};"
        f"CREATE STREAM {asked} (id int64, name string, amount decimal(9, 2)) {settings};"
        f"CREATE MATERIALIZED VIEW into_named INTO {named} AS {select};"
        f"CREATE MATERIALIZED VIEW into_asked INTO {asked} AS {select}, join_algorithm = 'direct';"
    )
    for view, topic in (("into_named", named), ("into_asked", asked)):
        settle(session, view)
        [found] = consumed(running, confluent.deserializer(registry), topic)
        assert (found["id"], found["name"], str(found["amount"])) == (1, "Ann", "1.25")
        assert ask(f"SELECT id, name FROM table({topic})") == [(1, "Ann")]
        reasons = [str(row[0]) for row in ask(f"SELECT reason FROM table({view}.dead_letter)")]
        assert sorted(reasons) == [
            "the schema registry has no schema 9999",
            "the value does not begin with 00 and the id of a schema, but with 7b 7d",
        ]
    assert ask(f"SELECT id, state FROM table({orders}) ORDER BY id") == [(1, "open"), (2, "paid")]


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("(id string)", SqlError, "column id does not fit schema"),
        ("(id int64, nam string)", UnknownName, "has no member nam"),
        ("(id int64, no string DEFAULT 'x')", None, ""),
        ("(id int64) SETTINGS kafka_schema_registry_url = 'http://elsewhere:1'", Unsupported, "names another one"),
    ],
)
def test_columns_are_compared_with_the_schema(
    running: Stack,
    session: Session,
    registry: SchemaRegistryClient,
    statement: str,
    error: type[Exception] | None,
    said: str,
) -> None:
    registry.register_schema("bills-value", Schema(json.dumps(ORDER), "AVRO"))
    columns, _, more = statement.partition(" SETTINGS ")
    settings = ", ".join(filter(None, ["data_format = 'Avro'", more]))
    with pytest.raises(error, match=said) if error else nullcontext():
        session.run(f"CREATE STREAM bills {columns} SETTINGS {settings}")


def test_columns_are_compared_with_the_members_of_json(
    running: Stack, session: Session, registry: SchemaRegistryClient
) -> None:
    registry.register_schema("notes-value", Schema(json.dumps(ORDER_IN_JSON), "JSON"))
    for columns, said in (("id string", "it is integer"), ("nam string", "has no member nam")):
        with pytest.raises(SqlError, match=said):
            session.run(
                f"CREATE TABLE notes ({columns.replace('string', 'varchar')}) APPEND ONLY WITH (connector = 'kafka',"
                f" topic = 'notes') FORMAT PLAIN ENCODE JSON (schema.registry = '{running.endpoint('registry')}')"
            )


def test_columns_that_change_get_another_version(session: Session, registry: SchemaRegistryClient, ask: Ask) -> None:
    session.run("CREATE STREAM parcels (id int64) SETTINGS data_format = 'avro'; INSERT INTO parcels VALUES (1)")
    session.run("ALTER STREAM parcels ADD COLUMN note string")
    assert registry.get_versions("parcels-value") == [1, 2]
    session.run("INSERT INTO parcels VALUES (2, 'heavy')")
    assert ask("SELECT id, note FROM table(parcels) ORDER BY id") == [(1, None), (2, "heavy")]
    newest = json.loads(str(registry.get_latest_version("parcels-value").schema.schema_str))
    newest["fields"].append({"name": "weight", "type": ["null", "long"], "default": None})
    registry.register_schema("parcels-value", Schema(json.dumps(newest), "AVRO"))
    session.run("ALTER STREAM parcels ADD COLUMN weight int64; INSERT INTO parcels VALUES (4, 'big', 9)")
    assert ask("SELECT id, weight FROM table(parcels) ORDER BY id") == [(1, None), (2, None), (4, 9)]


def test_a_registry_that_is_silent_holds_a_view_up_and_nothing_is_lost(
    running: Stack, session: Session, registry: SchemaRegistryClient, ask: Ask
) -> None:
    session.context.topics.create("calls", TopicShape(1))
    registry.register_schema("calls-value", Schema(json.dumps(ORDER | {"name": "calls"}), "AVRO"))
    session.run(
        f"CREATE EXTERNAL STREAM calls ({COLUMNS}) SETTINGS type = 'kafka', topic = 'calls', data_format = 'Avro';"
        "CREATE MATERIALIZED VIEW of_calls AS SELECT state, count() AS n FROM calls GROUP BY state "
        "SETTINGS seek_to = 'earliest'"
    )
    settle(session, "of_calls")
    serialized = AvroSerializer(registry, json.dumps(ORDER | {"name": "calls"}))
    row = {"id": 1, "user": None, "amount": Decimal("1.00"), "state": "paid"}
    value = serialized(row, SerializationContext("calls", MessageField.VALUE))
    assert isinstance(value, bytes)
    [pid] = [line.pid for line in running.status() if line.name == "registry"]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        produce(running, "calls", serialized, value)
        until = time.monotonic() + 120
        while state_of(session, "of_calls") != "recovering":
            assert time.monotonic() < until
            time.sleep(0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    settle(session, "of_calls")
    assert ask("SELECT state, n FROM table(of_calls)") == [("paid", 1)]


def state_of(session: Session, view: str) -> str:
    [result] = session.run("SHOW QUERIES")
    assert isinstance(result, Rows)
    [state] = [row["state"] for row in result.table.to_pylist() if row["name"] == view]
    return str(state)


def test_envelopes_of_other_schemas_are_refused(session: Session) -> None:
    with pytest.raises(Unsupported, match="envelopes of debezium are JSON or Avro, and not protobuf"):
        session.run(
            "CREATE TABLE t (id bigint PRIMARY KEY) WITH (connector = 'kafka', topic = 't') "
            "FORMAT DEBEZIUM ENCODE PROTOBUF (message = 'M')"
        )


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_are_those_of_the_newest_schema(
    running: Stack, session: Session, registry: SchemaRegistryClient, ask: Ask, kind: str
) -> None:
    confluent, topic, copies = FORMATS[kind], f"found_{kind}", f"copies_{kind}"
    row = {"id": 7, "user": "ann", "amount": Decimal("1.25"), "state": "paid"}
    session.context.topics.create(topic, TopicShape(1))
    produce(running, topic, confluent.serializer(registry), row)
    settings = f"SETTINGS data_format = '{confluent.data_format}'"
    session.run(f"CREATE EXTERNAL STREAM {topic} {settings}{confluent.more}, type = 'kafka', topic = '{topic}'")
    shown = session.context.catalog.get(topic).ddl
    amount = {"avro": "decimal(9, 2)", "json": "float64", "protobuf": "string"}[kind]
    assert f"{topic} (id int64, user string, amount {amount}, state string) SETTINGS" in shown
    session.run(
        f"CREATE TABLE {copies} (*, PRIMARY KEY (id)) WITH (connector = 'kafka', topic = '{topic}') FORMAT UPSERT "
        f"ENCODE {kind} ({'message = Order, ' if kind == 'protobuf' else ''}schema.registry = "
        f"'{running.endpoint('registry')}');"
        f"CREATE MATERIALIZED VIEW of_{kind} AS SELECT state, count() AS n FROM {topic} GROUP BY state "
        "SETTINGS seek_to = 'earliest'"
    )
    assert ask(f"SELECT id, user, state FROM table({topic})") == [(7, "ann", "paid")]
    assert ask(f'SELECT id, "user", state FROM table({copies})') == [(7, "ann", "paid")]
    settle(session, f"of_{kind}")
    assert ask(f"SELECT state, n FROM table(of_{kind})") == [("paid", 1)]


def test_columns_that_a_schema_does_not_give_are_refused(session: Session, registry: SchemaRegistryClient) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "odd", "type": ["int", "string"]}]
    text = json.dumps({"type": "record", "name": "odd", "fields": fields})
    registry.register_schema("odd-value", Schema(text, "AVRO"))
    with pytest.raises(Unsupported, match=r"member odd of schema .* is no column: it is a union") as refused:
        session.run("CREATE STREAM odd SETTINGS data_format = 'Avro'")
    assert "(id int64)" in str(refused.value)
    session.run("CREATE STREAM odd (id int64) SETTINGS data_format = 'Avro'")
    with pytest.raises(UnknownName, match="no schema of 'unheard-value'"):
        session.run("CREATE STREAM unheard (*) SETTINGS data_format = 'Avro'")
    registry.register_schema("even-value", Schema(json.dumps(ORDER), "AVRO"))
    with pytest.raises(SqlError, match='no column "idd" is declared'):
        session.run("CREATE MUTABLE STREAM even PRIMARY KEY idd SETTINGS data_format = 'Avro'")
    session.run("CREATE STREAM IF NOT EXISTS odd (*) SETTINGS data_format = 'Avro'")


def test_keys_of_avro_are_read_and_written(
    running: Stack, session: Session, registry: SchemaRegistryClient, ask: Ask
) -> None:
    """From Confluent's producer, whose values lack the key, through a view, to Confluent's consumer."""
    session.context.topics.create("seats", TopicShape(1))
    key = {
        "type": "record",
        "name": "seat",
        "fields": [{"name": "row", "type": "int"}, {"name": "at", "type": "string"}],
    }
    value = {"type": "record", "name": "guest", "fields": [{"name": "guest", "type": ["null", "string"]}]}
    keys, values = (AvroSerializer(registry, json.dumps(one)) for one in (key, value))
    producer = Producer({"bootstrap.servers": running.endpoint("kafka")})

    def seat(at: str, guest: str | None) -> None:
        producer.produce(
            "seats",
            key=keys({"row": 1, "at": at}, SerializationContext("seats", MessageField.KEY)),
            value=guest and values({"guest": guest}, SerializationContext("seats", MessageField.VALUE)),
        )
        assert producer.flush(30) == 0

    for at, guest in (("a", "ann"), ("b", "bob"), ("a", "eve"), ("b", None)):
        seat(at, guest)
    session.run(
        "CREATE TABLE seats (*, PRIMARY KEY (row, at)) WITH (connector = 'kafka', topic = 'seats') "
        "FORMAT UPSERT ENCODE AVRO KEY ENCODE AVRO;"
        "CREATE STREAM taken (row int32, at string, guest string) PRIMARY KEY (row, at) "
        "SETTINGS mode = 'changelog_kv', data_format = 'Avro', key_format = 'avro';"
        "CREATE MATERIALIZED VIEW into_taken INTO taken AS SELECT row, at, guest FROM seats"
    )
    assert ask("SELECT row, at, guest FROM table(seats)") == [(1, "a", "eve")]
    settle(session, "into_taken")
    seat("a", None)
    settle(session, "into_taken")
    assert ask("SELECT * FROM table(taken)") == []
    read = AvroDeserializer(registry)
    consumer = Consumer(
        {"bootstrap.servers": running.endpoint("kafka"), "group.id": "seats", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["taken"])
    found: list[tuple[Any, Any]] = []
    until = time.monotonic() + 60
    while (not found or found[-1][1] != -1) and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and message.error() is None and message.value() is not None:
            made = read(message.value(), SerializationContext("taken", MessageField.VALUE))
            found.append((read(message.key(), SerializationContext("taken", MessageField.KEY)), made["_tp_delta"]))
    consumer.close()
    assert {(one["row"], one["at"]) for one, _ in found} <= {(1, "a"), (1, "b")}
    assert sum(delta for _, delta in found) == 0


def test_keys_that_do_not_fit_are_refused(session: Session, registry: SchemaRegistryClient) -> None:
    registry.register_schema("doors-key", Schema('"string"', "AVRO"))
    with pytest.raises(SqlError, match=r"primary key does not fit schema .* of doors-key: column id: it is string"):
        session.run("CREATE MUTABLE STREAM doors (id int64, n int) PRIMARY KEY id SETTINGS key_format = 'avro'")
    with pytest.raises(Unsupported, match="has the columns of a primary key, and there is none"):
        session.run("CREATE STREAM doors (id int64, n int) SETTINGS key_format = 'avro'")


def test_envelopes_of_debezium_in_avro(
    running: Stack, session: Session, registry: SchemaRegistryClient, ask: Ask
) -> None:
    """As its connector writes them, through both engines, and out again by our own schema."""
    session.context.topics.create("staff", TopicShape(1))
    numeric = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    since = {"type": "int", "connect.name": "io.debezium.time.Date", "logicalType": "date"}
    fields = [("id", "int"), ("name", ["null", "string"]), ("pay", numeric), ("since", ["null", since])]
    row = {"type": "record", "name": "Value", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.public.staff",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    keys, values = (AvroSerializer(registry, json.dumps(one)) for one in (key, envelope))
    producer = Producer({"bootstrap.servers": running.endpoint("kafka")})

    def put(op: str, number: int, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        change = {"before": before, "after": after, "source": {"lsn": 1}, "op": op, "ts_ms": 1}
        of_key = keys({"id": number}, SerializationContext("staff", MessageField.KEY))
        of_value = op and values(change, SerializationContext("staff", MessageField.VALUE))
        producer.produce("staff", key=of_key, value=of_value or None)
        assert producer.flush(30) == 0

    ann = {"id": 1, "name": "ann", "pay": Decimal("1.25"), "since": dt.date(2020, 2, 29)}
    bob = {"id": 2, "name": None, "pay": Decimal("-2.50"), "since": None}
    put("r", 1, None, ann)
    put("c", 2, None, bob)
    put("u", 1, ann, ann | {"name": "eve"})
    put("t", 0, None, None)
    put("d", 2, bob, None)
    put("", 2, None, None)
    session.run(
        "CREATE TABLE staff (*, PRIMARY KEY (id)) WITH (connector = 'kafka', topic = 'staff') "
        "FORMAT DEBEZIUM ENCODE AVRO;"
        "CREATE STREAM paid (id int32, pay decimal(9, 2)) SETTINGS mode = 'changelog', topic = 'staff', "
        "data_format = 'debezium_avro';"
        "CREATE MUTABLE STREAM copied (id int32, name string, since date) PRIMARY KEY id "
        "SETTINGS data_format = 'debezium_avro';"
        "CREATE MUTABLE STREAM words (k int32, word string) PRIMARY KEY k; INSERT INTO words VALUES (1, 'one');"
        "CREATE MATERIALIZED VIEW copy INTO copied AS SELECT id, name, since FROM staff;"
        "CREATE MATERIALIZED VIEW total AS SELECT sum(pay) AS s, count() AS n FROM paid SETTINGS seek_to = 'earliest';"
        "CREATE MATERIALIZED VIEW worded AS SELECT staff.id AS id, name, word FROM staff LEFT JOIN words "
        "ON staff.id = k SETTINGS join_algorithm = 'direct'"
    )
    assert ask("SELECT id, name, pay, since FROM table(staff)") == [(1, "eve", Decimal("1.25"), dt.date(2020, 2, 29))]
    for view in ("copy", "total", "worded"):
        settle(session, view)
    assert ask("SELECT id, name, since FROM table(copied)") == [(1, "eve", dt.date(2020, 2, 29))]
    assert ask("SELECT s, n FROM table(total)") == [(Decimal("1.25"), 1)]
    assert ask("SELECT id, name, word FROM table(worded)") == [(1, "eve", "one")]
    for view in ("copy", "total", "worded"):
        assert ask(f"SELECT reason FROM table({view}.dead_letter)") == [('op "t" is a truncation: it names no row',)]
    session.run("INSERT INTO copied VALUES (3, 'zoe', NULL); DELETE FROM copied WHERE id = 3")
    last = consumed(
        running, AvroDeserializer(registry), "copied", lambda one: one["op"] == "d" and one["before"]["id"] == 3
    )[-1]
    assert (last["op"], last["before"]["name"], last["after"]) == ("d", "zoe", None)


SEEN = {
    "avro": "data_format = 'Avro', key_format = 'avro'",
    "envelopes": "data_format = 'debezium_avro'",
    "csv": "data_format = 'CSV', key_format = 'raw', format_csv_delimiter = 'tab', format_csv_without_header = false",
}


@pytest.mark.parametrize("kind", SEEN)
def test_what_is_in_a_topic_is_seen_kept_and_put_back(
    running: Stack, session: Session, ask: Ask, tmp_path: Path, kind: str
) -> None:
    """PRINT, tail, dead letters, REPLAY and BACKUP look at records of any format, and at none of their bytes."""
    stream, view, bad = f"seen_{kind}", f"of_seen_{kind}", (b"\xff\x00key", b"\x01\xfe\tno\trecord")
    session.run(
        f"CREATE MUTABLE STREAM {stream} (id int64, note string) PRIMARY KEY id SETTINGS shards = 1, {SEEN[kind]};"
        f"INSERT INTO {stream} VALUES (1, 'a\tb'), (2, 'b'); DELETE FROM {stream} WHERE id = 2;"
        f"CREATE MATERIALIZED VIEW {view} AS SELECT id, note FROM {stream}"
    )
    producer = Producer({"bootstrap.servers": running.endpoint("kafka")})
    for key, value in [bad, *([(b"id", b"id\tnote")] if kind == "csv" else [])]:
        producer.produce(stream, key=key, value=value)
    assert producer.flush(30) == 0
    settle(session, view)
    [printed] = session.run(f"PRINT {stream} FROM BEGINNING")
    assert isinstance(printed, Live)
    with printed.changelog as changelog:
        rows = [row for part in changelog.batches(until_idle=True) for row in part.to_pylist()]
    assert [row["id"] for row in rows] == [1, 2, 2]
    assert rows[0]["note"] == "a\tb"
    command = [sys.executable, "-m", "dovetail.services.cli.main", "tail", stream, "-b", "-n", "3", "-o", "json"]
    environment = {**os.environ, "DOVETAIL_DATA_DIR": str(running.settings.data_dir)}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert [json.loads(line)["id"] for line in completed.stdout.splitlines() if line.startswith("{")] == [1, 2, 2]
    assert ask(f"SELECT id, note FROM table({view})") == [(1, "a\tb")]
    dead_letters = f"SELECT source_topic FROM table({view}.dead_letter)"
    assert ask(dead_letters) == [(stream,)]
    assert [row[1:] for row in ask(f"REPLAY {view}.dead_letter")] == [("put back", 1)]
    settle(session, view)
    assert ask(dead_letters) == [(stream,)] * 2
    held = [(one.key(), one.value()) for one in messages(running.endpoint("kafka"), stream)]
    assert held.count(bad) == 2
    session.run(f"BACKUP VIEW {view} TO '{tmp_path / view}'")
    kept = read_backup(tmp_path / view)
    assert [one.name for one in kept.relations] == [stream, view]
    assert parse_one(kept.relations[0].ddl) == session.context.catalog.get(stream).definition
