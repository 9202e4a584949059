"""Statements of Flink, ksqlDB and RisingWave: understood where they mean the same, else refused with what runs."""

from __future__ import annotations

import dataclasses

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import Kind
from dovetail.sql.stream_settings import expect_settings
from dovetail.sql.syntax.grammar.hints.other_statements import CREATED, OTHERS
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView, Select
from tests.sql.planner import Planner

WORLD = (
    "CREATE STREAM s (k int, n int)",
    "CREATE STREAM s2 (k int, n int)",
    "CREATE TABLE timed (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND) APPEND ONLY",
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
    ("CREATE TABLE x AS SELECT k, count() AS n FROM s GROUP BY k EMIT CHANGES", "a table is not a query"),
    ("CREATE STREAM x WITH (KAFKA_TOPIC = 'x') AS SELECT k FROM s EMIT CHANGES", "a stream is not a query"),
    (f"CREATE SINK out FROM mv WITH ({OURS}) FORMAT UPSERT ENCODE JSON", "no sinks"),
    (
        f"CREATE SINK IF NOT EXISTS out AS SELECT k FROM s WHERE n IN (1, 2) WITH ({OURS}, type = 'append-only')",
        "no sinks",
    ),
    ("CREATE SINK out INTO target FROM mv", "no sinks"),
    ("SELECT k FROM s EMIT CHANGES LIMIT 5", "once each, found LIMIT"),
    ("SELECT s.k FROM s JOIN s2 WITHIN 7 DAYS ON s.k = s2.k WHERE s.n > 1 EMIT CHANGES", "WITHIN is of ksqlDB"),
    ("SELECT s.k FROM s LEFT JOIN s2 WITHIN 1 HOUR GRACE PERIOD 15 MINUTES ON s.k = s2.k", "WITHIN is of ksqlDB"),
    (
        "SELECT k, count(*) AS n FROM s WINDOW TUMBLING (SIZE 30 SECONDS) GROUP BY k EMIT CHANGES",
        "windows are of a stream in FROM",
    ),
    (
        (
            "SELECT k, WINDOWSTART AS a, windowend, count(*) AS n FROM s AS x"
            " WINDOW HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS, RETENTION 7 DAYS) WHERE n > 1 GROUP BY k, n"
        ),
        "windows are of a stream in FROM",
    ),
    ("SELECT k, count(*) AS n FROM s WINDOW SESSION (60 SECONDS) GROUP BY k", "windows are of a stream in FROM"),
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


WINDOWS = [
    (
        (
            "SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE timed, DESCRIPTOR(at), INTERVAL '10' MINUTES))"
            " GROUP BY window_start"
        ),
        "SELECT window_start, count(*) AS n FROM TUMBLE(timed, at, INTERVAL '10' MINUTE) GROUP BY window_start",
    ),
    (
        "SELECT w.k FROM HOP(TABLE timed, DESCRIPTOR(at), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS) AS w",
        "SELECT w.k FROM HOP(timed, at, INTERVAL '5 seconds', INTERVAL '10 seconds') AS w",
    ),
    (
        (
            "SELECT l.k FROM (SELECT * FROM TABLE(TUMBLE(TABLE timed, DESCRIPTOR(at), INTERVAL '1' HOURS))) AS l"
            " JOIN (SELECT * FROM TUMBLE(TABLE timed, DESCRIPTOR(at), INTERVAL '1' HOUR)) AS r"
            " ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"
        ),
        (
            "SELECT l.k FROM (SELECT * FROM TUMBLE(timed, at, INTERVAL '1' HOUR)) AS l"
            " JOIN (SELECT * FROM TUMBLE(timed, at, INTERVAL '1' HOUR)) AS r"
            " ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"
        ),
    ),
    (
        (
            "SELECT window_start, count() AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(_tp_time), INTERVAL '10' SECONDS))"
            " GROUP BY window_start"
        ),
        "SELECT window_start, count() AS n FROM tumble(s, _tp_time, 10s) GROUP BY window_start",
    ),
    (
        (
            "SELECT w.k FROM TABLE(HOP(DATA => TABLE timed, TIMECOL => DESCRIPTOR(at), SLIDE => INTERVAL '5' SECONDS,"
            " SIZE => INTERVAL '10' SECONDS, OFFSET => INTERVAL '1' SECONDS)) AS w"
        ),
        "SELECT w.k FROM HOP(timed, at, INTERVAL '5 seconds', INTERVAL '10 seconds', INTERVAL '1 second') AS w",
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), WINDOWS)
def test_windows_of_flink_are_those_of_from(theirs: str, ours: str) -> None:
    planner = Planner.of(*WORLD)
    assert planner.plan(theirs).fingerprint == planner.plan(ours).fingerprint


@pytest.mark.parametrize("unit", ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"])
def test_a_unit_of_several_is_that_of_one(unit: str) -> None:
    """Over tables ``INTERVAL '10' MINUTES`` were ten seconds, in a column called MINUTES."""
    planner = Planner.of(*WORLD)
    plans = [planner.plan(f"SELECT at + INTERVAL '10' {one} AS later FROM timed") for one in (unit, f"{unit}s")]
    assert plans[0].fingerprint == plans[1].fingerprint


def test_a_window_in_from_keeps_what_is_no_word_of_flink() -> None:
    planner = Planner.of("CREATE STREAM tumble (hop int, descriptor int)")
    planner.plan("SELECT hop, descriptor FROM tumble WHERE hop IN (1, 2)")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.k FROM s JOIN s2 WITHIN (1 HOUR, 2 HOURS) ON s.k = s2.k",
        "SELECT s.k FROM s JOIN s2 WITHIN 1 FORTNIGHT ON s.k = s2.k",
        "SELECT k FROM s WINDOW TUMBLING (SIZE 30 SECONDS)",
        "SELECT k FROM s WINDOW HOPPING (SIZE 30 SECONDS) GROUP BY k",
        "SELECT k FROM s JOIN s2 ON s.k = s2.k WINDOW TUMBLING (SIZE 30 SECONDS) GROUP BY k",
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY n PATTERN (A B) DEFINE A AS A.n > 1)",
    ],
)
def test_what_has_no_form_is_refused_with_words(query: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(query)
    assert refused.value.fix


@pytest.mark.parametrize("word", [*OTHERS, *(f"CREATE {words}" for words in CREATED)])
@pytest.mark.parametrize("rest", ["", " x", " TABLE s TO ann", " x = 1"])
def test_a_statement_of_others_is_refused_with_what_serves(word: str, rest: str) -> None:
    """And not taken for the word that is most like it: TERMINATE for TRUNCATE."""
    with pytest.raises(SqlError) as refused:
        parse(word + rest)
    assert refused.value.what == f"there is no statement {word}"
    assert refused.value.fix
    assert "did you mean" not in refused.value.fix


@pytest.mark.parametrize("what", ["STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS"])
def test_list_is_show(what: str) -> None:
    listed, shown = parse_one(f"LIST {what}"), parse_one(f"SHOW {what}")
    assert dataclasses.replace(listed, text="") == dataclasses.replace(shown, text="")


def test_emit_changes_is_what_a_query_does() -> None:
    planner = Planner.of(*WORLD)
    assert planner.plan("SELECT k FROM s EMIT CHANGES").fingerprint == planner.plan("SELECT k FROM s").fingerprint


def test_a_column_may_be_called_key() -> None:
    found = parse_one("CREATE STREAM t (key int, value string)")
    assert isinstance(found, CreateStream)
    assert [column.name for column in found.columns] == ["key", "value"]
