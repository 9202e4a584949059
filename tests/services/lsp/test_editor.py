"""``dovetail lsp`` as an editor meets it: the command itself, spoken to over its standard input, with no stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docs.pages import Page
from tests.services.lsp.editor import SERVER, Editor, editor, started_by

SHOP = """\
CREATE STREAM orders (id int64, price float64, at datetime64(3)); -- of a shop
CREATE MATERIALIZED VIEW doubled AS SELECT id, price * 2 AS twice FROM orders;
CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 1;
CREATE TABLE users (id int PRIMARY KEY, name varchar);
SELECT d.twice, '😀' AS smile, c.id FROM doubled AS d JOIN cheap AS c ON c.id = d.id;
INSERT INTO users VALUES (1, 'ann'), (2, $$bob; or not$$);
/* another; comment */ UPDATE users SET name = 'eve' WHERE id = 2;
EXPLAIN SELECT count(*) FROM orders GROUP BY id;
"""


@pytest.fixture(scope="module")
def open_editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One for all tests: each opens its text in it."""
    with editor(tmp_path_factory.mktemp("editor")) as opened:
        yield opened


def marked(text: str, diagnostic: dict[str, Any]) -> str:
    """The part of a text that a diagnostic is about."""
    lines = text.replace("\r\n", "\n").split("\n")
    start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
    assert start["line"] == end["line"]
    units = lines[int(start["line"])].encode("utf-16-le")
    first, last = int(start["character"]), int(end["character"])
    return units[2 * first : 2 * last].decode("utf-16-le")


def wrong(opened: Editor, text: str) -> list[tuple[str, str]]:
    """The words that are marked, and the first line of what is said of each."""
    return [(marked(text, one), one["message"].split("\n")[0]) for one in opened.open(text)]


def test_a_file_whose_statements_build_on_each_other_is_right(open_editor: Editor) -> None:
    assert open_editor.open(SHOP) == []


@pytest.mark.parametrize(
    ("statement", "word", "message"),
    [
        ("SELEC 1", "SELEC", "no statement begins with SELEC"),
        ("SELECT twise FROM doubled", "twise", 'there is no column "twise"'),
        ("SELECT '😀😀', d.prize\nFROM doubled d", "prize", '"d" has no column "prize"'),
        ("SELECT id\r\nFROM orders\r\nWHERE '😀' = prize", "prize", 'there is no column "prize"'),
        ("SELECT upper(name, 2) FROM users", "name", "upper() takes 1 argument, not 2"),
        ("CREATE STREAM orders (a int)", "orders", 'there is a stream "orders" already'),
        ("INSERT INTO users VALUES (1)  , (2, 'x', 3)", "INSERT", "row 2 has 3 values for 2 columns"),
        ("UPDATE users SET nam = 'x'", "nam", '"users" has no column "nam"'),
        ("DELETE FROM users WHERE nam = 'x'", "nam", 'there is no column "nam"'),
        ("UPDATE orders SET price = 1", "orders", '"orders" is append-only: its rows are never changed'),
        (
            "CREATE DICTIONARY d (k int, v int) PRIMARY KEY k SOURCE(NO()) LAYOUT(FLAT())",
            "CREATE",
            "there is no source",
        ),
        ("ALTER STREAM orders DROP COLUMN prize", "prize", '"orders" has no column "prize"'),
        ("WHY nothing WHERE id = 1", "nothing", 'there is no stream or view "nothing"'),
        ("SELECT 'never closed; SELECT 1", "'", "a quote or a comment that is opened here is never closed"),
        ("CREATE MATERIALIZED VIEW w AS SELECT id FROM table(orders)", "w", 'the query of "w" reads table(x) only'),
    ],
)
def test_what_is_wrong_is_marked_with_its_reason(open_editor: Editor, statement: str, word: str, message: str) -> None:
    ((found, said),) = wrong(open_editor, f"{SHOP}{statement}")
    assert (found, said[: len(message)]) == (word, message)


def test_each_statement_is_looked_at_by_itself(open_editor: Editor) -> None:
    text = "SELECT a; CREAT x;\r\n\r\nCREATE STREAM s (a int);\r\nSELECT b FROM s;; SELECT a FROM s;"
    assert [word for word, _ in wrong(open_editor, text)] == ["a", "CREAT", "b"]


def test_the_fix_is_in_the_message(open_editor: Editor) -> None:
    (found,) = open_editor.open("CREATE STREAM s (price int); SELECT prise FROM s")
    assert found["message"] == 'there is no column "prise"\nfix: did you mean "price"?'
    assert (found["severity"], found["source"]) == (1, "dovetail")


