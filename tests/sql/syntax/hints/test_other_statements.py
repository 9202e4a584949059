"""Statements that only others have: what each answer names can be pasted back."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.syntax.grammar.hints.other_statements import LISTED
from dovetail.sql.syntax.parse import parse, parse_one
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
    ("PIVOT t ON k", "SELECT k, sum(CASE WHEN kind = 'a' THEN n END) AS a FROM s GROUP BY k"),
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
    assert note == "" or note.startswith("  -- ")
    assert len(parse(refused.value.fix)) == 1
    assert "line 1, column" in refused.value.where


@pytest.mark.parametrize("words", LISTED)
def test_what_others_list_has_a_list_like_it(words: str) -> None:
    with pytest.raises(Unsupported, match=f"SHOW {words}") as refused:
        parse(f"SHOW {words}")
    assert refused.value.fix.startswith("dovetail user list") or isinstance(parse_one(refused.value.fix), Show)


@pytest.mark.parametrize("text", ["EXPLAIN plan", "DESCRIBE extended", "SHOW CREATE sink", "DESCRIBE query"])
def test_the_words_of_others_are_names_here(text: str) -> None:
    assert len(parse(text)) == 1
