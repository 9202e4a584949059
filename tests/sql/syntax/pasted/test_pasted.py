"""Statements of Flink, ksqlDB and RisingWave: understood where they mean the same, else refused with what runs."""

from __future__ import annotations

import pytest

from changelog.errors import SqlError
from changelog.schema import Kind
from sql.stream_settings import expect_settings
from sql.syntax.parse import parse, parse_one
from sql.syntax.statements import CreateStream, CreateView, Select
from tests.sql.planner import Planner

WORLD = (
    "CREATE STREAM s (k int, n int)",
    "CREATE TABLE t0 (k INT, n INT, PRIMARY KEY (k))",
    "CREATE STREAM target (k int, n int) SETTINGS mode = 'changelog'",
    "CREATE MATERIALIZED VIEW mv AS SELECT k, n FROM t0",
)
COLUMNS = "id INT, `order` STRING, ts TIMESTAMP(3)"
LATE = "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
BROKERS = "'topic' = 'a-b', 'properties.bootstrap.servers' = 'h:9092', 'properties.group.id' = 'g'"
KAFKA = f"'connector' = 'kafka', {BROKERS}, 'format' = 'json'"
UPSERT = f"'connector' = 'upsert-kafka', {BROKERS}, 'key.format' = 'json', 'value.format' = 'json'"
RAW = UPSERT.replace("'key.format' = 'json'", "'key.format' = 'raw'")
OURS = "connector = 'kafka', topic = 'a-b', properties.bootstrap.server = 'h:9092'"
KEY = "PRIMARY KEY (id) NOT ENFORCED"

UNDERSTOOD = [
    (
        f"CREATE TABLE t ({COLUMNS}, {LATE}) WITH ({KAFKA}, 'scan.startup.mode' = 'earliest-offset')",
        f"CREATE TABLE t ({COLUMNS}, {LATE}) APPEND ONLY WITH ({OURS})",
    ),
    (
        f"CREATE TABLE t ({COLUMNS}) WITH ({KAFKA}, 'json.ignore-parse-errors' = 'true')",
        f"CREATE TABLE t ({COLUMNS}) APPEND ONLY WITH ({OURS})",
    ),
    (
        f"CREATE TABLE t ({COLUMNS}, {LATE}, {KEY}) WITH ({UPSERT}, 'value.fields-include' = 'ALL')",
        f"CREATE TABLE t ({COLUMNS}, {LATE}, PRIMARY KEY (id)) WITH ({OURS})",
    ),
    (
        "CREATE STREAM t (id INT, v VARCHAR) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')",
        "CREATE EXTERNAL STREAM t (id INT, v VARCHAR) SETTINGS type = 'kafka', topic = 'x'",
    ),
    (
        "CREATE STREAM t (id INT, at TIMESTAMP) WITH (kafka_topic='x', format='json', partitions=2, timestamp='at')",
        "CREATE STREAM t (id INT, at TIMESTAMP) SETTINGS topic = 'x', shards = 2, event_time_column = 'at'",
    ),
    (
        "CREATE TABLE t (id VARCHAR PRIMARY KEY, v DOUBLE) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')",
        "CREATE TABLE t (id VARCHAR PRIMARY KEY, v DOUBLE) WITH (connector = 'kafka', topic = 'x')",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC = 'x', FORMAT = 'JSON', PARTITIONS = 3)",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (topic = 'x', shards = 3)",
    ),
]
REFUSED = [
    (f"CREATE TABLE t ({COLUMNS}, {LATE}, {KEY}) WITH ({KAFKA})", "appends rows"),
    (f"CREATE TABLE t ({COLUMNS}) WITH ({UPSERT})", "has a primary key"),
    (f"CREATE TABLE t ({COLUMNS}, {KEY}) WITH ({UPSERT}, 'value.fields-include' = 'EXCEPT_KEY')", "EXCEPT_KEY"),
    (f"CREATE TABLE t ({COLUMNS}, {KEY}) WITH ({RAW})", "keys cannot be raw"),
    (f"CREATE TABLE t ({COLUMNS}) WITH ({KAFKA}, 'key.format' = 'json', 'key.fields' = 'id')", "not read"),
    (f"CREATE TABLE t ({COLUMNS}) WITH ({KAFKA}, 'key.fields' = 'id')", "'key.fields' = 'id' means nothing here"),
    *(
        (f"CREATE TABLE t ({COLUMNS}, {LATE}) WITH ({KAFKA}, 'scan.startup.mode' = '{mode}')", f"mode is {mode}")
        for mode in ("latest-offset", "group-offsets", "timestamp", "specific-offsets")
    ),
    (f"CREATE TABLE t ({COLUMNS}, {KEY}) WITH ({UPSERT}, 'scan.startup.mode' = 'latest-offset')", "sum of all"),
    ("CREATE TABLE t (id INT) WITH ('connector' = 'datagen', 'format' = 'json')", "no topic of Kafka"),
    (
        "CREATE STREAM t (id INT KEY, \"two words\" VARCHAR) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')",
        "column id",
    ),
    ("CREATE STREAM t (id INT) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON', WRAP_SINGLE_VALUE = false)", "WRAP_S"),
    ("CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')", "KEY_FORMAT KAFKA"),
    ("CREATE TABLE t (id INT, v INT) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')", "has a primary key"),
    ("CREATE TABLE x AS SELECT k, count() AS n FROM s GROUP BY k EMIT CHANGES", "a table is no query"),
    ("CREATE STREAM x WITH (KAFKA_TOPIC = 'x') AS SELECT k FROM s EMIT CHANGES", "a stream is no query"),
    (f"CREATE SINK out FROM mv WITH ({OURS}) FORMAT UPSERT ENCODE JSON", "no sinks"),
    (
        f"CREATE SINK IF NOT EXISTS out AS SELECT k FROM s WHERE n IN (1, 2) WITH ({OURS}, type = 'append-only')",
        "no sinks",
    ),
    ("CREATE SINK out INTO target FROM mv", "no sinks"),
    ("SELECT k FROM s EMIT CHANGES LIMIT 5", "once each, found LIMIT"),
]


