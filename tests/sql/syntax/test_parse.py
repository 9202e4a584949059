"""Statements: every form of both dialects, and what is said of those that cannot be read."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError, SyntaxFault, UnknownName, Unsupported
from dovetail.changelog.schema import Column, Kind
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.syntax.parse import complete, parse, parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    Clause,
    CreateDictionary,
    CreateIndex,
    CreateStream,
    CreateView,
    Delete,
    Describe,
    Drop,
    Emit,
    Explain,
    Index,
    InputOffset,
    Insert,
    OnDemand,
    Pause,
    Replay,
    Resume,
    Select,
    Show,
    ShowCreate,
    System,
    Terminate,
    Update,
    WaitFor,
    Why,
)
from dovetail.sql.syntax.types import LOCAL
from tests.conformance.load import read_yaml
from tests.paths import CASES


def stream(text: str) -> CreateStream:
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    assert statement.text == text
    return statement


class TestStreams:
    @pytest.mark.parametrize(
        ("ddl", "kind", "key"),
        [
            ("STREAM s SETTINGS data_format = 'Avro'", Kind.APPEND, ()),
            ("STREAM s (*) SETTINGS data_format = 'ProtobufSingle'", Kind.APPEND, ()),
            ("MUTABLE STREAM s PRIMARY KEY k SETTINGS data_format = 'JSONSchema'", Kind.UPSERT, ("k",)),
            ("STREAM s WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'AVRO')", Kind.APPEND, ()),
            ("TABLE s (*, PRIMARY KEY (a, b)) FORMAT UPSERT ENCODE AVRO", Kind.UPSERT, ("a", "b")),
            (
                "TABLE s (PRIMARY KEY (a)) WITH (connector = 'kafka') ENCODE PROTOBUF (message = 'M')",
                Kind.UPSERT,
                ("a",),
            ),
            ("TABLE s APPEND ONLY ENCODE JSON (schema.registry = 'http://r')", Kind.APPEND, ()),
            ("SOURCE s WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE AVRO", Kind.APPEND, ()),
        ],
    )
    def test_a_schema_may_name_the_columns(self, ddl: str, kind: Kind, key: tuple[str, ...]) -> None:
        found = stream(f"CREATE {ddl}")
        assert (found.of_schema, found.columns, found.kind, found.primary_key) == (True, (), kind, key)

    @pytest.mark.parametrize("ddl", ["STREAM s (*)", "TABLE s (PRIMARY KEY (k)) FORMAT PLAIN ENCODE CSV"])
    def test_without_a_schema_columns_are_named(self, ddl: str) -> None:
        with pytest.raises(SyntaxFault, match="has no schema that names them"):
            parse_one(f"CREATE {ddl}")

    def test_an_append_stream_ignores_its_sort_key(self) -> None:
        found = stream("CREATE STREAM s(i int, k string DEFAULT 'a', n int64 NOT NULL DEFAULT -1) PRIMARY KEY k")
        assert (found.kind, found.rules, found.primary_key, found.mutable) == (Kind.APPEND, Rules.TIMEPLUS, (), False)
        assert found.columns == (
            Column("i", pa.int32()),
            Column("k", pa.string(), default="a"),
            Column("n", pa.int64(), nullable=False, default="-1"),
        )
        assert found.schema.name == "s"

    @pytest.mark.parametrize(
        ("ddl", "kind", "key"),
        [
            ("CREATE MUTABLE STREAM s (a int, b int) PRIMARY KEY (a, b)", Kind.UPSERT, ("a", "b")),
            ("CREATE STREAM s (a int, b int) PRIMARY KEY a SETTINGS mode='versioned_kv'", Kind.UPSERT, ("a",)),
            ("CREATE STREAM s (a int, b int) PRIMARY KEY a SETTINGS mode='changelog_kv'", Kind.CHANGELOG_KV, ("a",)),
            ("CREATE STREAM s (a int, b int) SETTINGS mode='changelog'", Kind.CHANGELOG, ()),
            ("CREATE STREAM s (a int, b int) SETTINGS mode = append", Kind.APPEND, ()),
            ("CREATE TABLE s (a INT PRIMARY KEY, b INT)", Kind.UPSERT, ("a",)),
            ("CREATE TABLE s (a INT, b INT, PRIMARY KEY (a, b))", Kind.UPSERT, ("a", "b")),
            ("CREATE TABLE s (a INT, b INT)", Kind.CHANGELOG, ()),
            ("CREATE TABLE s (a INT, b INT) APPEND ONLY", Kind.APPEND, ()),
            ("CREATE TABLE s APPEND ONLY (a INT, b INT)", Kind.APPEND, ()),
            ("CREATE SOURCE s (a INT, b INT)", Kind.APPEND, ()),
            ("CREATE SOURCE s (a INT, b INT, PRIMARY KEY (a)) WITH (connector='kafka')", Kind.UPSERT, ("a",)),
        ],
    )
    def test_the_kind_follows_from_the_ddl(self, ddl: str, kind: Kind, key: tuple[str, ...]) -> None:
        schema = stream(ddl).schema
        assert (schema.kind, schema.primary_key) == (kind, key)

    def test_an_external_stream_reads_a_topic_of_its_own(self) -> None:
        found = stream(
            "CREATE EXTERNAL STREAM clicks(id int) SETTINGS type='kafka', brokers='kafka:9092', topic='clicks_v2'"
        )
        assert (found.external, found.topic, found.brokers) == (True, "clicks_v2", "kafka:9092")
        assert found.kind == Kind.APPEND

    def test_a_source_names_its_topic_in_with(self) -> None:
        found = stream(
            "CREATE SOURCE IF NOT EXISTS s (a INT) WITH (connector = 'kafka', topic = 't',"
            " properties.bootstrap.server = 'b:9092', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON"
        )
        assert (found.source, found.external, found.topic, found.brokers) == (True, True, "t", "b:9092")
        assert found.settings["format"] == "plain"
        assert found.if_not_exists

    def test_indexes_and_a_column_called_index(self) -> None:
        found = stream(
            "CREATE MUTABLE STREAM m(k int, index decimal(4, 1), v string, INDEX i (v),"
            " index j (v, k) UNIQUE STORING (index)) PRIMARY KEY k"
        )
        assert [column.name for column in found.columns] == ["k", "index", "v"]
        assert found.indexes == (Index("i", ("v",)), Index("j", ("v", "k"), ("index",), unique=True))

    @pytest.mark.parametrize(
        ("written", "delay_ms"), [("ts - INTERVAL '5 SECONDS'", 5000), ("ts - INTERVAL '20' SECOND", 20_000), ("ts", 0)]
    )
    def test_the_watermark_column_gives_the_event_time(self, written: str, delay_ms: int) -> None:
        found = stream(f"CREATE TABLE t (ts TIMESTAMP, v INT, WATERMARK FOR ts AS {written}) APPEND ONLY")
        assert found.watermark == Watermark("ts", delay_ms)
        assert found.event_time == "ts"
        assert found.columns[0].type == LOCAL

    @pytest.mark.parametrize(
        "ddl",
        [
            "CREATE STREAM s(a datetime64(3), v int) SETTINGS event_time_column='a'",
            "CREATE STREAM s(a datetime64(3), v int, _tp_time datetime64(3, 'UTC') DEFAULT a)",
        ],
    )
    def test_event_time_of_a_timeplus_stream(self, ddl: str) -> None:
        found = stream(ddl)
        assert found.event_time == "a"
        assert [column.name for column in found.columns] == ["a", "v"]
        assert found.columns[0].type == pa.timestamp("ms", "UTC")

    def test_settings_keep_their_types(self) -> None:
        found = stream("CREATE STREAM s(a int) SETTINGS shards=3, ratio=0.5, flag=true, offset=-2, mode='append'")
        assert found.settings == {"shards": 3, "ratio": 0.5, "flag": True, "offset": -2, "mode": "append"}

    def test_names_may_be_quoted_and_qualified(self) -> None:
        assert stream('CREATE STREAM default."my stream" (`select` int)').name == "my stream"

    @pytest.mark.parametrize(
        ("ddl", "kind", "what", "fix"),
        [
            ("CREATE STREAM s (a int) SETTINGS mode='versioned_kv'", SyntaxFault, "has a primary key", "PRIMARY KEY a"),
            ("CREATE MUTABLE STREAM s (abc int) PRIMARY KEY abd", UnknownName, '"abd"', 'did you mean "abc"?'),
            ("CREATE STREAM s (a int) SETTINGS mode='versionedkv'", UnknownName, '"versionedkv"', '"versioned_kv"'),
            ("CREATE STREAM s (a int, a int)", SyntaxFault, "declared twice", ""),
            ("CREATE STREAM s (a int DEFAULT now())", Unsupported, "and now() a time", "DEFAULT now64(3)"),
            ("CREATE TABLE t (a int, b int AS a + 1)", Unsupported, "computed", "SELECT of a view"),
            ("CREATE STREAM s (a itn)", UnknownName, '"itn"', 'did you mean "int"?'),
            ("CREATE TABLE t (a TIMESTAMP, WATERMARK FOR b AS b)", UnknownName, '"b"', "there are: a"),
            ("CREATE TABLE t (a INT PRIMARY KEY, b INT, PRIMARY KEY (b))", SyntaxFault, "twice", "once"),
            ("CREATE EXTERNAL STREAM s (a int) SETTINGS type='log'", Unsupported, "type log", "type = 'kafka'"),
            ("CREATE STREAM s (a int) SETTINGS a=1, a=2", SyntaxFault, "given twice", ""),
            ("CREATE SINK s FROM t", Unsupported, "no sinks", "AS SELECT * FROM t"),
        ],
    )
    def test_what_cannot_be_created(self, ddl: str, kind: type[SqlError], what: str, fix: str) -> None:
        with pytest.raises(kind) as caught:
            parse_one(ddl)
        assert what in caught.value.what
        assert fix in caught.value.fix
        assert "line 1, column" in caught.value.where


class TestViewsAndQueries:
    def test_a_materialized_view(self) -> None:
        text = "CREATE MATERIALIZED VIEW IF NOT EXISTS v INTO t AS SELECT a FROM s EMIT CHANGELOG SETTINGS x = 1"
        found = parse_one(text)
        assert isinstance(found, CreateView)
        assert (found.name, found.into, found.if_not_exists, found.materialized) == ("v", "t", True, True)
        assert found.emit == Emit("changelog")
        assert found.settings == {"x": 1}
        assert found.query.sql() == "SELECT a FROM s"
        assert found.text == text

    def test_a_plain_view(self) -> None:
        found = parse_one("CREATE OR REPLACE VIEW v AS WITH x AS (SELECT 1 AS a) SELECT a FROM x")
        assert isinstance(found, CreateView)
        assert (found.materialized, found.or_replace) == (False, True)

    @pytest.mark.parametrize(
        ("clause", "expected"),
        [
            ("EMIT CHANGELOG", Emit("changelog")),
            ("EMIT STREAM", Emit("stream")),
            ("EMIT PERIODIC 2s", Emit("", "periodic", every_ms=2000)),
            ("EMIT CHANGELOG PERIODIC 1s", Emit("changelog", "periodic", every_ms=1000)),
            ("EMIT PERIODIC INTERVAL 5 SECOND REPEAT", Emit("", "periodic", every_ms=5000, repeat=True)),
            ("EMIT PERIODIC 1s ON UPDATE", Emit("", "on update", every_ms=1000)),
            ("EMIT ON UPDATE WITH BATCH 3s", Emit("", "on update", every_ms=3000)),
            ("EMIT ON WINDOW CLOSE", Emit("", "after window close")),
            (
                "EMIT AFTER WINDOW CLOSE WITH DELAY 2s AND TIMEOUT 1m",
                Emit("", "after window close", delay_ms=2000, timeout_ms=60_000),
            ),
            (
                "EMIT AFTER KEY EXPIRE IDENTIFIED BY c WITH ONLY MAXSPAN 1m",
                Emit("", "after key expire", max_span_ms=60_000),
            ),
            ("EMIT PER EVENT", Emit("", "per event")),
        ],
    )
    def test_emit(self, clause: str, expected: Emit) -> None:
        for text in (
            f"SELECT a FROM t {clause}",
            f"SELECT a FROM t {clause} SETTINGS x=1",
            f"SELECT a FROM t SETTINGS x=1 {clause}",
        ):
            found = parse_one(text)
            assert isinstance(found, Select)
            assert found.emit == expected

    def test_emit_and_settings_can_be_columns(self) -> None:
        found = parse_one("SELECT emit, settings FROM t WHERE emit = 1 AND settings IS NULL")
        assert isinstance(found, Select)
        assert (found.emit, found.settings) == (None, {})

    @pytest.mark.parametrize("inner", ["SELECT a FROM t", "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"])
    def test_explain(self, inner: str) -> None:
        found = parse_one(f"EXPLAIN {inner}")
        assert isinstance(found, Explain)
        assert found.statement.text == inner

    def test_explain_of_what_has_no_plan(self) -> None:
        with pytest.raises(SyntaxFault, match="EXPLAIN shows the plan of a query"):
            parse_one("EXPLAIN DROP STREAM x")

    def test_an_index(self) -> None:
        found = parse_one("CREATE INDEX i ON t (a, b) INCLUDE (c)")
        assert isinstance(found, CreateIndex)
        assert (found.name, found.stream, found.index) == ("i", "t", Index("i", ("a", "b"), ("c",)))


def test_a_dictionary() -> None:
    found = parse_one(
        "CREATE DICTIONARY d(id string, name string DEFAULT '?') PRIMARY KEY id"
        " SOURCE(MYSQL(DB 'shop' TABLE 'goods' HOST 'mysql' PORT 3306 USER 'root' PASSWORD 'pw' BG_RECONNECT true))"
        " LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'p' max_hot_key_count 1000)) LIFETIME(MIN 1 MAX 5) SETTINGS(a = 1)"
    )
    assert isinstance(found, CreateDictionary)
    assert found.primary_key == ("id",)
    assert found.source.name == "mysql"
    assert found.source.parameters["port"] == 3306
    assert found.source.parameters["bg_reconnect"] is True
    assert found.layout == Clause("hybrid_hash_cache", {"ttl": 3600, "path": "p", "max_hot_key_count": 1000})
    assert (found.lifetime_s, found.settings) == ((1, 5), {"a": 1})


def test_a_dictionary_without_a_source() -> None:
    with pytest.raises(SyntaxFault, match="no SOURCE clause"):
        parse_one("CREATE DICTIONARY d(id string) PRIMARY KEY id LAYOUT(FLAT())")


class TestRows:
    def test_values_become_python_values(self) -> None:
        found = parse_one(
            "INSERT INTO s (a, b) VALUES (1, 'it''s'), (-2, NULL), (1.50, true), ([1, 2], {'k': 1}),"
            " ((1, 'x'), '5'::int)"
        )
        assert isinstance(found, Insert)
        assert found.columns == ("a", "b")
        assert found.rows == (
            (1, "it's"),
            (-2, None),
            (Decimal("1.50"), True),
            ([1, 2], {"k": 1}),
            ((1, "x"), "5"),
        )

    def test_a_query_can_be_inserted(self) -> None:
        found = parse_one("INSERT INTO s SELECT a FROM t")
        assert isinstance(found, Insert)
        assert found.query is not None
        assert found.rows == ()

    def test_a_name_is_no_literal(self) -> None:
        with pytest.raises(Unsupported, match="no columns to read, and kk5 names one") as caught:
            parse_one("INSERT INTO s VALUES (1, kk5)")
        assert caught.value.fix == "write 'kk5' if it is a text"

    def test_a_row_of_another_length(self) -> None:
        with pytest.raises(SyntaxFault, match="this row has 1 value for 2 columns"):
            parse_one("INSERT INTO s (a, b) VALUES (1, 2), (3)")

    def test_update_and_delete(self) -> None:
        update = parse_one("UPDATE s SET a = a + 1, b = f(a, 2) WHERE k = 'x'")
        assert isinstance(update, Update)
        assert [(name, value.sql()) for name, value in update.assignments] == [("a", "a + 1"), ("b", "F(a, 2)")]
        assert update.where is not None
        delete = parse_one("DELETE FROM s WHERE k = 'x' AND b IN (1, 2)")
        assert isinstance(delete, Delete)
        assert delete.where is not None
        assert parse_one("DELETE FROM s") == Delete("s", None, "DELETE FROM s")


class TestWhy:
    @pytest.mark.parametrize(("text", "absent"), [("WHY v WHERE k = 5", False), ("why not v where k = 5", True)])
    def test_its_condition(self, text: str, absent: bool) -> None:
        found = parse_one(text)
        assert isinstance(found, Why)
        assert (found.view, found.absent, found.where.sql()) == ("v", absent, "k = 5")

    def test_it_is_bounded_in_time(self) -> None:
        found = parse_one("WHY NOT v SINCE '-2h' WHERE k = 5")
        assert isinstance(found, Why)
        assert (found.view, found.absent, found.since, found.where.sql()) == ("v", True, "-2h", "k = 5")
        with pytest.raises(SqlError, match="expected a moment"):
            parse("WHY v SINCE yesterday WHERE k = 5")

    def test_it_is_about_rows(self) -> None:
        with pytest.raises(SqlError, match="WHY is about rows that a condition names") as refused:
            parse("WHY v")
        assert refused.value.fix == "WHY v WHERE key = value"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW STREAMS", Show("streams")),
        ("SHOW MATERIALIZED VIEWS LIKE 'a%'", Show("views", "a%")),
        ("show queries", Show("queries")),
        ("SHOW DEAD LETTERS", Show("dead letters")),
        ("SHOW DEAD LETTERS FROM v LIKE 'column%'", Show("dead letters", "column%", "v")),
        ("SHOW DEAD LETTERS FROM v.f1.dead_letter", Show("dead letters", None, "v.f1.dead_letter")),
        ("REPLAY v.dead_letter", Replay("v.dead_letter")),
        ("REPLAY \"a-b.dead_letter\" LIKE 'a%', 'b' DRY RUN", Replay("a-b.dead_letter", ("a%", "b"), dry_run=True)),
        ("SHOW CREATE TABLE t", ShowCreate("t")),
        ("SHOW CREATE source", ShowCreate("source")),
        ("DESCRIBE STREAM s", Describe("s")),
        ("desc stream", Describe("stream")),
        ("SHOW COLUMNS FROM s", Describe("s")),
        ("DROP STREAM IF EXISTS s CASCADE", Drop("stream", "s", True, True)),
        ("DROP MATERIALIZED VIEW v", Drop("view", "v", noun="materialized view")),
        ("DROP VIEW v CASCADE WITH DATA", Drop("view", "v", cascade=True, with_data=True)),
        ("DROP TOPIC v.dead_letter WITH DATA", Drop("topic", "v.dead_letter", with_data=True)),
        ("DROP SOURCE s", Drop("stream", "s", noun="source")),
        ("DROP DICTIONARY d", Drop("dictionary", "d")),
        ("PAUSE v", Pause("v")),
        ("SYSTEM PAUSE MATERIALIZED VIEW v", Pause("v")),
        ("RESUME QUERY 'v'", Resume("v")),
        ("TERMINATE QUERY v", Terminate("v")),
        ("SYSTEM RELOAD DICTIONARY d", System("reload dictionary", "d")),
        ("SYSTEM RELOAD DICTIONARIES", System("reload dictionaries")),
        ("WAIT FOR v", WaitFor("v")),
        ("wait for public.v timeout 5", WaitFor("v", timeout_s=5)),
        ("WAIT FOR timeout TIMEOUT 0", WaitFor("timeout", timeout_s=0)),
        (
            'WAIT FOR v TO INCLUDE orders[0]@123, "my-orders" [12] @ 7 TIMEOUT 30',
            WaitFor("v", (InputOffset("orders", 0, 123), InputOffset("my-orders", 12, 7)), 30),
        ),
    ],
)
def test_commands(text: str, expected: Any) -> None:
    (found,) = parse(text)
    assert found == type(expected)(**{**expected.__dict__, "text": text})


class TestScripts:
    def test_statements_keep_their_own_text(self) -> None:
        script = (
            "-- streams\nCREATE STREAM a (k int); ;\n/* ; */ INSERT INTO a VALUES (';');\n\nSELECT * FROM a -- all\n"
        )
        assert [statement.text for statement in parse(script)] == [
            "CREATE STREAM a (k int)",
            "INSERT INTO a VALUES (';')",
            "SELECT * FROM a",
        ]

    def test_one_statement_is_one(self) -> None:
        with pytest.raises(SyntaxFault, match="not 2"):
            parse_one("SELECT 1; SELECT 2")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("SELECT 1;", True),
            ("SELECT 1", False),
            ("SELECT ';", False),
            ("SELECT 1 /* ;", False),
            ("SELECT 1; -- x", True),
            ("", False),
        ],
    )
    def test_complete(self, text: str, expected: bool) -> None:
        assert complete(text) is expected


class TestFaults:
    def test_line_column_clause_and_caret(self) -> None:
        with pytest.raises(SyntaxFault) as caught:
            parse("SELECT 1;\nSELECT a,\n  b\nFROM t\nWHERE a == = 3")
        assert caught.value.where == "line 5, column 12, in WHERE\n    WHERE a == = 3\n               ^"

    @pytest.mark.parametrize(
        ("text", "what", "fix"),
        [
            ("CREAT STREAM x (a int)", "no statement begins with CREAT", "did you mean CREATE?"),
            ("CREATE STREM x (a int)", "found STREM", "did you mean STREAM?"),
            ("SELECT a FRM t", "unexpected t", "did you mean FROM instead of FRM?"),
            ("SELECT a FROM t WEHRE a = 1", "unexpected a", "did you mean WHERE instead of WEHRE?"),
            ("SELECT a FROM t EMIT CHANGLOG", "found CHANGLOG", "did you mean CHANGELOG?"),
            ("SELECT a FROM", "between FROM and the end", ""),
            ("SELECT a FROM t WHERE (a = 1", "the end after 1", ""),
            ("SELECT (a FROM t", 'expected ")", found FROM', ""),
            ("SELECT a FROM t SETTINGS x 1", 'expected "=", found 1', "x = <value>"),
            ("SELECT", "between SELECT and the end", ""),
            ("SELECT a, FROM t", "between , and FROM", ""),
            ("SELECT a, , b FROM t", "between , and ,", ""),
            ("SELECT a FROM t JOIN r ON", "between ON and the end", ""),
            ("SELECT a AS FROM t", "between AS and FROM", ""),
            ("SELECT a FROM t WHERE a IN", "between IN and the end", ""),
            ("SELECT a FROM LEFT JOIN r ON a = b", "between FROM and LEFT", ""),
            ("SELECT f(, a) FROM t", "between ( and ,", ""),
            ("SELECT * k FROM t", "unexpected K after *", "EXCEPT"),
            ("SELECT a JOIN r ON a = b", "a JOIN without FROM", "FROM a JOIN b"),
            ("SELECT a FROM (SELECT b FROM t SETTINGS x = 1) AS y", "end of the statement", ""),
            ("WITH 5 AS x SELECT x FROM t", '"x" in WITH is no query', "WITH x AS (SELECT ..)"),
            ("SHOW STREMS", "found STREMS", "did you mean STREAMS?"),
            ("SELECT 'abc", "never closed", "close it"),
            ("DELETE FROM s WHERE", "WHERE without a condition", ""),
            ("DROP STREAM a b", "should end here, found b", ""),
            ("INSERT INTO s VALUES", 'expected "("', ""),
            ("WAIT v", "expected FOR, found v", ""),
            ("WAIT FOR v INCLUDE s[0]@1", "expected TO INCLUDE or TIMEOUT, found INCLUDE", ""),
            ("WAIT FOR v TO INCLUDE s@1", 'expected "[", found @', "s[partition]@offset, as s[0]@123"),
            ("WAIT FOR v TO INCLUDE s[0]:1", 'expected "@"', "s[partition]@offset, as s[0]@123"),
            ("WAIT FOR v TO INCLUDE s[0]@-1", "expected an offset, found -", ""),
            ("WAIT FOR v TO INCLUDE s[0]@1 s[1]@2", "expected TIMEOUT, found s", ""),
            ("WAIT FOR v TIMEOUT 1.5", "expected a whole number of seconds, found 1.5", ""),
            ("WAIT FOR v TIMEOUT 5 TO INCLUDE s[0]@1", "should end here, found TO", ""),
        ],
    )
    def test_the_nearest_thing_is_offered(self, text: str, what: str, fix: str) -> None:
        with pytest.raises(SqlError) as caught:
            parse_one(text)
        assert what in caught.value.what
        assert fix in caught.value.fix

    def test_an_open_quote_is_pointed_at(self) -> None:
        with pytest.raises(SyntaxFault) as caught:
            parse("SELECT 'it''s',\n  'open FROM t")
        assert caught.value.where.startswith("line 2, column 3\n")

    @pytest.mark.parametrize(
        "text",
        [
            "CREATE TABLE t (a int) WITH (connector='kafka', properties.sasl.password='hunter2' oops)",
            "CREATE STREAM t (a int) SETTINGS password 'hunter2'",
            "CREATE DICTIONARY d(k int) PRIMARY KEY k SOURCE(MYSQL(PASSWORD 'hunter2' +)) LAYOUT(FLAT())",
            "CREATE STREAM t (a int) SETTINGS password = 'hunter2",
        ],
    )
    def test_no_error_shows_a_password(self, text: str) -> None:
        with pytest.raises(SqlError) as caught:
            parse(text)
        assert "hunter2" not in str(caught.value)


def _statements_of_cases() -> list[str]:
    """Every DDL statement and query of the conformance cases, once each."""
    found: dict[str, None] = {}
    for path in sorted(CASES.rglob("*.yaml")):
        for case in read_yaml(path):
            queries = [case["query"], *(after["query"] for after in case["expect"].get("then", []))]
            runs = [step["run"] for step in case["steps"] if "run" in step]
            found.update(dict.fromkeys([*case["ddl"], *queries, *runs]))
    return list(found)


ALL = _statements_of_cases()
WORDS = sorted({word for text in ALL for word in text.replace("(", " ( ").replace(")", " ) ").split()})


@given(
    text=st.sampled_from(ALL),
    edits=st.lists(
        st.tuples(
            st.integers(0, 200), st.sampled_from(["cut", "drop", "add"]), st.sampled_from([*WORDS, "'", ";", "/*"])
        )
    ),
)
def test_a_damaged_statement_is_read_or_refused_but_never_crashes(text: str, edits: list[tuple[int, str, str]]) -> None:
    words = text.split()
    for place, edit, word in edits:
        at = place % (len(words) + 1)
        words = {"cut": words[:at], "drop": words[:at] + words[at + 1 :], "add": [*words[:at], word, *words[at:]]}[edit]
    assert _answer(" ".join(words))


def _answer(text: str) -> bool:
    """Whether ``text`` is read, or refused with a place."""
    try:
        return all(statement.text for statement in parse(text))
    except SqlError as error:
        return "line 1, column" in error.where


@pytest.mark.parametrize("text", ALL)
def test_every_statement_of_the_cases_parses(text: str) -> None:
    if "USING (ua.k)" in text:
        with pytest.raises(SqlError, match="bare column names"):
            parse_one(text)
    else:
        assert parse_one(text).text == text.strip()


@pytest.mark.parametrize(
    "text", ["SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM s", f"CREATE STREAM s (x {'array(' * 400}int{')' * 400})"]
)
def test_a_statement_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="nested too deeply"):
        parse(text)


@pytest.mark.parametrize(("text", "at_first"), [("SELECT a FROM s", 1), ("SELECT a FROM s WHERE a ~ 'x'", 2)])
def test_a_query_is_read_in_the_other_dialect_when_it_is_asked_for(text: str, at_first: int) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    assert statement.readings is not None
    assert isinstance(statement.readings.by_rules, OnDemand)
    assert len(statement.readings.by_rules.made) == at_first
    assert statement.readings.of(Rules.RISINGWAVE) is statement.readings.of(Rules.RISINGWAVE)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE s SET a = 1, b = 2, a = 3", '"a" is set twice'),
        ("CREATE STREAM s (a int) TTL to_datetime(a) + INTERVAL 1 DAY", "TTL goes by the time of records"),
        (
            "CREATE STREAM s (a int) ORDER BY a TTL to_start_of_day(_tp_time) + INTERVAL 1 DAY",
            "TTL goes by the time of",
        ),
        ("CREATE TABLE t (a int PRIMARY KEY) ON CONFLICT DO NOTHING", "one stands as a whole"),
        ("CREATE TABLE t (a int PRIMARY KEY) ON CONFLICT DO UPDATE IF NOT NULL", "one stands as a whole"),
        (
            "CREATE TABLE t (a int PRIMARY KEY, b int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (a, b)",
            "one column is the version",
        ),
        ("CREATE TABLE t (a int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (a)", "a version says which record"),
        ("CREATE STREAM s (a int) TTL to_datetime(_tp_time)", "TTL goes by the time of records"),
        ("CREATE STREAM s (a int) TTL to_datetime(_tp_time) + 5", "expected a length of time"),
    ],
)
def test_what_would_be_read_and_ignored_is_refused(statement: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        parse_one(statement)
