"""CREATE, SHOW, DESCRIBE and DROP against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SqlError, StackError, UnknownName
from dovetail.runtime.settings import Settings
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.show import Screen
from dovetail.services.session import Done, Live, Rows, Session, Text
from dovetail.services.session.tail.topic_views import TopicTail
from dovetail.services.stack import Stack
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream
from tests.services.conftest import Ask
from tests.spark.kafka import send

pytestmark = pytest.mark.services
_REGISTRY = "no schema registry is known"


def topic_setting(broker: str, topic: str, name: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
    return str(admin.describe_configs([resource])[resource].result()[name].value)


def failure(session: Session, statement: str) -> DovetailError:
    with pytest.raises(DovetailError) as raised:
        session.run(statement)
    return raised.value


def test_a_stream_gets_a_topic_of_its_name(session: Session) -> None:
    assert session.run("CREATE STREAM orders (id int64)") == [Done("created stream orders")]
    assert session.context.topics.partitions()["orders"] == 2


def test_shards_are_the_partitions(session: Session) -> None:
    session.run("CREATE STREAM orders (id int64) SETTINGS shards = 3")
    assert session.context.topics.partitions()["orders"] == 3


@pytest.mark.parametrize(
    ("ddl", "setting", "value"),
    [
        ("CREATE STREAM s (k int) SETTINGS retention = '7d'", "retention.ms", "604800000"),
        ("CREATE STREAM s (k int) SETTINGS retention = '10s'", "segment.ms", "60000"),
        ("CREATE STREAM s (k int) TTL to_datetime(_tp_time) + INTERVAL 12 HOUR", "retention.ms", "43200000"),
        (
            "CREATE STREAM s (k int) ORDER BY k TTL _tp_time + 2d DELETE SETTINGS shards = 1",
            "retention.ms",
            "172800000",
        ),
        ("CREATE TABLE s (k int) APPEND ONLY WITH (retention = '1h')", "retention.ms", "3600000"),
        ("CREATE MUTABLE STREAM s (k int) PRIMARY KEY k SETTINGS history = '1d'", "min.compaction.lag.ms", "86400000"),
        ("CREATE TABLE s (k int PRIMARY KEY) WITH (history = '1d')", "min.compaction.lag.ms", "86400000"),
        ("CREATE STREAM s (k int)", "retention.ms", "-1"),
    ],
)
def test_what_a_topic_keeps(session: Session, broker: str, ddl: str, setting: str, value: str) -> None:
    session.run(ddl)
    assert topic_setting(broker, "s", setting) == value


def test_create_or_replace_changes_what_a_topic_keeps_and_leaves_other_topics_alone(
    session: Session, broker: str
) -> None:
    session.run("CREATE STREAM s (k int) SETTINGS retention = '7d'")
    session.run("CREATE OR REPLACE STREAM s (k int, n int) SETTINGS retention = '3d'")
    assert topic_setting(broker, "s", "retention.ms") == "259200000"
    session.run("CREATE OR REPLACE STREAM s (k int)")
    assert topic_setting(broker, "s", "retention.ms") == "-1"
    session.run("DROP STREAM s; CREATE STREAM other (k int) SETTINGS topic = 's2', retention = '1d'")
    [done] = session.run("CREATE STREAM s2 (k int) SETTINGS retention = '2d'")
    assert done == Done("created stream s2, over the topic s2 that was there, which keeps its own retention")
    assert topic_setting(broker, "s2", "retention.ms") == "86400000"


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("CREATE STREAM s (k int) SETTINGS retention = 'soon'", "retention cannot be 'soon'"),
        ("CREATE STREAM s (k int) SETTINGS retention = 0", "retention cannot be 0"),
        ("CREATE MUTABLE STREAM s (k int) PRIMARY KEY k SETTINGS retention = '1d'", "stands until a record takes it"),
        ("CREATE STREAM s (k int) SETTINGS mode = 'changelog', retention = '1d'", "stands until a record takes it"),
        ("CREATE STREAM s (k int) SETTINGS history = '1d'", "is not compacted, so it keeps its whole history"),
        ("CREATE EXTERNAL STREAM s (k int) SETTINGS type = 'kafka', topic = 't', retention = '1d'", "is not made here"),
    ],
)
def test_what_a_topic_cannot_keep_is_refused(session: Session, ddl: str, reason: str) -> None:
    assert reason in failure(session, ddl).what
    assert "s" not in session.context.topics.partitions()


@pytest.mark.parametrize(
    ("ddl", "policy"),
    [
        ("CREATE STREAM s (k int)", "delete"),
        ("CREATE MUTABLE STREAM s (k int) PRIMARY KEY k", "compact"),
        ("CREATE STREAM s (k int) PRIMARY KEY k SETTINGS mode = 'versioned_kv'", "compact"),
        ("CREATE STREAM s (k int) PRIMARY KEY k SETTINGS mode = 'changelog_kv'", "delete"),
        ("CREATE TABLE s (k int PRIMARY KEY)", "compact"),
        ("CREATE TABLE s (k int)", "delete"),
    ],
)
def test_only_upserts_are_compacted(session: Session, broker: str, ddl: str, policy: str) -> None:
    session.run(ddl)
    assert topic_setting(broker, "s", "cleanup.policy") == policy


def test_streams_are_listed_and_described(session: Session, ask: Ask) -> None:
    session.run("CREATE MUTABLE STREAM prices (symbol string, price float64 DEFAULT 1.5) PRIMARY KEY symbol")
    session.run("CREATE TABLE users (id int PRIMARY KEY, name varchar)")
    assert ask("SHOW STREAMS LIKE 'pr%'") == [("prices", "upsert", "symbol", "prices", 2, "symbol, price")]
    assert [row[0] for row in ask("SHOW TABLES")] == ["prices", "users"]
    assert ask("DESCRIBE prices") == [
        ("symbol", "string", "", "", "primary key"),
        ("price", "float64", "yes", "1.5", ""),
        ("_tp_time", "datetime64(3, 'UTC')", "yes", "the time of the record", ""),
    ]
    assert ask("DESCRIBE users") == [
        ("id", "integer", "", "", "primary key"),
        ("name", "varchar", "yes", "", ""),
    ]


def test_types_are_shown_as_they_were_declared(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (a json, b ipv4, c uuid, d string); CREATE TABLE t (a json, b jsonb, c varchar)")
    assert [row[1] for row in ask("DESCRIBE s")] == ["json", "ipv4", "uuid", "string", "datetime64(3, 'UTC')"]
    assert [row[1] for row in ask("DESCRIBE t")] == ["json", "jsonb", "varchar"]


def test_a_name_in_another_letter_case_means_the_same_relation(session: Session, ask: Ask) -> None:
    session.run("CREATE TABLE users (k INT PRIMARY KEY)")
    assert ask("DESCRIBE USERS") == ask("DESCRIBE users")
    assert TopicTail.of(session.context, "Users").topic == "users"
    (dropped,) = session.run("DROP TABLE IF EXISTS USERS")
    assert isinstance(dropped, Done)
    assert dropped.text.startswith("dropped table users")
    assert session.context.catalog.find("users") is None


def test_a_topic_of_just_the_name_comes_first(session: Session, ask: Ask, topics: Callable[..., str]) -> None:
    outside = topics("Users")
    session.run(f"CREATE STREAM `{outside.lower()}` (k int)")
    assert ask(f"DESCRIBE `{outside}`") != ask(f"DESCRIBE `{outside.lower()}`") == ask(f"DESCRIBE `{outside.upper()}`")
    assert TopicTail.of(session.context, outside).topic == outside


def test_functions_and_topics_are_described(session: Session, ask: Ask, topics: Callable[..., str]) -> None:
    session.run("CREATE FUNCTION twice(n int) RETURNS int64 LANGUAGE python AS $$def twice(n): return n$$")
    assert ask("DESCRIBE twice") == [("n", "int32", "argument"), ("twice", "int64", "result")]
    outside = topics("outside")
    described = ask(f'DESCRIBE "{outside}"')
    assert [row[:2] for row in described][-2:] == [("key", "string"), ("value", "string")]
    assert "SHOW TOPICS" in failure(session, "DESCRIBE nothing_of_this_name").fix


def test_topics_are_listed_with_what_they_hold(session: Session, ask: Ask, topics: Callable[..., str]) -> None:
    outside = topics("listed")
    session.run(
        f"CREATE STREAM listed_a (id int64); CREATE EXTERNAL STREAM listed_b (id int64) SETTINGS topic = '{outside}'"
    )
    assert ask("SHOW TOPICS LIKE 'listed%'") == [(outside, 1, "stream listed_b"), ("listed_a", 2, "stream listed_a")]


def test_any_topic_is_printed(session: Session, broker: str, topics: Callable[..., str]) -> None:
    outside = topics("printed")
    session.run("CREATE STREAM printed (id int64) SETTINGS shards = 1; INSERT INTO printed VALUES (1), (2), (3)")
    send(broker, outside, [{"x": 1}])

    assert printed(session, "PRINT printed FROM BEGINNING LIMIT 2") == [{"id": 1}, {"id": 2}]
    assert printed(session, "PRINT printed") == []
    [record] = printed(session, f"PRINT '{outside}' FROM BEGINNING")
    assert (record["partition"], record["offset"], record["key"], record["value"]) == (0, 0, None, '{"x":1}')
    missing = failure(session, "PRINT printedd")
    assert missing.what == 'there is no stream, view or topic "printedd"'
    assert missing.fix == 'did you mean "printed"?'


def printed(session: Session, statement: str) -> list[dict[str, object]]:
    """What there is now."""
    [result] = session.run(statement)
    assert isinstance(result, Live)
    with result.changelog as changelog:
        return [row for rows in changelog.batches(until_idle=True) for row in rows.to_pylist()]


def test_a_view_that_is_there_is_explained(session: Session) -> None:
    session.run("CREATE STREAM s (id int64); CREATE VIEW v AS SELECT id + 1 AS next FROM s")
    [by_name] = session.run("EXPLAIN v")
    [with_kind] = session.run("EXPLAIN VIEW v")
    [by_text] = session.run("EXPLAIN CREATE VIEW v AS SELECT id + 1 AS next FROM s")
    assert isinstance(by_name, Text)
    assert by_name.text.startswith("Append v")
    assert by_name == with_kind == by_text
    assert failure(session, "EXPLAIN s").fix == "DESCRIBE s"


def test_show_create_masks_passwords(session: Session, topics: Callable[..., str]) -> None:
    topic = topics("outside")
    ddl = f"CREATE EXTERNAL STREAM e (id int64) SETTINGS type = 'kafka', topic = '{topic}', password = 'hunter2'"
    session.run(ddl)
    [shown] = session.run("SHOW CREATE e")
    assert isinstance(shown, Text)
    assert "hunter2" not in shown.text
    assert "***" in shown.text


def test_an_external_stream_needs_its_topic(session: Session, topics: Callable[..., str]) -> None:
    topic = topics("readings")
    error = failure(session, f"CREATE EXTERNAL STREAM e (id int64) SETTINGS type = 'kafka', topic = '{topic}x'")
    assert isinstance(error, UnknownName)
    assert error.fix == f'did you mean "{topic}"?'
    other = failure(session, f"CREATE EXTERNAL STREAM e (id int64) SETTINGS topic = '{topic}', brokers = 'far:9092'")
    assert "far:9092" in other.what


def test_dropping_an_external_stream_leaves_its_topic(session: Session, topics: Callable[..., str]) -> None:
    topic = topics("readings")
    session.run(f"CREATE EXTERNAL STREAM e (id int64) SETTINGS topic = '{topic}'; DROP STREAM e")
    assert topic in session.context.topics.partitions()


def test_names_are_unique(session: Session) -> None:
    session.run("CREATE STREAM s (id int64)")
    assert "there is a stream" in failure(session, "CREATE STREAM s (id int64)").what
    assert session.run("CREATE STREAM IF NOT EXISTS s (id int64)") == [Done("stream s exists already")]
    other = "CREATE STREAM IF NOT EXISTS s (n int32, extra string)"
    session.run("CREATE STREAM n (id int64, n int64)")
    assert session.run(other) == [Done("stream s exists already; it lacks n, extra and has id as well")]
    assert session.run(other.replace(" s ", " n ")) == [
        Done("stream n exists already; it lacks extra and has id as well and has n of another type")
    ]


FUNCTION = "CREATE FUNCTION IF NOT EXISTS f(x int64) RETURNS int64 LANGUAGE python AS $$def f(x): return x$$"


@pytest.mark.parametrize(
    ("made", "other", "said"),
    [
        ("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS a", "SELECT 1 => SELECT 2", ", with another definition"),
        (FUNCTION, "return x => return -x", ", with another definition"),
        ("CREATE TABLE IF NOT EXISTS v AS SELECT 1 AS a", "AS a => AS b", "; it lacks b and has a as well"),
    ],
)
def test_what_exists_already_in_another_form_is_told(session: Session, made: str, other: str, said: str) -> None:
    session.run(made)
    [same] = session.run(made)
    assert isinstance(same, Done)
    assert same.text.endswith("exists already")
    before, after = other.split(" => ")
    [told] = session.run(made.replace(before, after))
    assert isinstance(told, Done)
    assert f"exists already{said}" in told.text


@pytest.mark.parametrize(
    ("ddl", "what", "fix"),
    [
        ("CREATE STREAM s (a int) SETTINGS partitions = 3", 'no setting "partitions"', 'did you mean "shards"?'),
        ("CREATE STREAM s (a int) SETTINGS data_format = 'DELIMITED'", "cannot be DELIMITED", 'did you mean "csv"?'),
        ("CREATE STREAM s (a int) SETTINGS shard = 3", 'no setting "shard"', 'did you mean "shards"?'),
        ("CREATE STREAM s (a int) SETTINGS logstore = 1", 'no setting "logstore"', "there are: "),
        ("CREATE TABLE s (a int) WITH (partition_by = 5)", 'no setting "partition_by"', "there are: "),
        ("CREATE STREAM s (a int) SETTINGS connector = 'kafka'", "a stream has no connector kafka", "EXTERNAL STREAM"),
        ("CREATE EXTERNAL STREAM s (a int) SETTINGS topic = 't', data_format = 'Avro'", _REGISTRY, "dovetail up"),
        ("CREATE SOURCE s (a int) WITH (connector = 'kafka') FORMAT PLAIN ENCODE AVRO", _REGISTRY, "dovetail up"),
        ("CREATE STREAM s (a int) SETTINGS data_format = 'JSONSchema'", _REGISTRY, "dovetail up"),
        ("CREATE TABLE s (a int) ENCODE JSON (schema.registry = 'http://r')", _REGISTRY, "dovetail up"),
        ("CREATE MUTABLE STREAM s (a int) PRIMARY KEY a SETTINGS key_format = 'avro'", _REGISTRY, "dovetail up"),
        ("CREATE STREAM s (a int) SETTINGS key_format = 'avro'", "there is none", "declare a primary key"),
        ("CREATE STREAM s SETTINGS data_format = 'avro'", _REGISTRY, "dovetail up"),
        ("CREATE STREAM s (a int) SETTINGS data_format = 'CVS'", "cannot be CVS", 'did you mean "csv"?'),
        ("CREATE TABLE s (a int) FORMAT PLAIN ENCODE JSN", "cannot be jsn", 'did you mean "json"?'),
        ("CREATE TABLE s (a int) ENCODE CSV (delimeter = ';')", 'no option "delimeter"', 'did you mean "delimiter"?'),
        ("CREATE TABLE s (a int) ENCODE CSV (without_header = 'no')", "cannot be no", "without_header = true"),
        (
            "CREATE STREAM s (a int) SETTINGS format_csv_without_header = false",
            "does not apply to json",
            "leave it out",
        ),
        ("CREATE TABLE s (a int) ENCODE CSV (delimiter = '::')", "cannot be ::", "delimiter = ,"),
        ("CREATE STREAM s (a int) SETTINGS format_csv_delimiter = ';'", "does not apply to json", "leave it out"),
        ("CREATE STREAM s (a int, b string) SETTINGS data_format = 'raw'", "one column of text", "declare one"),
        ("CREATE STREAM s (a int) SETTINGS data_format = 'raw'", "one column of text", "declare one"),
        ("CREATE TABLE s (a varchar) FORMAT PLAIN ENCODE BYTES", "no place for _tp_delta", "APPEND ONLY"),
        ("CREATE TABLE s (a int PRIMARY KEY) ENCODE JSON KEY ENCODE CSV", "cannot be csv", "JSON"),
        ("CREATE TABLE s (a int) FORMAT PLAIN ENCODE JSON KEY ENCODE TXT", "cannot be txt", 'did you mean "text"?'),
        ("CREATE TABLE s (a int) FORMAT PLAIN ENCODE JSON KEY ENCODE TEXT", "there is none", "declare a primary key"),
        ("CREATE TABLE s (a int) FORMAT DEBEZUM ENCODE JSON", "cannot be debezum", 'did you mean "debezium"?'),
        ("CREATE TABLE s (a int) APPEND ONLY FORMAT DEBEZIUM ENCODE JSON", "take rows back", "PRIMARY KEY"),
        ("CREATE TABLE s (a int) FORMAT DEBEZIUM ENCODE CSV", "csv has none", "ENCODE JSON"),
        ("CREATE SOURCE s (a int) WITH (connector = 'kinesis')", "cannot be kinesis", "Kafka"),
        ("CREATE TABLE s (a int) WITH (scan.startup.mode = 'latest')", "cannot be latest", "seek_to"),
    ],
)
def test_settings_that_say_nothing_here_are_refused(session: Session, ddl: str, what: str, fix: str) -> None:
    error = failure(session, ddl)
    assert what in error.what
    assert fix in error.fix
    assert session.context.catalog.find("s") is None


def test_a_connection_may_be_described(session: Session, topics: Callable[..., str]) -> None:
    topic, brokers = topics("described"), str(session.context.brokers).replace("127.0.0.1", "localhost")
    session.run(
        f"CREATE EXTERNAL STREAM e (a int) SETTINGS type = 'kafka', data_format = 'JSONEachRow', topic = '{topic}',"
        f" brokers = '{brokers}', username = 'u', password = 'p'"
    )
    session.run(
        f"CREATE SOURCE f (a int) WITH (connector = 'kafka', topic = '{topic}', properties.sasl.password = 'p',"
        f" properties.bootstrap.server = '{brokers}', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON"
    )


def test_a_listing_is_whole_and_short_on_a_screen(session: Session, ask: Ask) -> None:
    columns = ", ".join(f"column_{number}" for number in range(20))
    typed = columns.replace(",", " int64,")
    session.run(f"CREATE STREAM many ({typed} int64)")
    [listed] = session.run("SHOW STREAMS")
    assert isinstance(listed, Rows)
    assert listed.table.column("columns").to_pylist() == [columns]
    whole, short = StringIO(), StringIO()
    Screen(Format.JSON, whole).rows(listed.table, wide=listed.wide)
    Screen(Format.TABLE, short).rows(listed.table, wide=listed.wide)
    assert columns in whole.getvalue()
    assert columns[:50] in short.getvalue()
    assert columns not in short.getvalue()


def test_impossible_topics_are_refused(session: Session) -> None:
    assert "shards" in failure(session, "CREATE STREAM s (id int64) SETTINGS shards = 0").what
    error = failure(session, "CREATE STREAM s (id int64) SETTINGS replication_factor = 3")
    assert isinstance(error, SqlError)
    assert "replication_factor" in error.fix
    assert session.context.catalog.find("s") is None


def test_a_query_without_a_runner_is_refused_and_leaves_nothing(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (id int64)")
    error = failure(session, "CREATE MATERIALIZED VIEW v AS SELECT id FROM s")
    assert isinstance(error, StackError)
    assert error.what == "no query can run: the test has none"
    assert ask("SHOW VIEWS") == []
    assert "v" not in session.context.topics.partitions()
    assert isinstance(failure(session, "SELECT id FROM s"), StackError)


def test_explain_runs_nothing(session: Session) -> None:
    session.run("CREATE STREAM a (id int64); CREATE STREAM b (id int64)")
    [plan] = session.run("EXPLAIN SELECT a.id FROM a JOIN b ON a.id = b.id")
    assert isinstance(plan, Text)
    assert "Bidirectional inner" in plan.text


def test_unknown_names_come_with_a_suggestion(session: Session) -> None:
    session.run("CREATE STREAM orders (id int64)")
    assert failure(session, "SELECT * FROM table(order)").fix == 'did you mean "orders"?'
    assert isinstance(failure(session, "PAUSE nothing"), UnknownName)
    assert isinstance(failure(session, "SYSTEM RELOAD DICTIONARY nothing"), UnknownName)


def test_a_refused_connection_is_told_soon() -> None:
    with Session(Settings(broker_timeout_s=600), Catalog.open("sqlite://"), BrokerAddress("127.0.0.1:1")) as session:
        error = failure(session, "CREATE STREAM s (id int64)")
        assert isinstance(error, ServiceUnavailable)
        assert error.what == "Kafka does not answer within 3 s: nothing listens there, the connection is refused"
        assert "dovetail up starts it" in error.fix


def test_a_broker_that_is_down_is_told_within_the_wait(stack: Stack) -> None:
    settings = stack.settings.model_copy(update={"broker_timeout_s": 0.5})
    with Session(settings, Catalog.open("sqlite://"), BrokerAddress("127.0.0.1:1")) as session:
        error = failure(session, "CREATE STREAM s (id int64)")
        assert isinstance(error, ServiceUnavailable)
        assert error.what.startswith("Kafka does not answer within 0.5 s")
        assert session.context.catalog.find("s") is None
        table = parse_one("CREATE TABLE t (k int)")
        assert isinstance(table, CreateStream)
        session.context.catalog.create(table, now_ms=1)
        # What has no topic needs no broker.
        assert session.run("CREATE INDEX i ON t (k); DROP INDEX i")[1] == Done("dropped index i")


def test_explain_warns_of_a_join_that_keeps_both_inputs_for_ever(session: Session) -> None:
    session.run("CREATE STREAM a (k int); CREATE STREAM b (k int)")
    (endless, bounded) = session.run(
        "EXPLAIN SELECT a.k FROM a JOIN b ON a.k = b.k;"
        "EXPLAIN SELECT a.k FROM a JOIN b ON a.k = b.k AND date_diff_within(10m, a._tp_time, b._tp_time)"
    )
    assert isinstance(endless, Text)
    assert "\n\nwarning: the join of a with b keeps all rows of both forever" in endless.text
    assert isinstance(bounded, Text)
    assert "warning" not in bounded.text
