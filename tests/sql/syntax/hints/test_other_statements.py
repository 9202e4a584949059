"""Statements that only others have: what each answer names can be pasted back."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.syntax.grammar.hints.other_statements import LISTED
from dovetail.sql.syntax.parse import awaited, parse, parse_one
from dovetail.sql.syntax.statements import Describe, Explain, Select, Show, Statement

SAME = [
    ("SHOW ALL TOPICS", "SHOW TOPICS"),
    ("SHOW TABLES FROM default", "SHOW STREAMS"),
    ("SHOW VIEWS IN public LIKE 'a%'", "SHOW VIEWS LIKE 'a%'"),
    ("EXPLAIN PLAN FOR SELECT k FROM l", "EXPLAIN SELECT k FROM l"),
    ("EXPLAIN PLAN SELECT k FROM l", "EXPLAIN SELECT k FROM l"),
]
REFUSED = [
    ('SHOW CREATE SINK "a b"', 'SHOW CREATE "a b"'),
    ("SHOW CREATE CATALOG c", "SHOW CREATE c"),
    ("DESCRIBE CONNECTOR c", "DESCRIBE c"),
    ("DESCRIBE l EXTENDED", "DESCRIBE l"),
    ("DESC FORMATTED l", "DESC l"),
    ("DESCRIBE FUNCTION EXTENDED f", "DESCRIBE FUNCTION f"),
    ("EXPLAIN (VERBOSE, TRACE) SELECT k\nFROM l", "EXPLAIN SELECT k FROM l"),
    ("EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT k FROM l", "EXPLAIN SELECT k FROM l"),
    ("EXPLAIN SYNTAX SELECT k FROM l", "EXPLAIN SELECT k FROM l"),
    ("CREATE UNIQUE INDEX i ON t (k)", "CREATE INDEX i ON t (k)"),
    ("CREATE INDEX ON t (k, n)", "CREATE INDEX t_by_k ON t (k, n)"),
    ("CREATE INDEX i ON t USING btree (k)", "CREATE INDEX i ON t (k)"),
    ("CREATE TEMPORARY VIEW v AS SELECT k FROM l", "CREATE VIEW v AS SELECT k FROM l"),
    ("TRUNCATE TABLE t", "DELETE FROM t"),
    ("truncate t", "DELETE FROM t"),
    ("REPLACE INTO t VALUES (1, 2)", "INSERT INTO t VALUES (1, 2)"),
    ("UPSERT INTO t (k, n) VALUES (1, 2)", "INSERT INTO t (k, n) VALUES (1, 2)"),
    ("RENAME TABLE a TO b", "CREATE VIEW b AS SELECT * FROM a"),
    ("CLONE TABLE a", "CREATE TABLE a_copy AS SELECT * FROM table(a)"),
    ("TABLE t", "SELECT * FROM table(t)"),
    ("SUMMARIZE t", "DESCRIBE t"),
    ("STOP v", "PAUSE v"),
    ("RECOVER MATERIALIZED VIEW v", "RESUME MATERIALIZED VIEW v"),
    ("FROM s AS t SELECT k, n", "SELECT k, n FROM s AS t"),
    ("DROP STREAM IF EXISTS a, b.c", "DROP STREAM IF EXISTS a"),
    ("SHOW STATE v", "SHOW STATE OF v"),
    ("SHOW STATE", "SHOW STATE OF v"),
    ("SHOW STATE FOR v", "SHOW STATE OF v"),
    ("CREATE TABLE u LIKE t", "CREATE TABLE u AS SELECT * FROM table(t)"),
    ("CREATE STREAM u CLONE s", "SHOW CREATE s"),
    ("ALTER STREAM s RENAME TO z", "CREATE VIEW z AS SELECT * FROM s"),
    ("ALTER VIEW v MODIFY QUERY SELECT k FROM s", "ALTER VIEW v AS SELECT k FROM s"),
    ("ALTER VIEW v RENAME TO w", "CREATE VIEW w AS SELECT * FROM v"),
    ("ALTER SOURCE s REFRESH SCHEMA", "ALTER STREAM s ADD COLUMN c int"),
    ("PIVOT t ON k", "SELECT k, sum(CASE WHEN kind = 'a' THEN n END) AS a FROM s GROUP BY k"),
]


WORDED = [
    (
        "INSERT INTO t (k) VALUES (1) ON CONFLICT (k) DO NOTHING",
        "ON CONFLICT is not taken",
        "INSERT INTO t (k, s) VALUES",
    ),
    ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE k = 1", "ON DUPLICATE is not taken", "INSERT INTO t (k, s)"),
    ("INSERT OR REPLACE INTO t VALUES (1)", "there is no INSERT OR REPLACE INTO", "INSERT INTO t (k, s)"),
    ("INSERT OVERWRITE t VALUES (1)", "there is no INSERT OVERWRITE", "INSERT INTO t (k, s)"),
    ("INSERT INTO t FORMAT CSV", "FORMAT is not taken", "dovetail insert t rows.csv"),
    ("INSERT INTO t SET k = 1", "SET is not taken", "INSERT INTO t (k, s)"),
    ("UPDATE t SET n = 1 WHERE k = 1 LIMIT 5", "LIMIT is not taken", "name the rows in the condition: WHERE k = 2"),
    ("UPDATE t SET n = q.n FROM q WHERE t.k = q.k", "FROM is not taken", "INSERT INTO t SELECT t.k, q.n FROM table(t)"),
    ("UPDATE t AS x SET n = 1 WHERE x.k = 1", "AS is not taken", "UPDATE t SET n = n + 1 WHERE k = 2"),
    ("DELETE FROM t USING q WHERE t.k = q.k", "USING is not taken", "INSERT INTO t SELECT"),
    ("DELETE FROM t WHERE k = 1 ORDER BY k LIMIT 1", "ORDER BY is not taken", "name the rows in the condition"),
    ("ALTER TABLE t MODIFY COLUMN k bigint", "MODIFY is not taken", "CREATE OR REPLACE STREAM t (k int, ..)"),
    (
        "ALTER TABLE t MODIFY SETTING x = 1",
        "MODIFY SETTING is not taken",
        "CREATE OR REPLACE STREAM t (k int, ..) SETTINGS",
    ),
    ("ALTER TABLE t SET (x = 1)", "SET is not taken", "CREATE OR REPLACE STREAM t (k int, ..) SETTINGS"),
    ("ALTER TABLE t ADD PRIMARY KEY (k)", "ADD PRIMARY KEY is not taken", "CREATE INDEX i ON t (k)"),
    ("ALTER TABLE t OWNER TO ann", "a stream has no owner", "dovetail user add"),
    ("ALTER DICTIONARY d ADD COLUMN x int", "ALTER DICTIONARY is not taken", "CREATE OR REPLACE DICTIONARY"),
    ("ALTER SYSTEM SET x = 1", "ALTER SYSTEM is not taken", "environment variables"),
]


def _bare(statement: Statement) -> object:
    """The statement without its text."""
    match statement:
        case Show():
            return statement.what, statement.like
        case Describe():
            return statement.name
        case Select():
            return statement.query
        case Explain():
            return _bare(statement.statement)
        case _:
            return type(statement)


@pytest.mark.parametrize(("theirs", "ours"), SAME)
def test_what_means_the_same_is_read(theirs: str, ours: str) -> None:
    assert _bare(parse_one(theirs)) == _bare(parse_one(ours))


@pytest.mark.parametrize(("theirs", "ours"), REFUSED)
def test_what_there_is_none_of_is_refused_with_what_runs(theirs: str, ours: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(theirs)
    form, _, note = refused.value.fix.partition(";")
    assert form == ours
    assert note == "" or note.startswith(("  -- ", " DROP"))
    assert parse(refused.value.fix)
    assert "line 1, column" in refused.value.where


@pytest.mark.parametrize(("theirs", "what", "fix"), WORDED)
def test_words_that_only_others_have_are_refused_where_they_stand(theirs: str, what: str, fix: str) -> None:
    with pytest.raises(Unsupported) as refused:
        parse(theirs)
    assert what in refused.value.what
    assert refused.value.fix.startswith(fix)
    assert "line 1, column" in refused.value.where


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET n = 1 WHERE k IS DISTINCT FROM 2",
        "DELETE FROM t WHERE extract(year FROM at) = 2026 AND CAST(k AS int) IN (SELECT k FROM table(q) LIMIT 1)",
        "INSERT INTO t (set, format) VALUES (1, 2)",
        "INSERT INTO t SELECT k FROM table(s)",
        "CREATE STREAM s (a struct<b: int, c: string>)",
    ],
)
def test_the_same_words_in_their_own_places_are_read(text: str) -> None:
    assert len(parse(text)) == 1


@pytest.mark.parametrize("text", ["SHOW ", "ALTER STREAM s ", "CREATE ", "INSERT ", "UPDATE t "])
def test_words_that_are_refused_are_not_offered(text: str) -> None:
    offered = set(awaited(text))
    assert not offered & {"DATABASES", "MODIFY", "OWNER", "DATABASE", "SUBSCRIPTION", "OVERWRITE", "FROM"}


@pytest.mark.parametrize("words", LISTED)
def test_what_others_list_has_a_list_like_it(words: str) -> None:
    with pytest.raises(Unsupported, match=f"SHOW {words}") as refused:
        parse(f"SHOW {words}")
    assert refused.value.fix.startswith("dovetail user list") or isinstance(parse_one(refused.value.fix), Show)


@pytest.mark.parametrize("text", ["EXPLAIN plan", "DESCRIBE extended", "SHOW CREATE sink", "DESCRIBE query"])
def test_the_words_of_others_are_names_here(text: str) -> None:
    assert len(parse(text)) == 1
