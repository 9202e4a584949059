"""Queries of ksqlDB, Flink and Timeplus: read where they mean the same, else refused with the statement that runs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.grammar.hints.foreign_calls import CALLS
from dovetail.sql.syntax.grammar.hints.foreign_names import with_own_names
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.rules import Rules
from tests.sql.planner import Planner

WORLD = (
    "CREATE STREAM l (k int, n int, s string, t datetime64(3))",
    "CREATE STREAM r (k int, n int, s string, t datetime64(3))",
    "CREATE TABLE a (k INT, n INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
)
HOUR = "INTERVAL '1' HOUR"
UNDERSTOOD = [
    (
        (
            "SELECT k, window_start, count(*) AS c FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '10' MINUTES)) "
            "GROUP BY k, window_start, window_end"
        ),
        (
            "SELECT k, window_start, count(*) AS c FROM TUMBLE(a, at, INTERVAL '10' MINUTE) "
            "GROUP BY k, window_start, window_end"
        ),
    ),
    (
        "SELECT x.k FROM TABLE(HOP(TABLE `l`, DESCRIPTOR(`t`), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)) AS x",
        "SELECT x.k FROM HOP(l, t, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) AS x",
    ),
    (
        (
            "SELECT window_start, count(*) AS c FROM TABLE(HOP(DATA => TABLE a, TIMECOL => DESCRIPTOR(at), "
            f"SLIDE => INTERVAL '5' MINUTES, SIZE => {HOUR})) GROUP BY window_start"
        ),
        f"SELECT window_start, count(*) AS c FROM HOP(a, at, INTERVAL '5' MINUTE, {HOUR}) GROUP BY window_start",
    ),
    (
        "SELECT window_start, count() AS c FROM tumble(l, t, 1m) GROUP BY window_start EMIT FINAL",
        "SELECT window_start, count() AS c FROM tumble(l, t, 1m) GROUP BY window_start EMIT AFTER WINDOW CLOSE",
    ),
]
REFUSED = [
    ("SELECT k, count(*) AS c FROM l WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k EMIT CHANGES", "WINDOW TUMBLING"),
    (
        (
            "SELECT x.k, WINDOWSTART, sum(x.n) AS c FROM l AS x WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES) "
            "WHERE x.n > 1 GROUP BY x.k HAVING count(*) > 1 EMIT CHANGES"
        ),
        "WINDOW HOPPING",
    ),
    ("SELECT k, latest_by_offset(n) AS c FROM l x WINDOW SESSION (60 SECONDS) GROUP BY k", "WINDOW SESSION"),
    (
        "SELECT k, count(*) AS c FROM l WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 10 MINUTES) GROUP BY k EMIT FINAL",
        "WINDOW TUMBLING",
    ),
    (
        (
            "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS c FROM l WINDOW TUMBLING (SIZE 2 DAYS, "
            "RETENTION 7 DAYS) WHERE s <> 'two  blanks -- no comment' -- a comment\nGROUP BY k"
        ),
        "WINDOW TUMBLING",
    ),
    ("SELECT l.k, r.n FROM l JOIN r WITHIN 1 HOURS ON l.k = r.k EMIT CHANGES", "WITHIN"),
    (
        (
            "SELECT x.k, y.n FROM l AS x LEFT JOIN r y WITHIN (1 HOUR, 2 HOURS) GRACE PERIOD 5 MINUTES "
            "ON x.k = y.k WHERE x.n > 1 EMIT CHANGES"
        ),
        "WITHIN",
    ),
    ("SELECT k, latest_by_offset(n) AS n FROM l GROUP BY k", "latest_by_offset"),
    ("SELECT k, EARLIEST_BY_OFFSET(n) AS n, COLLECT_LIST(n) AS a, COLLECT_SET(n) AS b FROM l GROUP BY k", "earliest"),
    ("SELECT SPLIT(s, ',') AS p, EXTRACTJSONFIELD(s, '$.a.b') AS q, IFNULL(s, 'x') AS i, LEN(s) AS j FROM l", "split"),
    ("SELECT ROWTIME AS p, SPLIT(IFNULL(s, ')'), 'a, b)') AS q FROM l", "ROWTIME|split|ifnull"),
    (
        (
            "SELECT k, window_start, count(*) AS c FROM TABLE(SESSION(TABLE l PARTITION BY k, DESCRIPTOR(t), "
            f"{HOUR})) GROUP BY k, window_start, window_end"
        ),
        "SESSION",
    ),
    (
        (
            f"SELECT k, count(*) AS c FROM TABLE(CUMULATE(TABLE l, DESCRIPTOR(t), INTERVAL '2' MINUTES, {HOUR})) "
            "GROUP BY k, window_start, window_end"
        ),
        "CUMULATE",
    ),
    (f"SELECT k, TUMBLE_START(t, {HOUR}) AS ws, count(*) AS c FROM l GROUP BY k, TUMBLE(t, {HOUR})", "TUMBLE"),
    (
        (
            f"SELECT HOP_END(t, INTERVAL '10' MINUTE, {HOUR}) AS we, count(*) AS c FROM l AS x "
            f"GROUP BY HOP(t, INTERVAL '10' MINUTE, {HOUR}), k"
        ),
        "HOP",
    ),
    (
        (
            "SELECT * FROM l MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES a.n AS an PATTERN (a b) "
            "DEFINE b AS b.n > a.n) AS m"
        ),
        "MATCH_RECOGNIZE",
    ),
    ("SELECT k, n FROM l EMIT LAST 1h", "EMIT LAST"),
    ("SELECT k, n FROM l EMIT LAST 1h ON PROCTIME", "EMIT LAST"),
    ("SELECT k, count() AS c FROM l SHUFFLE BY k GROUP BY k", "SHUFFLE BY"),
    ("SELECT k, count() AS c FROM l GROUP BY k EMIT LAST 1h", "EMIT LAST"),
    ("SELECT count() AS c FROM l AS x WHERE x.n > 1 EMIT LAST 5m ON PROCTIME", "EMIT LAST"),
    ("CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS c FROM l GROUP BY k EMIT PERIODIC 1s AND LAST 30s", "EMIT LAST"),
    *(
        (f"SELECT {call} AS x FROM {stream} GROUP BY k EMIT CHANGES", "there is no (function|column)")
        for call in ("TOPK(n, 3)", "topkdistinct(n, 2)")
        for stream in ("l", "a")
    ),
    *(
        (f"SELECT {call} AS x FROM {stream}", "there is no (function|column)")
        for call in (
            "STRINGTOTIMESTAMP('2026', 'yyyy')",
            "PARSE_TIMESTAMP('2026-01-31T10', 'yyyy-MM-dd''T''HH')",
            "TO_TIMESTAMP_LTZ(n, 3)",
            "to_timestamp_ltz(n, 0)",
            "FROM_UNIXTIME(n)",
            "FROM_UNIXTIME(n, 'dd.MM.yy hh:mm a')",
            "TIMESTAMPTOSTRING(n, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
            "FORMAT_TIMESTAMP(PARSE_TIMESTAMP('1', 'yy'), 'uuuu')",
        )
        for stream in ("l", "a")
    ),
    ("SELECT TIMESTAMPTOSTRING(x.ROWTIME, 'HH:mm') AS s FROM l AS x", "ROWTIME"),
    ("SELECT STRINGTOTIMESTAMP(s, 'EEE, d MMM') AS x FROM l", "stringtotimestamp"),
]
OWN = [
    "SELECT k AS within, n AS dedup FROM l WHERE k > 1",
    "SELECT within FROM (SELECT k AS within FROM l) AS x JOIN r ON within = r.k",
    f"SELECT k, count(*) AS c FROM TUMBLE(l, t, {HOUR}) GROUP BY k, window_start",
    "SELECT k AS emit, n AS last FROM l",
    "SELECT k, count() AS c FROM l GROUP BY k EMIT PERIODIC 1s",
    "SELECT k, row_number() OVER (PARTITION BY k ORDER BY t) AS x FROM l",
    "SELECT k AS data, n AS size FROM l",
    "SELECT sum(n) OVER w AS c FROM l WINDOW w AS (PARTITION BY k ORDER BY t)",
]
WORDS = sorted({word for query, _ in REFUSED for word in query.replace("(", " ( ").replace(")", " ) ").split()})


@pytest.mark.parametrize(("theirs", "ours"), UNDERSTOOD)
def test_what_means_the_same_is_the_same_query(theirs: str, ours: str) -> None:
    planner = Planner.of(*WORLD)
    assert planner.plan(theirs).fingerprint == planner.plan(ours).fingerprint


@pytest.mark.parametrize(("statement", "message"), REFUSED)
def test_what_is_said_otherwise_is_refused_with_the_statement_that_runs(statement: str, message: str) -> None:
    planner = Planner.of(*WORLD)
    with pytest.raises(SqlError, match=message) as refused:
        planner.plan(statement)
    planner.plan(refused.value.fix)


def test_a_form_keeps_what_is_in_quotes_and_no_comment() -> None:
    with pytest.raises(SqlError) as refused:
        parse(REFUSED[4][0])
    assert refused.value.fix == (
        "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS c FROM tumble(l, INTERVAL '2 DAYS') AS l "
        "WHERE s <> 'two  blanks -- no comment' GROUP BY k, window_start, window_end"
    )


@pytest.mark.parametrize(
    ("java", "ours"),
    [
        ("yyyy-MM-dd HH:mm:ss", "format_datetime(t, '%Y-%m-%d %H:%i:%s')"),
        ("yyyy-MM-dd''T''HH:mm", "format_datetime(t, '%Y-%m-%dT%H:%i')"),
        ("EEEE", ""),
        ("yyyy ''", ""),
    ],
)
def test_a_format_of_java_is_one_of_here_or_none(java: str, ours: str) -> None:
    found = with_own_names(f"SELECT FORMAT_TIMESTAMP(t, '{java}') FROM l")
    assert found == (f"SELECT {ours} FROM l" if ours else "")


def test_an_arrow_is_a_member_where_it_is_no_lambda() -> None:
    planner = Planner.of("CREATE STREAM s (k int, a tuple(b tuple(c int), d string), tags array(string))")
    for theirs, ours in (
        ("SELECT a->d AS x FROM s", "SELECT a.d AS x FROM s"),
        ("SELECT k, s.a->b->c AS x FROM s", "SELECT k, (s.a.b).c AS x FROM s"),
        ("SELECT k FROM s WHERE a->d = '' AND length(a->d) > 1", "SELECT k FROM s WHERE a.d = '' AND length(a.d) > 1"),
    ):
        with pytest.raises(SqlError) as refused:
            planner.plan(theirs)
        assert refused.value.fix == ours
        planner.plan(ours)
    planner.plan("SELECT array_map(x -> length(x), tags) AS x FROM s")


def test_what_is_taken_out_leaves_no_blanks() -> None:
    with pytest.raises(SqlError) as refused:
        parse("SELECT k FROM TUMBLE(a, at, INTERVAL '1 hour') SHUFFLE BY k EMIT CHANGES")
    assert refused.value.fix == "SELECT k FROM TUMBLE(a, at, INTERVAL '1 hour') EMIT CHANGES"


@pytest.mark.parametrize("query", OWN)
def test_the_words_of_others_are_names_here(query: str) -> None:
    Planner.of(*WORLD).plan(query)


def test_a_name_of_another_system_is_none_of_this_one() -> None:
    for name in {*CALLS[Rules.TIMEPLUS]} - {"ROWTIME", "WINDOWSTART", "WINDOWEND"}:
        with pytest.raises(SqlError, match=r"there is no function|takes"):
            Planner.of(*WORLD).plan(f"SELECT {name}(n, s) AS x FROM l")
    assert with_own_names("SELECT k FROM l") == with_own_names("SELECT 'rowtime', \"len\" FROM l") == ""


def test_a_number_among_the_keys_is_no_clock_beside_a_window() -> None:
    query = "SELECT n, window_start, count() AS c FROM tumble(l, t, 1m) GROUP BY n, window_start"
    planner = Planner.of(*WORLD)
    delayed = planner.plan(f"{query} EMIT AFTER WINDOW CLOSE WITH DELAY 5s")
    assert [scan.watermark and scan.watermark.delay_ms for scan in delayed.dataflow.scans] == [5_000]


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_no_order_of_words_is_a_defect(words: list[str]) -> None:
    with suppress(SqlError):
        parse(f"SELECT {' '.join(words)}")
    with_own_names(" ".join(words))