def test_a_relation_that_only_a_stack_may_have_is_a_warning(open_editor: Editor) -> None:
    (found,) = open_editor.open("SELECT a FROM elsewhere")
    assert found["severity"] == 2
    assert open_editor.change("CREATE STREAM elsewhere (a int); SELECT a FROM elsewhere") == []


def test_a_wrong_definition_is_not_told_again_at_each_use(open_editor: Editor) -> None:
    text = "CREATE STREAM s (a nothing); CREATE VIEW v AS SELECT b FROM s; SELECT c FROM v"
    assert [word for word, _ in wrong(open_editor, text)] == ["nothing"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s (a int); CREATE STREAM IF NOT EXISTS s (b int); SELECT a FROM s",
        "CREATE STREAM s (a int); CREATE OR REPLACE STREAM s (b int); SELECT b FROM s",
        "CREATE TABLE s (a int); CREATE TABLE t AS SELECT a + 1 AS c FROM s; INSERT INTO t VALUES (1); SELECT c FROM t",
        "CREATE EXTERNAL TABLE e SETTINGS type = 'mysql', address = 'db:3306', table = 'e'; SELECT anything FROM e",
        'CREATE STREAM "my stream" (a int); SELECT a FROM "my stream"; SELECT a FROM `my stream`',
        "CREATE STREAM sales.orders (a int); SELECT orders.a FROM sales.orders; SELECT a FROM Sales.Orders",
        "SELECT 1; -- a comment; with a semicolon\n;;\n/* SELEC */",
    ],
)
def test_what_statements_make_is_there_for_those_below(open_editor: Editor, text: str) -> None:
    assert open_editor.open(text) == []


def test_a_relation_is_gone_after_drop(open_editor: Editor) -> None:
    text = "DROP STREAM IF EXISTS s; CREATE STREAM s (a int); DROP STREAM s; SELECT a FROM s"
    assert [word for word, _ in wrong(open_editor, text)] == ["s"]


def test_an_altered_stream_has_its_new_columns(open_editor: Editor) -> None:
    text = "CREATE STREAM s (a int); ALTER STREAM s ADD COLUMN b int DEFAULT 0; SELECT a, b FROM s"
    assert open_editor.open(text) == []


def test_nothing_of_a_file_is_run(open_editor: Editor, tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"""CREATE FUNCTION touch_it(x int) RETURNS int LANGUAGE python AS $$
import pathlib
pathlib.Path({str(made)!r}).touch()
def touch_it(x): return x
$$;
CREATE STREAM s (a int);
SELECT touch_it(1);
SELECT touch_it(1) + 1 AS n FROM s WHERE touch_it(2) = 2;
CREATE MATERIALIZED VIEW v AS SELECT touch_it(a) AS n FROM s;
INSERT INTO s VALUES (touch_it(3));
"""
    assert open_editor.open(text) == []
    assert "touch_it(x int" in open_editor.hover(6, 9)
    assert not made.exists()


def test_only_the_last_of_many_changes_is_looked_at(open_editor: Editor) -> None:
    open_editor.open("")
    texts = [f"CREATE STREAM s (a int); SELECT b{number} FROM s" for number in range(50)]
    assert 'no column "b49"' in open_editor.change(*texts)[0]["message"]


def test_a_dialect_is_that_of_a_comment_or_an_option(open_editor: Editor, tmp_path: Path) -> None:
    text = "SELECT jsonb_pretty('{}'::jsonb)"
    assert open_editor.open(text) != []
    assert open_editor.change(f"-- dialect: risingwave\n{text}") == []
    assert "to_start_of_hour(" not in open_editor.offered(1, 9)
    with editor(tmp_path, options={"dialect": "risingwave"}) as opened:
        assert opened.open(text) == []
        assert opened.change(f"-- dialect: timeplus\n{text}") != []


def test_completion_knows_names_columns_functions_and_keywords(open_editor: Editor) -> None:
    open_editor.open(SHOP)
    open_editor.change(f"{SHOP}SELECT '😀', d. FROM doubled AS d; SELECT dou; sel; DROP ; SELECT 'dou")
    last = SHOP.count("\n")
    line = "SELECT '😀', d. FROM doubled AS d; SELECT dou; sel; DROP ; SELECT 'dou"
    assert open_editor.offered(last, units(line, "d.")) == ["id", "twice"]
    assert open_editor.offered(last, units(line, "SELECT dou"))[0] == "doubled"
    assert "select" in open_editor.offered(last, units(line, "sel"))
    assert {"MATERIALIZED VIEW", "TOPIC", "doubled"} <= set(open_editor.offered(last, units(line, "DROP ")))
    assert open_editor.offered(last, units(line, "'dou")) == []


def units(line: str, until: str) -> int:
    """The place behind ``until``, in UTF-16."""
    return len(line[: line.index(until) + len(until)].encode("utf-16-le")) // 2


def test_a_statement_does_not_see_what_comes_later(open_editor: Editor) -> None:
    open_editor.open("SELECT 1 FROM s;\nCREATE STREAM s (a int);\nSELECT 1 FROM s;")
    assert "s" not in open_editor.offered(0, 14)
    assert "s" in open_editor.offered(2, 14)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((0, 3), "a [topic](topics.md) with a schema"),
        ((0, 15), "stream orders\nid int64\nprice float64\nat datetime64(3, 'UTC')"),
        ((1, 28), "materialized view doubled\nid int64\ntwice float64"),
        ((4, 10), "twice float64"),
        ((7, 16), "An aggregate."),
        ((4, 18), ""),
    ],
)
def test_hover_says_what_a_word_is(open_editor: Editor, place: tuple[int, int], expected: str) -> None:
    open_editor.open(SHOP)
    assert expected in open_editor.hover(*place)
    assert bool(expected) == bool(open_editor.hover(*place))


