"""ALTER STREAM, ALTER VIEW: which text a definition has afterwards."""

from __future__ import annotations

import re

import pytest

from dovetail.changelog.errors import SqlError, TextPlace, UnknownName, Unsupported
from dovetail.sql.syntax.alterations import altered, with_setting
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import (
    AddColumn,
    AlterQuery,
    AlterStream,
    AlterView,
    CreateStream,
    CreateView,
    DropColumn,
    DryRun,
    ExplainAlter,
)


def after(definition: str, actions: str) -> CreateStream:
    stream, statement = parse_one(definition), parse_one(f"ALTER TABLE s {actions}")
    assert isinstance(stream, CreateStream)
    assert isinstance(statement, AlterStream)
    return altered(stream, statement.actions)


def test_the_statement() -> None:
    text = (
        "ALTER STREAM IF EXISTS s ADD COLUMN a array(decimal(10, 2)) DEFAULT NULL, DROP COLUMN IF EXISTS b, ADD c int"
    )
    added = [TextPlace("a array(decimal(10, 2)) DEFAULT NULL"), TextPlace("c int")]
    actions = (AddColumn("a", added[0]), DropColumn("b", True), AddColumn("c", added[1]))
    assert parse_one(text) == AlterStream("s", actions, True, text)


@pytest.mark.parametrize(
    ("definition", "actions", "text"),
    [
        ("CREATE STREAM s (a int)", "ADD COLUMN b string", "CREATE STREAM s (a int, b string)"),
        ("CREATE STREAM s (a int)", "ADD COLUMN IF NOT EXISTS a int", "CREATE STREAM s (a int)"),
        (
            "CREATE TABLE s (k INT PRIMARY KEY, t TIMESTAMP, WATERMARK FOR t AS t)",
            "ADD COLUMN n NUMERIC(10, 2) DEFAULT 1.5",
            "CREATE TABLE s (k INT PRIMARY KEY, t TIMESTAMP, WATERMARK FOR t AS t, n NUMERIC(10, 2) DEFAULT 1.5)",
        ),
        ("CREATE STREAM s (a int, b string)", "DROP COLUMN b", "CREATE STREAM s (a int)"),
        ("CREATE STREAM s (a decimal(10, 2), b string)", "DROP COLUMN a", "CREATE STREAM s (b string)"),
        ("CREATE STREAM s (a int, `b c` map(string, int), d int)", "DROP `b c`", "CREATE STREAM s (a int, d int)"),
        ("CREATE STREAM s (a int, b int)", "DROP COLUMN a, ADD COLUMN a string", "CREATE STREAM s (b int, a string)"),
        ("CREATE STREAM s (a int, b int)", "RENAME COLUMN a TO c", "CREATE STREAM s (c int FORMERLY a, b int)"),
        (
            "CREATE TABLE s (k INT PRIMARY KEY, `b c` NUMERIC(10, 2) DEFAULT 1)",
            "RENAME `b c` TO b, RENAME COLUMN b TO d",
            "CREATE TABLE s (k INT PRIMARY KEY, d NUMERIC(10, 2) DEFAULT 1 FORMERLY `b c` FORMERLY b)",
        ),
        (
            "CREATE STREAM s (a int FORMERLY b)",
            "RENAME COLUMN a TO b",
            "CREATE STREAM s (b int FORMERLY b FORMERLY a)",
        ),
        ("CREATE STREAM s (a int)", "RENAME COLUMN IF EXISTS b TO c", "CREATE STREAM s (a int)"),
        (
            "CREATE MUTABLE STREAM s (a int, index int, b int, INDEX i (b)) PRIMARY KEY a",
            "DROP COLUMN index",
            "CREATE MUTABLE STREAM s (a int, b int, INDEX i (b)) PRIMARY KEY a",
        ),
    ],
)
def test_what_is_not_named_stays_as_it_was_written(definition: str, actions: str, text: str) -> None:
    made = after(definition, actions)
    assert made.text == text
    assert made == parse_one(text)


