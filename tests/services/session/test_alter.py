"""ALTER STREAM and TABLE over the records that are there, against a real broker."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import DovetailError, SqlError, UnknownName, Unsupported
from dovetail.services.session import Done, Session, Text
from dovetail.sql.catalog import Query
from tests.services.conftest import Ask

pytestmark = pytest.mark.services


def refused(session: Session, statement: str) -> DovetailError:
    with pytest.raises(DovetailError) as raised:
        session.run(statement)
    return raised.value


@pytest.mark.parametrize(
    ("create", "noun"),
    [
        ("CREATE MUTABLE STREAM s (k int, a string) PRIMARY KEY k", "STREAM"),
        ("CREATE TABLE s (k int PRIMARY KEY, a varchar)", "TABLE"),
    ],
)
def test_old_records_have_the_default_of_a_new_column(session: Session, ask: Ask, create: str, noun: str) -> None:
    session.run(f"{create}; INSERT INTO s VALUES (1, 'x')")
    before = session.context.topics.ids(["s"])
    [done] = session.run(f"ALTER {noun} s ADD COLUMN b int DEFAULT 7, ADD COLUMN c int")
    assert done == Done("altered stream s, columns k, a, b, c; its records stay as they are")
    session.run("INSERT INTO s VALUES (2, 'y', 8, 9)")
    assert ask("SELECT * FROM table(s) ORDER BY k")[0][:4] == (1, "x", 7, None)
    assert ask("SELECT k, b, c FROM table(s) ORDER BY k") == [(1, 7, None), (2, 8, 9)]
    session.run(f"ALTER {noun} s DROP COLUMN a")
    assert ask("SELECT k, b FROM table(s) ORDER BY k") == [(1, 7), (2, 8)]
    assert '"a"' in refused(session, "SELECT a FROM table(s)").what
    assert session.context.topics.ids(["s"]) == before


def test_a_renamed_column_is_read_from_records_of_both_names(session: Session, ask: Ask) -> None:
    session.run(
        "CREATE TABLE s (k int PRIMARY KEY, a int DEFAULT 5, b int); INSERT INTO s VALUES (1, 10, 0), (2, 20, 0)"
    )
    session.run("CREATE VIEW of_a AS SELECT a FROM s; CREATE VIEW of_b AS SELECT b FROM s")
    assert refused(session, "ALTER TABLE s RENAME COLUMN a TO c").what.startswith("of_a would read")
    session.run("DROP VIEW of_a")
    [done] = session.run("ALTER TABLE s RENAME COLUMN a TO c")
    assert done == Done("altered stream s, columns k, c, b; its records stay as they are")
    session.run("INSERT INTO s (k, c) VALUES (3, 30); INSERT INTO s (k) VALUES (4); UPDATE s SET b = 1 WHERE k = 2")
    assert ask("SELECT k, c, b FROM table(s) ORDER BY k") == [(1, 10, 0), (2, 20, 1), (3, 30, None), (4, 5, None)]
    assert '"a"' in refused(session, "SELECT a FROM table(s)").what


def test_a_view_that_reads_a_column_keeps_it(session: Session) -> None:
    session.run("CREATE TABLE s (k int PRIMARY KEY, a int, b int); CREATE TABLE t (k int PRIMARY KEY, c int)")
    session.run("CREATE VIEW named AS SELECT k, a FROM s; CREATE VIEW above AS SELECT a FROM named")
    session.run("CREATE VIEW other AS SELECT c, b FROM s JOIN t ON s.k = t.k")
    error = refused(session, "ALTER TABLE s DROP COLUMN a")
    assert isinstance(error, Unsupported)
    assert error.what.startswith("above, named would read")
    session.run("ALTER TABLE s ADD COLUMN d int; ALTER TABLE s DROP COLUMN d")
    # Both would have a column of this name, so that it would not be told which is meant.
    assert refused(session, "ALTER TABLE s ADD COLUMN c int").what.startswith("other would read")
    assert session.context.catalog.get("s").ddl == "CREATE TABLE s (k int PRIMARY KEY, a int, b int)"


STARS = {
    "all_of_it": ("SELECT * FROM s", 'SELECT s.k, s."A b", s.order FROM s'),
    "above": ("SELECT 2 * k, x.* FROM all_of_it AS x", "SELECT 2 * k, x.* FROM all_of_it AS x"),
    "merged": ("SELECT * FROM s JOIN s AS o USING (k)", None),
    "inside": ("SELECT count(*) AS n FROM (SELECT * FROM s)", None),
    "without": ("SELECT * EXCEPT (k) FROM all_of_it", "SELECT * EXCEPT (k) FROM all_of_it"),
}


def test_a_view_keeps_what_a_star_was(session: Session) -> None:
    session.run('CREATE TABLE s (k int PRIMARY KEY, "A b" int, "order" int)')
    for name, (query, _) in STARS.items():
        session.run(f"CREATE VIEW {name} AS {query}")
    plans = {name: explained(session, name) for name in STARS}
    [done] = session.run("ALTER TABLE s ADD COLUMN d int")
    assert isinstance(done, Done)
    assert set(done.text.rpartition("; ")[2].removesuffix(" named what * was").split(", ")) == {"all_of_it", "merged"}
    for name, (_, then) in STARS.items():
        if then is not None:
            assert session.context.catalog.get(name).ddl == f"CREATE VIEW {name} AS {then}"
    assert {name: explained(session, name) for name in STARS} == plans
    session.run("CREATE VIEW later AS SELECT * FROM s")
    assert refused(session, "ALTER TABLE s DROP COLUMN d").what.startswith("later would read")


def explained(session: Session, view: str) -> str:
    [plan] = session.run(f"EXPLAIN SELECT * FROM {view}")
    assert isinstance(plan, Text)
    return plan.text


def test_so_does_a_running_select_and_an_index(session: Session) -> None:
    session.run("CREATE TABLE s (k int PRIMARY KEY, a int, b int); CREATE INDEX by_b ON s (b)")
    assert refused(session, "ALTER TABLE s DROP COLUMN b").what.startswith("by_b would read")
    session.context.catalog.add_query(Query("select_1", "SELECT a FROM s WHERE a > 1", "", "", "select_1"), now_ms=1)
    assert refused(session, "ALTER TABLE s DROP COLUMN a").what.startswith("select_1 would read")
    session.run("ALTER TABLE s ADD COLUMN d int; TERMINATE select_1; ALTER TABLE s DROP COLUMN a")


def test_what_is_no_stream_is_not_altered(session: Session) -> None:
    session.run("CREATE STREAM s (k int); CREATE VIEW v AS SELECT k FROM s")
    assert isinstance(refused(session, "ALTER STREAM v ADD COLUMN a int"), SqlError)
    assert session.run("ALTER STREAM IF EXISTS nothing ADD COLUMN a int") == [Done("there is no stream nothing")]


def test_columns_that_are_told_by_their_places_stay(session: Session, ask: Ask) -> None:
    session.run("CREATE STREAM s (a int, b int) SETTINGS data_format = 'CSV'; INSERT INTO s VALUES (1, 2)")
    for action in ("ADD COLUMN c int", "DROP COLUMN b"):
        with pytest.raises(Unsupported, match="tells columns by their places"):
            session.run(f"ALTER STREAM s {action}")
    session.run("ALTER STREAM s RENAME COLUMN b TO c; INSERT INTO s (c, a) VALUES (4, 3)")
    assert ask("SELECT a, c FROM table(s) ORDER BY a") == [(1, 2), (3, 4)]
    with pytest.raises(UnknownName, match="_tp_time"):
        session.run("INSERT INTO s (a, _tp_time) VALUES (1, '2026-01-01 00:00:00')")