def test_types_are_those_that_are_declared(open_editor: Editor) -> None:
    declared = "CREATE TABLE kept (id int PRIMARY KEY, doc jsonb, due interval)"
    open_editor.open(f"{declared};\nCREATE MATERIALIZED VIEW kept_too AS SELECT doc -> 'a' AS a, due FROM kept;")
    assert "stream kept\nid integer\ndoc jsonb\ndue interval" in open_editor.hover(0, 14)
    assert "materialized view kept_too\na jsonb\ndue interval" in open_editor.hover(1, 28)


def test_hover_over_functions_and_joins(open_editor: Editor) -> None:
    open_editor.open("SELECT to_start_of_hour(at), jsonb_typeof(x) FROM a ASOF JOIN b ON a.t >= b.t")
    assert "to_start_of_hour(" in open_editor.hover(0, 12)
    assert "(RisingWave)" in open_editor.hover(0, 35)
    assert "at most one right row" in open_editor.hover(0, 55)


def test_a_large_file_is_looked_at_as_it_is_typed(tmp_path: Path) -> None:
    head = "CREATE STREAM s (id int64, name string);\n"
    rest = "".join(f"INSERT INTO s (id, name) VALUES ({number}, '😀');\r\n" for number in range(4_999))
    with editor(tmp_path) as opened:
        assert opened.open(head + rest) == []
        (found,) = opened.change(f"{head}{rest}SELECT nam FROM s;")
        assert found["range"]["start"] == {"line": 5_000, "character": 7}
        assert opened.change(f"{head}{rest}SELECT '") != []
        assert "name" in opened.change(f"{head}{rest}SELECT nam FROM s")[0]["message"]
        assert opened.offered(5_000, 10)[0] == "name"
        assert opened.close() == 0


@pytest.fixture(scope="module")
def typed_into(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with editor(tmp_path_factory.mktemp("typed")) as opened:
        opened.open("")
        yield opened


@given(end=st.integers(0, len(SHOP)), text=st.sampled_from([SHOP, SHOP.replace("\n", "\r\n")]))
def test_any_beginning_of_a_file_is_answered(typed_into: Editor, end: int, text: str) -> None:
    begun = text[:end]
    typed_into.change(begun)
    lines = begun.replace("\r\n", "\n").split("\n")
    place = len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2
    typed_into.offered(*place)
    typed_into.hover(*place)
    assert typed_into.process.poll() is None


@given(st.text())
def test_any_text_is_answered(typed_into: Editor, text: str) -> None:
    typed_into.change(text)
    typed_into.offered(0, 3)
    typed_into.hover(0, 3)
    assert typed_into.process.poll() is None


def test_it_ends_with_its_input(tmp_path: Path) -> None:
    with editor(tmp_path) as opened:
        opened.open(SHOP)
        assert opened.process.stdin is not None
        opened.process.stdin.close()
        opened.process.wait(60)


def test_the_settings_of_the_page_start_it(tmp_path: Path) -> None:
    page = Page.of("docs/tasks/editors.md")
    started = [started_by(text) for text in [*page.blocks("json"), *page.blocks("lua")]]
    assert len(started) == 2
    for (command, *arguments), options in started:
        assert command == "dovetail"
        with editor(tmp_path, (*SERVER[:-1], *arguments), options) as opened:
            assert opened.open("SELECT jsonb_pretty('{}'::jsonb)") == []
            assert "SELEC" in opened.change("SELEC 1")[0]["message"]