@pytest.mark.parametrize(
    ("definition", "actions", "kind", "what"),
    [
        ("CREATE STREAM s (a int)", "ADD COLUMN a string", SqlError, 'has a column "a" already'),
        ("CREATE STREAM s (a int)", "ADD COLUMN A string", SqlError, "differ in letter case alone"),
        ("CREATE STREAM s (a int)", "ADD COLUMN b int NOT NULL", SqlError, "it cannot be NULL"),
        ("CREATE TABLE s (a int)", "ADD COLUMN b int PRIMARY KEY", Unsupported, "no key"),
        ("CREATE STREAM s (a int)", "ADD COLUMN b number_of_things", SqlError, "number_of_things"),
        ("CREATE STREAM s (a int)", "DROP COLUMN b", UnknownName, 'no column "b"'),
        ("CREATE STREAM s (a int)", "RENAME COLUMN b TO c", UnknownName, 'no column "b"'),
        ("CREATE STREAM s (a int, b int)", "RENAME COLUMN a TO b", SqlError, "declared twice"),
        ("CREATE STREAM s (a int)", "RENAME COLUMN a TO b, ADD COLUMN a int", SqlError, 'could mean "b" or "a"'),
        ("CREATE TABLE s (a int PRIMARY KEY, b int)", "RENAME COLUMN a TO c", Unsupported, "of the primary key"),
        (
            "CREATE MUTABLE STREAM s (a int, b int, INDEX i (b)) PRIMARY KEY a",
            "RENAME b TO c",
            Unsupported,
            "of an index",
        ),
        ("CREATE STREAM s (a int)", "DROP COLUMN a", Unsupported, "the only column"),
        ("CREATE TABLE s (a int PRIMARY KEY, b int)", "DROP COLUMN a", Unsupported, "of the primary key"),
        ("CREATE TABLE s (a TIMESTAMP, b int, WATERMARK FOR a AS a)", "DROP COLUMN a", Unsupported, "the "),
        (
            "CREATE STREAM s (a datetime64(3), b int) SETTINGS event_time_column = 'a'",
            "DROP COLUMN a",
            Unsupported,
            "the event time",
        ),
        (
            "CREATE MUTABLE STREAM s (a int, v int) PRIMARY KEY a SETTINGS version_column = 'v'",
            "DROP COLUMN v",
            Unsupported,
            "the version",
        ),
        ("CREATE MUTABLE STREAM s (a int, b int, INDEX i (b)) PRIMARY KEY a", "DROP b", Unsupported, "of an index"),
    ],
)
def test_what_a_stream_cannot_miss_or_take(definition: str, actions: str, kind: type[SqlError], what: str) -> None:
    with pytest.raises(kind) as refused:
        after(definition, actions)
    assert what in refused.value.what


def test_a_former_name_is_of_one_column_and_of_no_key() -> None:
    for definition, what in [
        ("CREATE STREAM s (a int FORMERLY c, b int FORMERLY c)", 'a member "c" could mean "a" or "b"'),
        ("CREATE STREAM s (a int, b int FORMERLY a)", 'a member "a" could mean "a" or "b"'),
        ("CREATE TABLE s (a int PRIMARY KEY FORMERLY b)", "of the primary key"),
    ]:
        with pytest.raises(SqlError) as refused:
            parse_one(definition)
        assert what in refused.value.what


@pytest.mark.parametrize("action", ["RENAME TO t", "MODIFY COLUMN a string", "ALTER COLUMN a string"])
def test_what_would_say_of_old_records_what_is_not_so(action: str) -> None:
    with pytest.raises(Unsupported, match="is not taken") as refused:
        parse_one(f"ALTER STREAM s {action}")
    assert "CREATE" in refused.value.fix


@pytest.mark.parametrize(
    "text",
    [
        "ALTER VIEW IF EXISTS v SET (buckets = 3)",
        "ALTER VIEW IF EXISTS v SET buckets = 3",
        "ALTER MATERIALIZED VIEW IF EXISTS v SET (buckets = 3)",
        "ALTER VIEW IF EXISTS v MODIFY SETTING buckets = 3",
    ],
)
def test_a_setting_of_a_view_in_either_dialect(text: str) -> None:
    assert parse_one(text) == AlterView("v", {"buckets": 3}, True, text)


@pytest.mark.parametrize("view", ["VIEW", "MATERIALIZED VIEW"])
def test_another_query_of_a_view_is_read_as_that_of_a_view(view: str) -> None:
    query = "(x) AS SELECT a FROM s WHERE a > 1 SETTINGS buckets = 2"
    dry_run, explained = parse_one(f"ALTER {view} v {query} DRY RUN"), parse_one(f"EXPLAIN ALTER {view} v {query}")
    assert isinstance(dry_run, DryRun)
    assert isinstance(explained, ExplainAlter)
    assert dry_run.view == explained.view
    created = parse_one(dry_run.view.text)
    assert isinstance(created, CreateView)
    assert (created.name, created.columns, created.settings) == ("v", ("x",), {"buckets": 2})
    assert created == dry_run.view