@pytest.mark.parametrize(("theirs", "ours"), UNDERSTOOD)
def test_what_means_the_same_is_the_same_stream(theirs: str, ours: str) -> None:
    found, expected = parse_one(theirs), parse_one(ours)
    assert isinstance(found, CreateStream)
    assert isinstance(expected, CreateStream)
    expect_settings(found)
    for one in ("schema", "kind", "rules", "primary_key", "external", "append_only", "topic", "brokers", "watermark"):
        assert getattr(found, one) == getattr(expected, one), one
    Planner.of(theirs).plan("SELECT id FROM t")


@pytest.mark.parametrize(("statement", "message"), REFUSED)
def test_what_means_something_else_is_refused_with_a_form_that_runs(statement: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as refused:
        parse(statement)
    [form] = parse(refused.value.fix)
    match form:
        case CreateStream():
            expect_settings(form)
            Planner.of(form.text).plan(f"SELECT * FROM {form.name}")
        case CreateView() | Select():
            Planner.of(*WORLD).plan(form.text)
        case _:
            pytest.fail(f"a form of another kind: {refused.value.fix}")


def test_a_form_has_the_columns_and_the_topic_of_the_user() -> None:
    with pytest.raises(SqlError) as refused:
        parse(REFUSED[0][0])
    [form] = parse(refused.value.fix)
    assert isinstance(form, CreateStream)
    assert [column.name for column in form.columns] == ["id", "order", "ts"]
    assert (form.topic, form.brokers, form.primary_key, form.kind) == ("a-b", "h:9092", ("id",), Kind.UPSERT)
    assert form.watermark is not None
    assert form.watermark.delay_ms == 5_000


def test_emit_changes_is_what_a_query_does() -> None:
    planner = Planner.of(*WORLD)
    assert planner.plan("SELECT k FROM s EMIT CHANGES").fingerprint == planner.plan("SELECT k FROM s").fingerprint


def test_a_column_may_be_called_key() -> None:
    found = parse_one("CREATE STREAM t (key int, value string)")
    assert isinstance(found, CreateStream)
    assert [column.name for column in found.columns] == ["key", "value"]