def test_without_dry_run_the_query_is_to_be_changed() -> None:
    text = "ALTER VIEW v AS SELECT a FROM s"
    altered, tried = parse_one(text), parse_one(f"{text} DRY RUN")
    assert isinstance(altered, AlterQuery)
    assert isinstance(tried, DryRun)
    assert altered.view == tried.view


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ALTER STREAM s ADD COLUMN a int DRY RUN", "a dry run is one of another query of a view"),
        ("ALTER VIEW v SET (buckets = 2) DRY RUN", "a dry run is one of another query of a view"),
        ("ALTER VIEW v AS DRY RUN", "expected SELECT or WITH, found the end of the statement"),
        ("EXPLAIN ALTER v SET (buckets = 2)", "expected AS"),
        ("ALTER VIEW IF EXISTS v AS SELECT a FROM s", "IF EXISTS is not taken with another query"),
        ("CREATE VIEW v AS", "expected SELECT or WITH, found the end of the statement"),
        ("ALTER VIEW v", "expected SET or MODIFY SETTING, found the end of the statement"),
        ("ALTER VIEW v SET (buckets = 3", 'expected ")"'),
        ("ALTER VIEW v SET (buckets = 3, buckets = 4)", "the setting buckets is given twice"),
        ("ALTER VIEW v RENAME TO w", "RENAME TO is not taken"),
        ("ALTER VIEW v ADD COLUMN a int", "expected SET or MODIFY SETTING"),
    ],
)
def test_what_is_no_setting_of_a_view(text: str, said: str) -> None:
    with pytest.raises(SqlError, match=re.escape(said)):
        parse_one(text)


SELECT = "CREATE MATERIALIZED VIEW v AS SELECT l.k FROM l JOIN r ON l.k = r.k"


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (SELECT, f"{SELECT} SETTINGS buckets = 7"),
        (f"{SELECT} SETTINGS buckets = 2", f"{SELECT} SETTINGS buckets = 7"),
        (f"{SELECT} SETTINGS Buckets='2', seek_to='earliest'", f"{SELECT} SETTINGS Buckets=7, seek_to='earliest'"),
        (
            f"{SELECT} SETTINGS (seek_to = 'earliest') EMIT CHANGELOG",
            f"{SELECT} SETTINGS (seek_to = 'earliest', buckets = 7) EMIT CHANGELOG",
        ),
        (
            f"{SELECT} SETTINGS seek_to = 'earliest' -- from the beginning",
            f"{SELECT} SETTINGS seek_to = 'earliest', buckets = 7",
        ),
        (f"{SELECT} EMIT CHANGELOG", f"{SELECT} EMIT CHANGELOG SETTINGS buckets = 7"),
        (f"{SELECT} WHERE l.settings = 2", f"{SELECT} WHERE l.settings = 2 SETTINGS buckets = 7"),
    ],
)
def test_a_view_gets_a_setting(definition: str, text: str) -> None:
    view = parse_one(definition)
    assert isinstance(view, CreateView)
    again = with_setting(view, "buckets", 7)
    assert again.text == text
    assert with_setting(again, "buckets", 7).text == text


@pytest.mark.parametrize(
    ("action", "what", "marked"),
    [
        ("ADD PRIMARY KEY (a)", "keys and indexes are declared with the columns", "ADD PRIMARY KEY (a)"),
        ("ADD WATERMARK FOR a AS a", "ADD takes a column", "WATERMARK FOR a AS a"),
        ("ADD INDEX i (a)", "keys and indexes are declared with the columns", "ADD INDEX i (a)"),
        ("ADD FAMILY f (a)", "ADD takes a column", "FAMILY f (a)"),
        ("ADD CONSTRAINT c CHECK (a > 0)", "CONSTRAINT would be checked", "CONSTRAINT c CHECK (a > 0)"),
        ("ADD UNIQUE (a)", "UNIQUE would be checked", "UNIQUE (a)"),
        ("ADD FOREIGN KEY (a) REFERENCES t (b)", "FOREIGN KEY would be checked", "FOREIGN KEY (a) REFERENCES t (b)"),
        ("ADD COLUMN c int CHECK (c > 0)", "CHECK would be checked", "CHECK (c > 0)"),
        ("ADD COLUMN c int, ADD COLUMN d foo", 'there is no type "foo"', "foo"),
        ("ADD COLUMN c int AFTER a", "a new column is the last", "AFTER a"),
        ("ADD COLUMN c int FIRST", "a new column is the last", "FIRST"),
    ],
)
def test_an_element_that_cannot_be_added_is_marked_where_it_is_written(action: str, what: str, marked: str) -> None:
    with pytest.raises(SqlError, match=re.escape(what)) as refused:
        after("CREATE TABLE s (a int, b varchar)", action)
    assert refused.value.fix
    assert isinstance(refused.value.where, TextPlace)
    assert refused.value.where.script[refused.value.where.offset :] == marked
